import type { BulkOperationStatus, ClientStatus, FailedOperation, QuarantineEntry } from '@afield/client';
import type { Tab } from './tab.js';

/** An attempt began: when, in milliseconds on the harness's watch. */
type AttemptTime = number;

const ends: readonly string[] = ['done', 'done-with-failures', 'failed'];

/** What a person could have seen of a run: states in their order, attempts, outcomes. */
export class Observation {
  /** States as they were shown, without repetitions. */
  readonly states: string[] = [];
  /** Starts of the attempts of bulk operations. */
  readonly attempts: AttemptTime[] = [];
  /** Starts of the attempts to bring local documents to the server. */
  readonly pushAttempts: AttemptTime[] = [];
  /** Keys that were ever shown as done. */
  readonly shownDone = new Set<string>();
  /** Moments at which a next attempt was newly shown whose time was over already. */
  readonly pastAttempts: string[] = [];
  lastErrorClass: string | undefined;
  bulkOperations: readonly BulkOperationStatus[] = [];
  status: ClientStatus | undefined;
  failures: readonly FailedOperation[] = [];
  quarantine: readonly QuarantineEntry[] = [];
  endedAt: number | undefined;

  #pulls = 0;
  #sentBeforePull = 0;
  readonly #tabs: Tab[] = [];
  readonly #leaders = new Set<Tab>();
  readonly #counted = new Map<string, number>();
  readonly #stateOf = new Map<string, string>();
  readonly #cursors = new Map<string, number>();
  readonly #nextAttempts = new Map<string, number | undefined>();

  constructor(
    private readonly now: { elapsed(): number; wall(): number },
    private readonly keysOf: (bulkOperationKey: string) => readonly string[],
    private readonly countsPush: boolean,
    private readonly batchDone: (tab: Tab) => void,
    /** How often documents of the case were sent to the server. */
    private readonly sent: () => number,
  ) {}

  /** Sees what this tab shows; of several tabs the first that lives counts. */
  watch(tab: Tab): void {
    this.#tabs.push(tab);
    this.#nextAttempts.clear();
    const ifFirst =
      <T>(see: (value: T) => void) =>
      (value: T): void => {
        if (this.#tabs.find((one) => one.alive) === tab) see(value);
      };
    tab.client.bulkOperations$.subscribe(ifFirst((all) => this.#seeBulkOperations(all)));
    tab.client.status$.subscribe(ifFirst((status) => this.#seeStatus(status)));
    tab.client.failures$.subscribe(ifFirst((failures) => (this.failures = failures)));
    tab.client.quarantine$.subscribe(ifFirst((entries) => (this.quarantine = entries)));
    tab.client.bulkOperations$.subscribe((all) => this.#seeCursors(tab, all));
    tab.client.status$.subscribe(({ leader }) => void (leader ? this.#leaders.add(tab) : this.#leaders.delete(tab)));
  }

  /** The tab that does the work: the one that leads; the first that lives where none is known to lead. */
  get leader(): Tab | undefined {
    return [...this.#leaders].reverse().find((tab) => tab.alive) ?? this.#tabs.find((tab) => tab.alive);
  }

  /** The tab's client was closed on purpose: what it shows no longer counts. */
  forget(tab: Tab): void {
    this.#tabs.splice(this.#tabs.indexOf(tab), 1);
  }

  /** The state of everything: how it ended, else the client's own state. */
  get state(): string {
    const states = this.bulkOperations.map((one) => one.state);
    if (states.length === 0) return this.status?.state ?? 'idle';
    if (!states.every((state) => ['done', 'done-with-failures', 'failed', 'cancelled'].includes(state))) {
      const shown = this.status?.state ?? 'idle';
      return shown === 'idle'
        ? (states.find((state) => !['done', 'done-with-failures'].includes(state)) ?? 'idle')
        : shown;
    }
    return (
      states.find((state) => state === 'failed') ?? states.find((state) => state === 'done-with-failures') ?? 'done'
    );
  }

  /** The state of everything; where a case is about the push, also what that waits for. */
  get statesNow(): readonly string[] {
    const push = this.status?.push.state;
    const waits = this.countsPush && push?.startsWith('waiting') === true;
    return waits && push !== this.state ? [this.state, push] : [this.state];
  }

  /** Keys of the operations that have an outcome other than failed. */
  get doneKeys(): readonly string[] {
    const failed = new Set(this.failures.map((failure) => failure.key));
    return this.bulkOperations
      .flatMap((one) => this.keysOf(one.key).slice(0, one.cursor))
      .filter((key) => !failed.has(key));
  }

  /**
   * Whether nothing is left that the client would still do by itself, but for its regular pulls. What it has sent it has
   * seen again: a conflict that this has made on the server is found by the next pull.
   */
  get isSettled(): boolean {
    if (this.status === undefined) return false;
    const { state, pending, unreported, push, pull, results, publishers, unpublished } = this.status;
    const rests = (transfer: { state: string }): boolean => transfer.state === 'idle' || transfer.state === 'off';
    const reported = results.state === 'off' || (unreported === 0 && rests(results));
    const published = unpublished === 0 && Object.values(publishers).every(rests);
    const seen = pull.state === 'off' || this.#sentBeforePull === this.sent();
    return state === 'idle' && pending === 0 && reported && published && rests(push) && rests(pull) && seen;
  }

  /** Whether what was changed here was sent, and both sides have the same. */
  get isSynced(): boolean {
    if (this.status === undefined || this.sent() === 0) return false;
    const { pending, push, pull } = this.status;
    const rests = [push, pull].every(({ state }) => state === 'idle' || state === 'off');
    return rests && pending === 0 && (push.left ?? 0) === 0;
  }

  /** To be called when the world is at rest. */
  sample(): void {
    for (const key of this.doneKeys) this.shownDone.add(key);
  }

  #seeBulkOperations(all: readonly BulkOperationStatus[]): void {
    this.bulkOperations = all;
    for (const one of all) {
      this.#seeNextAttempt(one);
      this.#countAttempts(one.key, one.attempts, this.attempts);
      if (one.lastError !== undefined) this.lastErrorClass = one.lastError.class;
      if (this.#stateOf.get(one.key) !== one.state) this.#show(one.state);
      this.#stateOf.set(one.key, one.state);
    }
    this.#seeEnd();
  }

  /** A time that is newly shown must not be over; one that was right may pass by while the device sleeps. */
  #seeNextAttempt({ key, nextAttemptAt }: BulkOperationStatus): void {
    const isNew = this.#nextAttempts.get(key) !== nextAttemptAt;
    if (isNew && nextAttemptAt !== undefined && nextAttemptAt < this.now.wall()) {
      this.pastAttempts.push(`${key} at ${String(this.now.elapsed())} ms`);
    }
    this.#nextAttempts.set(key, nextAttemptAt);
  }

  #seeStatus(status: ClientStatus): void {
    this.status = status;
    if (status.state !== 'idle') this.#show(status.state);
    this.#countPush(status.push);
    this.#countPull(status.pull);
    if (this.countsPush) {
      if (status.push.lastError !== undefined) this.lastErrorClass = status.push.lastError.class;
      if (this.#isPushing) this.#show(status.push.state);
    }
    this.#seeEnd();
  }

  /** The push works or waits: where a case is about it, this is what is seen, although the operations are done here. */
  get #isPushing(): boolean {
    const state = this.status?.push.state;
    return this.countsPush && (state === 'running' || state?.startsWith('waiting') === true);
  }

  #seeEnd(): void {
    const ended = ends.includes(this.state);
    if (!ended) this.endedAt = undefined;
    else this.endedAt ??= this.now.elapsed();
    if (ended) this.#show(this.state);
  }

  #seeCursors(tab: Tab, all: readonly BulkOperationStatus[]): void {
    if (!tab.alive) return;
    const moved = all.filter((one) => one.cursor > (this.#cursors.get(one.key) ?? 0));
    for (const one of moved) this.#cursors.set(one.key, one.cursor);
    if (moved.length > 0) this.batchDone(tab);
  }

  /** The first attempts are no tries of a batch if they had nothing of the case to send and did not fail. */
  #countPush({ attempts, failedAttempts }: ClientStatus['push']): void {
    const known = this.pushAttempts.length;
    this.#countAttempts('push:', attempts, this.pushAttempts);
    const wereIdle = failedAttempts === 0 && this.sent() === 0;
    if (this.pushAttempts.length > known && wereIdle) this.pushAttempts.splice(0, known);
  }

  /** What was sent before a pull began, that pull sees. */
  #countPull({ attempts }: ClientStatus['pull']): void {
    if (attempts === this.#pulls) return;
    this.#pulls = attempts;
    this.#sentBeforePull = this.sent();
  }

  #countAttempts(key: string, attempts: number, times: AttemptTime[]): void {
    const before = this.#counted.get(key) ?? 0;
    for (let next = before; next < attempts; next += 1) times.push(this.now.elapsed());
    // A restart shows zero until the stored count is read.
    this.#counted.set(key, Math.max(before, attempts));
  }

  #show(state: string): void {
    if (this.#isPushing && ends.includes(state)) return;
    if (this.states.at(-1) !== state) this.states.push(state);
  }
}
