import { z } from 'zod/mini';
import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError } from '../model/errors.js';
import { isGiveUp } from '../model/own-revisions.js';
import type { Failures } from '../queue/failures.js';
import { refusedIn } from '../queue/stored.js';
import type { LocalChange, LocalDatabase } from '../store/local-database.js';
import { bring } from './push.js';
import { judgeDenied } from './denied.js';
import { deniedDocument, type Denied } from './seen.js';
import type { Refusals } from './refusals.js';
import { hiddenDeletions } from './hidden-deletions.js';
import type { Errand } from './transfer.js';

/** Changes in one step. One question for all of them, cut into requests of a bounded size. */
const pageSize = 500;
/** So many of the newest that the server had are asked for again by a look. */
const newest = 100;
/** Documents that the server has refused, judged in one step: their histories are in memory. */
const judgedAtOnce = 100;

const changes = z.array(z.object({ id: z.string(), revs: z.array(z.string()) }));
const confirmData = z.object({
  /** Local changes up to here were asked about: the server has them, or they are in `behind`. */
  since: z.union([z.number(), z.string()]),
  /** Documents that the server did not have when it was asked. */
  behind: changes,
  /** Documents that the server has refused, and that a person wants sent once more. */
  again: changes,
  /** What the app's replication was refused, not judged yet. */
  denied: z._default(z.array(deniedDocument), []),
  /** The server was found to have less than it had, and does not have all of it again. */
  setBack: z.optional(z.boolean()),
});
export type ConfirmData = z.infer<typeof confirmData>;

export interface ConfirmStep {
  readonly kind: 'new' | 'behind' | 'again' | 'denied' | 'look';
  readonly changes: readonly LocalChange[];
  readonly last: number | string;
}

/** The questions, and who wants a look. */
export interface ConfirmErrand extends Errand<ConfirmData, ConfirmStep> {
  /** The next step looks whether the server has still what it had. */
  wantLook(): void;
}

/**
 * Asks the server which local revisions it has, for apps that bring them there themselves. Sends nothing but what a person
 * wants sent again: the app's own replication has passed it. What is not there yet is asked for again on the ramp; what
 * is known as refused is not waited for.
 *
 * A look asks once more for the newest that the server had. When one of these is not there, the server was made anew or restored
 * from a backup: nothing counts as there, all is asked anew, and the app is told (`set-back`). No mark is left at the server:
 * nothing is written there.
 */
export function confirmErrand(parts: {
  local: LocalDatabase;
  server: ServerDatabase;
  refusals: Refusals;
  failures: Failures;
}): ConfirmErrand {
  const { local, server, refusals, failures } = parts;
  let isLookWanted = true;
  const left = async (data: ConfirmData): Promise<ConfirmStep | undefined> => {
    if (data.denied.length > 0) return { kind: 'denied', changes: [], last: data.since };
    if (data.again.length > 0) return { kind: 'again', changes: data.again, last: data.since };
    let { since } = data;
    for (;;) {
      const page = await local.changesAfter(since, pageSize);
      const changes = page.changes.filter(({ id }) => !id.startsWith('_design/'));
      if (changes.length > 0) return { kind: 'new', changes, last: page.last };
      if (page.changes.length === 0) break;
      since = page.last;
    }
    return data.behind.length > 0 ? { kind: 'behind', changes: data.behind, last: since } : undefined;
  };
  /** What the server lacks of these and can still get: neither refused, nor given up, nor passed over. */
  const open = async (
    missing: ReadonlyMap<string, readonly string[]>,
    isSeveral: (id: string) => boolean,
  ): Promise<ConfirmData['behind']> => {
    const isHidden = await hiddenDeletions(
      local,
      [...missing].flatMap(([id, revs]) => (isSeveral(id) ? revs.map((rev) => ({ id, rev })) : [])),
    );
    return [...missing].flatMap(([id, revs]) => {
      const known = new Set(failures.refusedOf(id).flatMap(refusedIn));
      const lacked = revs.filter((rev) => !known.has(rev) && !isGiveUp(rev) && !isHidden(id, rev));
      return lacked.length === 0 ? [] : [{ id, revs: lacked }];
    });
  };
  const look = async (data: ConfirmData, there: ServerDatabase): Promise<ConfirmData> => {
    const waiting = new Set([...data.behind, ...data.again, ...data.denied].map(({ id }) => id));
    const had = await local.newestUpTo(Number(data.since), newest);
    const asked = had.filter(({ id }) => !waiting.has(id) && !id.startsWith('_design/'));
    const missing = await there.missing(new Map(asked.map(({ id, revs }) => [id, revs])));
    await failures.load();
    const lacked = await open(missing, () => true);
    if (lacked.length > 0) return { ...data, since: 0, setBack: true };
    return data.behind.length > 0 ? data : withoutSetBack(data);
  };
  return {
    name: 'confirm',
    initial: { since: 0, behind: [], again: [], denied: [] },
    parse: (json) => {
      const parsed = confirmData.safeParse(json);
      return parsed.success ? parsed.data : undefined;
    },
    wantLook: () => {
      isLookWanted = true;
    },
    isAside: ({ kind }) => kind === 'look',
    isOver: async (data) => (await left(data)) === undefined,
    next: (data) =>
      isLookWanted && data.since !== 0 ? Promise.resolve({ kind: 'look', changes: [], last: data.since }) : left(data),
    carry: async ({ kind, changes, last }, data, watch) => {
      if (kind === 'look') {
        isLookWanted = false;
        try {
          return { data: await look(data, server.within(watch)), transferred: 0 };
        } catch (error) {
          isLookWanted = true;
          throw error;
        }
      }
      if (kind === 'denied') {
        const judged = data.denied.slice(0, judgedAtOnce);
        const later = await judgeDenied({ local, server: server.within(watch), refusals }, judged);
        return {
          data: { ...data, denied: [...data.denied.slice(judged.length), ...later] },
          transferred: 0,
          ...(later.length > 0 ? { error: notThere() } : {}),
        };
      }
      if (kind === 'again') {
        const again = { changes, last: data.since, isRetry: true };
        const sent = await bring({ local, server: server.within(watch), refusals }, again, {
          since: data.since,
          behind: [],
        });
        const behind = withoutIds(data.behind, changes);
        return {
          data: { ...data, behind: [...behind, ...sent.data.behind], again: [] },
          transferred: sent.transferred,
        };
      }
      const missing = await server.within(watch).missing(new Map(changes.map(({ id, revs }) => [id, revs])));
      const there = changes.filter(({ id }) => !missing.has(id));
      await failures.load();
      await refusals.delivered(await historiesOf(local, failures, there));
      const asked = new Map(changes.map(({ id, revs }) => [id, revs.length]));
      const behind = await open(missing, (id) => kind === 'behind' || (asked.get(id) ?? 0) > 1);
      const all = [...withoutIds(data.behind, changes), ...behind];
      const isBack = kind === 'behind' && all.length === 0;
      return {
        data: { ...(isBack ? withoutSetBack(data) : data), since: last, behind: all },
        transferred: there.length,
        behind: behind.length > 0,
        ...(kind === 'behind' && behind.length > 0 ? { error: data.setBack === true ? setBack() : notThere() } : {}),
      };
    },
  };
}

/** What is remembered when these are to be sent once more, as they are. */
export function withAgain(data: ConfirmData, again: readonly LocalChange[]): ConfirmData {
  const added = again.map(({ id, revs }) => ({ id, revs: [...revs] }));
  return { ...data, again: [...withoutIds(data.again, again), ...added] };
}

/** What is remembered when the app has told of these. Told twice, the latest counts. */
export function withDenied(data: ConfirmData, denied: readonly Denied[]): ConfirmData {
  const all = [...data.denied, ...denied].map((one) => [JSON.stringify([one.id, one.rev]), one] as const);
  return { ...data, denied: [...new Map(all).values()] };
}

/** A later revision that the server has proves an earlier refused one: their whole histories count. */
async function historiesOf(
  local: LocalDatabase,
  failures: Failures,
  there: readonly LocalChange[],
): Promise<readonly LocalChange[]> {
  const refused = there.filter(({ id }) => failures.refusedOf(id).length > 0);
  const reads = await local.readRevisions(refused.flatMap(({ id, revs }) => revs.map((rev) => ({ id, rev }))));
  return reads.map(({ id, ancestors }) => ({ id, revs: ancestors }));
}

function withoutIds(from: ConfirmData['behind'], changes: readonly LocalChange[]): ConfirmData['behind'] {
  const ids = new Set(changes.map(({ id }) => id));
  return from.filter(({ id }) => !ids.has(id));
}

function withoutSetBack({ since, behind, again, denied }: ConfirmData): ConfirmData {
  return { since, behind, again, denied };
}

function setBack(): RetryableError {
  const what = 'The server has less than it had: replicate again from the beginning.';
  return new RetryableError(what, { class: 'server', code: 'set-back' });
}

function notThere(): RetryableError {
  return new RetryableError('The server does not have some documents yet.', { class: 'server', code: 'not-there-yet' });
}
