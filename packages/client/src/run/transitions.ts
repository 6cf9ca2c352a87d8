import type { Clock } from '../model/environment.js';
import { IndexNotReadyError, PlanRefusedError, RetryableError, type ErrorSummary } from '../model/errors.js';
import type { Failure } from '../model/failure.js';
import type { BulkOperationState } from '../model/states.js';
import { withOutcomes } from '../queue/control.js';
import {
  failureId,
  isUnplanned,
  storedVersion,
  type Header,
  type RowState,
  type StoredFailure,
} from '../queue/stored.js';
import type { ErrorVerdict } from '../retry/classify.js';
import type { RetryPolicy } from '../retry/policy.js';
import { beginWait, storedWait } from '../retry/wait.js';
import type { Batch } from './batch.js';

/** The header with one more attempt: written before the attempt starts. */
export function counted(header: Header): Header {
  return { ...header, attempt: header.attempt + 1, attempts: header.attempts + 1 };
}

/** The header after a batch whose operations all have outcomes: the ramp starts anew (R2). */
export function advanced(header: Header, rows: readonly RowState[], clock: Clock): Header {
  const cursor = header.cursor + rows.length;
  const next = settled({ ...withOutcomes(header, rows), cursor, attempt: 0 });
  if (cursor >= header.total) return { ...next, state: next.failed > 0 ? 'done-with-failures' : 'done', lease: null };
  return paced(next, rows.length, clock);
}

/** A bulk operation that a person has given a rate rests after each batch; no event cuts the rest short (R19). */
function paced(header: Header, operations: number, clock: Clock): Header {
  if (header.rate === undefined) return header;
  const rest = Math.ceil((operations / header.rate) * 1000);
  return { ...header, state: 'queued', wait: storedWait(beginWait(clock, { delayMs: rest, notBeforeMs: rest })) };
}

/** How many operations a batch may have. */
export function batchSizeOf(header: Header, most: number): number {
  return header.rate === undefined ? most : Math.min(most, Math.max(1, Math.floor(header.rate)));
}

/** The header of a batch that must run again, or of a bulk operation that a bug of its handler has stopped (R5). */
export function held(
  header: Header,
  rows: readonly RowState[],
  verdict: ErrorVerdict | undefined,
  error: unknown,
  { policy, clock }: { policy: RetryPolicy; clock: Clock },
): Header {
  const lastError = verdict?.summary ?? header.lastError;
  switch (verdict?.kind) {
    case 'auth':
      return {
        ...header,
        state: 'waiting-auth',
        lastError,
        attempt: header.attempt - 1,
        attempts: header.attempts - 1,
      };
    case 'passing':
      return {
        ...header,
        state: stateFor(verdict.summary, error),
        lastError,
        failedAttempts: header.failedAttempts + 1,
        wait: storedWait(beginWait(clock, policy.delay(header.attempt, verdict.notBeforeMs))),
      };
    default:
      return {
        ...withOutcomes(header, rows),
        state: 'failed',
        lastError,
        failedAttempts: header.failedAttempts + 1,
        lease: null,
        bug: bugOf(error),
      };
  }
}

/**
 * The header that a person has changed while an attempt was under way: their state stays, and what the attempt brought
 * is kept. Undefined: the batch is not at its end. Then the record says more, and is looked at later.
 */
export function merged(
  changed: Header,
  before: Header,
  rows: readonly RowState[],
  complete: boolean,
): Header | undefined {
  if (!complete) return undefined;
  const { applied, alreadyApplied, failed, events } = withOutcomes(before, rows);
  const cursor = before.cursor + rows.length;
  const next = settled({ ...changed, applied, alreadyApplied, failed, events, cursor, attempt: 0 });
  if (cursor < changed.total || changed.state === 'cancelled') return next;
  return { ...next, state: failed > 0 ? 'done-with-failures' : 'done', wait: null, lease: null };
}

/** Progress: what was counted of stops of the process is over (R16), and nothing is under way. */
export function settled(header: Header): Header {
  const rest = { ...header };
  delete rest.stops;
  delete rest.alone;
  delete rest.unsettled;
  return rest;
}

/** A cancelled header when it is known which of the writes that were under way have been done. */
export function settledWith(header: Header, rows: readonly RowState[]): Header {
  return settled(withOutcomes({ ...header, ...header.unsettled }, rows));
}

/** What is stored of an operation that failed for good. */
export function failureOf(
  header: Header,
  sequence: number,
  batch: Batch,
  { index, failure, mayHaveBeenApplied }: { index: number; failure: Failure; mayHaveBeenApplied: boolean },
  { at, appVersion }: { at: number; appVersion: string | undefined },
): StoredFailure {
  const operation = batch.operations[index - batch.from];
  return {
    _id: failureId(sequence, index),
    v: storedVersion,
    bulkOperationId: header.id,
    index,
    key: operation?.key ?? null,
    ...(operation?.origin === undefined ? {} : { origin: operation.origin }),
    id: typeof operation?.id === 'string' && operation.id !== '' ? operation.id : null,
    action: batch.action,
    code: failure.code,
    reason: failure.reason,
    operation: JSON.stringify({ id: operation?.id, content: operation?.content }),
    mayHaveBeenApplied,
    refused: null,
    at,
    ...(appVersion === undefined ? {} : { app: appVersion }),
  };
}

/** The lease is lost: another runner has taken over, or a person has changed the bulk operation. */
export class LeaseLostError extends RetryableError {
  constructor() {
    super('Another tab has taken over.', { class: 'conflict', code: 'lease-lost' });
  }
}

/** A header that says less than it counts cannot run, and must not keep others from it. */
export function isUsable(header: Header): boolean {
  if (isUnplanned(header)) return true;
  return header.cursor < header.total && header.parts.reduce((sum, { count }) => sum + count, 0) === header.total;
}

function stateFor(summary: ErrorSummary, error: unknown): BulkOperationState {
  if (error instanceof IndexNotReadyError) return 'waiting-index';
  return summary.class === 'storage' ? 'waiting-storage' : 'waiting-retry';
}

/** An error that is someone's bug, kept for its author. */
export function bugOf(error: unknown): { name: string; stack: string } {
  // Nothing is wrong with the code there: its author said why, and where he said it helps nobody.
  if (error instanceof PlanRefusedError) return { name: 'PlanRefusedError', stack: error.message };
  if (!(error instanceof Error)) return { name: 'Error', stack: String(error) };
  return { name: error.name, stack: error.stack ?? '' };
}
