import type { DayRun } from './day.js';
import { kinds, written } from './day-kinds.js';
import { table } from './markdown.js';

/** Requests of one device, by kind. Markdown. */
export function requestsTable(runs: readonly DayRun[]): string {
  const row = (name: string, value: (run: DayRun) => number | undefined): string[] => [
    name,
    ...runs.map((run) => shown(value(run))),
  ];
  return table(
    ['requests of one device and day', ...runs.map(({ day }) => day.name)],
    [
      ...kinds.map((kind) => row(kind, ({ count }) => count.requests[kind])),
      row('**all**', ({ count }) => count.total),
      row('of these: not answered', ({ count }) => count.unanswered),
      row('the busiest minute', ({ count }) => count.busiestMinute),
      row('from the end of the outage until all is delivered', ({ back }) => back?.total),
      row('the first pull of 1,000 documents, on a day before', ({ first }) => first.total),
      row('kB sent, without headers', ({ count }) => Math.round(count.bytes.up / 1000)),
      row('kB received, without headers', ({ count }) => Math.round(count.bytes.down / 1000)),
    ],
    1,
  );
}

/** Writes of one device, by what is written. Markdown. */
export function documentsTable(runs: readonly DayRun[]): string {
  return table(
    ['writes of one device and day', ...runs.map(({ day }) => day.name)],
    [
      ...written.map((kind) => [kind, ...runs.map(({ count }) => shown(count.writes[kind]))]),
      ['**all**', ...runs.map((run) => shown(writesOf(run)))],
    ],
    1,
  );
}

/** Documents that stay, of one working day, and their size. Markdown. */
export function sizesTable({ count }: DayRun): string {
  return table(
    ['of one working day', 'documents', 'bytes of JSON', 'bytes of one'],
    written.map((kind) => {
      const { count: many, bytes } = count.documents[kind];
      return [kind, shown(many), shown(bytes), shown(many === 0 ? undefined : Math.round(bytes / many))];
    }),
    1,
  );
}

/** What fleets of these sizes come to when each device has such a day: computed from the days. Markdown. */
export function loadTable(sizes: readonly number[], days: { quiet: DayRun; working: DayRun; seldom: DayRun }): string {
  const { quiet, working, seldom } = days;
  const openS = working.day.openMinutes * 60;
  const { writes, documents } = working.count;
  const kept = documents.results.bytes + documents.failures.bytes + documents.events.bytes;
  const row = (name: string, value: (devices: number) => number): string[] => [
    name,
    ...sizes.map((devices) => rounded(value(devices))),
  ];
  return table(
    ['computed', ...sizes.map((devices) => `${shown(devices)} devices`)],
    [
      row('requests a second, quiet day', (devices) => (devices * quiet.count.total) / openS),
      row('requests a second, working day', (devices) => (devices * working.count.total) / openS),
      row('requests a second, working day, pull every 10 min', (devices) => (devices * seldom.count.total) / openS),
      row('writes of documents a second, working day', (devices) => (devices * writesOf(working)) / openS),
      row('changes of records in one working day', (devices) => devices * writes.records),
      row(
        'changes a second that one shared database of records looks at for all pulls',
        (devices) => (devices * devices * writes.records) / openS,
      ),
      row('GB of JSON in a year: results, failures, events, one copy', (devices) => (devices * kept * 365) / 1e9),
      row('the same in three copies (`n=3`)', (devices) => (3 * devices * kept * 365) / 1e9),
      row('databases, per user: results and events of each', (devices) => devices * 2),
      row('shard files on each of 3 nodes for them (`q=1`, `n=3`)', (devices) => devices * 2),
    ],
    1,
  );
}

function writesOf({ count }: DayRun): number {
  return Object.values(count.writes).reduce((sum, one) => sum + one, 0);
}

const shown = (count: number | undefined): string => (count === undefined ? '–' : count.toLocaleString('en'));

/** Three digits say enough. */
const rounded = (value: number): string => value.toLocaleString('en', { maximumSignificantDigits: 3 });
