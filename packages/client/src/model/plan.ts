import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { ActionPart } from './client.js';
import type { Doc } from './json.js';
import type { IndexReader } from './lookup.js';
import type { DocRow } from './pouch.js';

/** The target's documents, to be read. What may pass is thrown as `RetryableError`. */
export interface DocumentReader {
  /** One row for each id, in the order asked for. */
  read(ids: readonly string[]): Promise<readonly DocRow[]>;
  /** Live documents whose ids lie between these two, both included, in the order of their ids. All of them are held in memory. */
  range(startId: string, endId: string): Promise<readonly Doc[]>;
}

export interface PlanContext {
  readonly db: DocumentReader;
  /** An index that the plan has named in `indexes`. Throws `TypeError` for any other. */
  index(name: string): IndexReader;
  /** A fetch that throws `RetryableError` for what may pass, for plans that ask other services. */
  readonly fetch: typeof fetch;
  /** Aborts when the client is closed. */
  readonly signal: AbortSignal;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Milliseconds since 1970, on the wall clock. */
  readonly now: number;
}

/**
 * A request that becomes operations only when it runs: on the documents as they are then. It changes nothing itself and
 * may be run any number of times.
 */
export interface Plan<Request = unknown> {
  readonly name: string;
  /** Shape of the request: any Standard Schema. */
  readonly request: StandardSchemaV1<unknown, Request>;
  /**
   * Throws `RetryableError` for what may pass (R1); any other error is a bug of the plan and fails the bulk operation (R5).
   * A `key` that it gives an operation counts within its bulk operation: `<key of the bulk operation>:<key>`. No two may be
   * the same.
   */
  plan(request: Request, context: PlanContext): Promise<readonly ActionPart[]>;
  /**
   * Names of the client's indexes that the plan asks. Until all of them are ready the bulk operation waits as
   * `waiting-index`, and no attempt is counted. An index knows the device's documents: such a plan needs the target `local`.
   */
  readonly indexes?: readonly string[];
  /**
   * The documents that its operations may change, asked when the request is queued. Without it the bulk operation waits
   * for all earlier ones of its target, and holds back all later ones, until it is planned (R17).
   */
  subjects?(request: Request): readonly string[];
}

/* A list of plans of different requests has no common request but `never`: methods make it assignable. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- see above
export type AnyPlan = Plan<any>;
