import { z } from 'zod/mini';
import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError, SignInRequiredError } from '../model/errors.js';
import type { RevisionRead, WriteRow } from '../model/pouch.js';
import { classifyRow } from '../retry/classify.js';
import type { LocalChange, LocalDatabase } from '../store/local-database.js';
import { lackedOf } from './lacked.js';
import type { Refusals } from './refusals.js';
import type { Errand } from './transfer.js';

const pageSize = 100;
/** Documents with their attachments that are held in memory at once. */
const readAtOnce = 20;

const pushData = z.object({
  /** Local changes up to here were taken care of: delivered, refused, or kept in `behind`. */
  since: z.union([z.number(), z.string()]),
  /** Documents that could not be delivered yet; the others go on. */
  behind: z.array(z.object({ id: z.string(), revs: z.array(z.string()) })),
});
export type PushData = z.infer<typeof pushData>;

export interface PushStep {
  readonly changes: readonly LocalChange[];
  readonly last: number | string;
  /** Whether these are the ones that stayed behind. */
  readonly isRetry: boolean;
}

/**
 * Brings local revisions to the server, row by row (S2). A refused document becomes a failed operation and never
 * holds up the others; one that could not be delivered stays behind and is tried again on the ramp; a whole request
 * that fails moves nothing. What counts as delivered is what the server says that it has, asked after the write.
 */
export function pushErrand(parts: {
  local: LocalDatabase;
  server: ServerDatabase;
  refusals: Refusals;
}): Errand<PushData, PushStep> {
  const { local, server, refusals } = parts;
  return {
    name: 'push',
    initial: { since: 0, behind: [] },
    parse: (json) => {
      const parsed = pushData.safeParse(json);
      return parsed.success ? parsed.data : undefined;
    },
    next: async (data) => {
      let since = data.since;
      for (;;) {
        const page = await local.changesAfter(since, pageSize);
        const changes = page.changes.filter(({ id }) => !id.startsWith('_design/'));
        if (changes.length > 0) return { changes, last: page.last, isRetry: false };
        if (page.changes.length === 0) break;
        since = page.last;
      }
      return data.behind.length > 0
        ? { changes: data.behind.slice(0, pageSize), last: since, isRetry: true }
        : undefined;
    },
    carry: async (step, data) => {
      const outcome = await deliver({ local, server, refusals }, step.changes);
      const ids = new Set(step.changes.map(({ id }) => id));
      const behind = [...data.behind.filter(({ id }) => !ids.has(id)), ...outcome.behind];
      const left = step.isRetry && outcome.behind.length > 0;
      return {
        data: { since: step.last, behind: behind.map(({ id, revs }) => ({ id, revs: [...revs] })) },
        transferred: outcome.delivered,
        behind: behind.length > 0,
        ...(left ? { error: outcome.error } : {}),
      };
    },
  };
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

interface Places {
  readonly local: LocalDatabase;
  readonly server: ServerDatabase;
  readonly refusals: Refusals;
}

async function deliver(places: Places, changes: readonly LocalChange[]): Promise<Delivery> {
  const { local, server, refusals } = places;
  const missing = await server.missing(new Map(changes.map(({ id, revs }) => [id, revs])));
  const behind = new Map<string, string[]>();
  let delivered = 0;
  // What the server has already may be later than what it refused once: then that was taken after all.
  await refusals.delivered(changes.filter(({ id }) => !missing.has(id)).map(({ id, revs }) => ({ id, revs })));
  const wanted = [...missing].flatMap(([id, revs]) => revs.map((rev) => ({ id, rev })));
  for (let at = 0; at < wanted.length; at += readAtOnce) {
    const slice = wanted.slice(at, at + readAtOnce);
    const reads = await local.readWhole(slice);
    // What cannot be read here now is not delivered either: it stays behind, or a later change replaces it.
    const readable = groupById(reads);
    for (const { id, rev } of slice) if (readable.get(id)?.includes(rev) !== true) keep(behind, id, rev);
    for (const part of server.inRequests(reads)) delivered += await deliverPart(places, part, behind);
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
