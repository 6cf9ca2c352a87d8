import { z } from 'zod/mini';
import type { Failures } from '../queue/failures.js';
import { untilAborted } from '../run/handlers.js';
import type { LocalDatabase } from '../store/local-database.js';
import type { Errand } from '../sync/transfer.js';
import type { Healing } from './healing.js';

/** Changes that are read in one call. */
const changesAtOnce = 500;
/** Documents with conflicts that are looked at together. */
const documentsAtOnce = 50;

/** Documents of a page of changes that were not looked at yet. */
interface Found {
  readonly ids: readonly string[];
  readonly from: number | string;
  readonly to: number | string;
}

const healData = z.object({
  /** Local changes up to here were looked at. */
  since: z.union([z.number(), z.string()]),
  /** Documents that must be looked at again. */
  again: z.array(z.string()),
  /** Documents that must be looked at again when a failure has changed, or an action is there. */
  held: z.array(z.string()),
});
export type HealData = z.infer<typeof healData>;

export interface HealStep {
  readonly ids: readonly string[];
  readonly since: number | string;
  readonly isRetry: boolean;
}

/**
 * Follows the changes of the local documents, and heals those that have conflicts. Needs neither the network nor a
 * sign-in. What cannot be healed now is looked at again on the ramp; all others go on. A local call that never settles, as
 * when another tab closes the database, does not keep the client from closing.
 */
export function healErrand({
  local,
  healing,
  failures,
  closed,
}: {
  local: LocalDatabase;
  healing: Healing;
  failures: Pick<Failures, 'version'>;
  closed: AbortSignal;
}): Errand<HealData, HealStep> {
  let rest: Found | undefined;
  /** The state of the failures for which all held documents were looked at, but for `unseen`. */
  let seen = -1;
  let unseen: readonly string[] = [];
  const fresh = async (since: number | string): Promise<HealStep | undefined> => {
    if (rest?.from !== since) rest = await untilAborted(nextConflicts(local, since), closed);
    if (rest === undefined) return undefined;
    const ids = rest.ids.slice(0, documentsAtOnce);
    const isLast = ids.length === rest.ids.length;
    return { ids, since: isLast ? rest.to : since, isRetry: false };
  };
  return {
    name: 'heal',
    initial: { since: 0, again: [], held: [] },
    parse: (json) => {
      const parsed = healData.safeParse(json);
      return parsed.success ? parsed.data : undefined;
    },
    next: async ({ since, again, held }) => {
      const step = await fresh(since);
      if (step !== undefined) return step;
      if (seen !== failures.version) {
        [seen, unseen] = [failures.version, held];
      }
      unseen = unseen.filter((id) => held.includes(id));
      if (unseen.length > 0) return { ids: unseen.slice(0, documentsAtOnce), since, isRetry: false };
      return again.length === 0 ? undefined : { ids: again.slice(0, documentsAtOnce), since, isRetry: true };
    },
    fresh: ({ since }) => fresh(since),
    carry: async ({ ids, since, isRetry }, data) => {
      const { healed, later, held: stillHeld, error } = await untilAborted(healing.heal(ids), closed);
      if (!isRetry && rest !== undefined) {
        rest = rest.ids.length > ids.length ? { ...rest, ids: rest.ids.slice(ids.length) } : undefined;
      }
      const looked = new Set(ids);
      // Those that stay go behind the others: each gets its turn.
      const again = [...data.again.filter((id) => !looked.has(id)), ...later];
      const held = [...data.held.filter((id) => !looked.has(id)), ...stillHeld];
      unseen = unseen.filter((id) => !looked.has(id));
      return {
        data: { since, again, held },
        transferred: healed,
        behind: again.length > 0,
        ...(isRetry && later.length > 0 ? { error, isPartial: true } : {}),
      };
    },
  };
}

/** These are to be looked at, whether they have changed or not. */
export function withAgain(data: HealData, ids: readonly string[]): HealData {
  return { ...data, again: [...new Set([...data.again, ...ids])] };
}

/**
 * The next documents with more than one leaf among the changes. Undefined: there is none, and too little was read to be
 * worth writing down.
 */
async function nextConflicts(local: LocalDatabase, since: number | string): Promise<Found | undefined> {
  const { changes, last } = await local.changesAfter(since, changesAtOnce);
  const ids = changes.filter(({ id, revs }) => revs.length > 1 && !id.startsWith('_design/')).map(({ id }) => id);
  if (ids.length === 0 && changes.length < changesAtOnce) return undefined;
  return { ids: [...new Set(ids)], from: since, to: last };
}
