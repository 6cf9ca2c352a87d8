import { ReplaySubject, share, type Observable } from 'rxjs';
import type { AuthOptions, Client } from '../model/client.js';
import type { Locks } from '../model/environment.js';
import { AfieldError, ClientClosedError } from '../model/errors.js';
import type { IndexState, LocalIndex } from '../model/lookup.js';
import { unseenNote } from '../tabs/presence.js';
import { ownPresence, type OwnPresence } from '../tabs/own-presence.js';
import { Connection } from './connection.js';
import { assertEndpoint, type Endpoint } from './endpoint.js';
import type { ClientMethod, ClientObservable, IndexMethod, Question } from './messages.js';

export interface ConnectOptions {
  /** Answers a worker whose client was made with `auth: pageAuth()`. Default: the worker has credentials of its own, or none. */
  readonly credentials?: AuthOptions['credentials'];
  /**
   * Called once when the worker is lost: it did not load, threw before it served, or has ended. Calls reject with the same
   * error (`worker_lost`), observables end with it.
   */
  readonly lost?: (error: AfieldError) => void;
  /** Whether a person looks at this page. Default: the page itself, with notes in its local storage. */
  readonly presence?: OwnPresence;
  /** Default: the engine's. */
  readonly locks?: Locks;
}

/**
 * A client that runs in a worker, as its page sees it: everything that `Client` has, with these differences.
 *
 * - `documents` is not there: a page opens a PouchDB of its own, with the same name.
 * - All that `Client` answers at once comes with a message: the first value of an observable, and the error of an index that
 *   the client does not have (`unknown_index`), which is in its calls and in its `state$`.
 * - Requests must be plain data, as they must be anyway; functions are refused with `InvalidRequestError`.
 * - Everything rejects with `AfieldError` (`worker_lost`) when the worker is lost.
 */
export interface RemoteClient extends Omit<Client, 'documents'> {
  /** Closes the client in the worker, for all pages, then lets go of the worker. The worker itself is the app's to end. */
  close(): Promise<void>;
  /** This page lets go; the client in the worker goes on (for a SharedWorker). */
  disconnect(): void;
}

/** What of a SharedWorker is needed. */
type SharedEndpoint = EventTarget & { readonly port: Endpoint };

/** In the page: the client that the worker has given to `serveClient`. Calls may be made at once; they wait for the worker. */
export function connectClient(worker: Endpoint | SharedEndpoint, options: ConnectOptions = {}): RemoteClient {
  return new ConnectedClient(worker, options);
}

class ConnectedClient implements RemoteClient {
  readonly bulkOperations$: Client['bulkOperations$'];
  readonly status$: Client['status$'];
  readonly failures$: Client['failures$'];
  readonly events$: Client['events$'];
  readonly quarantine$: Client['quarantine$'];
  readonly conflicts$: Client['conflicts$'];
  readonly #connection: Connection;
  readonly #credentials: ConnectOptions['credentials'];
  readonly #presence: OwnPresence;
  /** Notes of runs in this worker, as they are kept. */
  readonly #notes = new Map<string, string>();
  #closed: Promise<void> | undefined;

  constructor(worker: Endpoint | SharedEndpoint, options: ConnectOptions) {
    const endpoint = isShared(worker) ? worker.port : worker;
    assertEndpoint(endpoint, 'connectClient: hand in a Worker, a SharedWorker or a MessagePort.');
    const { presence = ownPresence(), lost } = options;
    this.#credentials = options.credentials;
    this.#presence = presence;
    const unsubscribe = presence.subscribe(() => {
      this.#seen();
    });
    this.#connection = new Connection(endpoint, {
      locks: options.locks,
      isVisible: () => presence.visible(),
      asked: (question) => this.#asked(question),
      ended: (error) => {
        unsubscribe();
        if (error === undefined) this.#unseen();
        else lost?.(error);
      },
    });
    // A SharedWorker that cannot be loaded says so itself, not on its port.
    if (isShared(worker)) {
      worker.addEventListener('error', () => {
        this.#connection.failed();
      });
    }
    this.bulkOperations$ = this.#state('bulkOperations$');
    this.status$ = this.#state('status$');
    this.failures$ = this.#state('failures$');
    this.quarantine$ = this.#state('quarantine$');
    this.conflicts$ = this.#state('conflicts$');
    // Each subscriber gets the last 1,000 first, as from the client itself.
    this.events$ = this.#connection.observe({ on: 'client', observable: 'events$' });
  }

  get storeId(): Promise<string> {
    return this.#connection.call({ on: 'storeId' }) as Promise<string>;
  }

  index(name: string): LocalIndex {
    // Whatever an app in JavaScript hands in: the answer is that there is none of this name.
    return new ConnectedIndex(String(name), this.#connection);
  }

  enqueue(...args: Parameters<Client['enqueue']>): ReturnType<Client['enqueue']> {
    return this.#call('enqueue', args);
  }
  dryRun(...args: Parameters<Client['dryRun']>): ReturnType<Client['dryRun']> {
    return this.#call('dryRun', args);
  }
  start(): Promise<void> {
    return this.#call('start', []);
  }
  pause(...args: Parameters<Client['pause']>): ReturnType<Client['pause']> {
    return this.#call('pause', args);
  }
  resume(...args: Parameters<Client['resume']>): ReturnType<Client['resume']> {
    return this.#call('resume', args);
  }
  cancel(...args: Parameters<Client['cancel']>): ReturnType<Client['cancel']> {
    return this.#call('cancel', args);
  }
  retryRest(...args: Parameters<Client['retryRest']>): ReturnType<Client['retryRest']> {
    return this.#call('retryRest', args);
  }
  listNotDone(...args: Parameters<Client['listNotDone']>): ReturnType<Client['listNotDone']> {
    return this.#call('listNotDone', args);
  }
  listFailures(...args: Parameters<Client['listFailures']>): ReturnType<Client['listFailures']> {
    return this.#call('listFailures', args);
  }
  retryFailed(...args: Parameters<Client['retryFailed']>): ReturnType<Client['retryFailed']> {
    return this.#call('retryFailed', args);
  }
  editAndRetry(...args: Parameters<Client['editAndRetry']>): ReturnType<Client['editAndRetry']> {
    return this.#call('editAndRetry', args);
  }
  readonly sync: Client['sync'] = {
    report: (...args) => this.#connection.call({ on: 'sync', method: 'report', args }) as Promise<void>,
  };

  revert(...args: Parameters<Client['revert']>): ReturnType<Client['revert']> {
    return this.#call('revert', args);
  }

  forgetDocuments(...args: Parameters<Client['forgetDocuments']>): ReturnType<Client['forgetDocuments']> {
    return this.#call('forgetDocuments', args);
  }
  discard(...args: Parameters<Client['discard']>): ReturnType<Client['discard']> {
    return this.#call('discard', args);
  }
  listEvents(...args: Parameters<Client['listEvents']>): ReturnType<Client['listEvents']> {
    return this.#call('listEvents', args);
  }
  listQuarantined(...args: Parameters<Client['listQuarantined']>): ReturnType<Client['listQuarantined']> {
    return this.#call('listQuarantined', args);
  }
  resolveQuarantined(...args: Parameters<Client['resolveQuarantined']>): ReturnType<Client['resolveQuarantined']> {
    return this.#call('resolveQuarantined', args);
  }

  /** The signal stays here: the worker's wait goes on, and holds nothing up. */
  drained({ signal }: NonNullable<Parameters<Client['drained']>[0]> = {}): ReturnType<Client['drained']> {
    return untilAborted(this.#call('drained', []), signal);
  }

  exportPending(): Promise<Blob> {
    return this.#call('exportPending', []);
  }
  importPending(...args: Parameters<Client['importPending']>): ReturnType<Client['importPending']> {
    return this.#call('importPending', args);
  }

  syncNow(): void {
    this.#tell('syncNow');
  }
  signedIn(): void {
    this.#tell('signedIn');
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  disconnect(): void {
    this.#connection.end(new AfieldError('disconnected', 'This page has let go of its worker. Call connectClient().'));
  }

  async logout(...args: Parameters<Client['logout']>): Promise<void> {
    await this.#call('logout', args);
    this.#connection.end(new ClientClosedError());
  }

  async #close(): Promise<void> {
    // A worker that is gone holds nothing any more.
    if (this.#connection.over === undefined) await this.#call('close', []).catch(unlessLost);
    this.#connection.end(new ClientClosedError());
  }

  #call<Method extends ClientMethod>(method: Method, args: Parameters<Client[Method]>): ReturnType<Client[Method]> {
    return this.#connection.call({ on: 'client', method, args }) as ReturnType<Client[Method]>;
  }

  /** What answers nothing. Throws what the client would throw at once. */
  #tell(method: 'syncNow' | 'signedIn'): void {
    if (this.#connection.over !== undefined) throw this.#connection.over;
    // Closed by another page, or lost, at this moment: every other call says so.
    this.#connection.call({ on: 'client', method, args: [] }).catch(() => undefined);
  }

  /** One subscription at the worker for all subscribers here; the newest comes at once to whoever subscribes late. */
  #state<Name extends ClientObservable>(observable: Name): Client[Name] {
    return sharedState(this.#connection.observe({ on: 'client', observable })) as Client[Name];
  }

  #seen(): void {
    const isVisible = this.#presence.visible();
    // At once: of a page that is left, no message comes to the worker and back in time.
    if (!isVisible) this.#unseen();
    this.#connection.tellVisible(isVisible);
  }

  #unseen(): void {
    for (const [name, text] of this.#notes) {
      if (!this.#isRemoved(name)) this.#presence.note(name, unseenNote(text));
    }
  }

  /** What was noted, and another tab has removed since because its person has logged out: it does not come back (S7). */
  #isRemoved(name: string): boolean {
    return this.#notes.has(name) && this.#presence.noted(name) === undefined;
  }

  #asked(question: Question): unknown {
    switch (question.of) {
      case 'credentials':
        if (this.#credentials === undefined) throw new Error('The app has given no function for this.');
        return this.#credentials(question.why);
      case 'noted':
        return this.#presence.noted(question.name);
      case 'forget':
        this.#notes.delete(question.name);
        this.#presence.forget?.(question.name);
        return undefined;
      case 'note': {
        const { name, text } = question;
        if (this.#isRemoved(name)) return undefined;
        this.#notes.set(name, text);
        // The page may have been left since the worker said so.
        this.#presence.note(name, this.#presence.visible() ? text : unseenNote(text));
        return undefined;
      }
    }
  }
}

class ConnectedIndex implements LocalIndex {
  readonly state$: Observable<IndexState>;
  readonly #connection: Connection;

  constructor(
    readonly name: string,
    connection: Connection,
  ) {
    this.#connection = connection;
    this.state$ = sharedState(connection.observe<IndexState>({ on: 'index', index: name }));
  }

  query(...args: Parameters<LocalIndex['query']>): ReturnType<LocalIndex['query']> {
    return this.#call('query', args);
  }
  build(): Promise<void> {
    return this.#call('build', []);
  }
  resume(): Promise<void> {
    return this.#call('resume', []);
  }
  rebuild(): Promise<void> {
    return this.#call('rebuild', []);
  }
  skipped(): ReturnType<LocalIndex['skipped']> {
    return this.#call('skipped', []);
  }

  #call<Method extends IndexMethod>(
    method: Method,
    args: Parameters<LocalIndex[Method]>,
  ): ReturnType<LocalIndex[Method]> {
    return this.#connection.call({ on: 'index', index: this.name, method, args }) as ReturnType<LocalIndex[Method]>;
  }
}

function untilAborted<Value>(answer: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) return answer;
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    const over = (): void => {
      signal.removeEventListener('abort', abort);
    };
    answer
      .then(resolve, reject)
      .finally(over)
      .catch(() => undefined);
  });
}

/** Whatever an app in JavaScript hands in. */
function isShared(worker: Endpoint | SharedEndpoint): worker is SharedEndpoint {
  const given: unknown = worker;
  return typeof given === 'object' && given !== null && 'port' in given;
}

function sharedState<Value>(values: Observable<Value>): Observable<Value> {
  return values.pipe(share({ connector: () => new ReplaySubject<Value>(1) }));
}

function unlessLost(error: unknown): void {
  if (!(error instanceof AfieldError) || error.code !== 'worker_lost') throw error;
}
