import type { Clock } from '../model/environment.js';
import type { RetryPolicy } from '../retry/policy.js';
import type { Scheduler } from '../retry/scheduler.js';
import { resumeWait } from '../retry/wait.js';

/** A bulk operation that still waits reports at most so often (S1). */
const roundMs = 5 * 60_000;
/** A store is heard of at least so often while the app is open. */
const seenMs = 24 * 3_600_000;

/**
 * When a store that waits reports, and when it says that it is still there.
 *
 *   something waits ──▶ armed ──5 min──▶ due ──sent──▶ armed …    nothing waits: no timer
 *   always          ──▶ armed ──1 day──▶ due ──sent──▶ armed …
 *
 * Nothing that happens is a reason to report earlier: all of a delay is its floor.
 */
export class Rounds {
  readonly #scheduler: Scheduler;
  readonly #policy: RetryPolicy;
  readonly #clock: Clock;
  readonly #due: () => void;
  #isRoundDue = false;
  #isSeenDue = false;

  /** `due` is called when there may be something to send. */
  constructor(parts: { scheduler: Scheduler; policy: RetryPolicy; clock: Clock; due: () => void }) {
    this.#scheduler = parts.scheduler;
    this.#policy = parts.policy;
    this.#clock = parts.clock;
    this.#due = parts.due;
  }

  get isRoundDue(): boolean {
    return this.#isRoundDue;
  }

  get isSeenDue(): boolean {
    return this.#isSeenDue;
  }

  /** `since` is when the last round was, or when what waits began to (wall clock). */
  armRound(since: number): void {
    if (this.#isRoundDue || this.#scheduler.isWaiting('results-round')) return;
    this.#wait('results-round', this.#policy.longer(roundMs), since, () => (this.#isRoundDue = true));
  }

  /** `since` is when this store was last heard of (wall clock). */
  armSeen(since: number): void {
    if (this.#isSeenDue || this.#scheduler.isWaiting('results-seen')) return;
    this.#wait('results-seen', this.#policy.shorter(seenMs), since, () => (this.#isSeenDue = true));
  }

  /** The round is over, or there was nothing to say. */
  roundOver(): void {
    this.#isRoundDue = false;
    this.#scheduler.clear('results-round');
  }

  /** The store was heard of. */
  seen(): void {
    this.#isSeenDue = false;
    this.#scheduler.clear('results-seen');
  }

  #wait(key: string, delayMs: number, setAt: number, mark: () => void): void {
    const wait = resumeWait(this.#clock, { delayMs, notBeforeMs: delayMs, setAt });
    this.#scheduler.wait(key, wait, () => {
      mark();
      this.#due();
    });
  }
}
