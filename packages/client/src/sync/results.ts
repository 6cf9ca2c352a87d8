import { z } from 'zod/mini';
import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import { endStates } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import type { Queue } from '../queue/queue.js';
import type { Reports } from '../queue/reports.js';
import { sequenceOf, type Header, type Report, type StoredFailure } from '../queue/stored.js';
import type { Errand } from './transfer.js';

/** Bulk operations whose results go into one request. */
const perRequest = 20;
/** Failures in one document on the server (S1). */
const perDocument = 100;

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
  return {
    name: 'results',
    initial: {},
    parse: () => ({}),
    next: () => {
      const headers = unreported(queue, reports).slice(0, perRequest);
      return Promise.resolve(headers.length === 0 ? undefined : { headers });
    },
    carry: async ({ headers }) => {
      await failures.load();
      const truths = headers.map((header) => ({
        header,
        truth: reports.truthOf(header),
        docs: documentsOf(header, failures.of(header.id), reports, storeId),
      }));
      await upsert(
        server,
        truths.flatMap(({ docs }) => docs),
      );
      const delivered: Report[] = truths.map(({ header, truth, docs }) => ({
        ...reports.of(header),
        delivered: truth,
        chunks: docs.length - 1,
      }));
      const { revs } = await queue.write(delivered);
      for (const report of delivered) reports.stored({ ...report, _rev: revs.get(report._id) });
      return { data: {}, transferred: headers.length };
    },
  };
}

/** Writes documents over what is there under their ids. */
async function upsert(server: ServerDatabase, docs: readonly Doc[]): Promise<void> {
  const present = await server.read(docs.map(({ _id }) => _id));
  const answer = await server.write(
    docs.map((doc, place) => {
      const row = present[place];
      return row?.rev === undefined || row.deleted ? doc : { ...doc, _rev: row.rev };
    }),
  );
  if (answer.error !== undefined) throw answer.error as Error;
  const refused = answer.rows.find((row) => !row.ok);
  if (refused !== undefined && !refused.ok) {
    throw new RetryableError('The server did not take a result.', {
      class: 'server',
      code: `results-${refused.error}`,
    });
  }
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
    actions: header.parts.map(({ action }) => action),
    state: reports.stateOf(header),
    total: header.total,
    applied: header.applied - report.refused,
    alreadyApplied: header.alreadyApplied,
    failed: header.failed + report.refused,
    notDone: header.total - header.cursor,
    queuedAt: header.queuedAt,
  };
  const docs = [result];
  const chunks = Math.max(Math.ceil(failed.length / perDocument), report.chunks);
  for (let chunk = 0; chunk < chunks; chunk++) {
    const operations = failed.slice(chunk * perDocument, (chunk + 1) * perDocument).map(shared);
    docs.push({ _id: `failures:${name}:${String(chunk)}`, type: 'afield-failures', ...common, operations });
  }
  return docs;
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
    fields: typeof content === 'object' && content !== null ? Object.keys(content) : [],
    mayHaveBeenApplied: failure.mayHaveBeenApplied,
    at: failure.at,
  };
}
