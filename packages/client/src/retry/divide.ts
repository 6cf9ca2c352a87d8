import { DivisibleError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { DocRow, WriteAnswer, WriteRow } from '../model/pouch.js';

/**
 * Sends documents in one write, and in halves when the whole is refused for something in it, down to the single row,
 * which then is the refused one (R11). What was answered before an error is kept.
 */
export async function writeDividing(
  docs: readonly Doc[],
  send: (docs: readonly Doc[]) => Promise<WriteAnswer>,
): Promise<WriteAnswer> {
  if (docs.length === 0) return { rows: [] };
  let refusal: DivisibleError;
  try {
    return await send(docs);
  } catch (error) {
    if (!(error instanceof DivisibleError)) return { rows: [], error };
    refusal = error;
  }
  const [only] = docs;
  if (docs.length === 1 && only !== undefined) {
    return { rows: [{ id: only._id, ok: false, error: refusal.code, reason: refusal.message }] };
  }
  const middle = Math.ceil(docs.length / 2);
  const rows: WriteRow[] = [];
  for (const half of [docs.slice(0, middle), docs.slice(middle)]) {
    const answer = await writeDividing(half, send);
    rows.push(...answer.rows);
    if (answer.error !== undefined) return { rows, error: answer.error };
  }
  return { rows };
}

/** What a read by keys brought: a row, or the refusal of this very id. */
export type DividedRead = ReadonlyMap<string, DocRow | DivisibleError>;

/** Reads by keys in one request, and in halves when the whole is refused (R11). */
export async function readDividing(
  ids: readonly string[],
  read: (ids: readonly string[]) => Promise<readonly DocRow[]>,
): Promise<DividedRead> {
  try {
    return new Map((await read(ids)).map((row) => [row.id, row]));
  } catch (error) {
    if (!(error instanceof DivisibleError)) throw error;
    const [only] = ids;
    if (ids.length === 1 && only !== undefined) return new Map([[only, error]]);
    const middle = Math.ceil(ids.length / 2);
    const first = await readDividing(ids.slice(0, middle), read);
    return new Map([...first, ...(await readDividing(ids.slice(middle), read))]);
  }
}
