import type { Clock } from '../model/environment.js';
import type { Queue } from '../queue/queue.js';
import type { Header } from '../queue/stored.js';
import { mostSubjects } from '../queue/subjects.js';
import type { RetryPolicy } from '../retry/policy.js';
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait } from '../retry/wait.js';
import type { Order } from './order.js';

/** Subjects that are kept in memory at most; what has no room counts as everything until others are at their end. */
const mostInMemory = 2 * mostSubjects + 100_000;
const waitKey = 'digests';

export interface DigestsParts {
  readonly queue: Pick<Queue, 'digest'>;
  readonly order: Order;
  readonly scheduler: Scheduler;
  readonly policy: RetryPolicy;
  readonly clock: Clock;
  readonly closed: AbortSignal;
  readonly warn: (line: string) => void;
  /** What is known of the order has changed. */
  readonly poke: () => void;
}

/** Reads the subjects that headers keep beside themselves, one after another, when a decision needs them. */
export class Digests {
  readonly #parts: DigestsParts;
  #reading: Promise<void> | undefined;
  #failures = 0;
  /** Ids of headers whose subjects cannot be made out: they count as everything. */
  readonly #damaged = new Set<string>();

  constructor(parts: DigestsParts) {
    this.#parts = parts;
  }

  /** Begins to read the first of these; the later ones are held back by it until then. */
  read([header]: readonly Header[]): void {
    const { order, scheduler, closed } = this.#parts;
    if (header === undefined || this.#reading !== undefined || closed.aborted || scheduler.isWaiting(waitKey)) return;
    const { subjects } = header;
    if (subjects === null || Array.isArray(subjects) || this.#damaged.has(header._id)) return;
    if (order.learned + subjects.count > mostInMemory) return;
    this.#reading = this.#read(header, subjects);
  }

  /** Resolves when nothing is read any more. */
  async idle(): Promise<void> {
    await this.#reading;
  }

  async #read(header: Header, place: { digest: string; count: number }): Promise<void> {
    const { queue, order, scheduler, policy, clock, poke, warn } = this.#parts;
    try {
      const subjects = await queue.digest(place);
      this.#failures = 0;
      if (subjects !== undefined) order.learn(header, subjects);
      else {
        this.#damaged.add(header._id);
        warn('The documents of a bulk operation cannot be told any more. It holds back all later ones until its end.');
      }
    } catch {
      const { delayMs } = policy.delay(++this.#failures, 0);
      scheduler.wait(waitKey, beginWait(clock, delayMs), poke);
      return;
    } finally {
      this.#reading = undefined;
    }
    poke();
  }
}
