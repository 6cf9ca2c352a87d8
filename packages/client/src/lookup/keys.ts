import type { Doc } from '../model/json.js';
import type { IndexDefinition, IndexKey } from '../model/lookup.js';
import { nameOf } from '../retry/classify.js';

/** What the definition says of a document. */
export type Judged =
  | { readonly keys: readonly IndexKey[] }
  /** Its function threw, or answered with something that cannot be a key: the name of what is wrong, and the error. */
  | { readonly wrong: string; readonly error: unknown };

/** The keys of a document, each once. Never throws. */
export function judge(definition: IndexDefinition, doc: Doc): Judged {
  let given: unknown;
  try {
    given = definition.keys(doc);
  } catch (error) {
    return { wrong: nameOf(error), error };
  }
  if (given === undefined || given === null) return { keys: [] };
  const keys: readonly unknown[] = Array.isArray(given) ? (given as unknown[]) : [given];
  const bad = keys.find((key) => !isIndexKey(key));
  if (bad !== undefined || keys.includes(undefined)) {
    const error = new TypeError(
      `keys of the index "${definition.name}" must answer with texts, numbers, or lists of those, and at once.`,
    );
    return { wrong: 'not-a-key', error };
  }
  return { keys: [...new Set(keys as readonly IndexKey[])] };
}

/** Whether it can be a key: a text, a number, or a list of those. A hole is no part: IndexedDB would leave the key out. */
export function isIndexKey(value: unknown): value is IndexKey {
  return isPart(value) || (Array.isArray(value) && value.findIndex((part) => !isPart(part)) < 0); // `every` skips holes
}

function isPart(value: unknown): value is string | number {
  return typeof value === 'string' || (typeof value === 'number' && !Number.isNaN(value));
}
