import { isStandIn } from '../model/own-revisions.js';
import { generationOf } from '../model/revision.js';

/** A leaf of a document's tree of revisions. */
export interface Leaf {
  readonly rev: string;
  readonly deleted: boolean;
  /** The leaf and its ancestors, newest first. */
  readonly ancestors: readonly string[];
}

/** What is known of an operation of this device that wrote on the document. */
export interface OwnWrite {
  /** The revisions that hold it: the one that it wrote, then those in which it was healed. */
  readonly revs: readonly string[];
  /**
   * `counts`: it was applied, and must be in the winner's history. `held`: it must stay as it is until more is known (the
   * server has refused it, or its action is not there). `failed`: it failed when it was run again, and nobody has decided on
   * that. `over`: it was given up, or done in another way. Of both the content is kept.
   */
  readonly standing: 'counts' | 'held' | 'failed' | 'over';
}

/** What is to be done about the conflicts of one document. All of it follows from the tree and our own operations. */
export interface Judgement {
  readonly winner: Leaf;
  /** There is no live leaf. */
  readonly isGone: boolean;
  /** Places of the operations that count and are not in the winner's history, though the tree holds a revision of them. */
  readonly buried: readonly number[];
  /** Live losing leaves of which nothing would be lost: they are removed. */
  readonly removable: readonly string[];
  /**
   * Revisions that are not leaves, and up to which nothing would be lost on a branch that goes on with what is not ours:
   * a deletion beside what follows says so to the devices that wrote that.
   */
  readonly markable: readonly Mark[];
  /** Live losing leaves with a change that no operation of ours has made, and that nobody has answered for. */
  readonly foreign: readonly string[];
}

export interface Mark {
  /** The revision with its ancestors, newest first. */
  readonly ancestors: readonly string[];
}

/** Leaves in the order in which everyone chooses the winner: live before deleted, the longer history, the name. */
export function inOrder(leaves: readonly Leaf[]): readonly Leaf[] {
  return [...leaves].sort((a, b) => {
    if (a.deleted !== b.deleted) return a.deleted ? 1 : -1;
    return generationOf(b.rev) - generationOf(a.rev) || (a.rev < b.rev ? 1 : -1);
  });
}

/**
 * Judges one document (S2).
 *
 * An operation is buried when the winner's history has none of its revisions. It is healed by running it on the winner:
 * so no history holds the write of an operation twice, which is why healing comes to an end (docs/decisions/healing.md).
 * Where the winner's history is too long to be known whole, an older revision is left alone: it may be in it.
 *
 * A losing leaf is removed by the device that can answer for all of its branch: each revision there is of an operation of
 * its own that is not buried any more, or lies at or before one that has a deletion beside what follows it. Undefined
 * where there is no leaf.
 */
export function judge(leaves: readonly Leaf[], own: readonly OwnWrite[]): Judgement | undefined {
  const [winner, ...losers] = inOrder(leaves);
  if (winner === undefined) return undefined;
  const won = new Set(winner.ancestors);
  const lost = new Set(losers.flatMap(({ ancestors }) => ancestors));
  // Of a long history the oldest part is forgotten: a revision from there may be an ancestor of the winner, unless it is a leaf.
  const oldest = generationOf(winner.ancestors.at(-1));
  const leafRevs = new Set(losers.map(({ rev }) => rev));
  const isKnownLost = (rev: string): boolean => lost.has(rev) && (generationOf(rev) >= oldest || leafRevs.has(rev));
  const isMissed = ({ revs, standing }: OwnWrite): boolean =>
    standing === 'counts' && !revs.some((rev) => won.has(rev)) && revs.some((rev) => lost.has(rev));
  const isBuried = (one: OwnWrite): boolean => isMissed(one) && one.revs.some(isKnownLost);
  const buried = own.flatMap((one, place) => (isBuried(one) ? [place] : []));

  const answered = new Set(own.flatMap((one) => (one.standing === 'held' || isMissed(one) ? [] : one.revs)));
  const ours = new Set(own.flatMap(({ revs }) => revs));
  const marked = new Set(leaves.flatMap(({ deleted, ancestors }) => (deleted ? ancestors.slice(1, 2) : [])));

  const removable: string[] = [];
  const markable: Mark[] = [];
  const foreign: string[] = [];
  for (const leaf of losers) {
    // A copy of the server's version gets its end from the push, which knows whether the server has gone on.
    if (leaf.deleted || isStandIn(leaf.rev)) continue;
    const branch = leaf.ancestors.filter((rev) => !won.has(rev));
    // Newest first. Everything from the newest mark on, and older, is answered for; then what is ours, step by step.
    const known = branch.findIndex((rev) => marked.has(rev));
    let at = known < 0 ? branch.length : known;
    while (at > 0 && answered.has(branch[at - 1] ?? '')) at--;
    if (at === 0) {
      removable.push(leaf.rev);
      continue;
    }
    const last = branch[at];
    if (last !== undefined && !marked.has(last)) markable.push({ ancestors: leaf.ancestors.slice(at) });
    if (branch.slice(0, at).some((rev) => !ours.has(rev))) foreign.push(leaf.rev);
  }
  return { winner, isGone: winner.deleted, buried, removable, markable: distinct(markable), foreign };
}

/** Two leaves may go on from one revision. */
function distinct(marks: readonly Mark[]): readonly Mark[] {
  return [...new Map(marks.map((mark) => [mark.ancestors[0], mark])).values()];
}
