import * as z from 'zod';
import { isDeepStrictEqual } from 'node:util';
import type { IndexDefinition, PouchLike } from '@afield/client';
import { isObject, type JsonObject } from './json.js';

/** What the store of an index holds at one moment. */
export interface StoredIndex {
  /** Lists of keys, by document. */
  readonly rows: ReadonlyMap<string, readonly unknown[]>;
  readonly skipped: ReadonlySet<string>;
  /** All changes up to here are stored, as the store says; undefined when it says nothing yet. */
  readonly point: number | undefined;
}

const storedPoint = z.object({ seq: z.number() });

/** Reads the store as of now, whatever is written to it next. */
export async function readStored(connection: IDBDatabase): Promise<StoredIndex> {
  const transaction = connection.transaction(['rows', 'skipped', 'meta'], 'readonly');
  const all = (store: string): { ids: IDBRequest<IDBValidKey[]>; values: IDBRequest<unknown[]> } => {
    const source = transaction.objectStore(store);
    return { ids: source.getAllKeys(), values: source.getAll() };
  };
  const [rows, skipped, meta] = [all('rows'), all('skipped'), all('meta')];
  await new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => {
      resolve();
    };
    transaction.onabort = () => {
      reject(new Error('the harness could not read the index'));
    };
  });
  return {
    rows: new Map(rows.ids.result.map((id, at) => [String(id), rows.values.result[at] as unknown[]])),
    skipped: new Set(skipped.ids.result.map(String)),
    point: storedPoint.safeParse(meta.values.result[0]).data?.seq,
  };
}

/** A document's last change. */
interface Change {
  readonly id: string;
  readonly seq: number;
  /** Undefined: deleted. */
  readonly doc: JsonObject | undefined;
}

/** The last change of each document, in their order. */
export async function changesOf(documents: PouchLike): Promise<readonly Change[]> {
  const answer: unknown = await Promise.resolve(documents.changes({ since: 0, include_docs: true }));
  const results = isObject(answer) && Array.isArray(answer['results']) ? (answer['results'] as unknown[]) : [];
  return results.filter(isObject).map(({ id, seq, deleted, doc }) => ({
    id: String(id),
    seq: Number(seq),
    doc: deleted === true || String(id).startsWith('_design/') || !isObject(doc) ? undefined : doc,
  }));
}

/** The keys that a document must be found by; undefined when the definition's function throws for it. */
export function keysExpected(definition: IndexDefinition, doc: JsonObject | undefined): readonly unknown[] | undefined {
  if (doc === undefined) return [];
  try {
    const keys = definition.keys(doc as Parameters<IndexDefinition['keys']>[0]);
    return keys === undefined ? [] : Array.isArray(keys) ? [...new Set(keys as unknown[])] : [keys];
  } catch {
    return undefined;
  }
}

/** Changes before the resume point whose rows are not what they should be, a line each (B3). */
export function unstored(stored: StoredIndex, changes: readonly Change[], definition: IndexDefinition): string[] {
  const { rows, skipped, point } = stored;
  if (point === undefined) return [];
  const wrong: string[] = [];
  // What changed after the point may be stored or not: the store may be of before that change.
  for (const { id, seq, doc } of changes.filter((one) => one.seq <= point)) {
    const keys = keysExpected(definition, doc);
    const isRight = keys === undefined ? skipped.has(id) : isDeepStrictEqual(rows.get(id) ?? [], keys);
    if (!isRight) wrong.push(`the point is ${String(point)}, but ${id} (${String(seq)}) is not stored as it is`);
  }
  return wrong;
}
