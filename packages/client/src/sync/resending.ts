import type { SignInNews } from '../http/session.js';
import type { Clock } from '../model/environment.js';
import type { Failures } from '../queue/failures.js';
import type { StoredFailure } from '../queue/stored.js';

/** Documents that are named to the push at once: what it remembers is written with each of its steps. */
const atOnce = 500;

/** What was refused is not asked for again earlier, where nothing says that the answer would be another one. */
const renewedMs = 3_600_000;

/**
 * What one user may not write another one may: after a sign-in what was forbidden is sent once more, as it is (S2).
 *
 * Renewed credentials of the same person are no such thing, and may come every few minutes; nor is the start of the app, after
 * which nobody knows of the time when it was closed. Then only what was refused an
 * hour ago or longer is sent: that is how rights are found of which nobody said that they have changed. The hour is that of
 * the failure, so that it holds through restarts and in all tabs; a refusal that lies ahead was noted before the clock went
 * back, and is as old as any.
 */
export class Resending {
  readonly #failures: Failures;
  readonly #sendAgain: (ids: readonly string[]) => Promise<void>;
  readonly #clock: Clock;
  readonly #closed: AbortSignal;
  #running: Promise<number> | undefined;
  /** What came while it runs: the word that says more. */
  #again: SignInNews | undefined;

  constructor(parts: {
    failures: Failures;
    /** Sends documents once more. Durable when it resolves; waits until the push rests. */
    sendAgain: (ids: readonly string[]) => Promise<void>;
    clock: Clock;
    closed: AbortSignal;
  }) {
    this.#failures = parts.failures;
    this.#sendAgain = parts.sendAgain;
    this.#clock = parts.clock;
    this.#closed = parts.closed;
  }

  /** Once for each sign-in, however many come while it goes on. Needs loaded failures. Answers how many documents. */
  forbidden(news: SignInNews): Promise<number> {
    if (this.#running !== undefined) {
      this.#again = this.#again === 'other' ? 'other' : news;
      return this.#running;
    }
    this.#running = this.#send(news).finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #send(first: SignInNews): Promise<number> {
    let count = 0;
    for (let news: SignInNews | undefined = first; news !== undefined && !this.#closed.aborted; news = this.#again) {
      this.#again = undefined;
      const found = this.#failures.matching({ code: 'forbidden' }).filter(({ stored }) => stored.refused !== null);
      // Those that are open now, each once: what is refused again meanwhile waits for the next sign-in.
      const ids = this.#dueOf(
        found.map(({ stored }) => stored),
        news,
      );
      for (let from = 0; from < ids.length && !this.#closed.aborted; from += atOnce) {
        await this.#sendAgain(ids.slice(from, from + atOnce));
      }
      count += ids.length;
    }
    return count;
  }

  /** Ids of the documents; of one that was refused several times the last time counts. */
  #dueOf(failures: readonly StoredFailure[], news: SignInNews): readonly string[] {
    const now = this.#clock.wall();
    const last = new Map<string, number>();
    for (const { id, at } of failures) if (id !== null) last.set(id, Math.max(at, last.get(id) ?? at));
    const isDue = (at: number): boolean => news === 'other' || at > now || now - at >= renewedMs;
    return [...last].flatMap(([id, at]) => (isDue(at) ? [id] : []));
  }
}
