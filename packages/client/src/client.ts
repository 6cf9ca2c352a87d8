import { BehaviorSubject, defer, from, map, switchMap, type Observable } from 'rxjs';
import { defaultEnvironment } from './environment.js';
import { Requests } from './http/requests.js';
import { ServerDatabases } from './http/server-databases.js';
import { ServerDatabase } from './http/server-database.js';
import { Session } from './http/session.js';
import type {
  Client,
  ClientOptions,
  DryRun,
  EnqueueReceipt,
  EnqueueRequest,
  FailureFilter,
  OperationInput,
  PlanRequest,
  RetryOptions,
  RetryReceipt,
} from './model/client.js';
import type { Channel, Environment } from './model/environment.js';
import { ClientClosedError } from './model/errors.js';
import type { AnyAction } from './model/handler.js';
import type { AnyPlan } from './model/plan.js';
import type { PouchLike } from './model/pouch.js';
import type { BulkOperationStatus, ClientStatus, FailedOperation, NotDoneOperation, Target } from './model/states.js';
import { Control } from './queue/control.js';
import { copyOf, planCopyOf } from './queue/copy.js';
import { FailureControl } from './queue/failure-control.js';
import { Failures } from './queue/failures.js';
import { newHeader } from './queue/new-header.js';
import { checkPlanRequest, isPlanRequest } from './queue/plan-request.js';
import { Queue } from './queue/queue.js';
import { Reports } from './queue/reports.js';
import { checkRequest } from './queue/request.js';
import { Retries, type Retried } from './queue/retries.js';
import { sequenceOf, type Header } from './queue/stored.js';
import { actionsByName, checkOptions, plansByName } from './options.js';
import { Replication } from './replication.js';
import { RetryPolicy } from './retry/policy.js';
import { rampOfR2 } from './retry/ramp.js';
import { Scheduler } from './retry/scheduler.js';
import { beginWait } from './retry/wait.js';
import { Gate } from './run/gate.js';
import { Planning } from './run/planning.js';
import { Runner } from './run/runner.js';
import { bulkOperationStatus, clientStatus, noTransfer } from './status.js';
import { LocalDatabase } from './store/local-database.js';
import { Refusals } from './sync/refusals.js';
import { resultsErrand, unreported } from './sync/results.js';
import { Transfer, type Carrier, type TransferParts } from './sync/transfer.js';

const watchEveryMs = 60_000;

/** Opens the client of one user at one server. Throws `AfieldError` when an option is wrong; touches no network before `start()`. */
export function createClient(options: ClientOptions): Client {
  const client = new AfieldClient(options);
  if (options.autoStart !== false) void client.start();
  return client;
}

/** The one place that wires the parts together. */
class AfieldClient implements Client {
  readonly bulkOperations$: Observable<readonly BulkOperationStatus[]>;
  readonly status$: Observable<ClientStatus>;
  readonly failures$: Observable<readonly FailedOperation[]>;

  readonly #options: ClientOptions;
  readonly #environment: Environment;
  readonly #actions: ReadonlyMap<string, AnyAction>;
  readonly #plans: ReadonlyMap<string, AnyPlan>;
  readonly #closing = new AbortController();
  readonly #tab: string;
  readonly #lease: string;
  readonly #queueStore: LocalDatabase;
  readonly #documentStore: LocalDatabase;
  readonly #queue: Queue;
  readonly #failures: Failures;
  readonly #reports: Reports;
  readonly #control: Control;
  readonly #retries: Retries;
  readonly #failureControl: FailureControl;
  readonly #scheduler: Scheduler;
  readonly #policy: RetryPolicy;
  readonly #session: Session;
  readonly #requests: Requests;
  readonly #gate: Gate;
  readonly #planning: Planning;
  readonly #runner: Runner;
  readonly #replication: Replication | undefined;
  readonly #bulkOperations: BehaviorSubject<readonly BulkOperationStatus[]>;
  readonly #status: BehaviorSubject<ClientStatus>;
  readonly #failed = new BehaviorSubject<void>(undefined);
  #results: Carrier | undefined;
  #opening: Promise<string> | undefined;
  #leading: Promise<void> | undefined;
  #started: Promise<void> | undefined;
  #closed: Promise<void> | undefined;
  #unsubscribe: (() => void) | undefined;
  #channel: Channel | undefined;
  /** A person has paused, resumed or cancelled something in another tab. */
  #controlChannel: Channel | undefined;
  /** Calls that are under way: what they store must be answered for, also while closing. */
  readonly #answering = new Set<Promise<unknown>>();
  #leader = false;
  #dirty = false;
  #openFailures = 0;

  constructor(options: ClientOptions) {
    this.#options = checkOptions(options);
    const environment = { ...defaultEnvironment(), ...options.environment };
    const { clock, random } = environment;
    this.#environment = environment;
    this.#actions = actionsByName(options.actions);
    this.#plans = plansByName(options.plans ?? []);
    this.#tab = environment.newId();
    this.#queueStore = new LocalDatabase(() => new options.PouchDB(`${options.name}-afield-queue`));
    this.#documentStore = new LocalDatabase(() => new options.PouchDB(options.documents ?? options.name));
    this.#queue = new Queue(this.#queueStore, environment.breathe);
    const changed = (): void => {
      this.#changed();
    };
    this.#failures = new Failures(this.#queue, () => {
      this.#failed.next();
      changed();
    });
    this.#reports = new Reports(this.#queue);
    this.#control = new Control(this.#queue, clock);
    this.#retries = new Retries({
      queue: this.#queue,
      failures: this.#failures,
      reports: this.#reports,
      clock,
      newId: environment.newId,
      payloadOf: (id) => this.#payloadOf(id),
    });
    this.#failureControl = new FailureControl({
      failures: this.#failures,
      retries: this.#retries,
      actions: this.#actions,
      breathe: environment.breathe,
      sendAgain: (ids) => this.#replication?.sendAgain(ids) ?? Promise.resolve(),
    });
    this.#lease = environment.newId();
    this.#policy = new RetryPolicy(options.ramp ?? rampOfR2, options.jitter ?? 0.2, random);
    this.#scheduler = new Scheduler(clock, () => this.#policy.spread());
    const poke = (): void => {
      this.#poke();
    };
    this.#session = new Session(options.auth, clock, poke, environment.warn);
    this.#gate = new Gate({
      session: this.#session,
      connectivity: environment.connectivity,
      scheduler: this.#scheduler,
      clock,
      poke,
    });
    const requests = new Requests({
      fetch: environment.fetch,
      session: this.#session,
      clock,
      timeoutMs: (options.requestTimeoutS ?? 60) * 1000,
      closed: this.#closing.signal,
      server: options.server,
      maxRequestBytes: options.maxRequestBytes,
    });
    const local = this.#documentStore;
    const databases = new ServerDatabases(options.server, requests);
    const server = options.server === undefined ? undefined : databases.documents;
    const handlerFetch: typeof fetch = (input, init) => requests.handlerFetch(input, init);
    this.#planning = new Planning({
      queue: this.#queue,
      plans: this.#plans,
      actions: this.#actions,
      readers: { local, server },
      handlerFetch,
      clock,
      closed: this.#closing.signal,
      breathe: environment.breathe,
      newPayload: () => this.#payloadOf(environment.newId()),
    });
    this.#runner = new Runner({
      queue: this.#queue,
      failures: this.#failures,
      retries: this.#retries,
      actions: this.#actions,
      planning: this.#planning,
      stores: { local, server },
      server: databases,
      scheduler: this.#scheduler,
      policy: this.#policy,
      clock,
      gate: this.#gate,
      batchSize: options.batchSize ?? 100,
      otherRunnerMs: (options.requestTimeoutS ?? 60) * 2000,
      appVersion: options.appVersion,
      lease: this.#lease,
      handlerFetch,
      breathe: environment.breathe,
      closed: this.#closing.signal,
      changed,
      wrote: (target) => {
        this.#wrote(target);
      },
      warn: environment.warn,
    });
    this.#replication =
      options.server === undefined || options.replication === false
        ? undefined
        : new Replication({
            ...this.#transferParts(),
            local,
            url: options.server,
            requests,
            PouchDB: options.PouchDB,
            refusals: new Refusals({
              queue: this.#queue,
              failures: this.#failures,
              reports: this.#reports,
              clock,
              changed: () => {
                changed();
                this.#results?.poke();
              },
            }),
            pullEveryMs: (options.pullEveryS ?? 60) * 1000,
          });
    this.#requests = requests;
    this.#bulkOperations = new BehaviorSubject<readonly BulkOperationStatus[]>([]);
    this.#status = new BehaviorSubject<ClientStatus>(this.#statusNow([]));
    this.bulkOperations$ = this.#bulkOperations.asObservable();
    this.status$ = this.#status.asObservable();
    this.failures$ = defer(() => from(this.#open().then(() => this.#failures.load()))).pipe(
      switchMap(() => this.#failed),
      map(() => this.#failures.list()),
    );
  }

  get documents(): PouchLike {
    return this.#documentStore.pouch;
  }

  get storeId(): Promise<string> {
    return this.#open();
  }

  enqueue(request: EnqueueRequest | PlanRequest): Promise<EnqueueReceipt> {
    return this.#answer(() => (isPlanRequest(request) ? this.#enqueuePlan(request) : this.#enqueue(request)));
  }

  /** Runs a call that stores something: while closing it is waited for. */
  #answer<Value>(call: () => Promise<Value>): Promise<Value> {
    if (this.#closing.signal.aborted) return Promise.reject(new ClientClosedError());
    const answering = call();
    const forget = (): void => {
      this.#answering.delete(answering);
    };
    this.#answering.add(answering);
    answering.then(forget, forget);
    return answering;
  }

  async #enqueue(given: EnqueueRequest): Promise<EnqueueReceipt> {
    // The caller may empty its list as soon as it has called: what is queued is what was given.
    const request = copyOf(given);
    const { parts, operations } = await checkRequest(
      request,
      this.#actions,
      this.#options.server !== undefined,
      this.#environment.breathe,
    );
    await this.#open();
    const { newId, clock } = this.#environment;
    const id = newId();
    const header = await this.#queue.append(
      newHeader(
        {
          id,
          key: request.key ?? newId(),
          target: request.target,
          ...(request.lane === undefined ? {} : { lane: request.lane }),
          parts: parts.map((part) => ({ ...part })),
          payload: this.#payloadOf(id),
          queuedAt: clock.wall(),
        },
        operations,
      ),
      operations,
    );
    this.#announce();
    return { bulkOperationId: id, sequence: sequenceOf(header._id), key: header.key, total: header.total };
  }

  async #enqueuePlan(given: PlanRequest): Promise<EnqueueReceipt> {
    this.#assertOpen();
    const asked = planCopyOf(given);
    const { plan, request, subjects } = await checkPlanRequest(asked, this.#plans, this.#options.server !== undefined);
    await this.#open();
    const { newId, clock } = this.#environment;
    const id = newId();
    const made = newHeader(
      {
        id,
        key: asked.key ?? newId(),
        target: asked.target,
        ...(asked.lane === undefined ? {} : { lane: asked.lane }),
        parts: [],
        payload: this.#payloadOf(id),
        queuedAt: clock.wall(),
      },
      [],
    );
    const named = { name: plan.name, request: `q:${this.#tab}:${id}`, planned: false };
    const header = await this.#queue.appendPlan({ ...made, plan: named }, request, subjects);
    this.#announce();
    return { bulkOperationId: id, sequence: sequenceOf(header._id), key: header.key, total: 0 };
  }

  async dryRun(given: PlanRequest): Promise<DryRun> {
    this.#assertOpen();
    const asked = planCopyOf(given);
    const { plan, request } = await checkPlanRequest(asked, this.#plans, this.#options.server !== undefined);
    return this.#planning.dryRun(plan, request, asked.target);
  }

  pause(bulkOperationId: string): Promise<void> {
    return this.#change(() => this.#control.pause(bulkOperationId));
  }

  resume(bulkOperationId: string): Promise<void> {
    return this.#change(() => this.#control.resume(bulkOperationId));
  }

  cancel(bulkOperationId: string): Promise<void> {
    return this.#change(() => this.#control.cancel(bulkOperationId));
  }

  #change(change: () => Promise<Header>): Promise<void> {
    return this.#answer(async () => {
      await this.#open();
      this.#noticed([await change()]);
      this.#announce();
      this.#controlChannel?.announce();
    });
  }

  /** Only the tab that leads runs anything. */
  #noticed(headers: readonly Header[]): void {
    if (this.#leader) this.#runner.noticed(headers);
  }

  retryRest(bulkOperationId: string): Promise<EnqueueReceipt> {
    return this.#answer(async () => {
      await this.#open();
      const receipt = await this.#retries.continueRest(bulkOperationId);
      this.#announce();
      return receipt;
    });
  }

  listNotDone(bulkOperationId: string): Promise<readonly NotDoneOperation[]> {
    return this.#answer(async () => {
      await this.#open();
      return this.#retries.notDone(bulkOperationId);
    });
  }

  listFailures(filter: FailureFilter & { resolved?: boolean } = {}): Promise<readonly FailedOperation[]> {
    return this.#withFailures(() => this.#failureControl.list(filter));
  }

  async retryFailed(filter: FailureFilter = {}, options: RetryOptions = {}): Promise<RetryReceipt> {
    return this.#retried(await this.#withFailures(() => this.#failureControl.retry(filter, options)));
  }

  async editAndRetry(failureId: string, operation: OperationInput, options: RetryOptions = {}): Promise<RetryReceipt> {
    return this.#retried(await this.#withFailures(() => this.#failureControl.edit(failureId, operation, options)));
  }

  async discard(filter: FailureFilter): Promise<number> {
    const count = await this.#withFailures(() => this.#failureControl.discard(filter));
    this.#announce();
    return count;
  }

  #withFailures<Value>(act: () => Value | Promise<Value>): Promise<Value> {
    return this.#answer(async () => {
      await this.#open();
      // Only the tab that leads adds failures: any other may have read them before there were more.
      if (!this.#leader) await this.#failures.reload();
      await this.#failures.load();
      return act();
    });
  }

  #retried(receipt: RetryReceipt): RetryReceipt {
    this.#announce();
    if (receipt.sentAgain > 0) this.#wakeUp();
    return receipt;
  }

  start(): Promise<void> {
    this.#assertOpen();
    this.#started ??= this.#start();
    return this.#started;
  }

  syncNow(): void {
    this.#assertOpen();
    this.#wakeUp();
    if (this.#leader) this.#replication?.pullNow();
  }

  signedIn(): void {
    this.#assertOpen();
    this.#session.renew();
    this.#wakeUp();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#closing.abort();
    this.#scheduler.close();
    this.#unsubscribe?.();
    await this.#opening?.catch(() => undefined);
    await Promise.allSettled(this.#answering);
    this.#channel?.close();
    this.#controlChannel?.close();
    await this.#leading?.catch(() => undefined);
    await Promise.all([this.#runner.idle(), this.#results?.idle(), this.#replication?.close()]);
    // A handle that is closed already is what is wanted: handles of one database share their connection.
    await Promise.allSettled([this.#queueStore.close(), this.#documentStore.close()]);
    for (const subject of [this.#bulkOperations, this.#status, this.#failed]) subject.complete();
  }

  /** Something new is durable: it is shown, run, and said to the other tabs. */
  #announce(): void {
    this.#changed();
    this.#poke();
    this.#channel?.announce();
  }

  /** Opens the store; a failed opening is tried again by the next who needs it. */
  #open(): Promise<string> {
    if (this.#closing.signal.aborted) return Promise.reject(new ClientClosedError());
    this.#opening ??= this.#openOnce().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #openOnce(): Promise<string> {
    this.#controlChannel ??= this.#environment.channel(`afield:${this.#options.name}:control`, () => {
      void this.#lookForChanged();
    });
    this.#channel ??= this.#environment.channel(`afield:${this.#options.name}`, () => {
      void this.#lookForNew();
    });
    return this.#readStore();
  }

  async #readStore(): Promise<string> {
    const { newId, clock } = this.#environment;
    const { storeId, reports } = await this.#queue.open(newId(), clock.wall());
    this.#reports.loaded(reports);
    this.#changed();
    return storeId;
  }

  async #start(): Promise<void> {
    const { connectivity, locks } = this.#environment;
    this.#unsubscribe = connectivity.subscribe(() => {
      this.#changed();
      if (connectivity.online()) this.#wakeUp();
    });
    const runUntilClosed = async (): Promise<void> => {
      await this.#lead();
      await aborted(this.#closing.signal);
      this.#leader = false;
    };
    this.#leading = locks
      .request(`afield:${this.#options.name}`, this.#closing.signal, runUntilClosed)
      .catch(async () => {
        if (this.#closing.signal.aborted) return;
        // No write rests on a single leader: without locks this tab runs all the same.
        this.#environment.warn('The browser gives no lock. This tab runs the queue without one.');
        await runUntilClosed();
      });
    await this.#open().catch(() => undefined); // tried again by the leader, on the ramp
  }

  /** This tab runs the queue from now on: what others stored meanwhile is read, and everything goes on. */
  async #lead(): Promise<void> {
    while (!this.#closing.signal.aborted) {
      try {
        await this.#open();
        await this.#goOn(await this.#readStore());
        return;
      } catch {
        await this.#waitForStore();
      }
    }
  }

  async #goOn(storeId: string): Promise<void> {
    this.#leader = true;
    const stoppedLease = this.#keepPresence();
    this.#changed();
    if (this.#options.results !== undefined) {
      this.#results ??= new Transfer(
        resultsErrand({
          queue: this.#queue,
          failures: this.#failures,
          reports: this.#reports,
          server: new ServerDatabase(this.#options.results, this.#requests, 'retry'),
          storeId,
        }),
        this.#transferParts(),
      );
    }
    await this.#failures.reload();
    await this.#runner.resume(stoppedLease);
    await this.#retryCrashed();
    await this.#replication?.resume();
    await this.#results?.resume();
    this.#watch();
  }

  /** Notes whether a person looks at this page. Answers with the run that ended while someone looked at it (R16). */
  #keepPresence(): string | undefined {
    const { presence } = this.#environment;
    const name = `afield:${this.#options.name}:run`;
    const before = presence.noted(name)?.split(' ');
    const note = (): void => {
      presence.note(
        name,
        `${this.#lease} ${presence.visible() && !this.#closing.signal.aborted ? 'visible' : 'hidden'}`,
      );
    };
    note();
    const unsubscribe = presence.subscribe(note);
    this.#closing.signal.addEventListener('abort', () => {
      unsubscribe();
      note();
    });
    return before?.[1] === 'visible' ? before[0] : undefined;
  }

  /** What ended the process each time gets another chance with another version of the app (R16). */
  async #retryCrashed(): Promise<void> {
    const { appVersion } = this.#options;
    if (appVersion === undefined || !this.#queue.headers().some((header) => this.#reports.openFailures(header) > 0))
      return;
    await this.#failures.load();
    const crashed = (): Retried[] =>
      this.#failures
        .matching({ code: 'crashed' })
        .flatMap(({ stored }) => (stored.app === appVersion ? [] : [{ failure: stored }]));
    if (crashed().length === 0) return;
    await this.#retries.retry(crashed, undefined);
    this.#announce();
  }

  /**
   * Every minute all that waits is looked at again, and what other tabs have stored: a message between tabs can get lost,
   * and nothing may wait for ever by mistake (R15).
   */
  #watch(): void {
    this.#scheduler.wait('watchdog', beginWait(this.#environment.clock, watchEveryMs), () => {
      this.#watch();
      void this.#lookForChanged();
    });
  }

  #waitForStore(): Promise<void> {
    this.#openFailures++;
    this.#environment.warn('The local store could not be opened. It is tried again.');
    const { delayMs } = this.#policy.delay(this.#openFailures + 1, 0);
    return new Promise((resolve) => {
      void aborted(this.#closing.signal).then(resolve); // also when closing has begun before the opening failed
      this.#scheduler.wait('store', beginWait(this.#environment.clock, delayMs), resolve);
    });
  }

  /** Another tab has queued something. */
  async #lookForNew(): Promise<void> {
    try {
      if (await this.#queue.loadNew()) this.#poke();
    } catch {
      this.#environment.warn('What another tab has queued could not be read. It runs after the next start.');
    }
  }

  /** Another tab has changed something that was queued before, or may have without our hearing of it. */
  async #lookForChanged(): Promise<void> {
    try {
      await this.#queue.loadNew();
      this.#noticed(await this.#queue.refreshOpen());
      this.#poke();
    } catch {
      this.#environment.warn('What another tab has changed could not be read. It is looked at again in a minute.');
    }
  }

  #wakeUp(): void {
    this.#session.reconsider();
    this.#scheduler.wake();
    this.#poke();
  }

  #poke(): void {
    this.#changed();
    if (!this.#leader || this.#closing.signal.aborted) return;
    this.#runner.poke();
    this.#replication?.poke();
    this.#results?.poke();
  }

  #wrote(target: Target): void {
    if (target === 'local') this.#replication?.pushNow();
    this.#results?.poke();
  }

  /** How the ids of a bulk operation's payloads begin: under this tab's name, so that whose they are is known. */
  #payloadOf(bulkOperationId: string): string {
    return `p:${this.#tab}:${bulkOperationId}:`;
  }

  #transferParts(): TransferParts {
    return {
      queue: this.#queue,
      scheduler: this.#scheduler,
      policy: this.#policy,
      clock: this.#environment.clock,
      gate: this.#gate,
      closed: this.#closing.signal,
      changed: () => {
        this.#changed();
      },
      warn: this.#environment.warn,
    };
  }

  /** Shows what is true now, once for all that changed in this turn. */
  #changed(): void {
    if (this.#dirty) return;
    this.#dirty = true;
    queueMicrotask(() => {
      this.#dirty = false;
      if (this.#closing.signal.aborted) return;
      const shown = this.#queue
        .headers()
        .map((header) =>
          bulkOperationStatus(header, this.#reports, this.#scheduler.dueAt(`bulk:${String(sequenceOf(header._id))}`)),
        );
      this.#bulkOperations.next(shown);
      this.#status.next(this.#statusNow(shown));
    });
  }

  #statusNow(bulkOperations: readonly BulkOperationStatus[]): ClientStatus {
    return clientStatus({
      bulkOperations,
      leader: this.#leader,
      online: this.#environment.connectivity.online(),
      unreported: this.#options.results === undefined ? 0 : unreported(this.#queue, this.#reports).length,
      ...(this.#replication?.status() ?? { push: noTransfer, pull: noTransfer }),
      results: this.#results?.status() ?? noTransfer,
      signInRequired: this.#session.isRefused,
    });
  }

  #assertOpen(): void {
    if (this.#closing.signal.aborted) throw new ClientClosedError();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
}
