import { endStates, type BulkOperationStatus, type ClientStatus, type TransferStatus } from './model/states.js';
import type { SignInCause } from './model/errors.js';
import type { Reports } from './queue/reports.js';
import { sequenceOf, type Header } from './queue/stored.js';

/** What is shown of one bulk operation. */
export function bulkOperationStatus(
  header: Header,
  reports: Reports,
  nextAttemptAt: number | undefined,
): BulkOperationStatus {
  const { refused, resolved } = reports.of(header);
  return {
    id: header.id,
    sequence: sequenceOf(header._id),
    key: header.key,
    target: header.target,
    lane: header.lane ?? undefined,
    plan: header.plan?.name,
    actions: header.parts.map(({ action }) => action),
    state: reports.stateOf(header),
    cursor: header.cursor,
    total: header.total,
    applied: header.applied - refused,
    alreadyApplied: header.alreadyApplied,
    failed: reports.openFailures(header),
    resolved,
    attempt: header.attempt,
    attempts: header.attempts,
    failedAttempts: header.failedAttempts,
    nextAttemptAt,
    lastError: header.lastError ?? undefined,
    queuedAt: header.queuedAt,
    bug: header.bug,
    continuedBy: header.continuedBy,
    ratePerSecond: header.rate,
  };
}

/** What the status of the client is made of. */
export interface StatusParts extends Pick<
  ClientStatus,
  'push' | 'pull' | 'healing' | 'results' | 'publishers' | 'unpublished' | 'unconfirmed'
> {
  readonly bulkOperations: readonly BulkOperationStatus[];
  readonly leader: boolean;
  readonly online: boolean;
  readonly unreported: number;
  /** Edits of the app that the server refused, and that are open. */
  readonly failedEdits: number;
  readonly quarantined: number;
  readonly conflicts: number;
  readonly signInRequired: boolean;
  readonly signInCause: SignInCause | undefined;
}

/** How much is left to do of the bulk operations themselves. */
export function operationCounts(
  headers: readonly Header[],
  reports: Reports,
): Record<'pending' | 'failed' | 'stopped' | 'unreported', number> {
  const counts = { pending: 0, failed: 0, stopped: 0, unreported: 0 };
  for (const header of headers) {
    const { state, total, cursor, plan } = header;
    const isPlanOnly = plan !== undefined && total === 0;
    counts.failed += reports.openFailures(header);
    if (!endStates.has(state)) counts.pending += isPlanOnly ? 1 : total - cursor;
    else {
      // Nobody knows yet what the last write of a cancelled one has done.
      if (header.unsettled !== undefined) counts.pending++;
      if (!reports.isDelivered(header)) counts.unreported++;
      if (state === 'failed' && header.continuedBy === undefined) counts.stopped += isPlanOnly ? 1 : notDoneOf(header);
    }
  }
  return counts;
}

function notDoneOf({ total, applied, alreadyApplied, failed }: Header): number {
  return total - applied - alreadyApplied - failed;
}

/** What is shown of the whole client. */
export function clientStatus(parts: StatusParts): ClientStatus {
  const { bulkOperations, failedEdits, ...rest } = parts;
  const open = bulkOperations.filter(({ state }) => !endStates.has(state));
  const first = open[0];
  return {
    ...rest,
    state: first?.state ?? 'idle',
    pending: open.reduce((sum, one) => sum + pendingOf(one), 0),
    failed: bulkOperations.reduce((sum, { failed }) => sum + failed, failedEdits),
    oldestPendingSince: first?.queuedAt,
  };
}

/** A plan whose operations are not known yet counts as one. */
function pendingOf({ plan, total, cursor }: BulkOperationStatus): number {
  return plan !== undefined && total === 0 ? 1 : total - cursor;
}

export const noTransfer: TransferStatus = {
  state: 'off',
  attempt: 0,
  attempts: 0,
  failedAttempts: 0,
  nextAttemptAt: undefined,
  lastError: undefined,
  transferred: 0,
};
