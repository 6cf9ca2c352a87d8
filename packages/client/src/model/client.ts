import type { Observable } from 'rxjs';
import type { Environment } from './environment.js';
import type { DocumentEvent, Publisher } from './event.js';
import type { Doc, Json } from './json.js';
import type {
  BulkOperationStatus,
  ClientStatus,
  FailedOperation,
  NotDoneOperation,
  Target,
  Drained,
} from './states.js';
import type { AnyAction } from './handler.js';
import type { AnyPlan } from './plan.js';
import type { IndexDefinition, LocalIndex } from './lookup.js';
import type { PouchConstructor, PouchLike } from './pouch.js';
import type { OpenConflict, ResolveConflict } from './conflict.js';
import type { QuarantineDecision, QuarantineEntry } from './quarantine.js';

/** How to sign in at the server. Kept in memory only, never stored, never logged. */
export type Credentials =
  | { readonly type: 'basic'; readonly username: string; readonly password: string }
  | { readonly type: 'bearer'; readonly token: string }
  /** The browser's own cookies (`credentials: 'include'`). */
  | { readonly type: 'cookie' }
  /** One header of a proxy that signs in for us. */
  | { readonly type: 'header'; readonly name: string; readonly value: string }
  /** Several of them, such as `X-Auth-CouchDB-UserName`, `-Roles` and `-Token` of CouchDB's own proxy authentication. */
  | { readonly type: 'headers'; readonly headers: Readonly<Record<string, string>> };

export interface AuthOptions {
  /** Asked before the first request, and again when the server refused; one call at a time. */
  credentials(why: 'first' | 'refused'): Promise<Credentials>;
}

/**
 * What the server is asked for: documents that a CouchDB selector fits, or those of a list. A function is no filter: it would
 * run on this device, after everything was sent here. The list may be asked for anew before each pull; who comes into it
 * is brought, who leaves it stays on this device (see `outOfSight`).
 */
export type PullOptions =
  | { readonly selector: object }
  | { readonly docIds: readonly string[] | (() => readonly string[] | Promise<readonly string[]>) };

/** Ids of documents to be forgotten, or nothing. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- a function that answers nothing is meant
export type OutOfSightAnswer = readonly string[] | void;

/**
 * `managed` (or `true`): the client pushes and pulls. `external`: the app does, with a replication of its own; the client asks
 * the server which revisions it has. `off` (or `false`): nobody asks, and what is written locally counts as done.
 */
export type ReplicationMode = 'managed' | 'external' | 'off';

export interface ResultsOptions {
  /** Address of the database, without credentials. */
  readonly url: string;
  /**
   * Only for a database that this user alone may read: the reasons of failures and the content of the operations go there too.
   * CouchDB has no read rights for single documents. Default: false.
   */
  readonly content?: boolean;
}

/** One operation that failed, as `ClientOptions.redact` gets it. */
export interface RedactedOperation {
  readonly action: string | undefined;
  readonly id: string | undefined;
  /** The fields of the operation without its id and its key. A copy. */
  readonly content: unknown;
}

export interface ClientOptions {
  /** Names the local stores: one name per user and server (`storeNameOf`). The queue lives in the database `<name>-afield-queue`. */
  readonly name: string;
  /** PouchDB's constructor with the idb adapter: `pouchdb-browser`, or `PouchDB` of `@afield/client/pouchdb`. */
  readonly PouchDB: PouchConstructor;
  readonly actions: readonly AnyAction[];
  /** Requests that become operations only when they run. Default: none. */
  readonly plans?: readonly AnyPlan[];
  /** Indexes of the app's own PouchDB. The tab that leads builds them and keeps them up to date. Default: none. */
  readonly indexes?: readonly IndexDefinition[];
  /** Name of the app's own PouchDB, for the target `local`. Default: `name`. */
  readonly documents?: string;
  /**
   * Name of the person at the server (`name` of `_session`), when the app knows it. The store remembers it, and `server`:
   * opened later for someone else, or another server, everything rejects with `OtherStoreError` (S7). Default: the first name
   * that the server says. Without `user` and without `auth` the server is not asked: an app that relies on the browser's
   * cookies gives one of the two.
   */
  readonly user?: string;
  /** Address of the app's CouchDB database, without credentials. Without it only the target `local` works, and nothing is sent. */
  readonly server?: string;
  /**
   * The database that takes results, failures and the device document (S1, S11): its address, or more about it. Without it they
   * stay on the device. A text means a database that others may read: ids, codes and names of fields go there, no reason and
   * no content.
   */
  readonly results?: string | ResultsOptions;
  /**
   * What may be sent of the content of an operation that failed, to a results database with `content: true`: called with a
   * copy, answers with any JSON, or with undefined for nothing. When it throws, or answers with what is no JSON (a promise, a
   * function), nothing of that content is sent. It does not see the reason, which is sent too. Default: all of it.
   */
  readonly redact?: (operation: RedactedOperation) => unknown;
  readonly auth?: AuthOptions;
  /** Who brings documents to the server and back, for the target `local`. Default: `managed` when `server` is given. */
  readonly replication?: ReplicationMode | boolean;
  /** Which documents are pulled, with `replication: 'managed'`. Default: all. */
  readonly pull?: PullOptions;
  /**
   * Called with ids of documents that are here and that the user may no longer see: they have left the list of
   * `pull.docIds`, or the server has answered that they are forbidden. Those that it answers with are forgotten, as by
   * `forgetDocuments`; those that are kept are asked about again with the next pull. Called again with the same ids when
   * it throws. Default: they stay.
   */
  readonly outOfSight?: (ids: readonly string[]) => OutOfSightAnswer | Promise<OutOfSightAnswer>;
  /** Seconds until a push or a pull without any progress is given up and tried again: 1 or more. Default: 300. */
  readonly inactivityS?: number;
  /** Seconds between two pulls while nothing else asks for one. Default: 60. */
  readonly pullEveryS?: number;
  /** Documents in a batch: 1 to 100. Default: 100. */
  readonly batchSize?: number;
  /** Seconds until a request without an answer is given up. Default: 60. */
  readonly requestTimeoutS?: number;
  /**
   * Version of the app, any text. Kept with what fails; operations that failed with `crashed` are tried again by another
   * version (R16).
   */
  readonly appVersion?: string;
  /** Where the events of mutations go, beside the page itself (O6). Default: nowhere. */
  readonly publishers?: readonly Publisher[];
  /**
   * The type of a document, for the names of its events. All but a text means `unknown`. Pure. Default: its field `type`, else
   * `form`, where that is a text.
   */
  readonly typeOf?: (doc: Doc) => string | undefined;
  /**
   * Days that a bulk operation is remembered, with its keys and its published events: so long a delivery that comes twice is
   * known as one (O4). They begin when it is at its end and nothing of it is left to do; while anything of it is not on the
   * server yet, failed and open, or in quarantine, it is never forgotten. Counted by a clock of the client's own: of a time in
   * which no client was open one day counts at most, so that a wall clock that jumps makes nothing forgotten at once (R18).
   * Default: 30; 0 or more.
   */
  readonly rememberDays?: number;
  /**
   * The largest body of a request to the server, in bytes: 1000 or more. Default: 1 000 000. A document that is larger
   * alone is still tried. A server that refuses a smaller size (413) lowers it for a while.
   */
  readonly maxRequestBytes?: number;
  /** Decides about conflicts that no operation of this device has caused (`conflicts$`). Default: they are left alone. */
  readonly resolveConflict?: ResolveConflict;
  /** Whether to start at once. Default: true. */
  readonly autoStart?: boolean;
  /** Waiting time in milliseconds after so many failed attempts in a row (1, 2 …). Default: the ramp of R2. */
  readonly ramp?: (failures: number) => number;
  /** Share of a waiting time, also of one that a server asks for, that may be added at random. Default: 0.2; 0 switches it off. */
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

/** One bulk operation whose operations a plan makes when it runs, from the documents as they are then. */
export interface PlanRequest {
  readonly target: Target;
  /** The plan's name. */
  readonly plan: string;
  /** What the plan is asked for, in the shape of its `request`. */
  readonly request: unknown;
  /** As for operations. */
  readonly key?: string;
  readonly lane?: string;
}

/** What a plan would do now. */
export interface DryRun {
  readonly actions: readonly ActionPart[];
  /** How many operations that is. */
  readonly total: number;
}

export interface EnqueueReceipt {
  readonly bulkOperationId: string;
  readonly sequence: number;
  readonly key: string;
  /** Operations; 0 for a plan, whose operations are not known yet. */
  readonly total: number;
  /** All of this was queued before, with the same keys and the same content: it is the bulk operation of then (O4). */
  readonly duplicate: boolean;
  /** Operations of the request that were queued before, with the same content: they are not queued again. */
  readonly duplicates: readonly DuplicateOperation[];
}

/** An operation that was queued before under the same key, with the same content. */
export interface DuplicateOperation {
  /** Place of the operation in the request, from 0. */
  readonly index: number;
  readonly key: string;
  /** The bulk operation that holds it; for a second one in the same request, the one of this receipt. */
  readonly bulkOperationId: string;
}

/** Which failures are meant: all that fit every given field. An empty filter means all that are open. */
export interface FailureFilter {
  readonly failureId?: string | readonly string[];
  readonly bulkOperationId?: string | readonly string[];
  readonly code?: string | readonly string[];
  readonly action?: string | readonly string[];
  /** The document. */
  readonly id?: string | readonly string[];
  /** Failed at this time or later; milliseconds since 1970. */
  readonly since?: number;
  /** Failed before this time. */
  readonly before?: number;
}

export interface RetryOptions {
  /** At most so many operations a second, one a day (1 / 86400) or more; default: as fast as it goes. */
  readonly ratePerSecond?: number;
}

export interface RetryReceipt {
  /** The new bulk operations: one for each target and lane. */
  readonly bulkOperations: readonly EnqueueReceipt[];
  /** Operations that were queued anew. */
  readonly queued: number;
  /** Documents that the server had refused and that are sent again as they are: their failures stay until it takes them. */
  readonly sentAgain: number;
}

/** A document that `forgetDocuments` has left where it is. */
export interface KeptDocument {
  readonly id: string;
  /**
   * `not_sent`: the server does not have its last edit; `queued`: an operation on it is not at its end; `failed`: one has
   * failed and is open; `conflict`: it has hidden versions.
   */
  readonly why: 'not_sent' | 'queued' | 'failed' | 'conflict';
}

export interface ForgetReceipt {
  readonly forgotten: readonly string[];
  readonly kept: readonly KeptDocument[];
}

/** A document that the server has refused the app's own replication: as PouchDB's event `denied` has it. */
export interface DeniedDocument {
  readonly id: string;
  /** The revision that was refused. Default: whatever of the document the server does not have. */
  readonly rev?: string;
  /** CouchDB's word, or `name` as PouchDB has it. Default: `forbidden`. What passes by itself (`timeout` …) is passed over. */
  readonly error?: unknown;
  readonly name?: unknown;
  /** The server's reason, or `message`. Kept on this device. */
  readonly reason?: unknown;
  readonly message?: unknown;
}

/** What the app's own replication has seen (`replication: 'external'`). */
export interface SeenBySync {
  readonly denied?: readonly DeniedDocument[];
  /** Documents that have come with a conflict: they are looked at. */
  readonly conflict?: readonly { readonly id: string }[];
  /** It has pushed all local changes up to this sequence: the client asks the server at once. */
  readonly pushedUpTo?: number | string;
}

/** What `importPending` has brought. */
export interface ImportReceipt {
  /** Bulk operations that were queued as they stood in the file. */
  readonly bulkOperations: number;
  /** Their operations, those included that are done. */
  readonly operations: number;
  /** Revisions of documents that were not here. */
  readonly documents: number;
  /** Bulk operations of the file that are here already. */
  readonly duplicates: number;
  /**
   * Of `bulkOperations` those that are paused now: as they were, and plans on local documents that had not run. These look at
   * all documents: `resume` them when the pull has brought the documents of this user.
   */
  readonly paused: number;
}

/** The client of one user at one server. */
export interface Client {
  /** The name of this store on the server: made when the store is made. */
  readonly storeId: Promise<string>;
  /** All bulk operations, oldest first; the newest state comes at once to whoever subscribes late. */
  readonly bulkOperations$: Observable<readonly BulkOperationStatus[]>;
  readonly status$: Observable<ClientStatus>;
  readonly failures$: Observable<readonly FailedOperation[]>;
  /** The app's documents. Reads and the app's own edits go here. Throws `OtherStoreError` once it is known that the store is another's. */
  readonly documents: PouchLike;
  /**
   * The events of mutations, in every tab, at least once each (O8): also for documents that the server does not have yet.
   * Who subscribes late gets the last 1,000 of this tab first.
   */
  readonly events$: Observable<DocumentEvent>;
  /**
   * Documents with versions beside the one that counts, which no operation of this device has made: each is left alone until
   * someone decides (S2). What an operation of this device has made is healed, and is not listed.
   */
  readonly conflicts$: Observable<readonly OpenConflict[]>;
  /** Conflicting duplicates that no person has decided on yet; the present ones come at once to whoever subscribes late. */
  readonly quarantine$: Observable<readonly QuarantineEntry[]>;
  /** One of the client's indexes. Throws `AfieldError` (`unknown_index`) when `indexes` has none of that name. */
  index(name: string): LocalIndex;
  /**
   * Resolves when everything is durable (O2). What was queued before, with the same keys and the same content, is not queued
   * again, and the receipt says so. Rejects with `InvalidRequestError` and stores nothing when something is wrong, and with
   * `IdempotencyConflictError` when a key was used before with other content (O4).
   */
  enqueue(request: EnqueueRequest | PlanRequest): Promise<EnqueueReceipt>;
  /**
   * Runs a plan on the documents as they are now; stores nothing and changes nothing. Rejects with `InvalidRequestError`
   * when the request, or an operation that the plan made, is wrong, and with whatever the plan threw.
   */
  dryRun(request: PlanRequest): Promise<DryRun>;
  /** Begins to run what is queued, once this tab holds the store's lock. Calling it twice does nothing more. Resolves when the store is open; rejects with `OtherStoreError` when it is for another user or server. */
  start(): Promise<void>;
  /**
   * Tries nothing more of a bulk operation until `resume`. Durable when it resolves; a batch that is under way keeps what
   * it has done. Rejects with `AfieldError` (`unknown_bulk_operation`, `already_ended`).
   */
  pause(bulkOperationId: string): Promise<void>;
  /** Lets a paused bulk operation go on, at once. One that is not paused stays as it is. Rejects as `pause` does. */
  resume(bulkOperationId: string): Promise<void>;
  /** Ends a bulk operation: what is done stays done, the rest is not done any more. Also gives up the rest of a `failed` one. */
  cancel(bulkOperationId: string): Promise<void>;
  /**
   * Queues the rest of a bulk operation anew that a bug of a handler has stopped (`failed`), or that was cancelled. The
   * new one takes the place at the end of the queue. Rejects with `AfieldError` (`not_stopped`, `already_retried`,
   * `nothing_left`; `not_settled` while it is not known yet what its last attempt has done).
   */
  retryRest(bulkOperationId: string): Promise<EnqueueReceipt>;
  /**
   * The operations of a bulk operation that have no outcome: after a bug (`failed`) or a cancel what was not reached, with
   * its content. Rejects with `AfieldError` (`unknown_bulk_operation`).
   */
  listNotDone(bulkOperationId: string): Promise<readonly NotDoneOperation[]>;
  /** Open failures that fit the filter, or with `resolved: true` those that were retried, discarded or reverted: their content is kept. */
  listFailures(filter?: FailureFilter & { readonly resolved?: boolean }): Promise<readonly FailedOperation[]>;
  /**
   * Queues failed operations anew, each with a new sequence number and a key derived from the old one. A document that
   * the server refused is sent again as it is instead. Rejects with `InvalidRequestError` when the filter or the rate is
   * wrong.
   */
  retryFailed(filter?: FailureFilter, options?: RetryOptions): Promise<RetryReceipt>;
  /**
   * Queues one failed operation anew with other content (its fields, and `id` where another document is meant). The old
   * content stays in the failure. Rejects with `InvalidRequestError` when the operation is wrong, with `AfieldError` when
   * there is no such open failure, or it was no operation (`not_an_operation`).
   */
  editAndRetry(failureId: string, operation: OperationInput, options?: RetryOptions): Promise<RetryReceipt>;
  /**
   * Brings documents that the server has refused back to the server's version, as it is now: all that was refused of such a
   * document ends together, with the local version kept in `localDocument`. A document that the server does not have is
   * here no more either. Needs the server; what is pending goes on upon that version. A document that was changed since, in
   * a way that the server was not asked about yet, stays as it is. Answers how many failures have ended. Rejects with
   * `InvalidRequestError` when the filter is wrong, with `AfieldError` (`no_replication`), and with what the server or the
   * network threw: what is back by then stays so, and the call can be made again.
   */
  revert(filter: FailureFilter): Promise<number>;
  /**
   * Lets documents leave this device, with their past and their attachments; at the server they stay as they are. Where the
   * server sends one again (it has changed, or has come back into the list of `pull.docIds`), it is here again. Kept are
   * documents with something that is nowhere else. Rejects with `AfieldError` (`not_managed`) where the client does not
   * replicate itself: a push of the app would send them as deletions.
   */
  forgetDocuments(ids: readonly string[]): Promise<ForgetReceipt>;
  /** For apps that replicate themselves. */
  readonly sync: {
    /**
     * Tells what the app's replication has seen: a refused document becomes a failed operation, with all that follows from
     * it. May be told twice, in any order, of what is not so any more; durable when it resolves. Rejects with
     * `InvalidRequestError`, or with `AfieldError` (`not_external`) where the client replicates itself, or nobody does.
     */
    report(seen: SeenBySync): Promise<void>;
  };
  /**
   * Gives failed operations up. They leave `failures$`, and stay in `listFailures({ resolved: true })`. What is in quarantine of
   * them is closed with them. Answers how many.
   */
  discard(filter: FailureFilter): Promise<number>;
  /**
   * The events of mutations that this store still keeps, in the order of their sequence and index, also those that are not
   * published yet: at most `limit` (default and most: 1,000) after the given place. The place is that of an event: hand in the
   * last one itself. `store` is missing only where none came from another store (`importPending`).
   */
  listEvents(options?: {
    readonly after?: { readonly store?: string; readonly sequence: number; readonly index: number };
    readonly limit?: number;
  }): Promise<readonly DocumentEvent[]>;
  /** Conflicting duplicates that are open, or with `resolved: true` those that are closed, with both versions. */
  listQuarantined(filter?: { readonly resolved?: boolean }): Promise<readonly QuarantineEntry[]>;
  /**
   * Ends a conflict: `keep-first` and `discard` leave what counts as it is; `take-second` queues the second version under a
   * key derived from the old one (for `event`: publishes it under an id derived from the old one). The failure of an entry of
   * the kind `create` ends with it, in the same write; and to discard or retry that failure closes the entry (R19), after which
   * `take-second` can still be decided. Answers with what was queued, if anything. Rejects with `AfieldError`
   * (`unknown_quarantine`, `already_resolved`).
   */
  resolveQuarantined(quarantineId: string, decision: QuarantineDecision): Promise<EnqueueReceipt | undefined>;
  /**
   * Resolves when nothing is pending, failed, in quarantine, unpublished or unreported, the server has confirmed all that was
   * written, and the device document that says so is on the server (S11). Waits for it, also while the network is away.
   * Rejects with `NotDrainedError` (the counts) when something has failed, was stopped by a bug, or is in quarantine; with
   * `ClientClosedError` when the client is closed, and with the reason of `signal`. Without `results` there is no such document;
   * without replication what was written on local documents stays there, and counts as done.
   */
  drained(options?: { readonly signal?: AbortSignal }): Promise<Drained>;
  /**
   * All that is not over for good, as one file (S7): bulk operations with what is done and what is open of them, failures,
   * conflicts in quarantine, and documents that the server may not have, with attachments. In any tab, without a network, while
   * things run: then the file says how it was at the call. It holds the content of operations and documents, and no
   * credentials. A Blob, so that a browser may keep it on disk: its `size` is in bytes. Rejects with what the store throws.
   */
  exportPending(): Promise<Blob>;
  /**
   * Takes such a file in, in a store of the same user and server. The same file twice brings nothing twice, also when the
   * first time ended in the middle. Resolves when all of it is durable. Rejects with `PendingFileError` when the file is wrong, or
   * not for this store: then nothing was stored.
   */
  importPending(file: Blob | string): Promise<ImportReceipt>;
  /**
   * Makes everything that waits for a time or for the network due now, at once or within a second; what the server has
   * asked for stays (R13, R14). An attempt that is under way and fails then is followed by another one.
   */
  syncNow(): void;
  /** The app has new credentials (R12): waiting work goes on, and documents that were `forbidden` are sent once more (S2). */
  signedIn(): void;
  /**
   * Takes leave of this store (S7): closes the client in all tabs, then removes its databases, indexes and notes from the
   * device. Works offline. Rejects with `UnsyncedWorkError` and removes nothing while there is work that no server has;
   * `force` gives that up. Rejects with `AfieldError` (`wipe_unfinished`) when a tab that does not answer holds a database
   * for ten seconds: what is left then is removed when the store is opened next, before anything is shown.
   */
  logout(options?: { readonly force?: boolean }): Promise<void>;
  /** Stops and lets go of everything: no timer, no handle, no lock remains. What runs is cut off safely. */
  close(): Promise<void>;
}

export type { Json };
