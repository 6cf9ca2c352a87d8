import type { Clock } from '../model/environment.js';

/** A clock that a test moves by hand: wall and monotonic apart. */
export class ManualClock implements Clock {
  #wall = Date.UTC(2026, 0, 1);
  #monotonic = 0;
  readonly #timers = new Map<number, { at: number; run: () => void }>();
  #next = 1;

  wall(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  setTimer(run: () => void, delayMs: number): number {
    const id = this.#next++;
    this.#timers.set(id, { at: this.#monotonic + delayMs, run });
    return id;
  }

  clearTimer(timer: unknown): void {
    this.#timers.delete(timer as number);
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, on the monotonic clock. */
  get nextTimerAt(): number | undefined {
    const all = [...this.#timers.values()].map(({ at }) => at);
    return all.length === 0 ? undefined : Math.min(...all);
  }

  jumpWall(ms: number): void {
    this.#wall += ms;
  }

  /** Both clocks go on; timers fire at their moment. */
  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (;;) {
      const due = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (due === undefined) break;
      const [id, { at, run }] = due;
      this.#timers.delete(id);
      this.#move(Math.max(at - this.#monotonic, 0));
      run();
    }
    this.#move(end - this.#monotonic);
  }

  /** The device sleeps: the wall clock goes on, timers and the monotonic clock stand still. */
  sleep(ms: number): void {
    this.#wall += ms;
  }

  #move(ms: number): void {
    this.#wall += ms;
    this.#monotonic += ms;
  }
}
