import type { Clock } from '@afield/client';

interface Timer {
  readonly due: number;
  readonly run: () => void;
}

/**
 * A clock that stands still until a test moves it. Wall and monotonic clock are apart; timers follow the monotonic one.
 * Units: milliseconds.
 *
 *   what happens              wall    monotonic   timers
 *   advance(ms)               + ms    + ms        fire, each at its time
 *   jumpWall(ms)              + ms    -           -            someone sets the clock, forward or back
 *   freezeTimers(ms)          + ms    -           stand still  the device sleeps
 *   freezeTab(ms)             + ms    + ms        fire late    the tab is frozen, the device is not
 */
export class FakeClock implements Clock {
  #wall: number;
  #monotonic = 0;
  #slept = 0;
  #next = 1;
  readonly #timers = new Map<number, Timer>();
  readonly #rest: () => Promise<void>;

  /** `rest` resolves when everything that a fired timer began has come to an end; see `InFlight`. */
  constructor(rest: () => Promise<void>, startAt = Date.UTC(2026, 1, 3, 4, 5, 6)) {
    this.#rest = rest;
    this.#wall = startAt;
  }

  wall(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** What a bystander's watch shows since the clock was made: sleeps count, jumps of the wall clock do not. */
  get elapsed(): number {
    return this.#monotonic + this.#slept;
  }

  setTimer(run: () => void, delayMs: number): unknown {
    const id = this.#next;
    this.#next += 1;
    this.#timers.set(id, { due: this.#monotonic + Math.max(0, delayMs), run });
    return id;
  }

  clearTimer(timer: unknown): void {
    if (typeof timer === 'number') this.#timers.delete(timer);
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** When the next timer fires, on the monotonic clock; undefined when none waits. */
  get nextTimerAt(): number | undefined {
    return this.#first()?.[1].due;
  }

  /** Moves both clocks, from timer to timer; after each one it waits until the world is at rest. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + notNegative(ms);
    await this.#rest();
    for (let first = this.#first(); first !== undefined && first[1].due <= end; first = this.#first()) {
      this.#moveTo(first[1].due);
      this.#timers.delete(first[0]);
      first[1].run();
      await this.#rest();
    }
    this.#moveTo(end);
  }

  /** Someone sets the wall clock, forward or back (a negative number); nothing else moves. */
  jumpWall(ms: number): void {
    this.#wall += ms;
  }

  /** The device sleeps: the wall clock goes on, timers and the monotonic clock stand still. */
  freezeTimers(ms: number): void {
    this.#wall += notNegative(ms);
    this.#slept += ms;
  }

  /**
   * The browser freezes the tab: both clocks go on and no timer fires. Those that were due meanwhile fire late, at the
   * next `advance` (0 will do). For one tab of several see `FakeProcess.freeze`.
   */
  freezeTab(ms: number): void {
    this.#moveTo(this.#monotonic + notNegative(ms));
  }

  #moveTo(monotonic: number): void {
    const step = Math.max(0, monotonic - this.#monotonic);
    this.#monotonic += step;
    this.#wall += step;
  }

  #first(): [number, Timer] | undefined {
    let first: [number, Timer] | undefined;
    for (const entry of this.#timers) if (first === undefined || entry[1].due < first[1].due) first = entry;
    return first;
  }
}

/** Time that passes: only the wall clock can go back, with `jumpWall`. */
function notNegative(ms: number): number {
  if (ms >= 0) return ms;
  throw new RangeError('Time cannot pass backwards; `jumpWall` sets the wall clock back.');
}
