import type { Observable } from 'rxjs';
import type {
  Client,
  ClientOptions,
  DryRun,
  EnqueueReceipt,
  EnqueueRequest,
  FailureFilter,
  ForgetReceipt,
  ImportReceipt,
  OperationInput,
  PlanRequest,
  RetryOptions,
  RetryReceipt,
  SeenBySync,
} from './model/client.js';
import { AfieldError, ClientClosedError, OtherStoreError, StoreLeftError } from './model/errors.js';
import { addressOf } from './model/store-name.js';
import type { DocumentEvent } from './model/event.js';
import { wrongInDocIds } from './model/doc-ids.js';
import { notManaged } from './external-replication.js';
import { checkListing } from './outbox/listing.js';
import type { LocalIndex } from './model/lookup.js';
import type { PouchLike } from './model/pouch.js';
import type { OpenConflict } from './model/conflict.js';
import type { QuarantineDecision, QuarantineEntry } from './model/quarantine.js';
import type { BulkOperationStatus, ClientStatus, Drained, FailedOperation, NotDoneOperation } from './model/states.js';
import { Draining } from './drained.js';
import { quietMs } from './run/gate.js';
import type { SignInNews } from './http/session.js';
import { Leadership } from './leadership.js';
import { Logout } from './logout.js';
import { checkLogoutOptions, checkOptions } from './options.js';
import { partsOf, type Parts } from './parts.js';
import { Intake } from './queue/intake.js';
import { operationCopyOf } from './queue/copy.js';
import { checkFilter, checkListFilter, checkQuarantineFilter, checkRetryOptions } from './queue/failure-filter.js';
import type { Header } from './queue/stored.js';
import { beginWait } from './retry/wait.js';
import { checkSeen } from './sync/seen.js';
import { notExternal } from './replication.js';
import { SharedStore } from './shared-store.js';
import { Shown } from './shown.js';
import type { StatusParts } from './status.js';
import { unreported } from './sync/results.js';
import { Work } from './work.js';

/** Other tabs are told so long after something was refused, of all that was refused by then. */
const refusalsMs = 1000;

/** Opens the client of one user at one server. Throws `AfieldError` when an option is wrong; touches no network before `start()`. */
export function createClient(options: ClientOptions): Client {
  const client = new AfieldClient(options);
  if (options.autoStart !== false) client.start().catch(() => undefined); // a store of someone else says so in every call
  return client;
}

/** The face: hands each call to the part that answers it, and says to the others that something has happened. */
class AfieldClient implements Client {
  readonly bulkOperations$: Observable<readonly BulkOperationStatus[]>;
  readonly status$: Observable<ClientStatus>;
  readonly failures$: Observable<readonly FailedOperation[]>;
  readonly events$: Observable<DocumentEvent>;
  readonly quarantine$: Observable<readonly QuarantineEntry[]>;
  readonly conflicts$: Observable<readonly OpenConflict[]>;

  readonly #closing = new AbortController();
  readonly #parts: Parts;
  readonly #work: Work;
  readonly #store: SharedStore;
  readonly #leadership: Leadership;
  readonly #intake: Intake;
  readonly #logout: Logout;
  readonly #shown: Shown;
  readonly #draining: Draining;
  #started: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #unsubscribe: (() => void) | undefined;
  /** Calls that are under way: what they store must be answered for, also while closing. */
  readonly #answering = new Set<Promise<unknown>>();
  /** Those of them that may wait for ever. */
  readonly #waiting = new WeakSet<Promise<unknown>>();

  constructor(options: ClientOptions) {
    const closed = this.#closing.signal;
    const changed = (): void => {
      this.#shown.changed();
    };
    const poke = (): void => {
      this.#poke();
    };
    const announceNew = (): void => {
      this.#store.announceNew();
    };
    const parts = partsOf(checkOptions(options), {
      closed,
      changed,
      poke,
      failuresChanged: () => {
        this.#shown.failuresChanged();
        this.#work.failuresChanged();
      },
      quarantineChanged: () => {
        this.#shown.quarantineChanged();
      },
      conflictsChanged: () => {
        this.#shown.conflictsChanged();
      },
      conflictsFound: () => {
        this.#store.announceChanged();
      },
      quarantineAdded: () => {
        this.#store.announceChanged();
      },
      announce: announceNew,
      wrote: (target) => {
        this.#work.wrote(target);
      },
      refusalsChanged: () => {
        changed();
        this.#work.reported();
        this.#announceRefusals();
      },
      regained: (places) => this.#work.regained(places),
      signedInAnew: (news) => {
        void this.#sendRefusedAgain(news);
      },
      pushed: () => {
        this.#work.pushed();
      },
      pushRests: () => {
        this.#work.pushRests();
      },
      setBack: () => {
        this.#work.setBack();
      },
      forgot: () => {
        changed();
        this.#store.announceChanged();
      },
    });
    this.#parts = parts;
    this.#work = new Work(parts);
    const noticed = (headers: readonly Header[]): void => {
      this.#work.noticed(headers);
    };
    const owner = {
      user: options.user,
      server: options.server === undefined ? undefined : addressOf(options.server),
    };
    const decided = (): void => {
      this.#work.decided();
    };
    this.#logout = new Logout(parts, {
      work: this.#work,
      open: () => this.#store.open(),
      settled: () => Promise.allSettled([...this.#answering].filter((call) => !this.#waiting.has(call))),
      close: () => this.close(),
    });
    const finishWipe = (): Promise<void> => this.#logout.finish();
    const left = (): void => {
      void this.#logout.leave();
    };
    const opening = (): void => {
      this.#logout.listen();
    };
    const heard = { changed, poke, noticed, decided, opening, finishWipe, left };
    this.#store = new SharedStore({ ...parts, name: options.name, owner, ...heard });
    const announce = (): void => {
      this.#announce();
    };
    const begun = (): void => {
      void this.#begun();
    };
    this.#leadership = new Leadership(parts, { store: this.#store, work: this.#work, changed, announce, begun });
    const open = (): Promise<unknown> => this.#store.open();
    this.#intake = new Intake({ ...parts, ...parts.environment, hasServer: options.server !== undefined, open });
    this.#shown = new Shown({ ...parts, ...parts.environment, open, now: () => this.#now() });
    this.#draining = new Draining(parts, {
      work: this.#work,
      open: () => this.#store.open(),
      changed$: this.#shown.status$,
    });
    this.#shown.status$.subscribe(() => {
      this.#work.shown();
    });
    this.bulkOperations$ = this.#shown.bulkOperations$;
    this.status$ = this.#shown.status$;
    this.failures$ = this.#shown.failures$;
    this.events$ = parts.pageEvents.events$;
    this.quarantine$ = this.#shown.quarantine$;
    this.conflicts$ = this.#shown.conflicts$;
  }

  get documents(): PouchLike {
    this.#assertOurs();
    return this.#parts.documentStore.pouch;
  }

  get storeId(): Promise<string> {
    return this.#store.open();
  }

  index(name: string): LocalIndex {
    this.#assertOurs();
    return this.#parts.indexes.get(name);
  }

  enqueue(request: EnqueueRequest | PlanRequest): Promise<EnqueueReceipt> {
    return this.#answer(async () => {
      const receipt = await this.#intake.append(request);
      if (!receipt.duplicate) this.#announce();
      return receipt;
    });
  }

  async dryRun(given: PlanRequest): Promise<DryRun> {
    this.#assertOpen();
    await this.#store.open();
    const { asked, plan, request } = await this.#intake.checkedPlan(given);
    return this.#parts.planning.dryRun(plan, request, asked.target);
  }

  pause(bulkOperationId: string): Promise<void> {
    return this.#change(() => this.#parts.control.pause(bulkOperationId));
  }

  resume(bulkOperationId: string): Promise<void> {
    return this.#change(() => this.#parts.control.resume(bulkOperationId));
  }

  cancel(bulkOperationId: string): Promise<void> {
    return this.#change(() => this.#parts.control.cancel(bulkOperationId));
  }

  retryRest(bulkOperationId: string): Promise<EnqueueReceipt> {
    return this.#answer(async () => {
      await this.#store.open();
      const receipt = await this.#parts.retries.continueRest(bulkOperationId);
      this.#decided();
      return receipt;
    });
  }

  listNotDone(bulkOperationId: string): Promise<readonly NotDoneOperation[]> {
    return this.#answer(async () => {
      await this.#store.open();
      return this.#parts.retries.notDone(bulkOperationId);
    });
  }

  async listFailures(filter: FailureFilter & { resolved?: boolean } = {}): Promise<readonly FailedOperation[]> {
    const asked = checkListFilter(filter);
    return this.#withFailures(() => this.#parts.failureControl.list(asked));
  }

  async retryFailed(filter: FailureFilter = {}, options: RetryOptions = {}): Promise<RetryReceipt> {
    // The caller may change what it has given as soon as it has called.
    const [asked, how] = [checkFilter(filter), checkRetryOptions(options)];
    return this.#retried(await this.#withFailures(() => this.#parts.failureControl.retry(asked, how)));
  }

  async editAndRetry(failureId: string, operation: OperationInput, options: RetryOptions = {}): Promise<RetryReceipt> {
    const { failureControl } = this.#parts;
    const [edited, how] = [operationCopyOf(operation), checkRetryOptions(options)];
    return this.#retried(await this.#withFailures(() => failureControl.edit(failureId, edited, how)));
  }

  async discard(filter: FailureFilter): Promise<number> {
    const asked = checkFilter(filter);
    const count = await this.#withFailures(() => this.#parts.failureControl.discard(asked));
    this.#decided();
    return count;
  }

  async revert(filter: FailureFilter): Promise<number> {
    const asked = checkFilter(filter);
    try {
      return await this.#withFailures(() => this.#parts.failureControl.revert(asked));
    } finally {
      // Some of it may be done, whatever it ended with.
      if (!this.#closing.signal.aborted) this.#decided();
    }
  }

  async forgetDocuments(ids: readonly string[]): Promise<ForgetReceipt> {
    const wrong = wrongInDocIds(ids);
    if (wrong !== undefined) throw new AfieldError('invalid_doc_ids', `The list of \`forgetDocuments\` ${wrong}.`);
    // The caller may change what it has given as soon as it has called.
    const asked = [...ids];
    return this.#answer(async () => {
      await this.#store.open();
      if (!this.#work.isLeader) await this.#parts.failures.reload();
      const { replication, indexes } = this.#parts;
      if (replication === undefined) throw notManaged();
      const receipt = await replication.forget(asked);
      indexes.poke();
      return receipt;
    });
  }

  readonly sync: Client['sync'] = { report: (seen) => this.#report(seen) };

  async #report(given: SeenBySync): Promise<void> {
    const seen = checkSeen(given);
    await this.#answer(async () => {
      await this.#store.open();
      const { replication, conflictWatch } = this.#parts;
      if (replication === undefined) throw notExternal();
      await replication.report(seen);
      await conflictWatch.look(seen.conflicting);
    });
    this.#decided();
  }

  async listEvents(options: Parameters<Client['listEvents']>[0] = {}): Promise<readonly DocumentEvent[]> {
    const asked = checkListing(options);
    return this.#answer(async () => {
      const storeId = await this.#store.open();
      if (!this.#work.isLeader) this.#parts.reports.forget((await this.#parts.queue.refreshAll()).removed);
      return this.#parts.events.list(storeId, asked.after, asked.limit);
    });
  }

  async listQuarantined(filter: { readonly resolved?: boolean } = {}): Promise<readonly QuarantineEntry[]> {
    const resolved = checkQuarantineFilter(filter);
    return this.#answer(async () => {
      await this.#store.open();
      const { quarantine } = this.#parts;
      await quarantine.load();
      return quarantine.list(resolved);
    });
  }

  resolveQuarantined(quarantineId: string, decision: QuarantineDecision): Promise<EnqueueReceipt | undefined> {
    return this.#answer(async () => {
      await this.#store.open();
      const receipt = await this.#parts.quarantineControl.resolve(quarantineId, decision);
      // Also when nothing was queued: a failure may have ended with it, and its report is due.
      this.#decided();
      return receipt;
    });
  }

  drained(options: { readonly signal?: AbortSignal } = {}): Promise<Drained> {
    const waiting = this.#answer(() => this.#draining.wait(options.signal));
    this.#waiting.add(waiting);
    return waiting;
  }

  exportPending(): Promise<Blob> {
    return this.#answer(async () => {
      await this.#store.open();
      return this.#parts.pendingFile.export();
    });
  }

  importPending(file: Blob | string): Promise<ImportReceipt> {
    return this.#answer(async () => {
      await this.#store.open();
      try {
        return await this.#parts.pendingFile.import(file);
      } finally {
        // Some of it may be stored, whatever it ended with.
        await this.#store.lookForDecisions();
        if (!this.#closing.signal.aborted) this.#decided();
      }
    });
  }

  start(): Promise<void> {
    this.#assertOpen();
    this.#started ??= this.#start();
    return this.#started;
  }

  syncNow(): void {
    this.#assertOpen();
    this.#wakeUp();
    this.#work.pullNow();
  }

  signedIn(): void {
    this.#assertOpen();
    this.#parts.session.renew();
    this.#wakeUp();
  }

  async logout(options: { readonly force?: boolean } = {}): Promise<void> {
    this.#assertOpen();
    await this.#logout.run(checkLogoutOptions(options).force === true);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #start(): Promise<void> {
    const { connectivity } = this.#parts.environment;
    this.#unsubscribe = connectivity.subscribe(() => {
      this.#shown.changed();
      if (connectivity.online()) this.#wakeUp();
    });
    this.#leadership.start();
    await this.#store.open().catch((error: unknown) => {
      if (error instanceof OtherStoreError) throw error;
      // All else is tried again by the leader, on the ramp.
    });
  }

  async #close(): Promise<void> {
    const { scheduler, queueStore, documentStore } = this.#parts;
    this.#closing.abort();
    scheduler.close();
    this.#unsubscribe?.();
    await this.#store.settled();
    await Promise.allSettled(this.#answering);
    this.#store.close();
    this.#logout.close();
    await this.#leadership.ended();
    await this.#work.close();
    // A handle that is closed already is what is wanted: handles of one database share their connection.
    await Promise.allSettled([queueStore.close(), documentStore.close()]);
    this.#shown.complete();
  }

  /** Runs a call that stores something: while closing it is waited for. */
  #answer<Value>(call: () => Promise<Value>): Promise<Value> {
    if (this.#closing.signal.aborted) return Promise.reject(new ClientClosedError());
    if (this.#logout.isLeaving) return Promise.reject(new StoreLeftError());
    const answering = call();
    const forget = (): void => {
      this.#answering.delete(answering);
    };
    this.#answering.add(answering);
    answering.then(forget, forget);
    return answering;
  }

  #change(change: () => Promise<Header>): Promise<void> {
    return this.#answer(async () => {
      await this.#store.open();
      this.#work.noticed([await change()]);
      this.#decided();
    });
  }

  #withFailures<Value>(act: () => Value | Promise<Value>): Promise<Value> {
    const { failures } = this.#parts;
    return this.#answer(async () => {
      await this.#store.open();
      // Only the tab that leads adds failures: any other may have read them before there were more.
      if (!this.#work.isLeader) await failures.reload();
      await failures.load();
      return act();
    });
  }

  #retried(receipt: RetryReceipt): RetryReceipt {
    this.#decided();
    if (receipt.sentAgain > 0) this.#wakeUp();
    return receipt;
  }

  /** Nobody knows what has happened while the app was closed. Where nothing has failed, no failures are read for that. */
  async #begun(): Promise<void> {
    // Those that cannot be read now are said of there, and are sent with the next start.
    await this.#parts.edits.list().catch(() => undefined);
    if (this.#closing.signal.aborted || this.#work.counts().failed === 0) return;
    await this.#sendRefusedAgain('renewed');
  }

  /** Other rights, perhaps: what the server has forbidden may be taken now. In any tab, for all of them. */
  async #sendRefusedAgain(news: SignInNews): Promise<void> {
    try {
      const sent = await this.#withFailures(() => this.#parts.resending.forbidden(news));
      if (sent > 0 && !this.#closing.signal.aborted) this.#decided();
    } catch (error) {
      if (this.#closing.signal.aborted || error instanceof ClientClosedError) return;
      this.#parts.environment.warn('What the server has refused could not be sent again. A person can retry it.');
    }
  }

  /** A person has decided something, and it is durable: other tabs read it too. */
  #decided(): void {
    this.#work.decided();
    this.#announce();
    this.#store.announceChanged();
  }

  /** The other tabs read all anew: not for each of many that the server refuses one after another. */
  #announceRefusals(): void {
    const { scheduler, environment } = this.#parts;
    if (this.#closing.signal.aborted || scheduler.isWaiting('refusals')) return;
    scheduler.wait('refusals', beginWait(environment.clock, refusalsMs), () => {
      this.#store.announceChanged();
    });
  }

  /** Something new is durable: it is shown, run, and said to the other tabs. */
  #announce(): void {
    this.#poke();
    this.#store.announceNew();
  }

  /** Something happened that makes waiting pointless (R14). */
  #wakeUp(): void {
    this.#parts.session.reconsider();
    this.#parts.scheduler.wake();
    this.#poke();
  }

  #poke(): void {
    this.#shown.changed();
    this.#work.poke();
  }

  #now(): Omit<StatusParts, 'bulkOperations'> {
    const { options, environment, queue, reports, quarantine, edits, openConflicts, session } = this.#parts;
    return {
      leader: this.#work.isLeader,
      online: environment.connectivity.online(),
      unreported: options.results === undefined ? 0 : unreported(queue, reports).length,
      ...this.#work.status(),
      failedEdits: edits.open,
      quarantined: quarantine.open,
      conflicts: openConflicts.count,
      signInRequired: session.isRefused || (session.askingForMs ?? 0) >= quietMs,
      signInCause: session.refusedAs,
    };
  }

  /** Nothing is shown of someone else's work (S7). */
  #assertOurs(): void {
    if (this.#store.refusal !== undefined) throw this.#store.refusal;
  }

  #assertOpen(): void {
    if (this.#closing.signal.aborted) throw new ClientClosedError();
  }
}
