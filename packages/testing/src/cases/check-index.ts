import { isDeepStrictEqual } from 'node:util';
import type { Expectation } from './schema.js';
import type { World } from './world.js';

/** Compares the index at the end of a run with what a case expects of it; answers with what is wrong. */
export async function checkIndex(
  expected: NonNullable<Expectation['index']>,
  { index, tabs, inFlight }: Pick<World, 'index' | 'tabs' | 'inFlight'>,
): Promise<readonly string[]> {
  const wrong: string[] = [];
  const differs = (field: string, wanted: unknown, is: unknown): void => {
    if (isDeepStrictEqual(wanted, is)) return;
    wrong.push(`index ${field}: expected ${JSON.stringify(wanted)}, but it is ${JSON.stringify(is) ?? 'absent'}`);
  };
  const state = index.state(tabs)?.state;
  if (expected.state !== undefined) differs('state', expected.state, state);
  const { rows } = await inFlight.track(() => index.stored());
  for (const [key, ids] of Object.entries(expected.rows_for ?? {})) {
    const found = [...rows].filter(([, keys]) => keys.some((one) => shown(one) === key)).map(([id]) => id);
    differs(`rows_for ${key}`, [...ids].sort(), found.sort());
  }
  if (expected.row_ids !== undefined) differs('row_ids', [...expected.row_ids].sort(), [...rows.keys()].sort());
  // What is ready must answer, and with all of it.
  if (state === 'ready') {
    const asked = index.queries;
    index.query(tabs.filter((tab) => tab.alive).slice(0, 1));
    await inFlight.rest();
    if (index.queries === asked) wrong.push('index: it is ready, but a query had no answer');
  }
  await inFlight.track(() => index.look());
  if (expected.checkpoint_never_past_unstored === true) {
    wrong.push(...index.pastUnstored.map((line) => `index checkpoint_never_past_unstored: ${line}`));
  }
  if (expected.incomplete_query_flagged === true) {
    wrong.push(...index.wrongAnswers.map((line) => `index incomplete_query_flagged: ${line}`));
  }
  return wrong;
}

/** A key as a case file names it: a list as its parts, with commas. */
function shown(key: unknown): string {
  return Array.isArray(key) ? key.join() : String(key);
}
