import { unwrap, wrap, type DBSchema, type IDBPDatabase } from 'idb';
import { z } from 'zod/mini';
import type { IndexKey, IndexRow, SkippedDocument } from '../model/lookup.js';
import type { Compare, KeyRange } from './ranges.js';

const sequence = z.union([z.number(), z.string()]);
const storedMeta = z.object({
  v: z.literal(1),
  /** Counts the writes: who writes on another count than it has read has been overtaken. */
  turn: z.number(),
  /** The name of the database that the rows are of (B3). */
  source: z.string(),
  /** All changes up to here are stored (B3). */
  seq: sequence,
  /** Rows (documents and deletions) that were done since the start. */
  rows: z.number(),
  /** Documents that are left out: how many are in the store `skipped`. */
  skipped: z.number(),
  /** Whether the backfill has come to its end. */
  complete: z.boolean(),
  parked: z.optional(z.object({ reason: z.string(), id: z.optional(z.string()) })),
});

/** What is stored of an index beside its rows. */
export type Meta = z.infer<typeof storedMeta>;

/** What one batch changes. */
export interface IndexChanges {
  readonly put: readonly (readonly [id: string, keys: readonly IndexKey[]])[];
  readonly remove: readonly string[];
  /** Documents that are left out, with the name of the error. */
  readonly skip: readonly (readonly [id: string, reason: string])[];
  /** Documents that are not left out any more. */
  readonly unskip: readonly string[];
  /** Clears all rows first. */
  readonly clear?: boolean;
}

export const noChanges: IndexChanges = { put: [], remove: [], skip: [], unskip: [] };

/** A key as IndexedDB takes it. */
type StoredKey = string | number | (string | number)[];

interface Schema extends DBSchema {
  /** By the document's id; the value is the list of its keys, which the index opens up. */
  rows: { key: string; value: StoredKey[]; indexes: { keys: StoredKey } };
  skipped: { key: string; value: string };
  meta: { key: string; value: unknown };
}

const stores = ['rows', 'skipped', 'meta'] as const;
const metaKey = 'meta';

/** One version of an index in an IndexedDB of its own. Rows and resume point are written together, in one transaction. */
export class IndexStore {
  readonly #db: IDBPDatabase<Schema>;
  readonly #compare: Compare;

  private constructor(db: IDBPDatabase<Schema>, compare: Compare) {
    this.#db = db;
    this.#compare = compare;
  }

  /** `lost` is called when the connection has ended: `removed` says whether the store is to be removed. */
  static async open(factory: IDBFactory, name: string, lost: (removed: boolean) => void): Promise<IndexStore> {
    const request = factory.open(name, 1);
    request.onupgradeneeded = () => {
      const db = request.result;
      db.createObjectStore('rows').createIndex('keys', '', { multiEntry: true });
      db.createObjectStore('skipped');
      db.createObjectStore('meta');
    };
    const db = await (wrap(request) as Promise<IDBPDatabase<Schema>>);
    db.addEventListener('versionchange', () => {
      db.close();
      lost(true);
    });
    db.addEventListener('close', () => {
      lost(false);
    });
    return new IndexStore(db, (a, b) => factory.cmp(a, b));
  }

  /** Undefined where nothing is stored, or nothing that can be read. */
  async meta(): Promise<Meta | undefined> {
    // Not `db.get`: when that fails, nobody hears how its transaction has ended, and a rejection goes unhandled (B6).
    const tx = this.#db.transaction('meta', 'readonly');
    const [stored] = await Promise.all([tx.store.get(metaKey), tx.done]);
    return metaOf(stored);
  }

  /**
   * Writes changes and `next` together, if `before` is still what is stored (undefined: nothing that can be read). Answers
   * with what is stored then; undefined: someone else has written, and nothing was changed.
   */
  async write(
    before: Meta | undefined,
    changes: IndexChanges,
    next: Omit<Meta, 'turn' | 'v'>,
  ): Promise<Meta | undefined> {
    const raw = unwrap(this.#db).transaction(stores, 'readwrite');
    const ended = endOf(raw);
    const [rows, skipped, meta] = [raw.objectStore('rows'), raw.objectStore('skipped'), raw.objectStore('meta')];
    let written: Meta = { v: 1, ...next, turn: (before?.turn ?? 0) + 1 };
    let overtaken = false;
    const counts = changes.skip.length + changes.unskip.length > 0;
    try {
      const read = meta.get(metaKey);
      read.onsuccess = () => {
        if (metaOf(read.result)?.turn === before?.turn) {
          // All requests are made: the engine need not wait until it has answered them one by one.
          if (!counts) raw.commit();
          return;
        }
        overtaken = true;
        raw.abort();
      };
      if (changes.clear === true) {
        rows.clear();
        skipped.clear();
      }
      for (const [id, keys] of changes.put) rows.put(keys, id);
      for (const id of changes.remove) rows.delete(id);
      for (const [id, reason] of changes.skip) skipped.put(reason, id);
      for (const id of changes.unskip) skipped.delete(id);
      if (!counts) meta.put(written, metaKey);
      else {
        const count = skipped.count();
        count.onsuccess = () => {
          written = { ...written, skipped: count.result };
          meta.put(written, metaKey);
        };
      }
    } catch (error) {
      ended.catch(() => undefined);
      try {
        raw.abort();
      } catch {
        // ended already
      }
      throw error;
    }
    try {
      await ended;
      return written;
    } catch (error) {
      if (overtaken) return undefined;
      throw error;
    }
  }

  /** What is stored beside the rows, and the rows of these ranges, as of one moment. */
  async read(
    ranges: readonly KeyRange[],
    limit: number | undefined,
  ): Promise<{ meta: Meta | undefined; rows: readonly IndexRow[] }> {
    const tx = unwrap(this.#db).transaction(['rows', 'meta'], 'readonly');
    const index = tx.objectStore('rows').index('keys');
    const ended = endOf(tx);
    const meta = result(tx.objectStore('meta').get(metaKey));
    const found = ranges.map(async (one) => {
      if (one.kind === 'key') {
        const ids = await result(index.getAllKeys(one.key as StoredKey, limit));
        return ids.map((id): IndexRow => ({ id: id as string, key: one.key }));
      }
      const ids = (await result(index.getAllKeys(one.range, limit))) as string[];
      // `getAll` brings a document's whole list once for each key that fits.
      if (!isOften(ids)) {
        const keys = await result<StoredKey[][]>(index.getAll(one.range, limit));
        return matched(ids, keys, one.range, this.#compare);
      }
      const lists = new Map<string, Promise<StoredKey[] | undefined>>();
      for (const id of ids) if (!lists.has(id)) lists.set(id, result(tx.objectStore('rows').get(id)));
      const keys = await Promise.all(ids.map(async (id) => (await lists.get(id)) ?? []));
      return matched(ids, keys, one.range, this.#compare);
    });
    const answered = Promise.all([meta, ...found] as const);
    // What was read counts at once: the end of a transaction that only reads says nothing more, unless it was aborted.
    const [stored, ...rows] = await Promise.race([answered, ended.then(() => answered)]);
    const all = rows.length === 1 ? (rows[0] ?? []) : rows.flat();
    return { meta: metaOf(stored), rows: limit === undefined ? all : all.slice(0, limit) };
  }

  async skipped(): Promise<readonly SkippedDocument[]> {
    const tx = this.#db.transaction('skipped', 'readonly');
    const [ids, reasons] = await Promise.all([tx.store.getAllKeys(), tx.store.getAll(), tx.done]);
    return ids.map((id, at) => ({ id, reason: String(reasons[at]) }));
  }

  close(): void {
    this.#db.close();
  }
}

/**
 * Resolves when it is committed; rejects with what has aborted it. idb's `done` rejects as soon as a request fails, when
 * the transaction does not know why yet: each error would look like one that passes (B2).
 */
function endOf(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.addEventListener('complete', () => {
      resolve();
    });
    transaction.addEventListener('abort', () => {
      reject(transaction.error ?? new DOMException('The transaction was aborted.', 'AbortError'));
    });
  });
}

/** Whether documents were found by so many of their keys that their lists would be read far too often. */
function isOften(ids: readonly string[]): boolean {
  const times = new Map<string, number>();
  for (const id of ids) times.set(id, (times.get(id) ?? 0) + 1);
  let read = 0;
  for (const found of times.values()) read += found * found;
  return read > 16 * ids.length;
}

/**
 * Says which of its keys each row was found by: an index gives ids and lists of keys, one row for each key that fits. A
 * document's rows come in the order of its keys, so its second row is that of its second fitting key.
 */
function matched(
  ids: readonly string[],
  keys: readonly (readonly IndexKey[])[],
  range: IDBKeyRange | undefined,
  compare: Compare,
): readonly IndexRow[] {
  const rest = new Map<string, IndexKey[]>();
  return ids.map((id, at) => {
    let fitting = rest.get(id);
    if (fitting === undefined) {
      fitting = once(
        (keys[at] ?? []).filter((key) => range?.includes(key) !== false).sort((a, b) => compare(b, a)),
        compare,
      );
      rest.set(id, fitting);
    }
    return { id, key: fitting.pop() ?? '' };
  });
}

/** A key that a document has twice is found once. */
function once(sorted: readonly IndexKey[], compare: Compare): IndexKey[] {
  return sorted.filter((key, at) => at === 0 || compare(key, sorted[at - 1] ?? key) !== 0);
}

/** What the request brings; one that fails aborts its transaction, which says why. */
function result<Value>(request: IDBRequest<Value>): Promise<Value> {
  return new Promise((resolve) => {
    request.onsuccess = () => {
      resolve(request.result);
    };
  });
}

function metaOf(stored: unknown): Meta | undefined {
  const parsed = storedMeta.safeParse(stored);
  return parsed.success ? parsed.data : undefined;
}
