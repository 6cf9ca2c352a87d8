import { inOrder, type Leaf, type OwnWrite } from './tree.js';

/**
 * Places of the operations that have failed when they were run again, and are applied after all: the winner's history holds a
 * revision of them, because another branch has won since. Of what lies before a deletion nothing is left: there it stays as
 * it was. `deletions` are the revisions of the winner's history that are known as such.
 */
export function regainedIn(
  leaves: readonly Leaf[],
  own: readonly OwnWrite[],
  deletions: ReadonlySet<string>,
): readonly number[] {
  const [winner] = inOrder(leaves);
  if (winner === undefined) return [];
  const { ancestors } = winner;
  const last = winner.deleted ? 0 : ancestors.findIndex((rev) => deletions.has(rev));
  // The deletion itself may be of an operation, which stands then.
  const present = new Set(last < 0 ? ancestors : ancestors.slice(0, last + 1));
  return own.flatMap(({ standing, revs }, place) =>
    standing === 'failed' && revs.some((rev) => present.has(rev)) ? [place] : [],
  );
}

/** Revisions of the winner's history that come after a failed operation there: whether one is a deletion must be known. */
export function afterFailed(leaves: readonly Leaf[], own: readonly OwnWrite[]): readonly string[] {
  const [winner] = inOrder(leaves);
  if (winner === undefined || winner.deleted) return [];
  const failed = new Set(own.flatMap(({ standing, revs }) => (standing === 'failed' ? revs : [])));
  const oldest = winner.ancestors.map((rev) => failed.has(rev)).lastIndexOf(true);
  return oldest < 0 ? [] : winner.ancestors.slice(1, oldest);
}
