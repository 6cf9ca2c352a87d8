/** What happens to a transaction: it cannot begin, it is aborted with an error, or it is carried out and says that it was not. */
export interface TransactionFault {
  readonly at: 'once' | 'later' | 'after-commit';
  readonly error: Error;
}

/** An IndexedDB whose transactions fail as told. */
export function faultyTransactions(
  factory: IDBFactory,
  fault: (mode: IDBTransactionMode) => TransactionFault | undefined,
): IDBFactory {
  const open = (name: string, version?: number): IDBOpenDBRequest => {
    const request = factory.open(name, version);
    request.addEventListener('success', () => {
      const db = request.result;
      const transaction = db.transaction.bind(db);
      db.transaction = (stores, mode = 'readonly', options) => {
        const failing = fault(mode);
        if (failing?.at === 'once') throw failing.error;
        const tx = transaction(stores, mode, options);
        if (failing !== undefined) fail(tx, failing);
        return tx;
      };
    });
    return request;
  };
  return {
    open,
    cmp: factory.cmp.bind(factory),
    deleteDatabase: factory.deleteDatabase.bind(factory),
    databases: factory.databases.bind(factory),
  };
}

function fail(tx: IDBTransaction, { at, error }: TransactionFault): void {
  const says = (): unknown => Object.defineProperty(tx, 'error', { get: () => error });
  if (at === 'later') {
    says();
    // As soon as its first request has succeeded: what it has written by then is undone.
    const [name] = [...tx.objectStoreNames];
    if (name !== undefined) tx.objectStore(name).count().onsuccess = () => tx.abort();
    return;
  }
  // Whoever waits for the end hears of an abort.
  const listen = tx.addEventListener.bind(tx) as (type: string, listener: () => void) => void;
  const aborted: (() => void)[] = [];
  tx.addEventListener = (type: string, listener: unknown) => {
    if (type === 'abort') aborted.push(listener as () => void);
  };
  listen('complete', () => {
    says();
    for (const listener of aborted) listener();
  });
}
