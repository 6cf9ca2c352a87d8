import { eventsOf, gated } from './events.js';
import { layered, type IndexedDBCall } from './layer.js';
import { doom, ifActive } from './transaction-faults.js';

export interface ProcessIndexedDBParts {
  readonly indexedDB: IDBFactory;
  readonly isAlive: () => boolean;
  /** At once; when the process is thawed; never, when it is dead. */
  readonly awake: (run: () => void) => void;
  /** A call is made, or it has ended and the process does not know it yet. */
  readonly seen: (call: IndexedDBCall, moment: 'before' | 'after' | 'failed') => void;
}

/** What a process has of its device's IndexedDB: it ends with the process. */
export class ProcessIndexedDB {
  readonly indexedDB: IDBFactory;
  readonly #parts: ProcessIndexedDBParts;
  readonly #openings = new Set<IDBOpenDBRequest>();
  readonly #connections = new Set<IDBDatabase>();
  readonly #transactions = new Set<IDBTransaction>();

  constructor(parts: ProcessIndexedDBParts) {
    this.#parts = parts;
    const { isAlive, awake } = parts;
    const layer = layered(parts.indexedDB, {
      open: (call, make) => {
        const request = this.#opening(make(), call);
        parts.seen(call, 'before');
        return request;
      },
      connected: (connection) => {
        this.#connections.add(connection);
        gated(connection, eventsOf.database, (_event, deliver) => {
          awake(deliver);
        });
      },
      transaction: (call, make) => {
        const made = make();
        parts.seen(call, 'before');
        if (isAlive()) this.#transactions.add(made.transaction);
        else doom(made);
        gated(made.transaction, eventsOf.transaction, ({ type }, deliver) => {
          if (type !== 'error') this.#ended(made.transaction, call, type === 'complete' ? 'after' : 'failed');
          awake(deliver);
        });
        return made.transaction;
      },
      request: (_request, make) => {
        const request = make();
        gated(request, eventsOf.request, (_event, deliver) => {
          awake(deliver);
        });
        return request;
      },
    });
    this.indexedDB = {
      ...layer,
      deleteDatabase: (name) => {
        const request = layer.deleteDatabase(name);
        gated(request, eventsOf.open, (_event, deliver) => {
          awake(deliver);
        });
        return request;
      },
    };
  }

  /** What is not committed is lost, and its connections close. */
  kill(): void {
    for (const { transaction } of this.#openings) {
      ifActive(() => {
        transaction?.abort();
      });
    }
    for (const transaction of this.#transactions) {
      ifActive(() => {
        transaction.abort();
      });
    }
    this.#transactions.clear();
    for (const connection of this.#connections) connection.close();
    this.#connections.clear();
  }

  #opening(request: IDBOpenDBRequest, call: IndexedDBCall): IDBOpenDBRequest {
    const { isAlive, awake, seen } = this.#parts;
    this.#openings.add(request);
    gated(request, eventsOf.open, ({ type }, deliver) => {
      if (type === 'success' || type === 'error') {
        this.#openings.delete(request);
        if (isAlive()) seen(call, type === 'success' ? 'after' : 'failed');
        if (!isAlive() && type === 'success') request.result.close();
      } else if (type === 'upgradeneeded' && !isAlive()) {
        request.transaction?.abort();
      }
      awake(deliver);
    });
    return request;
  }

  #ended(transaction: IDBTransaction, call: IndexedDBCall, moment: 'after' | 'failed'): void {
    this.#transactions.delete(transaction);
    if (this.#parts.isAlive()) this.#parts.seen(call, moment);
  }
}
