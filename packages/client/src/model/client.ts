import type { Observable } from 'rxjs';
import type { Environment } from './environment.js';
import type { Json } from './json.js';
import type { BulkOperationStatus, ClientStatus, FailedOperation, Target } from './states.js';
import type { AnyAction } from './handler.js';
import type { PouchConstructor, PouchLike } from './pouch.js';

/** How to sign in at the server. Kept in memory only, never stored, never logged. */
export type Credentials =
  | { readonly type: 'basic'; readonly username: string; readonly password: string }
  | { readonly type: 'bearer'; readonly token: string }
  /** The browser's own cookies (`credentials: 'include'`). */
  | { readonly type: 'cookie' }
  /** One header of a proxy that signs in for us. */
  | { readonly type: 'header'; readonly name: string; readonly value: string };

export interface AuthOptions {
  /** Asked before the first request, and again when the server refused; one call at a time. */
  credentials(why: 'first' | 'refused'): Promise<Credentials>;
}

export interface ClientOptions {
  /** Names the local stores: one name per user and server. The queue lives in the database `<name>-afield-queue`. */
  readonly name: string;
  /** PouchDB's constructor with the idb adapter: `pouchdb-browser`, or `PouchDB` of `@afield/client/pouchdb`. */
  readonly PouchDB: PouchConstructor;
  readonly actions: readonly AnyAction[];
  /** Name of the app's own PouchDB, for the target `local`. Default: `name`. */
  readonly documents?: string;
  /** Address of the app's CouchDB database, without credentials. Without it only the target `local` works, and nothing is sent. */
  readonly server?: string;
  /** Address of the database that takes results and failures. Without it they stay on the device. */
  readonly results?: string;
  readonly auth?: AuthOptions;
  /** Whether documents are pushed and pulled by the client. Default: true when `server` is given. */
  readonly replication?: boolean;
  /** Seconds between two pulls while nothing else asks for one. Default: 60. */
  readonly pullEveryS?: number;
  /** Documents in a batch: 1 to 100. Default: 100. */
  readonly batchSize?: number;
  /** Seconds until a request without an answer is given up. Default: 60. */
  readonly requestTimeoutS?: number;
  /** Whether to start at once. Default: true. */
  readonly autoStart?: boolean;
  /** Waiting time in milliseconds after so many failed attempts in a row (1, 2 …). Default: the ramp of R2. */
  readonly ramp?: (failures: number) => number;
  /** Share of a waiting time that may be added at random. Default: 0.2; 0 switches it off. */
  readonly jitter?: number;
  readonly environment?: Partial<Environment>;
}

/** One operation as an app queues it: `id` and `key` are Afield's business, the other fields belong to its action. */
export interface OperationInput {
  readonly id?: unknown;
  /** Idempotency key; default: the bulk operation's key with the operation's index. */
  readonly key?: string;
  readonly [field: string]: unknown;
}

export interface ActionPart {
  readonly action: string;
  readonly operations: readonly OperationInput[];
}

/** One bulk operation: operations of one action, or of several that run in their order. */
export interface EnqueueRequest {
  readonly target: Target;
  readonly actions: readonly ActionPart[];
  /** Idempotency key of the whole; default: made at enqueue. At most 256 characters. */
  readonly key?: string;
  /** Bulk operations of one lane run one after another. */
  readonly lane?: string;
}

export interface EnqueueReceipt {
  readonly bulkOperationId: string;
  readonly sequence: number;
  readonly key: string;
  readonly total: number;
}

/** The client of one user at one server. */
export interface Client {
  /** The name of this store on the server: made when the store is made. */
  readonly storeId: Promise<string>;
  /** All bulk operations, oldest first; the newest state comes at once to whoever subscribes late. */
  readonly bulkOperations$: Observable<readonly BulkOperationStatus[]>;
  readonly status$: Observable<ClientStatus>;
  readonly failures$: Observable<readonly FailedOperation[]>;
  /** The app's documents. Reads and the app's own edits go here. */
  readonly documents: PouchLike;
  /** Resolves when everything is durable (O2). Rejects with `InvalidRequestError` and stores nothing when something is wrong. */
  enqueue(request: EnqueueRequest): Promise<EnqueueReceipt>;
  /** Begins to run what is queued, once this tab holds the store's lock. Calling it twice does nothing more. Resolves when the store is open. */
  start(): Promise<void>;
  /** Makes everything that waits for a time or for the network due now (R14). */
  syncNow(): void;
  /** The app has new credentials (R12): waiting work goes on. */
  signedIn(): void;
  /** Stops and lets go of everything: no timer, no handle, no lock remains. What runs is cut off safely. */
  close(): Promise<void>;
}

export type { Json };
