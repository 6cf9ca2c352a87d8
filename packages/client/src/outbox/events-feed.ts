import { z } from 'zod/mini';
import { RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { AllDocsOptions } from '../model/pouch.js';
import { storedDoc } from '../model/rows.js';

/** What is asked of a database of events: any PouchDB, on the device, a replica, or `new PouchDB(url)`. */
export interface EventsDatabase {
  changes(options: object): PromiseLike<unknown>;
  allDocs(options: AllDocsOptions): Promise<{ rows: unknown[] }>;
}

export interface FeedRow {
  readonly id: string;
  /** Undefined when it is deleted. */
  readonly doc: Doc | undefined;
}

/** A document by its id: there, deleted, or never heard of. */
export type Presence = 'live' | 'deleted' | 'unknown';

const seq = z.union([z.number(), z.string()]);
const page = z.object({
  results: z.array(
    z.object({ id: z.string(), deleted: z.optional(z.boolean()), doc: z.optional(z.nullable(storedDoc)) }),
  ),
  last_seq: seq,
});
const keyRows = z.array(
  z.object({
    key: z.string(),
    value: z.optional(z.nullable(z.object({ deleted: z.optional(z.boolean()) }))),
    doc: z.optional(z.nullable(storedDoc)),
    error: z.optional(z.string()),
  }),
);

/** CouchDB looks up so many documents of its feed; of more it reads all that there is. */
const perQuestion = 100;

/** A page of the changes feed. */
export async function changesAfter(
  database: EventsDatabase,
  since: number | string,
  limit: number,
): Promise<{ rows: readonly FeedRow[]; last: number | string }> {
  const { results, last_seq: last } = await feed(database, { since, limit, batch_size: limit });
  return { rows: results.map(rowOf), last };
}

/** Those of these documents that are still to come in the feed after `since`. */
export async function stillToCome(
  database: EventsDatabase,
  since: number | string,
  ids: readonly string[],
): Promise<readonly FeedRow[]> {
  const rows: FeedRow[] = [];
  for (let from = 0; from < ids.length; from += perQuestion) {
    const { results } = await feed(database, { since, doc_ids: ids.slice(from, from + perQuestion) });
    const asked = new Set(ids);
    rows.push(...results.filter(({ id }) => asked.has(id)).map(rowOf));
  }
  return rows;
}

/** Whether these documents are in the database. */
export async function presenceOf(
  database: EventsDatabase,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Presence>> {
  const rows = await rowsOf(database, ids, false);
  return new Map(ids.map((id) => [id, stateOf(rows.get(id))]));
}

/** The live ones of these documents. */
export async function documentsOf(database: EventsDatabase, ids: readonly string[]): Promise<readonly Doc[]> {
  const rows = await rowsOf(database, ids, true);
  return ids.flatMap((id) => {
    const row = rows.get(id);
    if (stateOf(row) !== 'live') return [];
    return row?.doc ?? [];
  });
}

type KeyRow = z.infer<typeof keyRows>[number];

async function rowsOf(
  database: EventsDatabase,
  ids: readonly string[],
  withDocs: boolean,
): Promise<ReadonlyMap<string, KeyRow>> {
  if (ids.length === 0) return new Map();
  const { rows } = await database.allDocs({ keys: ids, include_docs: withDocs });
  const parsed = keyRows.safeParse(rows);
  if (!parsed.success) throw notCouchdb();
  return new Map(parsed.data.map((row) => [row.key, row]));
}

/** A row that says nothing is not a missing document. */
function stateOf(row: KeyRow | undefined): Presence {
  if (row?.value !== undefined && row.value !== null) return row.value.deleted === true ? 'deleted' : 'live';
  if (row?.error === 'not_found') return 'unknown';
  throw notCouchdb();
}

async function feed(database: EventsDatabase, options: object): Promise<z.infer<typeof page>> {
  // PouchDB's feed is a thenable and an emitter: only its result is wanted.
  const answer = await Promise.resolve(database.changes({ ...options, include_docs: true, return_docs: true }));
  const parsed = page.safeParse(answer);
  if (!parsed.success) throw notCouchdb();
  return parsed.data;
}

function rowOf({ id, deleted, doc }: z.infer<typeof page>['results'][number]): FeedRow {
  if (deleted === true) return { id, doc: undefined };
  if (doc?._id !== id) throw notCouchdb();
  return { id, doc };
}

function notCouchdb(): RetryableError {
  return new RetryableError('The database of events answered in another shape.', {
    class: 'network',
    code: 'not-couchdb',
  });
}
