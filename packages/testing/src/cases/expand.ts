import { CaseFileError } from './case-file-error.js';
import { isObject, setOwn, type JsonObject } from './json.js';

/** Where in the file: the way of keys and indices. */
type Place = readonly (string | number)[];

/** Writes out a list in which an item `{ "$repeat": N, [word]: … }` stands for N items. */
export function expandList(list: unknown, word: 'doc' | 'op', file: string, place: Place): unknown[] {
  if (list === undefined) return [];
  if (!Array.isArray(list)) throw new CaseFileError(file, place, 'must be a list');
  return list.flatMap((item: unknown, index) => {
    const at = [...place, index];
    if (!isObject(item) || !Object.hasOwn(item, '$repeat')) return [expandValue(item, file, at)];
    const unknown = Object.keys(item).find((key) => key !== '$repeat' && key !== word);
    if (unknown !== undefined) throw new CaseFileError(file, [...at, unknown], `unknown word "${unknown}"`);
    const times = count(item['$repeat'], file, [...at, '$repeat']);
    return Array.from({ length: times }, (_, n) =>
      expandValue(numbered(item[word], String(n + 1)), file, [...at, word]),
    );
  });
}

/** Writes out `$text` and `$deep` in a value; any other key that begins with `$` is unknown, but for `allowed`. */
export function expandValue(value: unknown, file: string, place: Place, allowed: readonly string[] = []): unknown {
  if (Array.isArray(value)) return value.map((item, index) => expandValue(item, file, [...place, index], allowed));
  if (!isObject(value)) return value;
  if (Object.hasOwn(value, '$text'))
    return 'x'.repeat(count(only(value, ['$text'], file, place)['$text'], file, place));
  if (Object.hasOwn(value, '$deep')) return deep(only(value, ['$deep', 'id'], file, place), file, place);
  const result: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    if (key.startsWith('$') && !allowed.includes(key)) {
      throw new CaseFileError(file, [...place, key], `unknown word "${key}"`);
    }
    setOwn(result, key, expandValue(inner, file, [...place, key], allowed));
  }
  return result;
}

/** A lineage of N levels, level 1 outermost: nearest to the contact. */
function deep(value: JsonObject, file: string, place: Place): unknown {
  const id = value['id'];
  if (typeof id !== 'string') throw new CaseFileError(file, [...place, 'id'], 'must be a text');
  let lineage: JsonObject | undefined;
  for (let level = count(value['$deep'], file, place); level > 0; level -= 1) {
    const name = id.replaceAll('{n}', String(level));
    lineage = lineage === undefined ? { _id: name } : { _id: name, parent: lineage };
  }
  return lineage ?? {};
}

function numbered(value: unknown, n: string): unknown {
  if (typeof value === 'string') return value.replaceAll('{n}', n);
  if (Array.isArray(value)) return value.map((item) => numbered(item, n));
  if (!isObject(value) || Object.hasOwn(value, '$deep')) return value;
  const result: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) setOwn(result, key.replaceAll('{n}', n), numbered(inner, n));
  return result;
}

function only(value: JsonObject, words: readonly string[], file: string, place: Place): JsonObject {
  const unknown = Object.keys(value).find((key) => !words.includes(key));
  if (unknown !== undefined) throw new CaseFileError(file, [...place, unknown], `unknown word "${unknown}"`);
  return value;
}

function count(value: unknown, file: string, place: Place): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  throw new CaseFileError(file, place, 'must be a whole number');
}
