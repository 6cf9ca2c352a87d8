import type { Doc } from '../model/json.js';
import type { DocumentStore, WriteRow } from '../model/pouch.js';

/** A row of a bulk write that was refused, `conflict` included. */
export type RefusedWrite = Extract<WriteRow, { ok: false }>;

/** What became of leaves that were to go. */
export interface LeavesAnswer {
  /** Documents all of whose leaves are gone. */
  readonly removed: ReadonlySet<string>;
  /**
   * Of a document the leaf that was refused; its later ones were not tried. `conflict`: it is no leaf any more, for it is
   * deleted, or someone has gone on from it. A new read says which.
   */
  readonly refused: readonly RefusedWrite[];
  /** What ended the writes early. What became of documents that are in neither of the two is not known. */
  readonly error?: unknown;
}

/**
 * Deletes leaves of documents, by their ids (S8): in as many bulk writes as the most leaves that a document has, for two
 * leaves of one document never go into one. `fence` is awaited before each write; what it throws is thrown on.
 */
export async function removeLeaves(
  store: DocumentStore,
  leaves: ReadonlyMap<string, readonly string[]>,
  fence: () => Promise<void>,
): Promise<LeavesAnswer> {
  const removed = new Set<string>();
  const refused: RefusedWrite[] = [];
  let going: ReadonlySet<string> = new Set(leaves.keys());
  for (let turn = 0; ; turn++) {
    for (const id of going) if (leaves.get(id)?.length === turn) removed.add(id);
    const round = leafRound(leaves, going, turn);
    if (round.length === 0) return { removed, refused };
    await fence();
    const { rows, error } = await store.write(round);
    for (const row of rows) if (!row.ok) refused.push(row);
    if (error !== undefined) return { removed, refused, error };
    going = new Set(rows.flatMap((row) => (row.ok ? [row.id] : [])));
  }
}

/** The deletions of one bulk write: one leaf of each document that has another one (R10). Pure. */
export function leafRound(
  leaves: ReadonlyMap<string, readonly string[]>,
  going: ReadonlySet<string>,
  turn: number,
): readonly Doc[] {
  return [...going].flatMap((id) => {
    const rev = leaves.get(id)?.[turn];
    return rev === undefined ? [] : [{ _id: id, _rev: rev, _deleted: true }];
  });
}
