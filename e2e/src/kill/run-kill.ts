/*
 * npm run test:kill [-- --kills N] [--seed N]: a Chromium with its profile on disk works through 2,000 operations while
 * the server flaps, and is killed (SIGKILL, all of its processes) at N random moments; then server and device must agree.
 */
import { parseArgs } from 'node:util';
import { allDocuments, type Couch } from '@afield/demo-app/host';
import { serverUnderTest, temporaryDatabases } from '@afield/devserver';
import type { Browser } from '../real-browser/browser.js';
import { Lives, within } from '../real-browser/lives.js';
import { seededRandom } from '../real-browser/seeded-random.js';
import { disagreements } from './agreement.js';
import { Flapping } from './flapping.js';
import { before, bulkCount, documentsOf, perBulk, type Config, type ShownBulk, type Told } from './work.js';

/** How long a life may last after its page has begun. Milliseconds. */
const longestLifeMs = 2000;
const total = bulkCount * perBulk;

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  options: { kills: { type: 'string', default: '50' }, seed: { type: 'string' } },
});
const kills = Number(values.kills);
const seed = Number(values.seed ?? Math.floor(Math.random() * 0x7fffffff));
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed))
  throw new Error('--kills and --seed need numbers.');
const random = seededRandom(seed);

const server = await serverUnderTest();
const databases = temporaryDatabases(server.directUrl, server.admin);
const lives = await Lives.prepare<Config, Told>('afield-kill', 'kill/page.ts');
const confirmed = new Set<string>();
const problems = new Set<string>();
/** The store on the device, and how many documents are left where the browser has lost it: nothing is proved then. */
let store: string | undefined;
const losses: number[] = [];
let done = 0;
let settled: { rows: unknown; bulks: readonly ShownBulk[] } | undefined;
lives.host.listen((told) => {
  if ('alive' in told) {
    if (store !== undefined && store !== told.alive) losses.push(told.documents);
    store = told.alive;
  } else if ('confirmed' in told) confirmed.add(told.confirmed);
  else if ('done' in told) done = told.done;
  else if ('problem' in told) problems.add(told.problem);
  else if ('settled' in told) settled = told.settled;
});

/** A browser on the profile, when its page has begun. */
function life(config: Pick<Config, 'allowed' | 'isLast'>): Promise<Browser> {
  settled = undefined;
  return lives.begin({ ...urls, documents: total, ...config }, (told) => 'alive' in told);
}

async function isSettled(withinMs: number, what: string): Promise<void> {
  if (settled !== undefined) return;
  const says = lives.says((told) => 'settled' in told);
  await within(withinMs, says, () => `${what}: ${String(done)} of ${String(total)} are done`);
}

const security = 'everyone';
const docs = Array.from({ length: bulkCount }, (_, bulk) => documentsOf(bulk)).flatMap((ids) =>
  ids.map((_id) => ({ _id, type: 'person', name: `Person ${_id}`, parent: before })),
);
const records = await databases.create('records', { security, docs });
const results = await databases.create('results', { security });
const events = await databases.create('events', { security });
const through = (url: string): string => url.replace(server.directUrl, server.url);
const urls = { records: through(records.url), results: through(results.url), events: through(events.url) };
console.log(`Seed ${String(seed)}: ${String(total)} operations, ${String(kills)} kills, ${lives.executable}`);

try {
  const first = await life({ allowed: 0, isLast: false });
  await isSettled(300_000, 'the documents on the device');
  await first.kill();

  const flapping = new Flapping(server.proxy, random);
  for (let kill = 1; kill <= kills; kill += 1) {
    const allowed = Math.max(1, Math.round((bulkCount * kill) / kills));
    const browser = await life({ allowed, isLast: false });
    const momentMs = random() * longestLifeMs;
    await new Promise((resolve) => setTimeout(resolve, momentMs));
    const was = settled === undefined ? 'at work' : 'at rest';
    await browser.kill();
    console.log(
      `kill ${String(kill).padStart(2)} after ${momentMs.toFixed(0).padStart(4)} ms, ${was}: ` +
        `${String(confirmed.size)} bulk operations confirmed, ${String(done)} operations done`,
    );
  }
  await flapping.heal();
  console.log(`The network changed ${String(flapping.changes)} times and is whole now.`);

  const last = await life({ allowed: bulkCount, isLast: true });
  await isSettled(600_000, 'everything to come to its end');
  await last.kill();
  const couch: Couch = { address: server.directUrl, ...server.admin };
  const there = [...(await allDocuments(couch, records.name)).values()];
  const wrong = disagreements({
    device: settled?.rows,
    server: there.map((doc) => ({ id: doc._id, doc })),
    bulks: settled?.bulks ?? [],
    confirmed,
    events: [...(await allDocuments(couch, events.name)).values()],
    results: [...(await allDocuments(couch, results.name)).values()].filter(({ type }) => type === 'afield-result'),
  });
  for (const left of losses) {
    wrong.unshift(
      `the browser has lost the databases of the page (${String(left)} of ${String(total)} documents were left)`,
    );
  }
  for (const problem of problems) wrong.push(`an error of the page: ${problem}`);
  for (const line of wrong.slice(0, 20)) console.log(`WRONG: ${line}`);
  console.log(
    wrong.length === 0
      ? `After ${String(kills)} kills server and device agree: ${String(total)} operations, each applied and written once, with one event.`
      : `${String(wrong.length)} things are wrong. Run it again: npm run test:kill -- --seed ${String(seed)}`,
  );
  process.exitCode = wrong.length === 0 ? 0 : 1;
} finally {
  await lives.close();
  await databases.dispose();
  await server.close();
}
