import { defineIndex, type IndexDefinition, type IndexKey } from '@afield/client';
import { isObject, ownOf, type JsonObject } from './json.js';
import type { CaseFile } from './schema.js';

type ConfiguredIndex = NonNullable<NonNullable<CaseFile['config']>['index']>;

/**
 * The index that a case names. `by-parent` finds a document by the `_id` of its parent, `by-FIELD` by any other field of it
 * or of its `fields` (`by-patient-id`: `patient_id`), `by-FIELD-and-FIELD` by both as a list, `by-ancestor` by the ids of
 * all places above it. Texts and numbers are keys, of an object its `_id`, of a list each of its values; what is missing or
 * null gives no key. Anything else cannot be a key: the function throws. `…-throws-on-ID` throws for that document, too.
 */
export function caseIndex({ name, batch_size: batchSize }: ConfiguredIndex): IndexDefinition {
  const [, base = name, bad] = /^(.*?)[-_](?:throws|fails)[-_](?:on|for|at)[-_](.+)$/.exec(name) ?? [];
  const fields = base.replace(/^by[-_]/, '').split(/[-_]and[-_]/);
  return defineIndex({
    name,
    version: 1,
    ...(batchSize === undefined ? {} : { batchSize: Math.min(100, Math.max(1, batchSize)) }),
    keys: (doc) => {
      if (bad !== undefined && doc['_id'] === bad) throw new TypeError('made to throw');
      const parts = fields.map((field) => keysOf(doc, field));
      const [first = []] = parts;
      if (parts.length === 1) return first;
      return combined(parts);
    },
  });
}

function keysOf(doc: JsonObject, field: string): readonly (string | number)[] {
  const word = plain(field);
  if (word === 'ancestor' || word === 'ancestors' || word === 'lineage') return ancestors(doc);
  if (word === 'id') return [String(doc['_id'])];
  const found = valueOf(doc, word) ?? valueOf(doc['fields'], word);
  if (found === undefined || found === null) return [];
  return (Array.isArray(found) ? (found as unknown[]) : [found]).map(keyOf);
}

/** `patient-id`, `patient_id` and `patientId` are one field. */
function plain(field: string): string {
  return field.replace(/[-_]/g, '').toLowerCase();
}

function valueOf(where: unknown, word: string): unknown {
  if (!isObject(where)) return undefined;
  const field = Object.keys(where).find((one) => plain(one) === word);
  return field === undefined ? undefined : where[field];
}

function keyOf(value: unknown): string | number {
  const key = isObject(value) ? ownOf(value, '_id') : value;
  if (typeof key === 'string' || typeof key === 'number') return key;
  if (typeof key === 'boolean') return String(key);
  throw new TypeError('cannot be a key');
}

function ancestors(doc: JsonObject): readonly string[] {
  const ids: string[] = [];
  for (let above = doc['parent']; isObject(above); above = above['parent']) ids.push(String(keyOf(above)));
  return ids;
}

/** One key for each choice of a value of each field. */
function combined(parts: readonly (readonly (string | number)[])[]): readonly IndexKey[] {
  let lists: readonly (readonly (string | number)[])[] = [[]];
  for (const part of parts) lists = lists.flatMap((list) => part.map((value) => [...list, value]));
  return lists;
}
