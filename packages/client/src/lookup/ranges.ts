import { InvalidRequestError } from '../model/errors.js';
import type { IndexKey, IndexQuery, IndexQueryOptions } from '../model/lookup.js';
import { isIndexKey } from './keys.js';

/** What is read of an index: one key, all rows, or rows between two keys. */
export type KeyRange =
  | { readonly kind: 'key'; readonly key: IndexKey }
  | { readonly kind: 'range'; readonly range: IDBKeyRange | undefined };

/** The largest number of rows that IndexedDB takes. */
const largestLimit = 2 ** 32 - 1;
/** The longest time that a timer takes: one of a longer time ends at once. */
const longestWaitMs = 2 ** 31 - 1;

/** How IndexedDB orders two keys. */
export type Compare = (a: IndexKey, b: IndexKey) => number;

/** The ranges of a query, in the order of their keys; none overlap. Throws `InvalidRequestError`. */
export function rangesOf(query: IndexQuery, compare: Compare): readonly KeyRange[] {
  if (isIndexKey(query)) return [{ kind: 'key', key: query }];
  const given: unknown = query;
  // A Date or a Map has none of the fields: it would be a range without bounds, that is, all rows.
  if (Object.prototype.toString.call(given) !== '[object Object]') {
    throw wrong('query', 'must be a key, { from, to }, { prefix } or { keys }');
  }
  const fields = given as Record<string, unknown>;
  const unknown = Object.keys(fields).find((name) => !known.has(name));
  if (unknown !== undefined) throw wrong(unknown, `is no part of a query (it may have ${[...known].join(', ')})`);
  if ('keys' in fields) return alone('keys', fields, () => keysOf(fields['keys'], compare));
  if ('prefix' in fields) return alone('prefix', fields, () => prefixOf(fields['prefix']));
  return betweenOf(fields, compare);
}

/** Throws `InvalidRequestError`. */
export function checkQueryOptions(options: IndexQueryOptions): Required<Omit<IndexQueryOptions, 'limit'>> & {
  limit: number | undefined;
} {
  if (typeof (options as unknown) !== 'object' || (options as unknown) === null)
    throw wrong('options', 'must be an object');
  const { include_docs = false, limit, waitMs = 2000, stale = 'refuse', ...rest } = options;
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) throw wrong(unknown, 'is no option of a query');
  if (typeof (include_docs as unknown) !== 'boolean') throw wrong('include_docs', 'must be true or false');
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 1))
    throw wrong('limit', 'must be a whole number, 1 or more');
  if (typeof (waitMs as unknown) !== 'number' || !(waitMs >= 0)) throw wrong('waitMs', 'must be a number, 0 or more');
  if (!['refuse', 'allow'].includes(stale)) throw wrong('stale', 'must be "refuse" or "allow"');
  return {
    include_docs,
    limit: limit === undefined ? undefined : Math.min(limit, largestLimit),
    waitMs: Math.min(waitMs, longestWaitMs),
    stale,
  };
}

const known = new Set(['from', 'to', 'afterFrom', 'beforeTo', 'prefix', 'keys']);

function alone(name: string, fields: Record<string, unknown>, ranges: () => readonly KeyRange[]): readonly KeyRange[] {
  const other = Object.keys(fields).find((field) => field !== name);
  if (other !== undefined) throw wrong(other, `cannot be given together with \`${name}\``);
  return ranges();
}

function keysOf(given: unknown, compare: Compare): readonly KeyRange[] {
  if (!Array.isArray(given)) throw wrong('keys', 'must be a list of keys');
  const bad = given.findIndex((key) => !isIndexKey(key));
  if (bad >= 0) throw wrong(`keys.${String(bad)}`, notAKey);
  const sorted = (given as IndexKey[]).slice().sort(compare);
  const once = sorted.filter((key, at) => at === 0 || compare(key, sorted[at - 1] ?? key) !== 0);
  return once.map((key) => ({ kind: 'key', key }));
}

function prefixOf(given: unknown): readonly KeyRange[] {
  if (!isIndexKey(given) || typeof given === 'number')
    throw wrong('prefix', 'must be a text, or a list of texts and numbers');
  // Lists come after everything else, so an empty one ends all that begins as it does.
  if (typeof given !== 'string') return between(given, [...given, []] as unknown as IndexKey, false, true);
  const end = afterAll(given);
  // Every text: what comes after all texts are lists.
  if (given === '') return between('', [] as readonly string[], false, true);
  return end === undefined ? between(given, [] as readonly string[], false, true) : between(given, end, false, true);
}

/** The first text after all that begin so; undefined when there is none. */
function afterAll(prefix: string): string | undefined {
  for (let end = prefix.length; end > 0; end -= 1) {
    const last = prefix.charCodeAt(end - 1);
    if (last < 0xffff) return prefix.slice(0, end - 1) + String.fromCharCode(last + 1);
  }
  return undefined;
}

function betweenOf(fields: Record<string, unknown>, compare: Compare): readonly KeyRange[] {
  const { from, to, afterFrom = false, beforeTo = false } = fields;
  if (typeof afterFrom !== 'boolean') throw wrong('afterFrom', 'must be true or false');
  if (typeof beforeTo !== 'boolean') throw wrong('beforeTo', 'must be true or false');
  for (const [name, bound] of [
    ['from', from],
    ['to', to],
  ] as const) {
    if (name in fields && !isIndexKey(bound)) throw wrong(name, notAKey);
  }
  if (from === undefined && to === undefined) return [{ kind: 'range', range: undefined }];
  if (from === undefined) return [{ kind: 'range', range: IDBKeyRange.upperBound(to, beforeTo) }];
  if (to === undefined) return [{ kind: 'range', range: IDBKeyRange.lowerBound(from, afterFrom) }];
  const order = compare(from as IndexKey, to as IndexKey);
  if (order > 0 || (order === 0 && (afterFrom || beforeTo))) return [];
  return between(from as IndexKey, to as IndexKey, afterFrom, beforeTo);
}

function between(from: IndexKey, to: IndexKey, afterFrom: boolean, beforeTo: boolean): readonly KeyRange[] {
  return [{ kind: 'range', range: IDBKeyRange.bound(from, to, afterFrom, beforeTo) }];
}

const notAKey = 'must be a text, a number, or a list of those';

function wrong(field: string, message: string): InvalidRequestError {
  return new InvalidRequestError([{ index: -1, field, message }], 1, 'read');
}
