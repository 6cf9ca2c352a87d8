import type { Doc } from './json.js';

/**
 * A document with versions beside the one that counts, which no operation of this device has made: they are left alone
 * until someone decides, because each may hold an edit that is nowhere else (S2).
 */
export interface OpenConflict {
  readonly id: string;
  /** The revision that counts. */
  readonly winner: string;
  /** The revisions beside it: `client.documents.get(id, { rev })` reads them. */
  readonly losing: readonly string[];
  /** Milliseconds since 1970, on the wall clock. */
  readonly foundAt: number;
}

/** What a resolver is asked about. */
export interface ConflictQuestion {
  readonly id: string;
  /** The version that counts. */
  readonly winner: Doc;
  /** The versions beside it, each with its `_rev`. */
  readonly losing: readonly Doc[];
}

/**
 * Decides about versions that no operation of ours has made: answers with the document as it should be (its `_id` and
 * `_rev` do not count), or undefined to leave the conflict alone. Pure, and the same answer for the same versions, on every
 * device: two devices then make the same revision.
 */
export type ResolveConflict = (conflict: ConflictQuestion) => Doc | undefined;
