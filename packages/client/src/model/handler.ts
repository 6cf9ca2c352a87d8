import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { ErrorClass } from './errors.js';
import type { EventKind } from './event.js';
import type { Doc } from './json.js';
import type { Failure } from './failure.js';
import type { DocumentStore } from './pouch.js';

/** What every operation of an action carries beside its own fields. */
export interface OperationOf<Content> {
  readonly id: string;
  readonly key: string;
  /** Place in its bulk operation, from 0. */
  readonly index: number;
  readonly content: Content;
}

/** What an action says of an error: the batch runs again on the ramp, never sooner. */
export interface PassingError {
  readonly kind: 'passing';
  /** Default: `server`. */
  readonly class?: Exclude<ErrorClass, 'auth' | 'bug'>;
  /** A short machine name (`[A-Za-z0-9_.-]`, at most 64). Default: the name of the error; `refused` for a row. */
  readonly code?: string;
  /** Not before so many milliseconds; an hour at most. */
  readonly notBeforeMs?: number;
}

/** What an action says of a refused row: failed for good, with a code of its own. */
export interface FailedRow {
  readonly kind: 'failed';
  /** A short machine name (`[A-Za-z0-9_.-]`, at most 64). */
  readonly code: string;
  /** For people; kept on this device. Default: what the server said. */
  readonly reason?: string;
}

/** A row of the action's own write that the target refused. */
export interface RefusedRow {
  readonly id: string;
  /** The word of CouchDB or PouchDB: `forbidden`, `too_large` … */
  readonly error: string;
  readonly reason: string;
}

/** Lines that an action adds to the table of what may pass (docs/classification.md). */
export interface OwnErrors {
  /**
   * Asked about what a function of this action threw, where the table says that it is a bug. Undefined: so it is. Pure.
   * Never asked about errors of Afield (the network, the store, signing in, another tab).
   */
  classify?(error: unknown): PassingError | undefined;
}

/** Changes documents one by one; Afield does the reading, the writing, the rows, the conflicts and the intent. */
export interface DocumentAction<Content = unknown> extends OwnErrors {
  readonly kind: 'document';
  readonly name: string;
  /** Shape of the operation's own fields (without `id` and `key`): any Standard Schema. */
  readonly operation: StandardSchemaV1<unknown, Content>;
  /** Whether the document is already as the operation wants it. Pure. */
  isApplied(doc: Doc, operation: Content): boolean;
  /**
   * A failure when the operation must not be applied to this document, else undefined. Not asked where there is no
   * document. Pure.
   */
  guard?(doc: Doc, operation: Content): Failure | undefined;
  /**
   * The document as it should be; never changes `doc`. With `missing: 'create'` a document that is not there comes as
   * one with nothing but its `_id` (and the `_rev` of its deletion). Pure.
   */
  apply(doc: Doc, operation: Content): Doc;
  /**
   * What it means that there is no live document: `failed` with the code `missing` (default), `applied`, or `create`: the
   * action makes it. A document that was deleted after a write that got no answer is not made a second time: unless its
   * history shows that the write was done (`applied`) or was not, the operation fails with `missing` (R3).
   */
  readonly missing?: 'failed' | 'applied' | 'create';
  /**
   * Asked about a row that the target refused, where the table says that it failed for good. Undefined: so it did. Pure.
   * Not asked about what the push of local documents meets.
   */
  classifyRow?(row: RefusedRow): PassingError | FailedRow | undefined;
}

/** Databases on the client's server. What may pass is thrown as `RetryableError`, as by `HandlerContext.db`. */
export interface ServerAccess {
  /** The app's own database there. Throws `AfieldError` (`no_server`) when the client has no `server`. */
  readonly documents: DocumentStore;
  /**
   * Another database of the same server, such as `_users`. Throws as `documents` does, and `TypeError` when this cannot
   * be the name of a database.
   */
  database(name: string): DocumentStore;
}

export interface HandlerContext {
  /** The target's documents, or the server's for an action that runs there; what may pass is thrown as `RetryableError`. */
  readonly db: DocumentStore;
  /** For actions that run at the server (`runsAt`): any other one begins also without network or sign-in. */
  readonly server: ServerAccess;
  /** A fetch that throws `RetryableError` for what may pass, for handlers that call other services. */
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  /** 1 for the first attempt of a batch. */
  readonly attempt: number;
  /** To be awaited right before a write; throws `RetryableError` when another runner has taken over. */
  fence(): Promise<void>;
  /** Milliseconds since 1970, on the client's clock: for times that a document is to carry. */
  now(): number;
}

export interface HandlerResult {
  /** Failed for good, by the operation's index. */
  readonly failed?: readonly (Failure & { readonly index: number })[];
  /** Already as wanted, by the operation's index. */
  readonly alreadyApplied?: readonly number[];
  /**
   * Not done yet, by the operation's index: these alone run again at the next attempt, because of this error; what the
   * others brought is kept (R9). The error means what it would mean if it were thrown: one that is neither
   * `RetryableError` nor came from `context` is a bug.
   */
  readonly again?: { readonly indexes: readonly number[]; readonly error: unknown };
}

/** What the event of an operation of a batch action says. */
export interface OperationEvent {
  readonly kind: EventKind;
  /** The document. Default: the operation's id. The previous event of another document is not known. */
  readonly id?: string;
  /** The document's type. Default: `unknown`. */
  readonly type?: string;
}

/** Handles a batch as a whole; must be idempotent (R3). */
export interface BatchAction<Content = unknown> extends OwnErrors {
  readonly kind: 'batch';
  readonly name: string;
  readonly operation: StandardSchemaV1<unknown, Content>;
  /**
   * `server`: all its work is there, whatever the target of the bulk operation (R6 `delete-user`). It waits for network
   * and sign-in like work for the target `server`; a client without `server` refuses it. Default: where the target is.
   */
  readonly runsAt?: 'server';
  run(batch: readonly OperationOf<Content>[], context: HandlerContext): Promise<HandlerResult>;
  /**
   * The event of an operation of this action (O3). Without it, or when it answers undefined, the operation has none. Pure;
   * asked before `run`, stored with the outcome.
   */
  event?(operation: OperationOf<Content>): OperationEvent | undefined;
}

export type Action<Content = unknown> = DocumentAction<Content> | BatchAction<Content>;

/* A list of actions of different contents has no common content but `never`: methods make it assignable. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
export type AnyAction = Action<any>;
