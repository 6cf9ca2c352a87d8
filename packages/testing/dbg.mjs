import { readFile } from 'node:fs/promises';
import { readCases, startCaseServer } from './dist/index.js';
import { World } from './dist/cases/world.js';
import { takeBaseline } from './dist/cases/baseline.js';
import { takeSteps } from './dist/cases/steps.js';
const server = await startCaseServer();
for (const name of process.argv.slice(2)) {
  for (const c of readCases(await readFile(`${process.env.DIR??"/work/shared/cases"}/${name.split('/')[0]}.json`, 'utf8'), name)) {
    if (name.includes('/') && c.name !== name) continue;
    const w = new World(c, server, 'dbg' + Math.floor(Math.random() * 1e6));
    await w.open();
    const b = await takeBaseline(w);
    console.log(c.name, await takeSteps(w));
    const o = w.observation;
    console.log({
      states: o.states,
      attempts: o.attempts,
      push: o.pushAttempts,
      ended: o.endedAt,
      elapsed: w.clock.elapsed,
      requests: w.traffic.requests,
      rows: w.traffic.rowAttempts,
      done: o.doneKeys,
      failures: o.failures.map((f) => f.key + ' ' + f.code + ' ' + f.reason),
      err: o.lastErrorClass,
      tabs: w.tabs.map((t) => [t.number, t.alive, t.timers]),
    });
    for (const id of w.idsOfTheCase.slice(6, 10)) console.log(id, await (b.server ?? b.local).revisionsAdded(id));
    console.log(await w.close());
    await w.drop();
  }
}
await server.close();
