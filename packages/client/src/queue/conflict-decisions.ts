import { takenOperation } from './conflicts.js';
import type { Failures } from './failures.js';
import type { TakenSecond } from './quarantine-control.js';
import type { Queue } from './queue.js';
import type { Retries } from './retries.js';
import { failureDoc, failureId, sequenceOf, type StoredFailure, type StoredQuarantine } from './stored.js';

/** A conflict about a document is a failed operation, too: what a person decides on the one is decided on the other. */
export class ConflictDecisions {
  readonly #queue: Queue;
  readonly #failures: Failures;
  readonly #retries: Retries;

  constructor(parts: { queue: Queue; failures: Failures; retries: Retries }) {
    this.#queue = parts.queue;
    this.#failures = parts.failures;
    this.#retries = parts.retries;
  }

  /** The second version as it is to be queued: it takes over the failure, if no one has yet. */
  async take(entry: StoredQuarantine): Promise<TakenSecond | undefined> {
    const failure = await this.#failureOf(entry);
    return takenOperation(entry, failure?._id);
  }

  /** The first version stays: the failure is given up. */
  async drop(entry: StoredQuarantine): Promise<void> {
    const found = await this.#failureOf(entry);
    if (found === undefined) return;
    await this.#failures.reload();
    await this.#failures.load();
    await this.#retries.discard(() => {
      const failure = this.#failures.get(found._id);
      return failure === undefined || failure.resolution !== undefined ? [] : [failure];
    });
  }

  async #failureOf({ bulkOperationId, index }: StoredQuarantine): Promise<StoredFailure | undefined> {
    const header = this.#queue.known(bulkOperationId ?? '');
    if (header === undefined || index === undefined) return undefined;
    const failure = await this.#queue.readDoc(failureId(sequenceOf(header._id), index), failureDoc);
    return failure?.resolution === undefined ? failure : undefined;
  }
}
