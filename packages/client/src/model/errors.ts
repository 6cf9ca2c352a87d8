import { failureCode } from './failure.js';
import type { WorkCounts } from './states.js';

/** Why something did not work, as a person needs to know it. Source: SPEC, Failure codes. */
export type ErrorClass = 'network' | 'server' | 'auth' | 'storage' | 'conflict' | 'throttled' | 'bug';

/** The last error of a bulk operation, the push, the pull or the results. Holds no content of any document. */
export interface ErrorSummary {
  readonly class: ErrorClass;
  /** A short machine name: `timeout`, `not-couchdb`, `database-missing`, `InvalidStateError`, `503` … */
  readonly code: string;
}

/** The base of all errors that Afield throws: `code` is stable, the message is for people. */
export class AfieldError extends Error {
  constructor(
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** One thing that is wrong in a request, and where. */
export interface RequestIssue {
  /** Place of the operation in the request, from 0; -1 when the request itself is wrong. */
  readonly index: number;
  /** The field, as a path with dots; empty when the operation as a whole is wrong. */
  readonly field: string;
  readonly message: string;
}

/** The request is wrong; nothing of it was stored, or read. Shows the first 20 issues and the count of all. */
export class InvalidRequestError extends AfieldError {
  readonly issues: readonly RequestIssue[];
  constructor(
    issues: readonly RequestIssue[],
    readonly issueCount: number = issues.length,
    of: 'change' | 'read' = 'change',
  ) {
    const first = issues[0];
    const where = first === undefined ? '' : place(first);
    const more = issueCount > 1 ? ` (and ${String(issueCount - 1)} more)` : '';
    // A read changes nothing anyway.
    const end = of === 'change' ? ' Nothing was changed.' : '';
    super('invalid_request', `Invalid request: ${where}${first?.message ?? 'unknown'}${more}.${end}`);
    this.issues = issues.slice(0, 20);
  }
}

function place(issue: RequestIssue): string {
  if (issue.index < 0) return issue.field === '' ? '' : `${issue.field}: `;
  return `operation ${String(issue.index)}${issue.field === '' ? '' : `, field ${issue.field}`}: `;
}

/** A key that was used before, with other content (O4). */
export interface KeyConflict {
  /** Place of the operation in the request, from 0; -1 for the key of the bulk operation. */
  readonly index: number;
  readonly key: string;
  /** The bulk operation that has used the key first; undefined when it was another operation of the same request. */
  readonly bulkOperationId: string | undefined;
  /** Where both versions are kept. */
  readonly quarantineId: string;
}

/**
 * The same key was queued before with other content. The whole request was refused; both versions are in quarantine until
 * a person decides. Shows the first 20 conflicts and the count of all.
 */
export class IdempotencyConflictError extends AfieldError {
  readonly conflicts: readonly KeyConflict[];
  constructor(
    conflicts: readonly KeyConflict[],
    readonly conflictCount: number = conflicts.length,
  ) {
    const where =
      conflicts[0] === undefined || conflicts[0].index < 0 ? 'the request' : `operation ${String(conflicts[0].index)}`;
    const more = conflictCount > 1 ? ` (and ${String(conflictCount - 1)} more)` : '';
    super(
      'idempotency_conflict',
      `The key of ${where} was used before with other content${more}. Nothing was queued; both versions are in quarantine.`,
    );
    this.conflicts = conflicts.slice(0, 20);
  }
}

/** Not everything is done, and time alone will not change that: a person must decide on what has failed (S11). */
export class NotDrainedError extends AfieldError {
  constructor(readonly counts: WorkCounts) {
    const { failed, stopped, quarantined } = counts;
    super(
      'not_drained',
      `Not all is done: ${String(failed)} failed, ${String(stopped)} stopped by a bug, ${String(quarantined)} in quarantine.`,
    );
  }
}

/** The client was closed; open a new one. */
export class ClientClosedError extends AfieldError {
  constructor() {
    super('client_closed', 'The client is closed. Create a new one with createClient().');
  }
}

/**
 * The local store belongs to another user (`other_user`), or to another server (`other_server`). Nothing of it was read or
 * changed (S7).
 */
export class OtherStoreError extends AfieldError {
  constructor(override readonly code: 'other_user' | 'other_server') {
    super(
      code,
      `The local store of this name is for another ${code === 'other_user' ? 'user' : 'server'}. Nothing was changed in it. Give each user and server a name of its own: storeNameOf().`,
    );
  }
}

/**
 * `logout()` was refused: there is work that no server has. Nothing was removed. Bring it over (`drained()`), keep it
 * (`exportPending()`), or give it up (`logout({ force: true })`).
 */
export class UnsyncedWorkError extends AfieldError {
  constructor(readonly counts: WorkCounts) {
    const left = Object.entries(counts).filter(([, count]) => count > 0);
    super(
      'unsynced_work',
      `There is work that is on this device alone: ${left.map(([kind, count]) => `${String(count)} ${kind}`).join(', ')}. Nothing was removed.`,
    );
  }
}

/** The person whose store this is has logged out, here or in another tab: it is being removed from the device. */
export class StoreLeftError extends AfieldError {
  constructor() {
    super('store_left', 'The store is being removed from this device: its person has logged out.');
  }
}

/**
 * A file cannot be imported: it is no file of `exportPending()`, cut off, changed, of a later version, the work of another
 * user or another server, or a key in it stands for other content here. Nothing of it was stored.
 */
export class PendingFileError extends AfieldError {
  constructor(
    override readonly code:
      | 'not_a_pending_file'
      | 'file_too_new'
      | 'file_cut'
      | 'file_changed'
      | 'file_invalid'
      | 'key_conflict'
      | 'other_user'
      | 'other_server',
    what: string,
    /** Where it is wrong: 1 is the first line. Undefined when it is the file as a whole. */
    readonly line?: number,
    /** The field in this line, as a path with dots. */
    readonly field?: string,
  ) {
    const where = line === undefined ? 'The file' : `Line ${String(line)} of the file`;
    const which = field === undefined || field === '' ? '' : ` (field ${field})`;
    super(code, `${where} ${what}${which}. Nothing of it was imported.`);
  }
}

/** The local store was written by a newer Afield. Nothing was changed in it. */
export class StoreTooNewError extends AfieldError {
  constructor(what: string, version: number) {
    super('store_too_new', `${what} has version ${String(version)}, which this Afield does not know. Update the app.`);
  }
}

/**
 * What may pass: the batch runs again at the next attempt. Handlers throw it for what they found themselves;
 * `context.db` and `context.fetch` throw it for the network, the server and the local store.
 */
export class RetryableError extends AfieldError {
  readonly class: ErrorClass;
  /** Not before so many milliseconds (a server's `Retry-After`, at most an hour). */
  readonly notBeforeMs: number;
  constructor(
    message: string,
    options: { class?: ErrorClass; code?: string; notBeforeMs?: number; cause?: unknown } = {},
  ) {
    super(options.code ?? 'retryable', message, options.cause === undefined ? undefined : { cause: options.cause });
    this.class = options.class ?? 'server';
    this.notBeforeMs = options.notBeforeMs ?? 0;
  }
}

/**
 * An index cannot answer now: it is built (`building`, `idle`), it has stopped (`parked`), or it has not seen the last writes
 * in time (`behind`). A plan that meets it waits as `waiting-index` (R7, B2).
 */
export class IndexNotReadyError extends RetryableError {
  constructor(
    readonly index: string,
    readonly state: 'idle' | 'building' | 'parked' | 'behind',
    /** Why it is parked: a short machine name. */
    readonly reason?: string,
    options: { cause?: unknown } = {},
  ) {
    const why = reason === undefined ? '' : ` (${stopWords.get(reason) ?? reason})`;
    super(`The index "${index}" ${indexWords[state]}${why}.`, {
      class: 'storage',
      code: 'index_not_ready',
      ...options,
    });
  }
}

const stopWords = new Map([
  ['keys', 'keys: its function is wrong for the document that state$ names'],
  ['removed', 'removed: its store is gone, as when another tab runs a newer version of the app'],
]);

const indexWords = {
  idle: 'is not built yet: call build(), or wait until the client has started',
  building: 'is being built: wait until its state$ is `ready`',
  parked: 'has stopped: see its state$, mend the cause, and call resume()',
  behind: 'has not seen the last writes in time: try again',
} as const;

/**
 * What a plan throws when the request itself cannot be done, for example because the target lies below what it moves. The
 * bulk operation ends as `failed` before anything is written (R5); `lastError.code` is the code, and `bug.stack` the message
 * alone. `dryRun` rejects with it. A person can queue another request, or try this one again (`retryRest`) when what stood in
 * its way is gone. What may pass is a `RetryableError`.
 */
export class PlanRefusedError extends AfieldError {
  readonly class = 'bug';
  /** `code` is a fixed word of at most 64 letters, digits, `_`, `-` and `.`: it is sent to the server. The message stays here. */
  constructor(code: string, message: string) {
    if (!failureCode.test(code)) {
      throw new TypeError('The code of a PlanRefusedError has 1 to 64 letters, digits, `_`, `-` or `.`.');
    }
    super(code, message);
  }
}

/**
 * Why the app must bring credentials: the server wants to know who we are (401), a proxy does (407), the server refuses us as
 * a whole (403), or someone else is signed in than the person whose work this is (S7).
 */
export type SignInCause = 'unauthorized' | 'proxy-unauthorized' | 'forbidden' | 'other-user';

/** Nothing is tried until credentials come (R12). */
export class SignInRequiredError extends AfieldError {
  readonly class = 'auth';
  constructor(override readonly code: SignInCause) {
    super(
      code,
      code === 'other-user'
        ? 'Someone else is signed in. The work waits for the person whose it is.'
        : 'The server refuses these credentials. Sign in again.',
    );
  }
}

/** A whole request was refused for something in it: it is halved until the row is found (R11). */
export class DivisibleError extends AfieldError {
  readonly class = 'server';
  /** `status` is the server's; without one it is the local store that refused. */
  constructor(
    override readonly code: 'too_large' | 'missing_stub' | 'invalid_doc' | 'invalid_id' | 'unexpected',
    readonly status?: number,
  ) {
    super(
      code,
      status === undefined
        ? 'The local store refuses this document.'
        : `The server refused the request with status ${String(status)}.`,
    );
  }
}
