import type { Clock } from '../model/environment.js';
import type { ErrorSummary } from '../model/errors.js';
import type { TransferStatus } from '../model/states.js';
import type { Queue } from '../queue/queue.js';
import { storedVersion, transferDoc, transferId, type StoredTransfer } from '../queue/stored.js';
import { classifyError } from '../retry/classify.js';
import type { RetryPolicy } from '../retry/policy.js';
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait, resumeWait, storedWait, type Wait } from '../retry/wait.js';
import type { Gate } from '../run/gate.js';
import { Watch } from './watch.js';

/** A tab that carries a transfer writes its state with each step: so often another one tries to change it. */
const mostTries = 10;

/** Something that goes to the server or comes from it, step by step. `Data` is what it must remember. */
export interface Errand<Data, Step> {
  readonly name: 'push' | 'pull' | 'confirm' | 'results' | 'heal' | `publish:${string}`;
  readonly initial: Data;
  /** Reads what it remembers; undefined when it is of another shape. */
  parse(json: unknown): Data | undefined;
  /** What is to be done next, found without the server; undefined when there is nothing. */
  next(data: Data): Promise<Step | undefined>;
  /** What is new, while single ones that stayed behind wait for their time; undefined when there is nothing. */
  fresh?(data: Data): Promise<Step | undefined>;
  /**
   * Does it. `error` says why it must be tried again; `data` is kept in any case. `behind`: something of it has to be
   * tried again, after the steps that are left; that is its first retry then. What it asks the server it asks within
   * `watch`, so that a step that is given up does nothing more.
   */
  carry(step: Step, data: Data, watch: Watch): Promise<Carried<Data>>;
  /** A step that only looks: no attempt at what is carried, unless it fails. Default: none is. */
  isAside?(step: Step): boolean;
  /** Whether nothing is left, found without the server. Default: there is no next step. */
  isOver?(data: Data): Promise<boolean>;
  /** How many documents are left at most, as was found by the last `next`. */
  left?(): number | undefined;
}

/** What a step has brought. */
export interface Carried<Data> {
  readonly data: Data;
  readonly transferred: number;
  readonly error?: unknown;
  readonly behind?: boolean;
  /** The error is about what had stayed behind, and nothing else: what is new does not wait with it. */
  readonly isPartial?: boolean;
}

/** A transfer as it is seen from outside, whatever it carries. */
export interface Carrier {
  resume(): Promise<void>;
  poke(): void;
  idle(): Promise<void>;
  status(): TransferStatus;
}

export interface TransferParts {
  readonly queue: Queue;
  readonly scheduler: Scheduler;
  readonly policy: RetryPolicy;
  readonly clock: Clock;
  readonly gate: Pick<Gate, 'state' | 'failed'>;
  readonly closed: AbortSignal;
  readonly changed: () => void;
  readonly warn: (line: string) => void;
  /** A step without any progress is given up after so long. Default: never. */
  readonly inactivityMs?: number | undefined;
}

/**
 * Carries one errand with the states, the ramp and the scheduler that bulk operations have.
 *
 *   idle ──poke──▶ next? ──step──▶ running ──done──▶ next?
 *    ▲               │none            └──error──▶ waiting-retry ──due──▶ next?
 *    └───────────────┘       gate closed ▶ waiting-auth, waiting-network ──poke──▶ next?
 *
 * While only single ones that stayed behind wait, `fresh?` takes the place of `next?` (R10).
 */
export class Transfer<Data, Step> implements Carrier {
  readonly #errand: Errand<Data, Step>;
  readonly #parts: TransferParts;
  #stored: StoredTransfer | undefined;
  #parsed: { readonly text: string; readonly data: Data } | undefined;
  #state: TransferStatus['state'] = 'idle';
  #running: Promise<void> | undefined;
  /** The step that is under way. */
  #watch: Watch | undefined;
  #again = false;
  #isStale = false;
  #memoryFailures = 0;
  /** The scheduler's moment when the step that is under way began. */
  #begunAt = 0;
  #left: number | undefined;

  constructor(errand: Errand<Data, Step>, parts: TransferParts) {
    this.#errand = errand;
    this.#parts = parts;
  }

  /** Takes up what the last run left: its waiting time too. `change`: what it remembers becomes this before. */
  async resume(change?: (data: Data) => Data): Promise<void> {
    if (change !== undefined) await this.#amend(change);
    const stored = await this.#read();
    if (stored.wait !== null) {
      this.#state = stateFor(stored.lastError);
      const wait = resumeWait(this.#parts.clock, stored.wait);
      this.#wait(wait);
      if (stored.wait.setAt > this.#parts.clock.wall()) await this.#write({ ...stored, wait: storedWait(wait) });
    }
    this.poke();
  }

  /** There may be something to do. While it waits for a time, it goes on waiting, but for what is new beside what waits. */
  poke(): void {
    if (this.#parts.closed.aborted) return;
    this.#noteLeft();
    const isWaiting = this.#parts.scheduler.isWaiting(this.#errand.name);
    if (isWaiting && !this.#waitsForSingles()) return;
    if (this.#running !== undefined) {
      this.#again = true;
      return;
    }
    this.#running = this.#loop(() => (isWaiting ? this.#freshStep() : this.#step())).finally(() => {
      this.#running = undefined;
      if (!this.#again) return;
      this.#again = false;
      this.poke();
    });
  }

  /** Whether a step is under way, or what it remembers is being changed. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Another tab may have changed what is remembered: it is read anew before the next step. */
  reread(): void {
    this.#isStale = true;
  }

  /** Changes what the errand remembers, between two steps. Durable when it resolves. */
  async amend(change: (data: Data) => Data): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    const amending = this.#amend(change);
    const over = (): void => {
      this.#running = undefined;
    };
    this.#running = amending.then(over, over);
    await amending;
    this.poke();
  }

  async #amend(change: (data: Data) => Data): Promise<void> {
    for (let tries = 1; ; tries++) {
      // Another tab may carry it, and have come further.
      this.reread();
      const before = await this.#read();
      try {
        await this.#write({ ...before, data: JSON.stringify(change(this.#dataOf(before))) });
        return;
      } catch (error) {
        if (!(error instanceof TypeError) || tries >= mostTries) throw error;
      }
    }
  }

  /** What is remembered, as it is stored now: another tab may carry it. */
  async present(): Promise<Data> {
    const stored = await this.#parts.queue.docs.read(transferId(this.#errand.name), transferDoc);
    if (stored === undefined) return this.#errand.initial;
    return this.#errand.parse(JSON.parse(stored.data)) ?? this.#errand.initial;
  }

  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  status(): TransferStatus {
    const stored = this.#stored;
    return {
      state: this.#state,
      attempt: stored?.attempt ?? 0,
      attempts: stored?.attempts ?? 0,
      failedAttempts: stored?.failedAttempts ?? 0,
      nextAttemptAt: this.#parts.scheduler.dueAt(this.#errand.name),
      lastError: stored?.lastError ?? undefined,
      transferred: (stored?.transferred ?? 0) + (this.#watch?.brought ?? 0),
      left: this.#left,
    };
  }

  #noteLeft(): void {
    const left = this.#errand.left?.();
    if (this.#left === left) return;
    this.#left = left;
    this.#parts.changed();
  }

  /** Whether single ones wait that do not hold up what is new. */
  #waitsForSingles(): boolean {
    return this.#errand.fresh !== undefined && this.#stored?.wait !== null && this.#stored?.partial === true;
  }

  async #loop(step: () => Promise<boolean>): Promise<void> {
    // Lets the caller keep this promise before anything runs.
    await Promise.resolve();
    try {
      while (await step());
      this.#memoryFailures = 0;
    } catch (error) {
      this.#bookkeepingFailed(error);
    }
  }

  /** One step; true when the next may follow at once. */
  async #step(): Promise<boolean> {
    if (this.#parts.closed.aborted) return false;
    this.#again = false;
    const before = await this.#read();
    const data = this.#dataOf(before);
    const step = await this.#errand.next(data);
    this.#noteLeft();
    if (step === undefined) {
      this.#show('idle');
      return this.#again;
    }
    const gate = this.#parts.gate.state();
    if (gate !== 'open') {
      if (gate !== 'asking') this.#show(gate);
      return false;
    }
    const attempt = { ...before, attempt: before.attempt + 1, attempts: before.attempts + 1, wait: null };
    if (this.#errand.isAside?.(step) === true) {
      const looked = await this.#carry(step, data);
      if (looked.error !== undefined) return this.#parts.closed.aborted ? false : this.#finish(before, attempt, looked);
      if (looked.data !== data) await this.#write({ ...before, data: this.#textOf(looked.data) });
      return true;
    }
    this.#show('running');
    const counted = await this.#write(attempt);
    const outcome = await this.#carry(step, data);
    if (this.#parts.closed.aborted && outcome.error !== undefined) return false;
    return this.#finish(before, counted, outcome);
  }

  /** One step with what is new, beside those that wait; true when the next may follow at once. */
  async #freshStep(): Promise<boolean> {
    if (this.#parts.closed.aborted) return false;
    this.#again = false;
    const before = await this.#read();
    const data = this.#dataOf(before);
    const step = await this.#errand.fresh?.(data);
    if (step === undefined || this.#parts.gate.state() !== 'open') return false;
    const outcome = await this.#carry(step, data);
    if (outcome.error !== undefined) {
      const counted = { ...before, attempt: before.attempt + 1, attempts: before.attempts + 1 };
      return this.#parts.closed.aborted ? false : this.#finish(before, counted, outcome);
    }
    const { attempts, transferred } = before;
    await this.#write({
      ...before,
      attempts: attempts + 1,
      transferred: transferred + outcome.transferred,
      data: this.#textOf(outcome.data),
    });
    return true;
  }

  async #carry(step: Step, data: Data): Promise<Carried<Data>> {
    const watch = new Watch(this.#parts);
    this.#watch = watch;
    this.#begunAt = this.#parts.scheduler.moment;
    try {
      return await watch.orGivenUp(() => this.#errand.carry(step, data, watch));
    } catch (error) {
      return { data, transferred: watch.brought, error };
    }
  }

  async #finish(before: StoredTransfer, counted: StoredTransfer, outcome: Carried<Data>): Promise<boolean> {
    const text = this.#textOf(outcome.data);
    const next = { ...counted, data: text, transferred: counted.transferred + outcome.transferred };
    if (outcome.error === undefined) {
      await this.#write({ ...next, attempt: outcome.behind === true ? 1 : 0 });
      return true;
    }
    const verdict = classifyError(outcome.error);
    if (verdict.kind === 'auth') {
      await this.#write({ ...next, attempt: before.attempt, attempts: before.attempts, lastError: verdict.summary });
      this.#show('waiting-auth');
      return this.#parts.gate.state() === 'open';
    }
    if (verdict.kind === 'bug')
      this.#parts.warn(`The ${this.#errand.name} stopped on ${verdict.summary.code}. It is tried again.`);
    if (verdict.summary.class === 'network') this.#parts.gate.failed();
    const floor = verdict.kind === 'passing' ? verdict.notBeforeMs : 0;
    const wait = beginWait(this.#parts.clock, this.#parts.policy.delay(next.attempt, floor));
    await this.#write({
      ...next,
      failedAttempts: next.failedAttempts + 1,
      lastError: verdict.summary,
      wait: storedWait(wait),
      partial: outcome.isPartial === true,
    });
    this.#state = stateFor(verdict.summary);
    this.#wait(wait, this.#begunAt);
    return false;
  }

  /** What is remembered, as it is stored. The same object is not written out again. */
  #textOf(data: Data): string {
    if (this.#parsed?.data !== data) this.#parsed = { text: JSON.stringify(data), data };
    return this.#parsed.text;
  }

  #wait(wait: Wait, begunAt?: number): void {
    const due = (): void => {
      this.poke();
    };
    this.#parts.scheduler.wait(this.#errand.name, wait, due, begunAt);
    this.#parts.changed();
  }

  #bookkeepingFailed(error: unknown): void {
    this.#stored = undefined;
    this.#watch = undefined;
    if (this.#parts.closed.aborted) return;
    const verdict = classifyError(error);
    this.#memoryFailures++;
    const delay = this.#parts.policy.delay(this.#memoryFailures, 0);
    this.#parts.warn(
      `The ${this.#errand.name} could not be written down (${verdict.summary.code}). It is tried again.`,
    );
    this.#state = 'waiting-storage';
    this.#wait(beginWait(this.#parts.clock, delay));
  }

  async #read(): Promise<StoredTransfer> {
    const id = transferId(this.#errand.name);
    if (this.#isStale) {
      this.#isStale = false;
      this.#stored = undefined;
    }
    this.#stored ??= (await this.#parts.queue.docs.read(id, transferDoc)) ?? {
      _id: id,
      v: storedVersion,
      attempt: 0,
      attempts: 0,
      failedAttempts: 0,
      transferred: 0,
      wait: null,
      lastError: null,
      data: JSON.stringify(this.#errand.initial),
    };
    return this.#stored;
  }

  /** Read once. An errand gets what it answered last, the same object, unless that was not written, or another tab wrote. */
  #dataOf({ data: text }: StoredTransfer): Data {
    if (this.#parsed?.text !== text) {
      this.#parsed = { text, data: this.#errand.parse(JSON.parse(text)) ?? this.#errand.initial };
    }
    return this.#parsed.data;
  }

  async #write(stored: StoredTransfer): Promise<StoredTransfer> {
    const { revs, conflicts } = await this.#parts.queue.docs.write([stored]);
    if (conflicts.size > 0) {
      this.#stored = undefined;
      throw new TypeError('Another tab has written the state of a transfer.');
    }
    this.#stored = { ...stored, _rev: revs.get(stored._id) };
    // What the last step has brought is counted in what is stored.
    this.#watch = undefined;
    this.#parts.changed();
    return this.#stored;
  }

  #show(state: TransferStatus['state']): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#parts.changed();
  }
}

function stateFor(error: ErrorSummary | null): TransferStatus['state'] {
  return error?.class === 'storage' ? 'waiting-storage' : 'waiting-retry';
}
