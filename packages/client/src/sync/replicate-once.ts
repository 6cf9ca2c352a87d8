import { z } from 'zod/mini';
import type { Requests } from '../http/requests.js';
import { ServerDatabase } from '../http/server-database.js';
import { SignInRequiredError } from '../model/errors.js';
import type { BulkGetOptions, PouchConstructor, PouchLike } from '../model/pouch.js';
import { localStoreError } from '../retry/classify.js';
import type { LocalDatabase } from '../store/local-database.js';
import { AttachmentReads } from './attachment-reads.js';
import { asking, type PullFilter } from './pull-filter.js';
import { PullRound, type PullMemory } from './pull-memory.js';
import type { Watch } from './watch.js';

const replicationResult = z.object({ docs_written: z.number() });
const refusedRow = z.object({ error: z.object({ error: z.enum(['forbidden', 'unauthorized']) }) });
const rowsById = z.object({ results: z.array(z.looseObject({ id: z.string(), docs: z.array(z.unknown()) })) });

export interface ReplicateParts {
  readonly PouchDB: PouchConstructor;
  readonly local: LocalDatabase;
  readonly url: string;
  readonly requests: Requests;
  readonly memory: PullMemory;
  /** The server gives these documents to someone else, not to this user. The checkpoint passes them when it resolves. */
  readonly withheld: (ids: readonly string[]) => Promise<unknown>;
}

export interface ReplicateHow {
  readonly filter?: PullFilter | undefined;
  /** From the start, leaving no checkpoint. */
  readonly once?: boolean;
}

/**
 * Brings the server's documents here until there are no more, through PouchDB's replicator with our own fetch. Says to
 * `watch` how many it has written, on top of what was brought already.
 */
export async function replicateOnce(parts: ReplicateParts, watch: Watch, how: ReplicateHow = {}): Promise<void> {
  const { PouchDB, local, url } = parts;
  const requests = parts.requests.within(watch);
  const server = new ServerDatabase(url, requests);
  const { filter, once } = how;
  const before = watch.brought;
  // PouchDB wraps what a fetch throws: the first error of our own is the true one.
  let failure: unknown;
  const watched = async <Value>(call: () => Promise<Value>): Promise<Value> => {
    try {
      return await call();
    } catch (error) {
      failure ??= error;
      throw error;
    }
  };
  const remote = new PouchDB(url, {
    adapter: 'http',
    skip_setup: true,
    fetch: (address: string, init: RequestInit = {}) =>
      watched(async () => {
        if (filter === undefined) return round.steady(address, await requests.pouchFetch(address, init));
        return requests.pouchFetch(...asking(address, init, filter, requests.timeoutMs / 2));
      }),
  });
  const round = new PullRound(remote, parts.memory);
  const { withheld } = parts;
  Object.assign(remote, round.calls(), facade(remote, { server, local, requests, round, filter, watched, withheld }));
  const replication = PouchDB.replicate(remote, local.pouch, {
    batch_size: 200,
    batches_limit: 2,
    ...(once === true ? { checkpoint: false } : {}),
  });
  replication.on('change', (change: unknown) => {
    const written = replicationResult.safeParse(change);
    if (written.success) watch.bring(before + written.data.docs_written);
  });
  const stop = (): void => {
    replication.cancel();
  };
  watch.signal.addEventListener('abort', stop);
  if (watch.signal.aborted) stop();
  try {
    const result = replicationResult.safeParse(await replication);
    if (failure !== undefined) throw failure as Error;
    if (result.success) watch.bring(before + result.data.docs_written);
    round.ended(watch.signal.aborted);
  } catch (error) {
    round.ended(true);
    throw failure ?? localStoreError(error);
  } finally {
    watch.signal.removeEventListener('abort', stop);
    await remote.close();
  }
}

/** What the replicator asks of the server in another way than PouchDB would. */
function facade(
  remote: PouchLike,
  parts: {
    server: ServerDatabase;
    local: LocalDatabase;
    requests: Requests;
    round: PullRound;
    filter: PullFilter | undefined;
    watched: <Value>(call: () => Promise<Value>) => Promise<Value>;
    withheld: (ids: readonly string[]) => Promise<unknown>;
  },
): object {
  const { server, local, requests, round, filter, watched, withheld } = parts;
  // A stand-in for PouchDB may have no more than its replication needs.
  const has: Partial<Pick<PouchLike, 'bulkGet'>> = remote;
  const bulkGet = has.bulkGet?.bind(remote) ?? (() => Promise.resolve({ results: [] }));
  const attachments = new AttachmentReads(server, local);
  return {
    // For what it takes for a server the replicator names no revision where a document is here already: it would get the
    // attachments of the version that has won there.
    _remote: false,
    // One by one and without a shape they could not be told from a captive portal.
    getAttachment: (docId: string, name: string, { rev }: { rev: string }) =>
      watched(() => attachments.read(docId, rev, name)),
    // The answer only counts what is left to do. The replicator does not catch what it throws, and asks for it with each batch.
    info: () => Promise.resolve({ db_name: '', update_seq: 0, doc_count: 0 }),
    // A part of the checkpoint's id.
    id: async () => {
      const id = await round.serverId();
      return filter === undefined ? id : `${id} ${filter.key}`;
    },
    bulkGet: (options: BulkGetOptions) =>
      watched(async () => {
        const answer = await bulkGet(options);
        const { rest, ids } = withoutWithheld(answer, requests);
        attachments.expect(rest);
        if (ids.length === 0) return answer;
        if (!(await server.isSignedIn())) throw new SignInRequiredError('forbidden');
        await withheld(ids);
        return rest;
      }),
  };
}

/** A row without a document ends the replicator at this place for ever; one that the user may not read is passed over. */
function withoutWithheld(
  answer: { results: unknown[] },
  requests: Requests,
): { rest: { results: unknown[] }; ids: readonly string[] } {
  const parsed = rowsById.safeParse(answer);
  if (!parsed.success) return { rest: answer, ids: [] };
  const ids = new Set<string>();
  const results = parsed.data.results.map((result) => ({
    ...result,
    docs: result.docs.filter((row) => {
      const refused = refusedRow.safeParse(row);
      if (!refused.success) return true;
      if (refused.data.error.error === 'unauthorized') {
        requests.refusedByRow();
        throw new SignInRequiredError('unauthorized');
      }
      ids.add(result.id);
      return false;
    }),
  }));
  return { rest: { results }, ids: [...ids] };
}
