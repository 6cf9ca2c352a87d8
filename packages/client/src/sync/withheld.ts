import type { ServerDatabase } from '../http/server-database.js';
import type { RevisionRead } from '../model/pouch.js';
import type { LocalChange, LocalDatabase } from '../store/local-database.js';
import { lackedOf } from './lacked.js';
import { giveUp, isGiveUp, isOwnRevision, isStandIn } from '../model/own-revisions.js';
import type { Refusals } from './refusals.js';

export interface WithholdingParts {
  readonly local: Pick<LocalDatabase, 'readRevisions' | 'leaves' | 'writeRevisions'>;
  readonly server: Pick<ServerDatabase, 'missing'>;
  readonly refusals: Pick<Refusals, 'givenUp'>;
}

/**
 * Without the revisions that the server is not to be asked for any more: what a person has given up, and the copies of its
 * own version that stand in for it here. A server that has nothing of what they go back to was set up anew, or restored:
 * then they are all that is left of the document, and are sent.
 */
export async function withoutWithheld(
  { local, server, refusals }: WithholdingParts,
  changes: readonly LocalChange[],
): Promise<readonly LocalChange[]> {
  const givenUp = await refusals.givenUp(changes.map(({ id }) => id));
  const isGivenUp = (id: string, rev: string): boolean => givenUp.get(id)?.has(rev) === true;
  const asked = changes.flatMap(({ id, revs }) =>
    revs.flatMap((rev) => (isStandIn(rev) || isGivenUp(id, rev) ? [{ id, rev }] : [])),
  );
  if (asked.length === 0 && !changes.some(({ revs }) => revs.some(isGiveUp))) return changes;
  const reads = await local.readRevisions(asked);
  const lacked = await lackedOf(
    server,
    reads.map(({ id, ancestors }) => ({ id, revs: ancestors })),
  );
  const needed = new Set(
    reads.flatMap(({ id, doc, ancestors }, place) => {
      const revs = lacked[place] ?? [];
      const isNeeded = isStandIn(doc._rev ?? '') ? !revs.every(isOwnRevision) : revs.length === ancestors.length;
      return isNeeded ? [JSON.stringify([id, doc._rev])] : [];
    }),
  );
  const isSent = (id: string, rev: string): boolean =>
    !isGiveUp(rev) && ((!isStandIn(rev) && !isGivenUp(id, rev)) || needed.has(JSON.stringify([id, rev])));
  return changes.flatMap(({ id, revs }) => {
    const sent = revs.filter((rev) => isSent(id, rev));
    return sent.length === 0 ? [] : [{ id, revs: sent }];
  });
}

/**
 * Where the server's version has gone on, also to its deletion, its copy here gets an end: from then on the server's own
 * counts. Of the leaves that it was asked about (`asked`), it does not have `missing`.
 */
export async function endStandIns(
  { local }: Pick<WithholdingParts, 'local'>,
  changes: readonly LocalChange[],
  asked: readonly LocalChange[],
  missing: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  const ids = changes.flatMap(({ id, revs }) => (revs.some(isStandIn) && revs.length > 1 ? [id] : []));
  if (ids.length === 0) return;
  const known = new Map(
    asked.map(({ id, revs }) => [id, revs.filter((rev) => missing.get(id)?.includes(rev) !== true)] as const),
  );
  const leaves = await local.leaves(ids);
  const ends = leaves.filter((leaf) => {
    const [rev = '', copied = ''] = leaf.ancestors;
    const isSuccessor = (other: RevisionRead): boolean =>
      other.id === leaf.id &&
      !isOwnRevision(other.doc._rev ?? '') &&
      other.ancestors.includes(copied) &&
      known.get(other.id)?.includes(other.doc._rev ?? '') === true;
    return isStandIn(rev) && leaf.doc._deleted !== true && leaves.some(isSuccessor);
  });
  if (ends.length > 0) await local.writeRevisions(ends.map(giveUp));
}
