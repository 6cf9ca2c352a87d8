import type { ServerDatabase } from '../http/server-database.js';
import { isOwnRevision } from '../model/own-revisions.js';
import type { LocalDatabase } from '../store/local-database.js';
import { lackedOf } from './lacked.js';
import type { Refusals, Refused } from './refusals.js';
import type { Denied } from './seen.js';

/**
 * Makes failures of what the server has refused the app's own replication (S2). What the server has meanwhile, what is not
 * here any more, and what was told before changes nothing. Answers with those that must be judged later.
 */
export async function judgeDenied(
  { local, server, refusals }: { local: LocalDatabase; server: ServerDatabase; refusals: Refusals },
  denied: readonly Denied[],
): Promise<readonly Denied[]> {
  const leaves = await local.leaves([...new Set(denied.map(({ id }) => id))]);
  const living = new Set(leaves.flatMap(({ id, doc }) => (doc['_deleted'] === true ? [] : [id])));
  const found = denied.flatMap((one) =>
    leaves.flatMap((leaf): (Refused & { told: Denied })[] => {
      const at = one.rev === undefined ? 0 : leaf.ancestors.indexOf(one.rev);
      const rev = leaf.ancestors[at];
      if (leaf.id !== one.id || rev === undefined || isOwnRevision(rev)) return [];
      // Of a later revision the server has not said anything yet.
      const lacked = leaf.ancestors.slice(at);
      const read = { ...leaf, doc: { ...leaf.doc, _rev: rev }, ancestors: lacked };
      const isHidden = at === 0 && leaf.doc['_deleted'] === true && living.has(leaf.id);
      return [{ read, lacked, code: one.code, reason: one.reason, isHidden, told: one }];
    }),
  );
  const lacked = await lackedOf(
    server,
    found.map(({ read, lacked: revs }) => ({ id: read.id, revs })),
  );
  const refused = found.flatMap((one, place) => {
    const revs = lacked[place] ?? [];
    return revs.length === 0 ? [] : [{ ...one, lacked: revs }];
  });
  const postponed = new Set(await refusals.refused(refused));
  return [...new Set(refused.flatMap(({ read, told }) => (postponed.has(read) ? [told] : [])))];
}
