/**
 * What happens to a transaction: it cannot begin (`once`), it is aborted (`later`), its write of the store `meta` fails
 * (`checkpoint`), it is carried out and says that it was not (`after-commit`), it never ends (`never`), or the connection is
 * dead from then on (`dies`).
 */
export interface TransactionFault {
  readonly at: 'once' | 'later' | 'checkpoint' | 'after-commit' | 'never' | 'dies';
  readonly error: Error;
}

export interface TransactionHooks {
  readonly fault: (mode: IDBTransactionMode) => TransactionFault | undefined;
  readonly opened?: () => void;
  readonly begun?: (tx: IDBTransaction) => void;
}

/** An IndexedDB whose transactions fail as told. */
export function faultyTransactions(factory: IDBFactory, hooks: TransactionHooks): IDBFactory {
  const open = (name: string, version?: number): IDBOpenDBRequest => {
    const request = factory.open(name, version);
    request.addEventListener('success', () => {
      hooks.opened?.();
      const db = request.result;
      const transaction = db.transaction.bind(db);
      let dead: Error | undefined;
      db.transaction = (stores, mode = 'readonly', options) => {
        if (dead !== undefined) throw dead;
        const failing = hooks.fault(mode);
        if (failing?.at === 'dies') dead = failing.error;
        if (failing?.at === 'once' || failing?.at === 'dies') throw failing.error;
        const tx = transaction(stores, mode, options);
        if (failing !== undefined) fail(tx, failing);
        if (failing?.at !== 'never') hooks.begun?.(tx);
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
  if (at === 'checkpoint') {
    // A write that fails undoes a transaction that was told to commit, too; the count below could not.
    tx.commit = () => undefined;
    const objectStore = tx.objectStore.bind(tx);
    tx.objectStore = (name) => {
      const store = objectStore(name);
      if (name !== 'meta') return store;
      // The write fails after all others of the transaction.
      store.put = () => {
        const request = store.count();
        request.onsuccess = () => {
          says();
          tx.abort();
        };
        return request as IDBRequest<IDBValidKey>;
      };
      return store;
    };
    return;
  }
  // Whoever waits for the end hears of an abort, or of nothing.
  const listen = tx.addEventListener.bind(tx) as (type: string, listener: () => void) => void;
  const aborted: (() => void)[] = [];
  tx.addEventListener = (type: string, listener: unknown) => {
    if (type === 'abort') aborted.push(listener as () => void);
  };
  if (at === 'never') {
    const [name] = [...tx.objectStoreNames];
    if (name !== undefined) tx.objectStore(name).count().onsuccess = () => tx.abort();
    return;
  }
  const told = (): void => {
    for (const listener of aborted) listener();
  };
  listen('abort', told);
  listen('complete', () => {
    says();
    told();
  });
}
