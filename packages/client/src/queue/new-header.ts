import type { EnqueueRequest } from '../model/client.js';
import { storedVersion, type Header, type StoredOperation } from './stored.js';

/** The header of a bulk operation that nothing was tried of yet. Its sequence number is taken when it is written. */
export function newHeader(
  given: { readonly lane: string | null | undefined } & Pick<Header, 'id' | 'key' | 'parts' | 'payload' | 'queuedAt'> &
    Pick<EnqueueRequest, 'target'> &
    Partial<Pick<Header, 'rate' | 'retries' | 'continues' | 'plan' | 'derived' | 'taken'>>,
  operations: readonly StoredOperation[],
): Omit<Header, '_id' | '_rev' | 'subjects'> {
  const { lane, ...rest } = given;
  return {
    ...rest,
    v: storedVersion,
    lane: lane ?? null,
    total: operations.length,
    state: 'queued',
    cursor: 0,
    applied: 0,
    alreadyApplied: 0,
    failed: 0,
    attempt: 0,
    attempts: 0,
    failedAttempts: 0,
    wait: null,
    lastError: null,
    lease: null,
  };
}

/** Parts of a bulk operation: neighbours of one action are one part. */
export function partsOf(entries: readonly { readonly action: string }[]): { action: string; count: number }[] {
  const parts: { action: string; count: number }[] = [];
  for (const { action } of entries) {
    const last = parts[parts.length - 1];
    if (last?.action === action) last.count++;
    else parts.push({ action, count: 1 });
  }
  return parts;
}
