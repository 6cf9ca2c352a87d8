import { z } from 'zod/mini';
import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import { generationOf } from '../model/revision.js';
import { endStates } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import type { Queue } from '../queue/queue.js';
import type { Reports } from '../queue/reports.js';
import { sequenceOf, type Header, type StoredFailure } from '../queue/stored.js';
import type { Errand } from './transfer.js';

/** Bulk operations whose results go into one request. */
const perRequest = 20;
/** Failures in one document on the server (S1). */
const perDocument = 100;
const charactersPerDocument = 400_000;

interface ResultsStep {
  readonly headers: readonly Header[];
}

/** Bulk operations at their end whose result the server does not have as it is now. */
export function unreported(queue: Queue, reports: Reports): readonly Header[] {
  return queue
    .headers()
    .filter((header) => endStates.has(header.state) && reports.of(header).delivered !== reports.truthOf(header));
}

/**
 * Brings results and failures to the server under fixed ids: sending twice stores once, and a truth that changed is
 * written over the old one (S1). Only ids, codes and names of fields: no reason text, no content.
 */
export function resultsErrand(parts: {
  queue: Queue;
  failures: Failures;
  reports: Reports;
  server: ServerDatabase;
  storeId: string;
}): Errand<Record<string, never>, ResultsStep> {
  const { queue, failures, reports, server, storeId } = parts;
  /** Bulk operations whose result the server did not take: they come after all others. */
  const stuck = new Set<string>();
  return {
    name: 'results',
    initial: {},
    parse: () => ({}),
    next: () => {
      const open = unreported(queue, reports);
      const first = open.filter(({ id }) => !stuck.has(id));
      const headers = (first.length > 0 ? first : open).slice(0, perRequest);
      return Promise.resolve(headers.length === 0 ? undefined : { headers });
    },
    carry: async ({ headers }) => {
      await failures.load();
      const isShort = (header: Header): boolean =>
        failures.of(header.id).length < header.failed + reports.of(header).refused;
      // Another tab may have stored failures after they were read here.
      if (headers.some(isShort)) await failures.reload();
      const truths = headers.map((header) => ({
        header,
        truth: reports.truthOf(header),
        docs: documentsOf(header, failures.of(header.id), reports, storeId),
      }));
      const { taken, error } = await upsert(
        server,
        truths.flatMap(({ docs }) => docs),
      );
      // What another tab knows better is read before the next attempt.
      if (error instanceof RetryableError && error.code === newer) reports.loaded((await queue.refreshAll()).reports);
      const delivered = truths.filter(({ docs }) => docs.every(({ _id }) => taken.has(_id)));
      for (const { header } of truths) stuck.add(header.id);
      for (const { header } of delivered) stuck.delete(header.id);
      await reports.write(
        delivered.map(({ header, truth, docs }) => ({
          header,
          change: (report) => ({ ...report, delivered: truth, chunks: docs.length - 1 }),
        })),
      );
      // While others get through, the ones that do not wait for their turn.
      const isOver = error === undefined || unreported(queue, reports).some(({ id }) => !stuck.has(id));
      return { data: {}, transferred: delivered.length, ...(isOver ? {} : { error }) };
    },
  };
}

/** Why a result was not sent: another tab has sent a newer one. */
const newer = 'results-newer';

/** Writes documents over what is there under their ids. Answers which the server took, and why not the others. */
async function upsert(
  server: ServerDatabase,
  docs: readonly Doc[],
): Promise<{ taken: ReadonlySet<string>; error?: unknown }> {
  const present = await server.read(docs.map(({ _id }) => _id));
  // A tab that wakes late must not write an older truth over a newer one: its report says the newer one is delivered.
  const isOlder = (doc: Doc, place: number): boolean => ageOf(present[place]?.doc) > ageOf(doc);
  if (docs.some(isOlder)) {
    const error = new RetryableError('Another tab has sent a newer result.', {
      class: 'conflict',
      code: newer,
    });
    return { taken: new Set(), error };
  }
  const answer = await server.write(
    docs.map((doc, place) => {
      const row = present[place];
      return row?.rev === undefined || row.deleted ? doc : { ...doc, _rev: row.rev };
    }),
  );
  const taken = new Set(answer.rows.flatMap((row) => (row.ok ? [row.id] : [])));
  const refused = answer.rows.find((row) => !row.ok);
  if (answer.error !== undefined) return { taken, error: answer.error };
  if (refused === undefined || refused.ok) return { taken };
  const code = `results-${refused.error}`;
  return { taken, error: new RetryableError('The server did not take a result.', { class: 'server', code }) };
}

/** Grows with each change of the header or the report that a result is made of. */
function ageOf(doc: Doc | undefined): number {
  const age = doc?.['changes'];
  return typeof age === 'number' ? age : 0;
}

function documentsOf(header: Header, failed: readonly StoredFailure[], reports: Reports, storeId: string): Doc[] {
  const name = `${storeId}:${header.id}`;
  const report = reports.of(header);
  const common = { v: 1, store: storeId, bulkOperation: header.id, sequence: sequenceOf(header._id) };
  const result: Doc = {
    _id: `result:${name}`,
    type: 'afield-result',
    ...common,
    target: header.target,
    ...(header.plan === undefined ? {} : { plan: header.plan.name }),
    actions: header.parts.map(({ action }) => action),
    state: reports.stateOf(header),
    total: header.total,
    applied: header.applied - report.refused,
    alreadyApplied: header.alreadyApplied,
    failed: reports.openFailures(header),
    resolved: report.resolved,
    notDone: header.total - header.applied - header.alreadyApplied - header.failed,
    ...(header.continuedBy === undefined ? {} : { continuedBy: header.continuedBy }),
    queuedAt: header.queuedAt,
    changes: generationOf(header._rev) + generationOf(report._rev),
  };
  const docs = [result];
  const chunks = inChunks(failed.map(shared));
  while (chunks.length < report.chunks) chunks.push([]);
  chunks.forEach((operations, chunk) => {
    docs.push({ _id: `failures:${name}:${String(chunk)}`, type: 'afield-failures', ...common, operations });
  });
  return docs;
}

/** At most 100 rows and about 400 kB in a document. */
function inChunks(rows: readonly Record<string, unknown>[]): Record<string, unknown>[][] {
  const chunks: Record<string, unknown>[][] = [];
  let size = 0;
  for (const row of rows) {
    const length = JSON.stringify(row).length;
    const last = chunks[chunks.length - 1];
    if (last === undefined || last.length >= perDocument || size + length > charactersPerDocument) {
      chunks.push([row]);
      size = length;
    } else {
      last.push(row);
      size += length;
    }
  }
  return chunks;
}

const storedContent = z.object({ content: z.optional(z.unknown()) });

/** What a database that devices share may hold of a failure. */
function shared(failure: StoredFailure): Record<string, unknown> {
  const parsed = storedContent.safeParse(failure.operation === null ? {} : JSON.parse(failure.operation));
  const content = parsed.success ? parsed.data.content : undefined;
  return {
    index: failure.index,
    id: failure.id,
    action: failure.action,
    code: failure.code,
    fields: typeof content === 'object' && content !== null ? Object.keys(content).slice(0, 50) : [],
    mayHaveBeenApplied: failure.mayHaveBeenApplied,
    at: failure.at,
    ...(failure.resolution === undefined ? {} : { resolution: failure.resolution }),
  };
}
