import type { ErrorSummary, SignInCause } from './errors.js';

/** States of a bulk operation (V2). */
export type BulkOperationState =
  | 'queued'
  | 'planning'
  | 'running'
  | 'waiting-retry'
  | 'waiting-auth'
  | 'waiting-network'
  | 'waiting-storage'
  | 'waiting-handler'
  | 'waiting-index'
  | 'paused'
  | 'done'
  | 'done-with-failures'
  | 'failed'
  | 'cancelled';

/** States in which nothing more happens by itself. */
export const endStates: ReadonlySet<BulkOperationState> = new Set([
  'done',
  'done-with-failures',
  'failed',
  'cancelled',
]);

/** The database whose documents an action changes. */
export type Target = 'local' | 'server';

/** What a screen shows of one bulk operation (V1). Times are milliseconds since 1970, on the wall clock. */
export interface BulkOperationStatus {
  readonly id: string;
  /** The order in which bulk operations were queued. */
  readonly sequence: number;
  readonly key: string;
  readonly target: Target;
  readonly lane: string | undefined;
  /** The plan that its operations come from, or will come from. */
  readonly plan: string | undefined;
  /** Names of its actions, in their order; none before it is planned. */
  readonly actions: readonly string[];
  readonly state: BulkOperationState;
  /** How many operations have a durable outcome. */
  readonly cursor: number;
  readonly total: number;
  readonly applied: number;
  readonly alreadyApplied: number;
  /** Failed for good and still open, those included that the server refused later. */
  readonly failed: number;
  /** Failed, and since then queued anew or discarded by a person (R19). */
  readonly resolved: number;
  /** Attempts of the present batch so far; 0 before the first. */
  readonly attempt: number;
  /** Attempts of all its batches so far. */
  readonly attempts: number;
  /** Attempts that did not succeed. */
  readonly failedAttempts: number;
  readonly nextAttemptAt: number | undefined;
  readonly lastError: ErrorSummary | undefined;
  readonly queuedAt: number;
  /**
   * In the state `failed`: the error of the handler or of the plan, for the app's author. Of a `PlanRefusedError` the stack is
   * its message alone, for people. Kept on this device, never sent.
   */
  readonly bug: { readonly name: string; readonly stack: string } | undefined;
  /** The bulk operation that took over what this one did not do, when a person retried it. */
  readonly continuedBy: string | undefined;
  /** Operations a second at most, as `retryFailed` was told; undefined: as fast as it goes. */
  readonly ratePerSecond: number | undefined;
}

/** State of the push, the pull, or the delivery of results. */
export interface TransferStatus {
  readonly state: 'off' | 'idle' | 'running' | 'waiting-retry' | 'waiting-auth' | 'waiting-network' | 'waiting-storage';
  readonly attempt: number;
  readonly attempts: number;
  readonly failedAttempts: number;
  readonly nextAttemptAt: number | undefined;
  readonly lastError: ErrorSummary | undefined;
  /** Documents (or bulk operations, for results) brought over since the store exists. */
  readonly transferred: number;
  /**
   * Documents that are left, where it is known: of the push. At most so many: one that was changed several times, or came
   * from the server, may count more than it will cost. Undefined before the first look.
   */
  readonly left?: number | undefined;
}

/** State of one publisher. */
export interface PublisherStatus extends TransferStatus {
  /** Events that it has not taken yet, those included that wait until the server has the document's revision. */
  readonly unpublished: number;
  /** What the publisher itself threw or answered wrongly at its last call, for its author. Kept in memory, never sent. */
  readonly bug?: { readonly name: string; readonly stack: string } | undefined;
}

/** What a screen shows of the whole client (V1). */
export interface ClientStatus {
  /** `idle` when nothing is queued or everything is at its end; else the state of the first bulk operation that is not. */
  readonly state: BulkOperationState | 'idle';
  readonly leader: boolean;
  readonly online: boolean;
  /** Operations without an outcome; a plan whose operations are not known yet counts as one. */
  readonly pending: number;
  /**
   * Failures that are open, as many as `failures$` lists: operations that failed for good (the sum of `failed` of all bulk
   * operations), and documents that the app edited itself and the server refused. `drained()`, `logout()` and the device
   * document count the same.
   */
  readonly failed: number;
  /** Bulk operations at their end whose result is not on the server yet. */
  readonly unreported: number;
  /**
   * Changes of local documents that the server has not confirmed yet, at most: what a pull has brought counts until it was
   * looked at. What the server has refused is a failure, and does not count. 0 without replication, and in a tab that does
   * not lead.
   */
  readonly unconfirmed: number;
  readonly oldestPendingSince: number | undefined;
  readonly push: TransferStatus;
  readonly pull: TransferStatus;
  /** The healing of conflicts (S2): `transferred` counts documents that were healed. */
  readonly healing: TransferStatus;
  readonly results: TransferStatus;
  /** The publication of events, by the publishers' names. */
  readonly publishers: Readonly<Record<string, PublisherStatus>>;
  /** Events that some publisher has not taken yet. */
  readonly unpublished: number;
  /** Conflicting duplicates that no person has decided on yet. */
  readonly quarantined: number;
  /** Documents with versions that no operation of this device has made, and that are left alone (`conflicts$`). */
  readonly conflicts: number;
  /** Whether the app must bring credentials (R12), also when it was asked and has not answered for a second. */
  readonly signInRequired: boolean;
  /**
   * Why: `unauthorized`, `proxy-unauthorized` or `forbidden` as the server said, or `other-user`: someone else is signed in,
   * and the work waits for the person whose it is (S7). Undefined while nothing was refused.
   */
  readonly signInCause: SignInCause | undefined;
}

/** How much of a store's work is not at its end, by kind. */
export interface WorkCounts {
  /** Operations without an outcome. */
  readonly pending: number;
  /** Operations that failed for good and are open, and documents that an app edited itself and the server refused. */
  readonly failed: number;
  /** Operations that were not done because a bug has stopped their bulk operation (`failed`), and that no one queued anew. */
  readonly stopped: number;
  /** Conflicting duplicates that no person has decided on. */
  readonly quarantined: number;
  /** Events that some publisher has not taken. */
  readonly unpublished: number;
  /** Bulk operations at their end whose result is not on the server. */
  readonly unreported: number;
  /** Changes of local documents that the server has not confirmed. */
  readonly unconfirmed: number;
}

/** Nothing is left to do, and the server has confirmed it (S11). */
export interface Drained {
  /** Everything that was queued up to this number is done. */
  readonly asOf: number;
  /** Id of the document in the results database that says so; undefined without `results`: then nothing proves it there. */
  readonly document: string | undefined;
}

/** One operation that failed for good. */
export interface FailedOperation {
  /** Names this failure on this device, for `retryFailed`, `editAndRetry` and `discard`. */
  readonly failureId: string;
  /** Undefined for a document that an app edited itself and the server refused. */
  readonly bulkOperationId: string | undefined;
  readonly index: number | undefined;
  readonly key: string | undefined;
  /** The document; undefined when the operation came without one. */
  readonly id: string | undefined;
  readonly action: string | undefined;
  readonly code: string;
  /** For people; kept on this device, never sent. */
  readonly reason: string;
  /** `{ id, content }`: the operation's id as it came, and its other fields; `undefined` for an edit of the app. */
  readonly operation: unknown;
  /** The history no longer shows whether it was applied before it failed (R3). */
  readonly mayHaveBeenApplied: boolean;
  readonly failedAt: number;
  /** The version of the app in which it failed (`ClientOptions.appVersion`). */
  readonly appVersion: string | undefined;
  /**
   * The document as it was here before `revert` brought it back to the server's version; attachments by name and size.
   * Kept on this device, never sent. Undefined unless it was reverted.
   */
  readonly localDocument: unknown;
  /** What a person did with it (R19); undefined while it is open. Its content is kept. */
  readonly resolution: Resolution | undefined;
}

/** One operation of a bulk operation that has no outcome: it was not reached, or its write got no answer. */
export interface NotDoneOperation {
  readonly bulkOperationId: string;
  /** Place in its bulk operation, from 0. */
  readonly index: number;
  readonly key: string;
  readonly id: string | undefined;
  readonly action: string;
  /** Its id as it came, and its own content. */
  readonly operation: unknown;
}

/**
 * What became of a failure: queued anew as an operation of another bulk operation, discarded, or its document brought back
 * to the server's version.
 */
export type Resolution =
  | { readonly how: 'retried'; readonly bulkOperationId: string; readonly index: number; readonly at: number }
  | { readonly how: 'discarded'; readonly at: number }
  | { readonly how: 'reverted'; readonly at: number };
