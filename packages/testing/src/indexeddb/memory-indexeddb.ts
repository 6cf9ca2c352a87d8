import * as memory from 'fake-indexeddb';
import { layered } from './layer.js';

const classes = [
  'IDBCursor',
  'IDBCursorWithValue',
  'IDBDatabase',
  'IDBFactory',
  'IDBIndex',
  'IDBKeyRange',
  'IDBObjectStore',
  'IDBOpenDBRequest',
  'IDBRequest',
  'IDBTransaction',
  'IDBVersionChangeEvent',
] as const;

/**
 * An IndexedDB of its own in the memory of this process, empty. The global classes that libraries ask for (`IDBRequest`,
 * `IDBKeyRange` …) are set where they are missing; the global `indexedDB` is not.
 */
export function memoryIndexedDB(): IDBFactory {
  for (const name of classes) {
    if (name in globalThis) continue;
    Object.defineProperty(globalThis, name, { value: memory[name], writable: true, configurable: true });
  }
  return layered(new memory.IDBFactory(), {
    transaction: (_call, make, connection) => {
      const { transaction } = make();
      for (const type of ['complete', 'abort']) {
        transaction.addEventListener(type, () => {
          startNext(connection);
        });
      }
      return transaction;
    },
  });
}

/**
 * The engine starts the next transaction when it hears of the end of one, as a listener among others; one whose events
 * reach no listener (its process was killed) would hold up all later ones.
 */
function startNext(connection: IDBDatabase): void {
  const { _rawDatabase: engine } = connection as { _rawDatabase?: { processTransactions?(): void } };
  engine?.processTransactions?.();
}
