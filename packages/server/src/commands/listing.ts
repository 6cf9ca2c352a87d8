import { Arguments } from '../arguments.js';
import { exitCodes, type World } from '../command.js';
import { ServerCommandError } from '../errors.js';
import { writerOf, type Format } from '../format.js';
import { sourcesOf, type Source } from '../read/sources.js';
import { Tally } from '../read/tally.js';
import type { Couch } from '../couch.js';
import { signIn } from './sign-in.js';

/** Options that all lists take. */
export const listOptions = {
  url: { type: 'string' },
  layout: { type: 'string' },
  results: { type: 'string' },
  user: { type: 'string' },
  format: { type: 'string' },
  limit: { type: 'string' },
} as const;

export const listHelp = `  --layout LAYOUT     shared or per-user; without it the shared database if there is one, else those of users
  --results NAME      database of results (default afield-results); per-user: what the names begin with
  --format FORMAT     jsonl (default): a JSON object in each line; csv: with a line of names
  --limit N           at most N lines

The list goes to stdout, all else to stderr. Times are those of the devices' clocks.
The role afield-supervisor is enough; only to go through the databases of all users takes an admin, or name one with --user.
Exit codes: 0 fine, also when there is nothing to list; 1 it could not be done; 2 wrong arguments.
`;

/** Writes a list: its rows come source by source, page by page, and never are more than a page in memory. */
export async function list<Row extends object>(
  values: Arguments,
  world: World,
  columns: readonly (keyof Row & string)[],
  rowsOf: (couch: Couch, source: Source, tally: Tally) => AsyncGenerator<Row>,
): Promise<number> {
  const writer = writerOf(values.oneOf<Format>('format', ['jsonl', 'csv'], 'jsonl'), columns);
  const layout =
    values.text('layout') === undefined ? undefined : values.oneOf('layout', ['shared', 'per-user'], 'shared');
  const most = limitOf(values.text('limit'));
  const { couch } = await signIn(values, world);
  const tally = new Tally();
  const sources = sourcesOf(couch, values.text('results') ?? 'afield-results', layout, values.text('user'));
  let rows = 0;
  let isBegun = false;
  reading: for await (const source of sources) {
    if (!isBegun) await world.out(writer.begin);
    isBegun = true;
    if (rows >= most) break;
    for await (const row of rowsOf(couch, source, tally)) {
      await world.out(writer.row(row));
      rows++;
      if (rows >= most) break reading;
    }
  }
  for (const sentence of tally.sentences()) world.say(sentence);
  if (rows >= most) world.say(`Stopped after ${String(rows)} (--limit); there may be more.`);
  return exitCodes.fine;
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return Infinity;
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new ServerCommandError('usage', '--limit takes a number from 1 on.');
}
