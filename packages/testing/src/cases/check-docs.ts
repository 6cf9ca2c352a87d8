import { isDeepStrictEqual } from 'node:util';
import type { Database } from './database.js';
import { isObject, ownOf, type JsonObject } from './json.js';

/** A lineage is compared as a whole. */
const wholes = ['parent', 'contact'];

/** Compares documents with what a case expects of them; answers with what is wrong. */
export async function checkDocs(
  field: string,
  expected: readonly JsonObject[],
  database: Database | undefined,
): Promise<readonly string[]> {
  const wrong: string[] = [];
  for (const want of expected) {
    const id = String(want['_id']);
    const winner = await database?.winner(id);
    const live = winner?.deleted === false ? winner.doc : undefined;
    wrong.push(...differences(want, live).map((line) => `${field} ${id}: ${line}`));
  }
  return wrong;
}

function differences(want: JsonObject, live: JsonObject | undefined): readonly string[] {
  if (want['$deleted'] === true) return live === undefined ? [] : ['expected it deleted, but it is there'];
  if (live === undefined) return ['expected it to be there, but it is not'];
  const wrong: string[] = [];
  for (const [key, value] of Object.entries(want)) {
    if (key.startsWith('$')) continue;
    const is = ownOf(live, key);
    if (!(wholes.includes(key) ? isDeepStrictEqual(is, value) : hasAtLeast(is, value)))
      wrong.push(`${key}: expected ${shown(value)}, but it is ${shown(is)}`);
  }
  for (const key of listOf(want['$absent'])) if (Object.hasOwn(live, key)) wrong.push(`expected no field ${key}`);
  for (const key of listOf(want['$present'])) if (!Object.hasOwn(live, key)) wrong.push(`expected a field ${key}`);
  return wrong;
}

/** Of objects the fields that are expected; lists and single values must be equal. */
function hasAtLeast(is: unknown, wanted: unknown): boolean {
  if (!isObject(wanted)) return isDeepStrictEqual(is, wanted);
  return isObject(is) && Object.entries(wanted).every(([key, value]) => hasAtLeast(ownOf(is, key), value));
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? 'absent' : text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
