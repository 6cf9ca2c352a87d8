/*
 * npm run test:index [-- --documents N] [--kills N] [--seed N] [--break NAME]: a Chromium with its profile on disk builds an
 * index and is killed (SIGKILL, all of its processes) at random moments; at the end the index must be the same as one that
 * was not disturbed, and each kill may have cost one batch that was read again.
 */
import { parseArgs } from 'node:util';
import { indexKill } from './index-kill.js';
import { mistakes, type Mistake } from './messages.js';
import { readInAll } from './wrong-in-builds.js';

const usage = `npm run test:index [-- OPTIONS]
  --documents N   default: 50000
  --kills N       default: 10
  --seed N        default: fresh, and printed
  --break NAME    with a mistake, which must make it red: ${Object.keys(mistakes).join(', ')}`;

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  options: {
    documents: { type: 'string', default: '50000' },
    kills: { type: 'string', default: '10' },
    seed: { type: 'string' },
    break: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`--${name} needs a number, not ${text}.\n${usage}`);
}

function isMistake(name: string): name is Mistake {
  return Object.hasOwn(mistakes, name);
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const mistake = values.break;
  if (mistake !== undefined && !isMistake(mistake)) throw new Error(`There is no break ${mistake}.\n${usage}`);
  const documents = numberOf('documents', values.documents);
  const kills = numberOf('kills', values.kills);
  const seed = numberOf('seed', values.seed ?? String(1 + Math.floor(Math.random() * 0x7ffffffe)));
  console.log(`Seed ${String(seed)}: ${String(documents)} documents, ${String(kills)} kills`);
  if (mistake !== undefined) console.log(`With a mistake: ${mistakes[mistake]}.`);
  const began = performance.now();
  const say = (line: string): void => {
    console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  };
  const { builds, wrong } = await indexKill({ documents, kills, seed, mistake, say });
  for (const line of wrong.slice(0, 20)) console.log(`WRONG: ${line}`);
  const again = readInAll(builds.lives) - documents;
  console.log(
    wrong.length === 0
      ? `Killed ${String(kills)} times, the index has the same ${String(builds.rows.killed.length)} rows as an undisturbed one; ` +
          `${String(documents)} documents were read, ${String(again)} of them again (at most ${String(kills * 100)}).`
      : `${String(wrong.length)} things are wrong. Run it again: npm run test:index -- --seed ${String(seed)}`,
  );
  return wrong.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
