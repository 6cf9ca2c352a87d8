import type { FailedOperation } from '../model/states.js';
import type { Queue } from './queue.js';
import { failureDoc, type StoredFailure } from './stored.js';

/** The operations that failed for good. Read from the store when someone first asks for them. */
export class Failures {
  readonly #queue: Queue;
  readonly #changed: () => void;
  readonly #known = new Map<string, StoredFailure>();
  #loading: Promise<void> | undefined;

  constructor(queue: Queue, changed: () => void) {
    this.#queue = queue;
    this.#changed = changed;
  }

  load(): Promise<void> {
    this.#loading ??= this.#read().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    return this.#loading;
  }

  /** What was just stored. */
  added(failures: readonly StoredFailure[]): void {
    if (failures.length === 0) return;
    for (const failure of failures) this.#known.set(failure._id, failure);
    this.#changed();
  }

  removed(ids: readonly string[]): void {
    if (ids.length === 0) return;
    for (const id of ids) this.#known.delete(id);
    this.#changed();
  }

  /** Those of a document that the server refused; needs `load` before. */
  refusedOf(docId: string): readonly StoredFailure[] {
    return [...this.#known.values()].filter((failure) => failure.refused !== null && failure.id === docId);
  }

  /** Those of one bulk operation, in the order of its operations; needs `load` before. */
  of(bulkOperationId: string): readonly StoredFailure[] {
    return this.#inOrder().filter((failure) => failure.bulkOperationId === bulkOperationId);
  }

  list(): readonly FailedOperation[] {
    return this.#inOrder().map(shown);
  }

  #inOrder(): StoredFailure[] {
    return [...this.#known.values()].sort((a, b) => (a._id < b._id ? -1 : 1));
  }

  async #read(): Promise<void> {
    for (const failure of await this.#queue.readRange('f:', failureDoc)) this.#known.set(failure._id, failure);
    this.#changed();
  }
}

function shown(failure: StoredFailure): FailedOperation {
  return {
    bulkOperationId: failure.bulkOperationId ?? undefined,
    index: failure.index ?? undefined,
    key: failure.key ?? undefined,
    id: failure.id ?? undefined,
    action: failure.action ?? undefined,
    code: failure.code,
    reason: failure.reason,
    operation: failure.operation === null ? undefined : (JSON.parse(failure.operation) as unknown),
    mayHaveBeenApplied: failure.mayHaveBeenApplied,
    failedAt: failure.at,
  };
}
