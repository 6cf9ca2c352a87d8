import { z } from 'zod/mini';

/** The shapes of all that the queue database holds, each declared once; a shape of a newer version is refused politely (S10). */
export const storedVersion = 1;

const version = z.literal(storedVersion);
const errorSummary = z.object({
  class: z.enum(['network', 'server', 'auth', 'storage', 'conflict', 'throttled', 'bug']),
  code: z.string(),
});
const wait = z.object({
  delayMs: z.number(),
  setAt: z.number(),
  notBeforeMs: z.number(),
  floorSpreadMs: z.optional(z.number()),
});

/** Who this store is, and whose (S7). Made once; a wiped store gets a new name. */
export const storeDoc = z.object({
  _id: z.literal('hs'),
  _rev: z.optional(z.string()),
  v: version,
  storeId: z.string(),
  createdAt: z.number(),
  /** The name of the person at the server, as the app or the server said it first. Older stores have none. */
  user: z.optional(z.string()),
  /** Address of the app's database, in one spelling. */
  server: z.optional(z.string()),
});
export type StoredStore = z.infer<typeof storeDoc>;

/**
 * The store is being removed (S7). It stands where the next header would: who queues something finds it, and nothing is taken
 * in that would be lost. It goes with the queue's database, which is removed last.
 */
export const wipeNoteDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  /** Names this removal: another tab may have come to its end, and the next person begun. */
  wipe: z.string(),
  /** Name of the database of the documents. */
  documents: z.string(),
});
export type WipeNote = z.infer<typeof wipeNoteDoc>;

/** Where a bulk operation was queued first: the name and the number there, and how often its result had changed. */
export const origin = z.object({ store: z.string(), sequence: z.int(), changes: z.number() });

/** One per bulk operation. Its id is its sequence number. */
export const headerDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  id: z.string(),
  key: z.string(),
  /** Whose work it is: the name at the server. Without one it is of whoever the store is for (S7). */
  user: z.optional(z.string()),
  target: z.enum(['local', 'server']),
  lane: z.nullable(z.string()),
  parts: z.array(z.object({ action: z.string(), count: z.number() })),
  /** The plan that its operations come from, and the id of its request. Before it is planned it has no operations. */
  plan: z.optional(z.object({ name: z.string(), request: z.string(), planned: z.boolean() })),
  /** Ids of its payloads begin so. */
  payload: z.string(),
  total: z.number(),
  /**
   * Hashes of its subjects: here, or (when they are many) in digest documents whose ids begin with `digest`.
   * Null stands for everything of its target. May hold back too much, never too little (R17).
   */
  subjects: z.nullable(z.union([z.array(z.number()), z.object({ digest: z.string(), count: z.number() })])),
  queuedAt: z.number(),
  state: z.enum([
    'queued',
    'planning',
    'running',
    'waiting-retry',
    'waiting-auth',
    'waiting-network',
    'waiting-storage',
    'waiting-handler',
    'waiting-index',
    'paused',
    'done',
    'done-with-failures',
    'failed',
    'cancelled',
  ]),
  cursor: z.number(),
  applied: z.number(),
  alreadyApplied: z.number(),
  failed: z.number(),
  attempt: z.number(),
  attempts: z.number(),
  failedAttempts: z.number(),
  wait: z.nullable(wait),
  lastError: z.nullable(errorSummary),
  /** The run of a client that works on it; changes with every take-over. */
  lease: z.nullable(z.string()),
  /** The error of a handler, kept on this device for its author (R5). */
  bug: z.optional(z.object({ name: z.string(), stack: z.string() })),
  /** Operations a second at most. */
  rate: z.optional(z.number()),
  /** Its operations took over failures, which may not all be marked yet. */
  retries: z.optional(z.boolean()),
  /** The id of the bulk operation whose rest this one took over: that one may not be marked yet. */
  continues: z.optional(z.string()),
  /** The id of the bulk operation that took over the rest of this one. */
  continuedBy: z.optional(z.string()),
  /** It was cancelled while a write may have been under way: the counts without its last batch, until more is known. */
  unsettled: z.optional(
    z.object({ applied: z.number(), alreadyApplied: z.number(), failed: z.number(), events: z.optional(z.number()) }),
  ),
  /** Stops of a visible page during an attempt at the present batch, without any progress (R16). */
  stops: z.optional(z.number()),
  /** The operation that runs alone now (R16). */
  alone: z.optional(z.number()),
  /** Events of operations before the cursor. */
  events: z.optional(z.number()),
  /** Its key was not given but derived from another one's (see `keyOf`). */
  derived: z.optional(z.boolean()),
  /** The id of the quarantine entry whose second version it queues: that one may not be marked yet. */
  taken: z.optional(z.string()),
  /** Another enqueue took a key of it over while it was written: it was cancelled at once, and its keys do not count (O4). */
  withdrawn: z.optional(z.boolean()),
  /** It was brought in a file from another store: its events and its result are known by their names there. */
  origin: z.optional(origin),
  /** Not all that belongs to it is stored yet: nothing of it runs until it is. */
  importing: z.optional(z.boolean()),
});
export type Header = z.infer<typeof headerDoc>;

/** A header that has a plan. */
export type PlanHeader = Header & { readonly plan: NonNullable<Header['plan']> };

/** Whether it waits for its plan to say what its operations are. */
export function isUnplanned(header: Header): header is PlanHeader {
  return header.plan?.planned === false;
}

/** The request of a plan, immutable, written before the header: as JSON text, like operations. */
export const planRequestDoc = z.object({ _id: z.string(), v: version, request: z.string() });

/** Up to 100 operations, immutable, as JSON text: a key of any name survives, and the store copies no objects. */
export const payloadDoc = z.object({ _id: z.string(), v: version, operations: z.string() });
export const payloadSize = 100;

/** Many subjects of a bulk operation, immutable, written before the header: 32 bits each, as base64. */
export const digestDoc = z.object({ _id: z.string(), v: version, hashes: z.string() });

/**
 * An operation as it is stored: `i` its id as it came, `k` its own key, `o` where that key comes from (see `keyOf`; without
 * it the caller gave it), `c` its content; when it took over a failure, `f` the failure's name; when an earlier bulk
 * operation tried to write it, `w` its intent there.
 */
const storedOperation = z.object({
  i: z.optional(z.unknown()),
  k: z.optional(z.string()),
  o: z.optional(z.string()),
  c: z.unknown(),
  f: z.optional(z.string()),
  w: z.optional(z.object({ b: z.optional(z.string()), t: z.optional(z.string()), a: z.optional(z.number()) })),
});
export const storedOperations = z.array(storedOperation);
export type StoredOperation = z.infer<typeof storedOperation>;

/**
 * What is known of one operation of a batch:
 * `open` nothing was tried, or it surely was not written; `intent` a write was tried on the revision `b`, its outcome
 * is not known; the others are outcomes, `r` being the revision that the operation wrote or found. `k` counts the stops of
 * the process while it ran alone (R16). What its event is made of: `t` the document's type; `a` the time, chosen at the
 * intent (a row without it has no event); `p` which mutation the document's previous event is of (see `eventNameOf`); `e` kind and document of the event
 * of an action that handles batches as a whole; `ps` the store of the event before, when it is another one than that of its own
 * event (empty: this store). Healing (S2): `h` the revisions in which it is again, `g` the revision on
 * which it is being run again, until it is known what that did.
 */
export const rowState = z.object({
  s: z.enum(['open', 'intent', 'applied', 'already-applied', 'failed']),
  b: z.optional(z.string()),
  r: z.optional(z.string()),
  t: z.optional(z.string()),
  a: z.optional(z.number()),
  p: z.optional(z.string()),
  ps: z.optional(z.string()),
  e: z.optional(z.tuple([z.enum(['new', 'updated', 'deleted']), z.string()])),
  k: z.optional(z.number()),
  h: z.optional(z.array(z.string())),
  g: z.optional(z.string()),
});
export const rowStates = z.array(rowState);
export type RowState = z.infer<typeof rowState>;

/** Whether a row has its outcome. */
export function isOutcome(row: RowState | undefined): boolean {
  return row !== undefined && row.s !== 'open' && row.s !== 'intent';
}

/** Whether a row's mutation has an event: it is durable with the outcome (O3). */
export function hasEvent(row: RowState | undefined): row is RowState & { readonly a: number } {
  return row?.a !== undefined && (row.s === 'applied' || row.s === 'already-applied');
}

/** One per batch: created as the intent, updated with the outcomes under its revision. */
export const recordDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  from: z.number(),
  count: z.number(),
  lease: z.string(),
  at: z.number(),
  rows: z.string(),
});
export type BatchRecord = z.infer<typeof recordDoc>;

/** One per operation that failed for good. `operation` is its content as JSON text. */
export const failureDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  bulkOperationId: z.nullable(z.string()),
  index: z.nullable(z.number()),
  key: z.nullable(z.string()),
  /** Where its key comes from (see `keyOf`). */
  origin: z.optional(z.string()),
  id: z.nullable(z.string()),
  action: z.nullable(z.string()),
  code: z.string(),
  reason: z.string(),
  operation: z.nullable(z.string()),
  mayHaveBeenApplied: z.boolean(),
  /** The local revision that the server refused; null for failures before any push. */
  refused: z.nullable(z.string()),
  /** Revisions that it refused before, on other branches: an operation may be in several. */
  also: z.optional(z.array(z.string())),
  /** The local revision that lost, when it failed as it was run again on the one that won (S2). */
  buried: z.optional(z.string()),
  /** The local document that was given up for the server's version, as JSON text. */
  local: z.optional(z.string()),
  at: z.number(),
  /** Version of the app in which it failed. */
  app: z.optional(z.string()),
  resolution: z.optional(
    z.discriminatedUnion('how', [
      z.object({ how: z.literal('retried'), bulkOperationId: z.string(), index: z.number(), at: z.number() }),
      z.object({ how: z.literal('discarded'), at: z.number() }),
      z.object({ how: z.literal('reverted'), at: z.number() }),
    ]),
  ),
});
export type StoredFailure = z.infer<typeof failureDoc>;

/** All revisions that the server refused, as far as the failure tells. */
export function refusedIn({ refused, also = [] }: Pick<StoredFailure, 'refused' | 'also'>): readonly string[] {
  return refused === null ? [] : [refused, ...also];
}

/**
 * The record of a given key (O4): created, never looked up first. It counts only when the header of its bulk operation
 * exists. `tab` is null when the engine gave its tab no lock.
 */
export const claimDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  bulkOperationId: z.string(),
  /** Place of the operation in its request; -1 for the key of the bulk operation. */
  index: z.number(),
  /** Hash of the content (see `content-hash.ts`). */
  hash: z.string(),
  tab: z.nullable(z.string()),
  at: z.number(),
});
export type StoredClaim = z.infer<typeof claimDoc>;

/** A second version that is a whole bulk operation: stored like one, so that a header alone makes it count. */
export const quarantinedContent = z.pick(headerDoc, {
  target: true,
  lane: true,
  parts: true,
  plan: true,
  payload: true,
  total: true,
  subjects: true,
});

/** A conflicting duplicate (O4, O5, O6). Its id is made of what conflicts, so that the same conflict is stored once. */
export const quarantineDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  kind: z.enum(['operation', 'bulk-operation', 'create', 'event']),
  key: z.string(),
  /** The bulk operation that holds the first version; null when none does. */
  bulkOperationId: z.nullable(z.string()),
  /** Place of the operation in the request that brought the first version: in the bulk operation it is there or before. */
  index: z.optional(z.number()),
  /** JSON text; without it the bulk operation holds the first version. */
  first: z.optional(z.string()),
  /** JSON text; without it `content` is the second version. */
  second: z.optional(z.string()),
  content: z.optional(quarantinedContent),
  /** How a second version that is one operation is queued. */
  as: z.optional(z.object({ target: z.enum(['local', 'server']), lane: z.nullable(z.string()), action: z.string() })),
  /** Hash of the second version: the key under which it is queued is made of it. */
  hash: z.string(),
  at: z.number(),
  resolution: z.optional(
    z.object({
      decision: z.enum(['keep-first', 'take-second', 'discard', 'failure-discarded', 'failure-retried']),
      at: z.number(),
      bulkOperationId: z.optional(z.string()),
    }),
  ),
});
export type StoredQuarantine = z.infer<typeof quarantineDoc>;

/** What the server knows of a bulk operation, how many of its operations the server refused, and what a person did. */
export const reportDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  refused: z.number(),
  /** Failures that a person has queued anew or discarded. */
  resolved: z._default(z.number(), 0),
  /** The state that was delivered last; null before. */
  delivered: z.nullable(z.string()),
  /** Failure documents on the server. */
  chunks: z.number(),
});
export type Report = z.infer<typeof reportDoc>;

/** What is left of a bulk operation whose header is gone, or will be in a moment: enough to find all of it. */
const remains = z.object({
  /** Its sequence number. */
  s: z.int(),
  id: z.string(),
  /** Resolved conflicts of it. */
  conflicts: z.array(z.string()),
  /** Its own content, and that of these conflicts. */
  contents: z.array(z.object({ payload: z.string(), digest: z.optional(z.string()), request: z.optional(z.string()) })),
});
export type Remains = z.infer<typeof remains>;

/** What housekeeping knows: its own clock, since when nothing is left to do of which bulk operation, and what it removes. */
export const housekeepingDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  /** Milliseconds that it has seen pass. */
  counted: z.number(),
  /** Wall clock at the last look. */
  seenAt: z.number(),
  /** Sequence number, and `counted` when it was found that nothing is left to do of it. */
  settled: z.array(z.tuple([z.int(), z.number()])),
  removing: z.array(remains),
  /** Tabs with content that nothing names, and `counted` when that was found. */
  orphans: z.optional(z.array(z.tuple([z.string(), z.number()]))),
});
export type StoredHousekeeping = z.infer<typeof housekeepingDoc>;

/** A conflict of a document that no operation of ours has caused: it is left alone, and shown. */
export const conflictDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  winner: z.string(),
  /** Live leaves that lost and are left alone. */
  losing: z.array(z.string()),
  at: z.number(),
  /** How often the app's resolver has decided, and the revisions that it made. */
  decided: z.optional(z.array(z.string())),
});
export type StoredConflict = z.infer<typeof conflictDoc>;

/** State of the push, the pull, the results or the healing. `data` is theirs. */
export const transferDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  v: version,
  attempt: z.number(),
  attempts: z.number(),
  failedAttempts: z.number(),
  transferred: z.number(),
  wait: z.nullable(wait),
  lastError: z.nullable(errorSummary),
  /** What waits are single ones that stayed behind: what is new does not wait with them. */
  partial: z.optional(z.boolean()),
  data: z.string(),
});
export type StoredTransfer = z.infer<typeof transferDoc>;

/** Ids of a list that was pulled: one group of it. */
export const listDoc = z.object({
  _id: z.string(),
  _rev: z.optional(z.string()),
  _deleted: z.optional(z.boolean()),
  v: version,
  /** How many groups the list has. */
  groups: z.number(),
  group: z.number(),
  /** A list as JSON text: what is in the group. */
  ids: z.string(),
  /** Likewise: who has left it, and the app is still to be told. */
  left: z.string(),
});
export type StoredList = z.infer<typeof listDoc>;

/*
 * Names in the queue database. All that is read at the start begins with `h`, so that opening is one read:
 * `h:` headers, `hr:` reports, `hs` the store, `hk` housekeeping, `ht:` transfers. `p:` payloads, `d:` digests, `q:` requests of plans, `b:` batches, `f:` failures,
 * `k:` keys, `c:` conflicts are read when they are needed; `u:` quarantine is read soon after; `l:` lists are read by each pull.
 */
const digits = 12;
const padded = (value: number): string => String(value).padStart(digits, '0');

/** Ids of the groups of lists begin so. */
export const listPrefix = 'l:';
export const listId = (groups: number, group: number): string => `${listPrefix}${padded(groups)}:${padded(group)}`;
export const headerId = (sequence: number): string => `h:${padded(sequence)}`;
export const sequenceOf = (id: string): number => Number(id.slice(id.indexOf(':') + 1).slice(0, digits));
export const recordId = (sequence: number, from: number): string => `b:${padded(sequence)}:${padded(from)}`;
/** Ids of the records of one bulk operation begin so. */
export const recordPrefix = (sequence: number): string => `b:${padded(sequence)}:`;
export const failureId = (sequence: number, index: number): string => `f:${padded(sequence)}:${padded(index)}`;
/** Ids of the failures of one bulk operation begin so. */
export const failurePrefix = (sequence: number): string => `f:${padded(sequence)}:`;
export const reportId = (sequence: number): string => `hr:${padded(sequence)}`;
export const housekeepingId = 'hk';
export const transferId = (name: string): string => `ht:${name}`;
export const conflictPrefix = 'c:';
export const conflictId = (docId: string): string => `${conflictPrefix}${docId}`;
export const editFailureId = (docId: string): string => `f:edit:${docId}`;
/** The record of a key: `o` of an operation, `b` of a bulk operation. */
export const claimId = (of: 'o' | 'b', key: string): string => `k:${of}:${key}`;
/** The id of a payload or of a digest document. */
export const numberedId = (prefix: string, number: number): string => `${prefix}${padded(number)}`;

/** A document as it was written, with its new revision. */
export function withRev<Stored extends { readonly _id: string }>(
  doc: Stored,
  revs: ReadonlyMap<string, string>,
): Stored {
  const rev = revs.get(doc._id);
  return rev === undefined ? doc : { ...doc, _rev: rev };
}
