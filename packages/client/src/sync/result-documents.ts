import { z } from 'zod/mini';

/*
 * What a store tells of itself in the database of results (S1, S11), each shape declared once. Whoever reads these documents
 * (`@afield/client/results`) gets them from a database that others write too: parse, and skip what does not fit.
 *
 *   result:<store>:<bulk>          one for each bulk operation
 *   failures:<store>:<bulk>:<n>    its failures, at most 100 rows and 500 kB in each; `edits` instead of the bulk operation:
 *                                  documents that an app edited itself and the server refused
 *   device:<store>                 how far this store is, and when it was last heard of
 *
 * Times are milliseconds since 1970 on the device's wall clock.
 */

/** Raised when an older reader would misunderstand. */
export const resultsVersion = 1;

/** Rows in one failures document (S1). */
export const rowsPerDocument = 100;
/** Bytes of one failures document, as JSON in UTF-8 (S1). */
export const bytesPerDocument = 500_000;

/** Stands for the bulk operation in the ids of failures that belong to none. */
export const edits = 'edits';

export const resultId = (store: string, bulkOperation: string): string => `result:${store}:${bulkOperation}`;
export const failuresId = (store: string, bulkOperation: string, chunk: number): string =>
  `failures:${store}:${bulkOperation}:${String(chunk)}`;
export const deviceId = (store: string): string => `device:${store}`;

const common = {
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: z.literal(resultsVersion),
  /** The random name of the store on the device (`client.storeId`). */
  store: z.string(),
  /** The name of the person at the server: `ClientOptions.user`, else as the server has said it. */
  user: z.optional(z.string()),
};

const errorClass = z.enum(['network', 'server', 'auth', 'storage', 'conflict', 'throttled', 'bug']);

/** One for each bulk operation: at its end, and at most every five minutes while it is not. */
export const resultDocument = z.object({
  ...common,
  type: z.literal('afield-result'),
  bulkOperation: z.string(),
  /** The order in which the store has queued them. */
  sequence: z.number(),
  target: z.enum(['local', 'server']),
  plan: z.optional(z.string()),
  /** Names of its actions. */
  actions: z.array(z.string()),
  /** A state of V2. `done`, `done-with-failures`, `failed` and `cancelled` are ends; all others mean that it waits or runs. */
  state: z.string(),
  /** Operations that have a durable outcome. */
  cursor: z.number(),
  total: z.number(),
  applied: z.number(),
  alreadyApplied: z.number(),
  /** Failed for good and open still, those included that the server refused later. */
  failed: z.number(),
  /** Failed, and since then queued anew or discarded by a person. */
  resolved: z.number(),
  /** Without an outcome. */
  notDone: z.number(),
  /** The bulk operation that took over the rest of this one. */
  continuedBy: z.optional(z.string()),
  lastError: z.optional(z.object({ class: errorClass, code: z.string() })),
  queuedAt: z.number(),
  /** Grows with each change: an older truth is never written over a newer one. */
  changes: z.number(),
});
export type ResultDocument = z.infer<typeof resultDocument>;

/** What became of a failure by a person's decision (R19). */
const resolution = z.discriminatedUnion('how', [
  z.object({ how: z.literal('retried'), bulkOperationId: z.string(), index: z.number(), at: z.number() }),
  z.object({ how: z.literal('discarded'), at: z.number() }),
  z.object({ how: z.literal('reverted'), at: z.number() }),
]);

/** One operation that failed for good. */
export const failureRow = z.object({
  /** Place in its bulk operation; null for an edit of the app. */
  index: z.nullable(z.number()),
  /** The document; null when the operation came without one. */
  id: z.nullable(z.string()),
  action: z.nullable(z.string()),
  code: z.string(),
  /** Names of the fields of its content, the first 50. */
  fields: z.array(z.string()),
  mayHaveBeenApplied: z.boolean(),
  /** The server refused it, after it was applied on the device. */
  refused: z.optional(z.boolean()),
  at: z.number(),
  /** Version of the app in which it failed. */
  app: z.optional(z.string()),
  resolution: z.optional(resolution),
  /** For people. Only in a database of this user alone. */
  reason: z.optional(z.string()),
  /** What the app's `redact` left of the content. Only in a database of this user alone. */
  content: z.optional(z.unknown()),
  /** Why there is no content where some was to be sent: it was too large, or the app's `redact` failed. */
  withheld: z.optional(z.enum(['too_large', 'redact_failed'])),
});
export type FailureRow = z.infer<typeof failureRow>;

/** Up to 100 failures of one bulk operation. One that is no longer needed has no rows. */
export const failuresDocument = z.object({
  ...common,
  type: z.literal('afield-failures'),
  /** Null: edits of the app that belong to no bulk operation. */
  bulkOperation: z.nullable(z.string()),
  sequence: z.nullable(z.number()),
  chunk: z.number(),
  /** The codes in its rows, each once, in order. */
  codes: z.array(z.string()),
  /** The codes of the rows that no person has decided on, each once, in order. */
  openCodes: z.array(z.string()),
  /** Rows that no person has decided on. */
  open: z.number(),
  /** When the first and the last of its rows failed; null without rows. */
  firstAt: z.nullable(z.number()),
  lastAt: z.nullable(z.number()),
  operations: z.array(failureRow),
  changes: z.number(),
});
export type FailuresDocument = z.infer<typeof failuresDocument>;

/** How much of a store's work is not at its end, by kind. */
export const workCounts = z.object({
  /** Operations without an outcome. */
  pending: z.number(),
  /** Operations that failed for good and are open, and documents that an app edited and the server refused. */
  failed: z.number(),
  /** Operations that were not done because a bug has stopped their bulk operation (state `failed`). */
  stopped: z.number(),
  /** Conflicting duplicates that no person has decided on. */
  quarantined: z.number(),
  /** Events that some publisher has not taken. */
  unpublished: z.number(),
  /** Bulk operations at their end whose result is not here. */
  unreported: z.number(),
  /** Changes of local documents that the server has not confirmed. */
  unconfirmed: z.number(),
});
export type { WorkCounts } from '../model/states.js';

/** One for each store: how far it is (S11), and when it was last heard of (S1). */
export const deviceDocument = z.object({
  ...common,
  ...workCounts.shape,
  type: z.literal('afield-device'),
  appVersion: z.optional(z.string()),
  /** Everything that was queued up to this number is done, confirmed by the server, published and reported. */
  asOf: z.number(),
  /** The highest number that was queued. */
  lastSequence: z.number(),
  /** Nothing was left to do: `asOf` is `lastSequence`, and all counts are 0. */
  drained: z.boolean(),
  /** When the oldest bulk operation was queued that is not all sent; null when there is none. */
  oldestUnsentAt: z.nullable(z.number()),
  /** When this was sent. At least once a day while the app is open. */
  seenAt: z.number(),
  /** Grows with each write: a database that shows less than was written was recreated, or restored from a backup. */
  writes: z.number(),
});
export type DeviceDocument = z.infer<typeof deviceDocument>;
