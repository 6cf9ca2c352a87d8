import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError, SignInRequiredError } from '../model/errors.js';
import type { RevisionRead, WriteRow } from '../model/pouch.js';
import { classifyError, classifyRow } from '../retry/classify.js';
import type { LocalChange, LocalDatabase } from '../store/local-database.js';
import { parsePushData, type Checkpoint, type PushData } from './checkpoint.js';
import { isForgottenStub } from './forgotten.js';
import { lackedOf } from './lacked.js';
import { readBounded } from './read-bounded.js';
import type { Refusals } from './refusals.js';
import type { Carried, Errand } from './transfer.js';
import type { Watch } from './watch.js';
import { endStandIns, withoutWithheld } from './withheld.js';

const pageSize = 100;
/** Changes in one read, where only their ids are of interest. */
const unsentAtOnce = 1000;

/** Documents to bring, or a look whether the server is the one that it was. */
export type PushStep = DocumentsStep | 'look';

interface DocumentsStep {
  readonly changes: readonly LocalChange[];
  readonly last: number | string;
  /** Whether these are the ones that stayed behind. */
  readonly isRetry: boolean;
}

/** The push, and who wants it to look. */
export interface PushErrand extends Errand<PushData, PushStep> {
  /** The next step looks whether the server is the one that it was. */
  wantLook(): void;
}

/**
 * Brings local revisions to the server, row by row (S2). A refused document becomes a failed operation and never
 * holds up the others; one that could not be delivered stays behind and is tried again on the ramp; a whole request
 * that fails moves nothing. What counts as delivered is what the server says that it has, asked after the write.
 *
 * It looks at the server first, and whenever that is wanted: after a failure it may be another one. A look that fails
 * holds up nothing: what is wrong there, the documents tell, and the next pull wants another look.
 */
export function pushErrand(places: Places & { checkpoint: Pick<Checkpoint, 'look'> }): PushErrand {
  const { local, checkpoint } = places;
  let isWanted = true;
  let left: number | undefined;
  const look = async (data: PushData, watch: Watch): Promise<Carried<PushData>> => {
    isWanted = false;
    try {
      return { data: await checkpoint.look(data, watch), transferred: 0 };
    } catch (error) {
      if (classifyError(error).kind === 'bug') throw error;
      return { data, transferred: 0 };
    }
  };
  return {
    name: 'push',
    initial: { since: 0, behind: [] },
    parse: parsePushData,
    wantLook: () => {
      isWanted = true;
    },
    isAside: (step) => step === 'look',
    left: () => left,
    next: async (data) => {
      const { changes, last } = await nextChanges(local, data.since);
      const hasBegun = data.since !== 0 || changes.length > 0;
      left = (changes.length === 0 ? 0 : await changesLeft(local, data.since)) + data.behind.length;
      if (isWanted && hasBegun) return 'look';
      if (changes.length > 0) return { changes, last, isRetry: false };
      return data.behind.length > 0 ? { changes: data.behind.slice(0, pageSize), last, isRetry: true } : undefined;
    },
    fresh: async ({ since }) => {
      const { changes, last } = await nextChanges(local, since);
      return changes.length > 0 ? { changes, last, isRetry: false } : undefined;
    },
    isOver: async ({ since, behind }) => behind.length === 0 && (await nextChanges(local, since)).changes.length === 0,
    carry: async (step, data, watch) => {
      if (step === 'look') return look(data, watch);
      try {
        return await bring({ ...places, server: places.server.within(watch) }, step, data);
      } catch (error) {
        isWanted = true;
        throw error;
      }
    },
  };
}

/** Brings documents that the local changes named before, as they are: what is left of them goes on waiting. */
export async function bring(places: Places, step: DocumentsStep, data: PushData): Promise<Carried<PushData>> {
  const outcome = await deliver(places, step.changes);
  const ids = new Set(step.changes.map(({ id }) => id));
  const behind = [...data.behind.filter(({ id }) => !ids.has(id)), ...outcome.behind];
  const isStuck = step.isRetry && outcome.behind.length > 0;
  const isLate = step.isRetry && outcome.delivered > 0;
  return {
    data: {
      ...data,
      since: step.last,
      behind: behind.map(({ id, revs }) => ({ id, revs: [...revs] })),
      ...(isLate ? { late: (data.late ?? 0) + 1 } : {}),
    },
    transferred: outcome.delivered,
    behind: behind.length > 0,
    ...(isStuck ? { error: outcome.error, isPartial: true } : {}),
  };
}

/** The next page of local changes, without design documents. */
async function nextChanges(
  local: LocalDatabase,
  from: number | string,
): Promise<{ changes: readonly LocalChange[]; last: number | string }> {
  for (let since = from; ;) {
    const page = await local.changesAfter(since, pageSize);
    const changes = page.changes.filter(({ id }) => !id.startsWith('_design/'));
    if (changes.length > 0) return { changes, last: page.last };
    if (page.changes.length === 0) return { changes, last: since };
    since = page.last;
  }
}

/** How many documents have changed after this, at most: sequences are counted, not documents. */
async function changesLeft(local: LocalDatabase, since: number | string): Promise<number> {
  const { sequence } = await local.extent();
  return Math.max(0, Number(sequence) - Number(since));
}

/** What the push remembers when these are to be sent once more, as they are. */
export function withBehind(data: PushData, again: readonly LocalChange[]): PushData {
  const ids = new Set(again.map(({ id }) => id));
  const behind = again.map(({ id, revs }) => ({ id, revs: [...revs] }));
  return { ...data, behind: [...data.behind.filter(({ id }) => !ids.has(id)), ...behind] };
}

interface Delivery {
  readonly delivered: number;
  readonly behind: readonly LocalChange[];
  readonly error: unknown;
}

export interface Places {
  readonly local: LocalDatabase;
  readonly server: ServerDatabase;
  readonly refusals: Refusals;
}

async function deliver(places: Places, all: readonly LocalChange[]): Promise<Delivery> {
  const { local, server, refusals } = places;
  const changes = await withoutWithheld(places, all);
  const missing = await server.missing(new Map(changes.map(({ id, revs }) => [id, revs])));
  await endStandIns(places, all, changes, missing);
  const behind = new Map<string, string[]>();
  let delivered = 0;
  // What the server has already may be later than what it refused once: then that was taken after all.
  await refusals.delivered(changes.filter(({ id }) => !missing.has(id)).map(({ id, revs }) => ({ id, revs })));
  const wanted = [...missing].flatMap(([id, revs]) => revs.map((rev) => ({ id, rev })));
  for await (const { asked, reads } of readBounded(local, wanted)) {
    // What cannot be read here now is not delivered either: it stays behind, or a later change replaces it.
    const readable = groupById(reads);
    for (const { id, rev } of asked) if (readable.get(id)?.includes(rev) !== true) keep(behind, id, rev);
    const sent = reads.filter(({ doc }) => !isForgottenStub(doc));
    for (const part of server.inRequests(sent)) delivered += await deliverPart(places, part, behind);
  }
  return {
    delivered,
    behind: [...behind].map(([id, revs]) => ({ id, revs })),
    error: new RetryableError('Some documents could not be delivered now.', { class: 'server', code: 'not-stored' }),
  };
}

/** One request, and the proof of what it did. What neither arrived nor was refused for good goes to `behind`. */
async function deliverPart(
  { server, refusals }: Places,
  reads: readonly RevisionRead[],
  behind: Map<string, string[]>,
): Promise<number> {
  const answer = await server.writeRevisions(reads.map(({ doc }) => doc));
  if (answer.error !== undefined) throw answer.error as Error;
  const refused = answer.rows.flatMap((row) => (row.ok ? [] : [row]));
  if (refused.some(({ error }) => classifyRow(error).kind === 'auth')) throw new SignInRequiredError('unauthorized');
  // An answer without a row says nothing: what the server has now is the proof.
  const still = await server.missing(groupById(reads));
  const stuck = reads.filter(({ id, doc }) => still.get(id)?.includes(doc._rev ?? '') === true);
  const arrived = reads.filter((read) => !stuck.includes(read));
  // A later revision that the server took proves an earlier refused one.
  await refusals.delivered(arrived.map(({ id, ancestors }) => ({ id, revs: ancestors })));

  const rowOf = new Map<string, Extract<WriteRow, { ok: false }>>(refused.map((row) => [row.id, row]));
  const final: { read: RevisionRead; code: string; reason: string }[] = [];
  for (const read of stuck) {
    const row = rowOf.get(read.id);
    const verdict = row === undefined ? undefined : classifyRow(row.error);
    if (row !== undefined && verdict?.kind === 'failed') final.push({ read, code: verdict.code, reason: row.reason });
    else keep(behind, read.id, read.doc._rev ?? '');
  }
  const lacked = await lackedOf(
    server,
    final.map(({ read: { id, ancestors } }) => ({ id, revs: ancestors })),
  );
  const refusedNow = final.flatMap((one, at) => {
    const revs = lacked[at] ?? [];
    return revs.length === 0 ? [] : [{ ...one, lacked: revs }];
  });
  for (const { id, doc } of await refusals.refused(refusedNow)) keep(behind, id, doc._rev ?? '');
  return arrived.length;
}

function keep(behind: Map<string, string[]>, id: string, rev: string): void {
  behind.set(id, [...(behind.get(id) ?? []), rev]);
}

function groupById(reads: readonly RevisionRead[]): Map<string, string[]> {
  const grouped = new Map<string, string[]>();
  for (const { id, doc } of reads) grouped.set(id, [...(grouped.get(id) ?? []), doc._rev ?? '']);
  return grouped;
}

/** Ids of the documents that the push has not taken care of yet. */
export async function unsentIds(local: LocalDatabase, { since, behind }: PushData): Promise<ReadonlySet<string>> {
  const ids = new Set(behind.map(({ id }) => id));
  for (let at = since; ;) {
    const page = await local.changesAfter(at, unsentAtOnce);
    for (const { id } of page.changes) ids.add(id);
    if (page.changes.length === 0) return ids;
    at = page.last;
  }
}
