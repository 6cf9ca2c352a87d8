import { z } from 'zod/mini';
import type { Client } from '../model/client.js';
import type { LocalIndex } from '../model/lookup.js';
import { wireError } from './wire-error.js';

/*
 * What a page and its worker say to each other. First on the worker itself, beside the app's own messages:
 *
 *   page ── knock ──▶ worker      in both orders: who comes second is heard
 *   page ◀── here ─── worker
 *   page ─ connect ─▶ worker      with a port of their own, on which all else is said
 *
 * The page writes on the port from the start; what it has written goes over with it.
 */

/** Raised whenever an older other side would misunderstand. A page and a SharedWorker may come from two builds. */
export const wireVersion = 1;

/** Tagged: on the worker there may be other messages. */
export const greeting = z.discriminatedUnion('afield', [
  z.object({ afield: z.literal('knock') }),
  /** `life` names the lock that the sender holds as long as it lives. */
  z.object({ afield: z.literal('here'), v: z.number(), life: z.string() }),
  z.object({ afield: z.literal('connect'), v: z.literal(wireVersion), life: z.string(), visible: z.boolean() }),
]);
export type Greeting = z.infer<typeof greeting>;

/** Calls that go over as they are. */
const clientMethods = [
  'enqueue',
  'dryRun',
  'start',
  'pause',
  'resume',
  'cancel',
  'retryRest',
  'listNotDone',
  'listFailures',
  'retryFailed',
  'editAndRetry',
  'discard',
  'revert',
  'forgetDocuments',
  'listEvents',
  'listQuarantined',
  'resolveQuarantined',
  'drained',
  'exportPending',
  'importPending',
  'syncNow',
  'signedIn',
  'logout',
  'close',
] as const satisfies readonly (keyof Client)[];
export type ClientMethod = (typeof clientMethods)[number];

const clientObservables = [
  'bulkOperations$',
  'status$',
  'failures$',
  'events$',
  'quarantine$',
  'conflicts$',
] as const satisfies readonly (keyof Client)[];
export type ClientObservable = (typeof clientObservables)[number];

const indexMethods = [
  'query',
  'build',
  'resume',
  'rebuild',
  'skipped',
] as const satisfies readonly (keyof LocalIndex)[];
export type IndexMethod = (typeof indexMethods)[number];

/** What is called, and with what: of the client, or of one of its indexes. */
const asked = z.discriminatedUnion('on', [
  z.object({ on: z.literal('client'), method: z.enum(clientMethods), args: z.array(z.unknown()) }),
  z.object({ on: z.literal('index'), index: z.string(), method: z.enum(indexMethods), args: z.array(z.unknown()) }),
  z.object({ on: z.literal('sync'), method: z.enum(['report']), args: z.array(z.unknown()) }),
  z.object({ on: z.literal('storeId') }),
]);
export type Asked = z.infer<typeof asked>;

/** What is listened to: an observable of the client, or the state of an index. */
const observed = z.discriminatedUnion('on', [
  z.object({ on: z.literal('client'), observable: z.enum(clientObservables) }),
  z.object({ on: z.literal('index'), index: z.string() }),
]);
export type Observed = z.infer<typeof observed>;

export const toWorker = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('call'), id: z.number(), asked }),
  z.object({ kind: z.literal('subscribe'), id: z.number(), observed }),
  z.object({ kind: z.literal('unsubscribe'), id: z.number() }),
  /** The page is done with the values of one `next`. */
  z.object({ kind: z.literal('took'), id: z.number() }),
  /** The page came into view, or went out of it. */
  z.object({ kind: z.literal('visible'), visible: z.boolean() }),
  /** The answer to `ask`; `isGiven` is false when the page has none. */
  z.object({ kind: z.literal('told'), id: z.string(), isGiven: z.boolean(), value: z.optional(z.unknown()) }),
]);
export type ToWorker = z.infer<typeof toWorker>;

/** What a page waits for, also where the worker does not know what it asks. */
export const awaited = z.object({ kind: z.enum(['call', 'subscribe']), id: z.number() });

/** What only the page knows. */
const question = z.discriminatedUnion('of', [
  z.object({ of: z.literal('credentials'), why: z.enum(['first', 'refused']) }),
  z.object({ of: z.literal('noted'), name: z.string() }),
  z.object({ of: z.literal('note'), name: z.string(), text: z.string() }),
  z.object({ of: z.literal('forget'), name: z.string() }),
]);
export type Question = z.infer<typeof question>;

export const toPage = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('answer'), id: z.number(), value: z.optional(z.unknown()) }),
  z.object({ kind: z.literal('refusal'), id: z.number(), error: wireError }),
  z.object({ kind: z.literal('next'), id: z.number(), values: z.array(z.unknown()) }),
  z.object({ kind: z.literal('complete'), id: z.number() }),
  z.object({ kind: z.literal('error'), id: z.number(), error: wireError }),
  z.object({ kind: z.literal('ask'), id: z.string(), question }),
]);
export type ToPage = z.infer<typeof toPage>;
