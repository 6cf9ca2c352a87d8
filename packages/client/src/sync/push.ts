import { classifyError } from '../retry/classify.js';
import type { LocalChange, LocalDatabase } from '../store/local-database.js';
import { parsePushData, type Checkpoint, type PushData } from './checkpoint.js';
import { deliver, type Places } from './delivery.js';
import type { Carried, Errand } from './transfer.js';
import type { Watch } from './watch.js';

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
  const outcome = await deliver(places, step.changes, step.isRetry);
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
