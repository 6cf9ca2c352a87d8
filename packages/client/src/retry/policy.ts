import { clampDelay, withJitter } from './ramp.js';
import type { Delay } from './wait.js';

/** The waiting time after a failed attempt. Units: milliseconds. */
export class RetryPolicy {
  readonly #ramp: (failures: number) => number;
  readonly #jitter: number;
  readonly #random: () => number;

  /** `jitter` is the largest share that is added, 0 for exact times. */
  constructor(ramp: (failures: number) => number, jitter: number, random: () => number) {
    this.#ramp = ramp;
    this.#jitter = jitter;
    this.#random = random;
  }

  /**
   * After so many failures in a row; never before what the server asked for (R13). Its floor is spread as the ramp is: a
   * server that gives the same one to a whole fleet would have all of it back in the same second.
   */
  delay(failures: number, notBeforeMs: number): Delay {
    const ramp = clampDelay(this.#rampOf(failures), failures);
    const random = this.#random();
    const floor = Math.max(withJitter(notBeforeMs, this.#jitter, random), notBeforeMs);
    const delayMs = Math.max(withJitter(ramp, this.#jitter, random), floor);
    return { delayMs, notBeforeMs, floorSpreadMs: floor - notBeforeMs };
  }

  /** A time with a random share on top, so that a fleet never meets on one tick: never earlier than asked. */
  longer(delayMs: number): number {
    return withJitter(delayMs, this.#jitter, this.#random());
  }

  /** A time less a random share, at most half of it: never later than asked. */
  shorter(delayMs: number): number {
    return Math.round(delayMs * (1 - Math.min(this.#jitter, 0.5) * this.#random()));
  }

  /** The random part of a retry that an event causes: up to a second. */
  spread(): number {
    return this.#jitter === 0 ? 0 : Math.round(this.#random() * 1000);
  }

  #rampOf(failures: number): number {
    try {
      return this.#ramp(failures);
    } catch {
      return NaN; // an app's own ramp that throws is replaced by the ramp of R2
    }
  }
}
