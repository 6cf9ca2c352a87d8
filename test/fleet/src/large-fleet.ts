import { rampOfR2 } from '@afield/client';
// The SDK's own rule with its clamps and its jitter. It is no part of the API, and here it is measured, not used.
import { RetryPolicy } from '../../../packages/client/dist/retry/policy.js';
import { seedOf, SeededRandom } from './seeded-random.js';
import { Timeline } from './timeline.js';

const second = 1000;

export interface LargeFleetOptions {
  /** How many devices meet the outage. */
  readonly devices: number;
  /** The share of jitter: 0.2 is the SDK's default, 0 means exact times. */
  readonly jitter: number;
  /** How long the server does not answer, from the moment 0. Seconds. */
  readonly outageS: number;
  /** How long is looked at, from the moment 0. Seconds. */
  readonly watchedS: number;
  /** The first try of each device comes at a random moment of so many seconds. Default: 1. */
  readonly withinS?: number;
  /** Requests that a device makes once the server answers, without a pause between them. Default: 2. */
  readonly requests?: number;
  /**
   * Requests that the server answers in one second. Those above it are refused at once, as a proxy does with 503: the device
   * fails, and begins anew after its ramp. Default: without limit.
   */
  readonly ratePerSecond?: number;
  /** What the server (its proxy) asks for while it is away or refuses: `Retry-After`, in seconds. Default: nothing. */
  readonly retryAfterS?: number;
  /** The same seed brings the same figures. */
  readonly seed: number;
}

export interface LargeFleetRun {
  readonly options: LargeFleetOptions;
  /** Requests that came to the server's address in each second, answered or not. */
  readonly perSecond: Float64Array;
  /** Devices that were done in each second. */
  readonly deliveredPerSecond: Float64Array;
  readonly delivered: number;
  /** When the last device was done that was done at all; undefined: none was. Seconds. */
  readonly lastAt: number | undefined;
}

/**
 * The requests of a fleet of any size at an outage, without its clients. The waits come from the SDK's own `RetryPolicy`. Of a
 * device only the next moment, how often it has failed, and its random numbers are known: for a server of a bounded rate they
 * are kept (20 bytes for each), else one device follows another. The times are those of `simulateFleet`, where the clients are
 * whole: a test holds the two together. Of two tries in the same millisecond, another one may be first.
 */
export function simulateLargeFleet(options: LargeFleetOptions): LargeFleetRun {
  return new LargeFleet(options).run();
}

class LargeFleet {
  readonly #requests: number;
  readonly #rate: number;
  readonly #floorMs: number;
  readonly #random = new SeededRandom(0);
  readonly #policy: RetryPolicy;
  /** Who waits for what, where the server's rate makes one wait for another. */
  readonly #timeline: Timeline | undefined;
  readonly #perSecond: Float64Array;
  readonly #deliveredPerSecond: Float64Array;
  /** Of the device that is looked at; its random numbers are those of `#random`. */
  #failures = 0;
  #delivered = 0;
  #lastMs: number | undefined;

  constructor(readonly options: LargeFleetOptions) {
    const { devices, jitter, watchedS, ratePerSecond } = options;
    this.#requests = options.requests ?? 2;
    this.#rate = ratePerSecond ?? Infinity;
    this.#floorMs = (options.retryAfterS ?? 0) * second;
    this.#policy = new RetryPolicy(rampOfR2, jitter, this.#random.next);
    this.#timeline = ratePerSecond === undefined ? undefined : new Timeline(devices, watchedS);
    this.#perSecond = new Float64Array(watchedS);
    this.#deliveredPerSecond = new Float64Array(watchedS);
  }

  run(): LargeFleetRun {
    const { options } = this;
    for (let device = 0; device < options.devices; device++) this.#begin(device);
    for (let at = options.outageS; at < options.watchedS && this.#delivered < options.devices; at++) {
      this.#timeline?.take(at, (device, ms, state, failures) => {
        this.#random.state = state;
        this.#failures = failures;
        this.#wait(device, this.#try(ms, Infinity));
      });
    }
    return {
      options,
      perSecond: this.#perSecond,
      deliveredPerSecond: this.#deliveredPerSecond,
      delivered: this.#delivered,
      lastAt: this.#lastMs === undefined ? undefined : this.#lastMs / second,
    };
  }

  /** While the server is away, and when it refuses nobody, a device has nothing to do with the others: it is followed alone. */
  #begin(device: number): void {
    const { seed, withinS = 1, outageS } = this.options;
    this.#random.state = seedOf(seed, device);
    this.#failures = 0;
    const first = Math.floor(this.#random.next() * withinS * second);
    this.#wait(device, this.#timeline === undefined ? this.#try(first, Infinity) : this.#try(first, outageS * second));
  }

  /** Tries, and after each failure once more, before this moment. Answers with the next moment; undefined: all is done. */
  #try(from: number, before: number): number | undefined {
    let ms = from;
    while (ms < Math.min(before, this.options.watchedS * second)) {
      if (this.#isDone(ms)) return undefined;
      this.#failures += 1;
      const { delayMs } = this.#policy.delay(this.#failures, this.#floorMs);
      ms += delayMs;
      // Others come first, whose moments lie between.
      if (before === Infinity && this.#timeline !== undefined && delayMs > 0) break;
    }
    return ms;
  }

  #wait(device: number, ms: number | undefined): void {
    if (ms !== undefined) this.#timeline?.add(device, ms, this.#random.state, this.#failures);
  }

  /** Whether all requests of a try are answered; the first one that is not ends it. */
  #isDone(ms: number): boolean {
    const at = Math.floor(ms / second);
    const before = this.#perSecond[at] ?? 0;
    if (at < this.options.outageS) {
      this.#perSecond[at] = before + 1;
      return false;
    }
    const made = Math.min(this.#requests, Math.max(this.#rate - before, 0) + 1);
    this.#perSecond[at] = before + made;
    if (before + this.#requests > this.#rate) return false;
    this.#deliveredPerSecond[at] = (this.#deliveredPerSecond[at] ?? 0) + 1;
    this.#delivered += 1;
    this.#lastMs = Math.max(this.#lastMs ?? 0, ms);
    return true;
  }
}
