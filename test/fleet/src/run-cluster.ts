/*
 * npm run simulate:cluster                    days of one device, and fleets of up to ten million: the tables of docs/cluster.md
 * npm run simulate:cluster -- days            only the tables of the days
 * npm run simulate:cluster -- fleets [SIZE …] only those of the fleets; with sizes of your own they are printed, nothing is written
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { simulateDay, type Day, type DayRun } from './day.js';
import { documentsTable, loadTable, requestsTable, sizesTable } from './day-table.js';
import { days } from './days.js';
import { peaksTable, ratesTable } from './fleet-table.js';
import type { LargeFleetRun } from './large-fleet.js';
import { withBlock } from './markdown.js';

const usual = [1000, 100_000, 10_000_000];
const [what, ...given] = process.argv.slice(2);
if (what !== undefined && what !== 'days' && what !== 'fleets')
  throw new RangeError('Say `days`, `fleets`, or nothing.');
const sizes = given.map(Number);
if (sizes.some((size) => !Number.isInteger(size) || size < 1000))
  throw new RangeError('A size is a whole number from 1000.');

const blocks = new Map<string, string>();
if (what !== 'fleets') await measureDays();
if (what !== 'days') computeFleets(sizes.length === 0 ? usual : sizes);
if (sizes.length === 0) await write();
else for (const text of blocks.values()) process.stdout.write(`\n${text}\n`);

async function measureDays(): Promise<void> {
  const measure = async (day: Day): Promise<DayRun> => {
    const begun = process.cpuUsage();
    const run = await simulateDay(day);
    process.stdout.write(`${day.name}: ${String(run.count.total)} requests; ${used(begun)}\n`);
    return run;
  };
  const runs = {
    quiet: await measure(days.quiet),
    working: await measure(days.working),
    seldom: await measure(days.seldom),
    field: await measure(days.field),
    outage: await measure(days.outage),
  };
  blocks.set('requests', requestsTable(Object.values(runs)));
  blocks.set('writes', documentsTable(Object.values(runs)));
  blocks.set('sizes', sizesTable(runs.working));
  blocks.set('load', loadTable(usual, runs));
}

function computeFleets(of: readonly number[]): void {
  let begun = process.cpuUsage();
  const ran = ({ options, delivered }: LargeFleetRun): void => {
    const memory = `${String(Math.round(process.memoryUsage().rss / 1e6))} MB`;
    process.stdout.write(`${JSON.stringify(options)}: ${String(delivered)} delivered; ${used(begun)}, ${memory}\n`);
    begun = process.cpuUsage();
  };
  blocks.set('peaks', peaksTable(of, ran));
  blocks.set('rates', ratesTable(of, ran));
}

function used(since: NodeJS.CpuUsage): string {
  const { user, system } = process.cpuUsage(since);
  return `${((user + system) / 1e6).toFixed(1)} s of one core`;
}

async function write(): Promise<void> {
  const path = fileURLToPath(new URL('../../../docs/cluster.md', import.meta.url));
  const before = await readFile(path, 'utf8');
  let page = before;
  for (const [name, text] of blocks) page = withBlock(page, name, text);
  page = await format(page, { ...(await resolveConfig(path)), filepath: path });
  if (page !== before) await writeFile(path, page);
  process.stdout.write(`docs/cluster.md is ${page === before ? 'as it was' : 'written'}.\n`);
}
