import type { StandardSchemaV1 } from '@standard-schema/spec';
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

/** Changes documents one by one; Afield does the reading, the writing, the rows, the conflicts and the intent. */
export interface DocumentAction<Content = unknown> {
  readonly kind: 'document';
  readonly name: string;
  /** Shape of the operation's own fields (without `id` and `key`): any Standard Schema. */
  readonly operation: StandardSchemaV1<unknown, Content>;
  /** Whether the document is already as the operation wants it. Pure. */
  isApplied(doc: Doc, operation: Content): boolean;
  /** A failure when the operation must not be applied to this document, else undefined. Pure. */
  guard?(doc: Doc, operation: Content): Failure | undefined;
  /** The document as it should be; never changes `doc`. Pure. */
  apply(doc: Doc, operation: Content): Doc;
  /** What it means that there is no live document: `failed` with the code `missing` (default), or `applied`. */
  readonly missing?: 'failed' | 'applied';
}

export interface HandlerContext {
  /** The target's documents; what may pass is thrown as `RetryableError`. */
  readonly db: DocumentStore;
  /** A fetch that throws `RetryableError` for what may pass, for handlers that call other services. */
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  /** 1 for the first attempt of a batch. */
  readonly attempt: number;
  /** To be awaited right before a write; throws `RetryableError` when another runner has taken over. */
  fence(): Promise<void>;
}

export interface HandlerResult {
  /** Failed for good, by the operation's index. */
  readonly failed?: readonly (Failure & { readonly index: number })[];
  /** Already as wanted, by the operation's index. */
  readonly alreadyApplied?: readonly number[];
}

/** Handles a batch as a whole; must be idempotent (R3). */
export interface BatchAction<Content = unknown> {
  readonly kind: 'batch';
  readonly name: string;
  readonly operation: StandardSchemaV1<unknown, Content>;
  run(batch: readonly OperationOf<Content>[], context: HandlerContext): Promise<HandlerResult>;
}

export type Action<Content = unknown> = DocumentAction<Content> | BatchAction<Content>;

/* A list of actions of different contents has no common content but `never`: methods make it assignable. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
export type AnyAction = Action<any>;
