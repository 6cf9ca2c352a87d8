import { DivisibleError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { DocRow, WriteAnswer, WriteRow } from '../model/pouch.js';
import {
  bodyBytes,
  bodyOf,
  inRequests,
  sendable,
  type Frame,
  type RequestLimit,
  type Sendable,
} from './request-size.js';

/**
 * Sends documents in requests within the limit, one after another, each in halves where it is refused (R11). What was
 * answered before an error is kept. `send` gets the documents of one request and its body.
 */
export async function writeInRequests(
  docs: readonly Doc[],
  frame: Frame,
  limit: RequestLimit,
  send: (part: readonly Sendable[], body: string) => Promise<WriteAnswer>,
): Promise<WriteAnswer> {
  const items = docs.map((doc) => sendable(doc._id, JSON.stringify(doc)));
  const rows: WriteRow[] = [];
  for (const request of inRequests(items, frame, limit)) {
    const answer = await writeDividing(
      request,
      async (part) => {
        const sent = await send(part, bodyOf(frame, part));
        limit.taken(bodyBytes(frame, part));
        return sent;
      },
      (part) => {
        limit.refused(bodyBytes(frame, part));
      },
    );
    rows.push(...answer.rows);
    if (answer.error !== undefined) return { rows, error: answer.error };
  }
  return { rows };
}

/**
 * Sends documents in one write, and in halves when the whole is refused for something in it, down to the single row,
 * which then is the refused one (R11). What was answered before an error is kept. `tooLarge` is told of documents that
 * were refused for their size together, where none of them was refused alone.
 */
export async function writeDividing<Item extends { readonly _id: string }>(
  items: readonly Item[],
  send: (items: readonly Item[]) => Promise<WriteAnswer>,
  tooLarge?: (items: readonly Item[]) => void,
): Promise<WriteAnswer> {
  if (items.length === 0) return { rows: [] };
  let refusal: DivisibleError;
  try {
    return await send(items);
  } catch (error) {
    if (!(error instanceof DivisibleError)) return { rows: [], error };
    refusal = error;
  }
  const [only] = items;
  if (items.length === 1 && only !== undefined) {
    return { rows: [{ id: only._id, ok: false, error: refusal.code, reason: refusal.message }] };
  }
  const answer = await writeHalves(items, send, tooLarge);
  const isOfOne = answer.rows.some((row) => !row.ok && row.error === 'too_large');
  if (refusal.code === 'too_large' && !isOfOne) tooLarge?.(items);
  return answer;
}

async function writeHalves<Item extends { readonly _id: string }>(
  items: readonly Item[],
  send: (items: readonly Item[]) => Promise<WriteAnswer>,
  tooLarge?: (items: readonly Item[]) => void,
): Promise<WriteAnswer> {
  const middle = Math.ceil(items.length / 2);
  const rows: WriteRow[] = [];
  for (const half of [items.slice(0, middle), items.slice(middle)]) {
    const answer = await writeDividing(half, send, tooLarge);
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

/**
 * Asks about items in requests within the limit, one after another, each in halves where it is refused. An item that is
 * refused alone is not in any answer.
 */
export async function askInRequests(
  items: readonly Sendable[],
  frame: Frame,
  limit: RequestLimit,
  ask: (body: string, part: readonly Sendable[]) => Promise<void>,
): Promise<void> {
  for (const request of inRequests(items, frame, limit)) await askDividing(request, frame, ask);
}

async function askDividing(
  items: readonly Sendable[],
  frame: Frame,
  ask: (body: string, part: readonly Sendable[]) => Promise<void>,
): Promise<void> {
  try {
    await ask(bodyOf(frame, items), items);
  } catch (error) {
    if (!(error instanceof DivisibleError)) throw error;
    if (items.length === 1) return;
    const middle = Math.ceil(items.length / 2);
    await askDividing(items.slice(0, middle), frame, ask);
    await askDividing(items.slice(middle), frame, ask);
  }
}
