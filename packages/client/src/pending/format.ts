import { z } from 'zod/mini';
import { storedDoc } from '../model/rows.js';
import {
  failureDoc,
  headerDoc,
  origin,
  quarantineDoc,
  quarantinedContent,
  reportDoc,
  rowStates,
  storedOperations,
} from '../queue/stored.js';

/*
 * A file of pending work (S7): a line of JSON each, so that neither side has to hold all of it.
 *
 *   head                                       whose work it is, how much, and a hash of all that follows
 *   document …                                 revisions that the server may not have, or that operations need
 *   bulk-operation ─ key, request, subjects, operations, batch, failure …, standing    in the order of their numbers
 *   failed-edit …                              documents that the app edited itself and the server refused
 *   conflict ─ request, subjects, operations … what is in quarantine
 */

export const fileFormat = 'afield-pending';
/** Raised when an older reader would misunderstand: that one refuses it. */
export const fileVersion = 1;
/** The type of the file. */
export const fileType = 'application/x-ndjson';

const count = z.int().check(z.gte(0));
const counts = z.object({ bulkOperations: count, operations: count, documents: count });
export type FileCounts = z.infer<typeof counts>;

/** What is looked at before anything else: a file of a later version may have another head. */
export const anyHead = z.object({ format: z.literal(fileFormat), version: z.int() });

export const head = z.object({
  format: z.literal(fileFormat),
  version: z.literal(fileVersion),
  /** The store that it was taken from. */
  store: z.string(),
  user: z.optional(z.string()),
  /** Address of the app's database, in one spelling. */
  server: z.optional(z.string()),
  /** Milliseconds since 1970, on the device's wall clock. */
  madeAt: z.number(),
  counts,
  /** Lines that follow. */
  lines: count,
  /** Of these lines, each with its end. */
  sha256: z.string(),
});
export type FileHead = z.infer<typeof head>;

const plan = z.optional(z.object({ name: z.string(), planned: z.boolean() }));

/** What a bulk operation is: nothing of this changes while it runs. */
export const carriedHeader = z.extend(
  z.pick(headerDoc, {
    id: true,
    key: true,
    target: true,
    lane: true,
    parts: true,
    total: true,
    queuedAt: true,
    rate: true,
    retries: true,
    continues: true,
    derived: true,
    taken: true,
  }),
  { plan },
);

/** How far it is. */
export const carriedStanding = z.pick(headerDoc, {
  state: true,
  cursor: true,
  applied: true,
  alreadyApplied: true,
  failed: true,
  events: true,
  attempts: true,
  failedAttempts: true,
  lastError: true,
  bug: true,
  continuedBy: true,
  unsettled: true,
});

export const carriedFailure = z.omit(failureDoc, { _id: true, _rev: true, v: true });

const carriedContent = z.extend(z.omit(quarantinedContent, { plan: true, payload: true, subjects: true }), { plan });
export const carriedConflict = z.extend(z.omit(quarantineDoc, { _rev: true, v: true, content: true }), {
  content: z.optional(carriedContent),
});
export type CarriedConflict = z.infer<typeof carriedConflict>;

/** A given key: place in its request, and the hash of its content. */
const key = z.object({ index: z.int(), hash: z.string() });

const revisions = z.object({ start: z.int(), ids: z.array(z.string()).check(z.minLength(1)) });

export const line = z.discriminatedUnion('kind', [
  /** A revision with its history, its attachments inside. */
  z.object({
    kind: z.literal('document'),
    doc: storedDoc.check(z.refine((doc) => revisions.safeParse(doc['_revisions']).success, '_revisions is missing')),
  }),
  z.object({
    kind: z.literal('bulk-operation'),
    /** Its number in the store that it was taken from. */
    sequence: z.int(),
    header: carriedHeader,
    /** The names under which the server knows its events and its result. */
    origin,
    /** Its own key, when it was given. */
    key: z.optional(key),
  }),
  /** What was asked of a plan, as JSON text. */
  z.object({ kind: z.literal('request'), request: z.string() }),
  /** Hashes of documents that a plan has declared. */
  z.object({ kind: z.literal('subjects'), hashes: z.array(z.number()) }),
  z.object({
    kind: z.literal('operations'),
    from: count,
    operations: storedOperations,
    /** Of operations whose keys were given, by their place in `operations`. */
    keys: z.array(z.tuple([count, key])),
  }),
  z.object({ kind: z.literal('batch'), from: count, at: z.number(), rows: rowStates }),
  z.object({ kind: z.literal('failure'), failure: carriedFailure }),
  /** The end of a bulk operation. */
  z.object({
    kind: z.literal('standing'),
    standing: carriedStanding,
    report: z.pick(reportDoc, { refused: true, resolved: true, chunks: true }),
  }),
  z.object({ kind: z.literal('failed-edit'), failure: carriedFailure }),
  z.object({ kind: z.literal('conflict'), entry: carriedConflict }),
]);
export type FileLine = z.infer<typeof line>;
export type LineOf<Kind extends FileLine['kind']> = Extract<FileLine, { kind: Kind }>;
