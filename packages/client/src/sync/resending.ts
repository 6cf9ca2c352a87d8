import type { Failures } from '../queue/failures.js';

/** Documents that are named to the push at once: what it remembers is written with each of its steps. */
const atOnce = 500;

/** What one user may not write another one may: after a sign-in what was forbidden is sent once more, as it is (S2). */
export class Resending {
  readonly #failures: Failures;
  readonly #sendAgain: (ids: readonly string[]) => Promise<void>;
  readonly #closed: AbortSignal;
  #running: Promise<number> | undefined;
  #again = false;

  constructor(parts: {
    failures: Failures;
    /** Sends documents once more. Durable when it resolves; waits until the push rests. */
    sendAgain: (ids: readonly string[]) => Promise<void>;
    closed: AbortSignal;
  }) {
    this.#failures = parts.failures;
    this.#sendAgain = parts.sendAgain;
    this.#closed = parts.closed;
  }

  /** Once for each sign-in, however many come while it goes on. Needs loaded failures. Answers how many documents. */
  forbidden(): Promise<number> {
    if (this.#running !== undefined) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#send().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #send(): Promise<number> {
    let count = 0;
    do {
      this.#again = false;
      const found = this.#failures.matching({ code: 'forbidden' }).filter(({ stored }) => stored.refused !== null);
      // Those that are open now, each once: what is refused again meanwhile waits for the next sign-in.
      const ids = [...new Set(found.flatMap(({ stored }) => stored.id ?? []))];
      for (let from = 0; from < ids.length && !this.#closed.aborted; from += atOnce) {
        await this.#sendAgain(ids.slice(from, from + atOnce));
      }
      count += ids.length;
    } while (this.#again && !this.#closed.aborted);
    return count;
  }
}
