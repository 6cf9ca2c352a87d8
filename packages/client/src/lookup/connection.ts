import type { Clock } from '../model/environment.js';
import { ClientClosedError, RetryableError } from '../model/errors.js';
import { localStoreError } from '../retry/classify.js';
import { IndexStore } from './index-store.js';

export interface ConnectionParts {
  readonly indexedDB: IDBFactory | undefined;
  /** Name of the database. */
  readonly database: string;
  readonly clock: Clock;
  /** Milliseconds after which a call that has not settled counts as failed. */
  readonly timeoutMs: number;
  /** The store was removed while it was open here. */
  readonly removed: () => void;
}

/** The connection to an index's store: opened when it is needed, anew after it has died, and never waited for without end. */
export class Connection {
  readonly #parts: ConnectionParts;
  #opening: Promise<IndexStore> | undefined;
  readonly #pending = new Set<(error: Error) => void>();
  #closed = false;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  store(): Promise<IndexStore> {
    if (this.#closed) return Promise.reject(new ClientClosedError());
    this.#opening ??= this.#open();
    return this.#opening;
  }

  /** Lets go of a connection that may be dead: the next who needs it opens another. `failed`: only if it is still this one. */
  drop(failed = this.#opening): void {
    const opening = this.#opening;
    if (opening !== failed) return;
    this.#opening = undefined;
    void opening?.then(
      (store) => {
        store.close();
      },
      () => undefined,
    );
  }

  /** The call, or `TimeoutError` when it does not settle in time. */
  within<Value>(call: Promise<Value>): Promise<Value> {
    const { clock, timeoutMs } = this.#parts;
    if (this.#closed) {
      call.catch(() => undefined);
      return Promise.reject(new ClientClosedError());
    }
    return new Promise((resolve, reject) => {
      const timer = clock.setTimer(() => {
        end(
          new RetryableError('A local store has not answered in time. It is tried again.', {
            class: 'storage',
            code: 'TimeoutError',
          }),
        );
      }, timeoutMs);
      const end = (error: unknown): void => {
        clock.clearTimer(timer);
        this.#pending.delete(end);
        reject(error instanceof Error ? error : new Error('unknown', { cause: error }));
      };
      this.#pending.add(end);
      call.then((value) => {
        clock.clearTimer(timer);
        this.#pending.delete(end);
        resolve(value);
      }, end);
    });
  }

  /** Reads from the store; once more through another connection when this one has died. */
  async read<Value>(read: (store: IndexStore) => Promise<Value>): Promise<Value> {
    const once = async (): Promise<Value> => {
      const opening = this.store();
      try {
        return await this.within(opening.then((store) => read(store)));
      } catch (error) {
        // Not one that someone else has opened since.
        this.drop(opening);
        throw error;
      }
    };
    try {
      return await once();
    } catch (error) {
      if (error instanceof ClientClosedError) throw error;
    }
    try {
      return await once();
    } catch (error) {
      throw error instanceof ClientClosedError ? error : localStoreError(error);
    }
  }

  close(): void {
    this.#closed = true;
    for (const end of [...this.#pending]) end(new ClientClosedError());
    this.drop();
  }

  #open(): Promise<IndexStore> {
    const { indexedDB, database, removed } = this.#parts;
    if (indexedDB === undefined) {
      return Promise.reject(new TypeError('There is no IndexedDB here: hand one in as `environment.indexedDB`.'));
    }
    const opening: Promise<IndexStore> = IndexStore.open(indexedDB, database, (wasRemoved) => {
      if (this.#opening === opening) this.#opening = undefined;
      if (wasRemoved) removed();
    });
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }
}
