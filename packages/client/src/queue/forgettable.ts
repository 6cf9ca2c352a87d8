import { endStates } from '../model/states.js';
import type { Header } from './stored.js';

/** What is known of a bulk operation beside its header. */
export interface Standing {
  /** Failures that no one has queued anew or discarded. */
  readonly openFailures: number;
  /** The server has its result as it is now, or no result is to be sent. */
  readonly isReported: boolean;
  /** Every publisher has taken all its events. */
  readonly isPublished: boolean;
  /** The server has, or has refused for good, what it wrote. */
  readonly isConfirmed: boolean;
  /** A conflict of it waits for a person's decision. */
  readonly inQuarantine: boolean;
}

/** Whether nothing is left to do of a bulk operation, by anyone. A `failed` one holds work until its rest is queued anew. */
export function isSettled(header: Header, standing: Standing): boolean {
  if (!endStates.has(header.state) || header.unsettled !== undefined) return false;
  if (header.state === 'failed' && header.continuedBy === undefined) return false;
  const { openFailures, isReported, isPublished, isConfirmed, inQuarantine } = standing;
  return openFailures === 0 && isReported && isPublished && isConfirmed && !inQuarantine;
}

/** What decides, beside being settled, whether a bulk operation is removed. */
export interface Age {
  /** Milliseconds that were counted since it was found settled; undefined: it is not. */
  readonly settledMs: number | undefined;
  readonly rememberMs: number;
  /** It has the highest number: that must never be used again. */
  readonly isLast: boolean;
  /** One that took over operations of it is remembered still: a key is kept as long as there is work on it. */
  readonly isTakenOver: boolean;
}

export function isForgettable({ settledMs, rememberMs, isLast, isTakenOver }: Age): boolean {
  return settledMs !== undefined && settledMs >= rememberMs && !isLast && !isTakenOver;
}

const dayMs = 86_400_000;

/**
 * Milliseconds to count between two looks (R18). What the monotonic clock shows has passed. The wall clock is needed too,
 * since the other one says nothing of the time in which no client was open and may stand still while the device sleeps; but
 * it jumps: a day at most is believed.
 */
export function countedBetween(wallMs: number, monotonicMs: number): number {
  return Math.max(monotonicMs, Math.min(Math.max(wallMs, 0), dayMs));
}
