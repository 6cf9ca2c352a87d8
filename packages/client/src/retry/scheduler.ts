import type { Clock } from '../model/environment.js';
import { remaining, shortened, type Wait } from './wait.js';

/** A timer that fires later than this was asleep: everything is looked at again (R14). */
const lateMs = 30_000;
/** Events that come within so long of the first of them are one moment: they cause one attempt (R14). */
const oneMomentMs = 2000;
/** No timer is set further ahead, so that a wall clock that jumps is noticed. */
const longestTimerMs = 60_000;

interface Entry {
  wait: Wait;
  readonly run: () => void;
}

/**
 * Knows all that waits for a time, and holds the only timer of the client.
 *
 *   wait(key) ──▶ waiting ──(either clock: delay passed)──▶ run, once
 *                    │  ▲
 *             clear(key) └─ wake(): the delay ends now, but never before its floor
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  readonly #spreadMs: () => number;
  #timer: unknown;
  #timerDueAt = 0;
  #closed = false;
  #moment = 0;
  #momentAt = Number.NEGATIVE_INFINITY;

  /** `spreadMs` gives the random part of a retry that an event causes: up to one second (R2), 0 without jitter. */
  constructor(clock: Clock, spreadMs: () => number) {
    this.#clock = clock;
    this.#spreadMs = spreadMs;
  }

  /** The last moment at which something happened that makes waiting pointless. Whoever begins an attempt notes it. */
  get moment(): number {
    return this.#moment;
  }

  /**
   * `run` is called once, when the wait is due. A wait of the same key is replaced. With `begunAt`, the moment that the
   * attempt noted which has failed now: an event since then was not for it but for the next one, which is due (R14).
   */
  wait(key: string, wait: Wait, run: () => void, begunAt = this.#moment): void {
    if (this.#closed) return;
    const isOvertaken = begunAt !== this.#moment;
    this.#entries.set(key, { wait: isOvertaken ? shortened(this.#clock, wait, this.#spreadMs()) : wait, run });
    this.#arm();
  }

  clear(key: string): void {
    if (this.#entries.delete(key)) this.#arm();
  }

  isWaiting(key: string): boolean {
    return this.#entries.has(key);
  }

  /** When the wait of this key is due, on the wall clock; undefined when nothing waits. */
  dueAt(key: string): number | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : Math.round(this.#clock.wall() + remaining(this.#clock, entry.wait));
  }

  /** Something happened that makes waiting pointless: everything is due now, but not before its floor (R13, R14). */
  wake(): void {
    this.#shortenAll();
    this.#arm();
  }

  /** The same for one key. */
  wakeOne(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.wait = shortened(this.#clock, entry.wait, this.#spreadMs());
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    this.#entries.clear();
    this.#disarm();
  }

  #shortenAll(): void {
    const now = this.#clock.monotonic();
    if (now - this.#momentAt > oneMomentMs) {
      this.#moment++;
      this.#momentAt = now;
    }
    for (const entry of this.#entries.values()) entry.wait = shortened(this.#clock, entry.wait, this.#spreadMs());
  }

  #arm(): void {
    this.#disarm();
    if (this.#closed || this.#entries.size === 0) return;
    let least = longestTimerMs;
    for (const entry of this.#entries.values()) least = Math.min(least, remaining(this.#clock, entry.wait));
    this.#timerDueAt = this.#clock.wall() + least;
    this.#timer = this.#clock.setTimer(() => {
      this.#fire();
    }, least);
  }

  #disarm(): void {
    if (this.#timer !== undefined) this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #fire(): void {
    this.#timer = undefined;
    if (this.#clock.wall() - this.#timerDueAt > lateMs) this.#shortenAll();
    const due: Entry[] = [];
    for (const [key, entry] of this.#entries) {
      if (remaining(this.#clock, entry.wait) > 0) continue;
      due.push(entry);
      this.#entries.delete(key);
    }
    this.#arm();
    for (const entry of due) entry.run();
  }
}
