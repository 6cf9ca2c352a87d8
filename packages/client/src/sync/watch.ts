import type { Clock } from '../model/environment.js';
import { RetryableError } from '../model/errors.js';

/** Fewer bytes than this are no progress: a server that sends one a minute would never come to an end. */
const leastBytes = 4096;

/**
 * Watches one step. Without any progress for the time of `inactivityMs` it is given up: `signal` aborts, and `orGivenUp`
 * rejects, whatever the step itself still waits for. Progress are bytes that come in, an answer, and what was brought.
 */
export class Watch {
  readonly #abort = new AbortController();
  readonly #clock: Clock;
  readonly #inactivityMs: number | undefined;
  readonly #closed: AbortSignal;
  readonly #changed: () => void;
  #timer: unknown;
  #until = 0;
  #bytes = 0;
  #brought = 0;
  #giveUp: (error: Error) => void = () => undefined;

  /** Without `inactivityMs` nothing is given up. `changed` is called when more was brought. */
  constructor(parts: { clock: Clock; inactivityMs?: number | undefined; closed: AbortSignal; changed: () => void }) {
    this.#clock = parts.clock;
    this.#inactivityMs = parts.inactivityMs;
    this.#closed = parts.closed;
    this.#changed = parts.changed;
  }

  /** Aborts when the step is given up, and when the client is closed. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** How much was brought so far. */
  get brought(): number {
    return this.#brought;
  }

  /** Something has gone on. `moreMs`: what is under way may take so much longer without a sign, such as a large upload. */
  alive(moreMs = 0): void {
    this.#bytes = 0;
    this.#until = Math.max(this.#until, this.#clock.monotonic() + (this.#inactivityMs ?? 0) + moreMs);
  }

  /** So many bytes came in. */
  received(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes >= leastBytes) this.alive();
  }

  /** So many documents are there by now. */
  bring(count: number): void {
    this.alive();
    if (count === this.#brought) return;
    this.#brought = count;
    this.#changed();
  }

  /** What the step brings, or rejects with `RetryableError` (`network`, `inactive`). */
  async orGivenUp<Value>(step: (watch: Watch) => Promise<Value>): Promise<Value> {
    const stop = (): void => {
      this.#abort.abort();
    };
    this.#closed.addEventListener('abort', stop);
    if (this.#closed.aborted) stop();
    try {
      const givenUp = new Promise<never>((_resolve, reject) => (this.#giveUp = reject));
      this.alive();
      this.#look();
      const carried = step(this);
      // What a step that was given up says later is of no use to anyone.
      carried.catch(() => undefined);
      return await Promise.race([carried, givenUp]);
    } finally {
      this.#clock.clearTimer(this.#timer);
      this.#closed.removeEventListener('abort', stop);
    }
  }

  #look(): void {
    if (this.#inactivityMs === undefined) return;
    const left = Math.ceil(this.#until - this.#clock.monotonic());
    if (left > 0) {
      this.#timer = this.#clock.setTimer(() => {
        this.#look();
      }, left);
      return;
    }
    this.#giveUp(new RetryableError('Nothing went on for too long.', { class: 'network', code: 'inactive' }));
    this.#abort.abort();
  }
}
