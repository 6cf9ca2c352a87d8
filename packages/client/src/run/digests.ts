import type { Clock } from '../model/environment.js';
import type { Contents } from '../queue/contents.js';
import type { Header } from '../queue/stored.js';
import { mostSubjects } from '../queue/subjects.js';
import type { RetryPolicy } from '../retry/policy.js';
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait } from '../retry/wait.js';
import type { Order } from './order.js';

/** Subjects that are kept in memory at most; what has no room counts as everything until others are at their end. */
const mostInMemory = 2 * mostSubjects + 100_000;
/** Subjects that are taken in or out before the page gets a turn. */
const perTurn = 5_000;
const waitKey = 'digests';

export interface DigestsParts {
  readonly queue: { readonly contents: Pick<Contents, 'digest'> };
  readonly order: Order;
  readonly scheduler: Scheduler;
  readonly policy: RetryPolicy;
  readonly clock: Clock;
  readonly closed: AbortSignal;
  readonly breathe: () => Promise<void>;
  readonly warn: (line: string) => void;
  /** What is known of the order has changed. */
  readonly poke: () => void;
}

/** Brings to the order the subjects that headers keep beside themselves, one after another, when a decision needs them. */
export class Digests {
  readonly #parts: DigestsParts;
  #busy: Promise<void> | undefined;
  #failures = 0;
  /** Ids of headers whose subjects cannot be made out: they count as everything. */
  readonly #damaged = new Set<string>();

  constructor(parts: DigestsParts) {
    this.#parts = parts;
  }

  /** After each look at the order: what is on its way in or out of it goes on, or the first of `unknown` is read. */
  attend([header]: readonly Header[]): void {
    const { order, scheduler, closed } = this.#parts;
    if (this.#busy !== undefined || closed.aborted) return;
    if (order.hasWork) this.#busy = this.#work();
    if (header === undefined || this.#busy !== undefined || scheduler.isWaiting(waitKey)) return;
    const { subjects } = header;
    if (subjects === null || Array.isArray(subjects) || this.#damaged.has(header._id)) return;
    // The later ones are held back by it, whatever theirs are.
    if (order.learned + subjects.count > mostInMemory) return;
    this.#busy = this.#read(header, subjects);
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    await this.#busy;
  }

  async #work(): Promise<void> {
    const { order, closed, breathe, poke } = this.#parts;
    while (order.hasWork && !closed.aborted) {
      order.work(perTurn);
      await breathe();
    }
    this.#busy = undefined;
    poke();
  }

  async #read(header: Header, place: { digest: string; count: number }): Promise<void> {
    const { queue, order, scheduler, policy, clock, warn } = this.#parts;
    try {
      const subjects = await queue.contents.digest(place);
      this.#failures = 0;
      if (subjects !== undefined) order.learn(header, subjects);
      else {
        this.#damaged.add(header._id);
        warn('The documents of a bulk operation cannot be told any more. It holds back all later ones until its end.');
      }
    } catch {
      const { delayMs } = policy.delay(++this.#failures, 0);
      this.#busy = undefined;
      scheduler.wait(waitKey, beginWait(clock, delayMs), this.#parts.poke);
      return;
    }
    await this.#work();
  }
}
