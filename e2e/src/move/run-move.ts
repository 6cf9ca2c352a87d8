/*
 * npm run test:move [-- --contacts N] [--reports N] [--seed N] [--break NAME]: a health centre is moved in a real Chromium,
 * planned offline, killed three times, the server down twice; then each lineage must be right on device and server, and
 * the same request again must change nothing.
 */
import { parseArgs } from 'node:util';
import type { LongTask } from './messages.js';
import { mistakes, move, type Mistake } from './move.js';

const usage = `npm run test:move [-- OPTIONS]
  --contacts N   contacts below the health centre that moves; default: 3000
  --reports N    reports that they have sent; default: 5000
  --seed N       default: fresh, and printed
  --break NAME   with a mistake, which must make it red: ${Object.keys(mistakes).join(', ')}`;

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  options: {
    contacts: { type: 'string', default: '3000' },
    reports: { type: 'string', default: '5000' },
    seed: { type: 'string' },
    break: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

/** Tasks over 50 ms by what the client was at. */
function longTaskLines(tasks: readonly LongTask[]): string[] {
  const stages = new Set(tasks.map(({ during }) => during));
  return [...stages].map((stage) => {
    const took = tasks.filter(({ during }) => during === stage).map((task) => task.took);
    return `tasks over 50 ms, ${stage}: ${String(took.length)}, the longest ${Math.max(...took).toFixed(0)} ms`;
  });
}

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
  const contacts = numberOf('contacts', values.contacts);
  const reports = numberOf('reports', values.reports);
  const seed = numberOf('seed', values.seed ?? String(1 + Math.floor(Math.random() * 0x7ffffffe)));
  console.log(`Seed ${String(seed)}: ${String(contacts)} contacts, ${String(reports)} reports`);
  if (mistake !== undefined) console.log(`With a mistake: ${mistakes[mistake]}.`);
  const began = performance.now();
  const say = (line: string): void => {
    console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  };
  const { ends, wrong, kills, outages, longTasks, village } = await move({ contacts, reports, seed, mistake, say });
  for (const line of longTaskLines(longTasks)) console.log(`          ${line}`);
  for (const line of wrong.slice(0, 20)) console.log(`WRONG: ${line}`);
  const [bulk] = ends[0].bulks;
  const unchanged = village.docs.length - village.operations.size;
  console.log(
    wrong.length === 0
      ? `${String(bulk?.applied)} operations on ${String(village.operations.size)} documents, each applied once; ` +
          `${String(unchanged)} documents elsewhere unchanged; ${String(kills)} kills, ${String(outages)} outages; ` +
          `0 wrong lineages on device and server; a second run changed nothing.`
      : `${String(wrong.length)} things are wrong. Run it again: npm run test:move -- --seed ${String(seed)}`,
  );
  return wrong.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
