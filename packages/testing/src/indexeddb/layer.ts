import { setOwn } from './events.js';

/** A call on IndexedDB, as it was made. */
export interface IndexedDBCall {
  /** Opening a database; a transaction that reads, or one that may write. */
  readonly call: 'open' | 'read' | 'write';
  readonly database: string;
  /** The object stores of the transaction. */
  readonly stores: readonly string[];
}

/** A request within a transaction. */
export interface RequestMade {
  readonly method: string;
  readonly store: string;
  /** The index of the store on which it is made, if it is one. */
  readonly index: string | undefined;
  readonly args: readonly unknown[];
  readonly transaction: IDBTransaction;
  readonly database: string;
  /** A request that changes nothing and finds nothing, in place of this one. */
  readonly probe: () => IDBRequest;
}

/** What a layer does with the calls that pass through it. `make` makes the call; what is returned goes to the caller. */
export interface Layer {
  open?(call: IndexedDBCall, make: () => IDBOpenDBRequest): IDBOpenDBRequest;
  /** A connection is there; no one knows it yet. `begin` begins a transaction that this layer does not meet. */
  connected?(connection: IDBDatabase, begin: (stores: readonly string[]) => IDBTransaction): void;
  /** `probe` makes a request in the transaction that changes nothing, and that the layer itself does not meet. */
  transaction?(call: IndexedDBCall, make: () => MadeTransaction, connection: IDBDatabase): IDBTransaction;
  /** Not asked about requests of an upgrade. */
  request?(request: RequestMade, make: () => IDBRequest): IDBRequest;
}

export interface MadeTransaction {
  readonly transaction: IDBTransaction;
  readonly probe: () => IDBRequest;
}

const requests = ['get', 'getKey', 'getAll', 'getAllKeys', 'count', 'openCursor', 'openKeyCursor'] as const;
const writes = ['put', 'add', 'delete', 'clear'] as const;
const ofCursors = ['update', 'delete'] as const;

/**
 * A factory whose calls pass through a layer. Connections, transactions and requests stay the engine's own objects, with
 * properties of their own: libraries ask which class they are of, and the engine's methods work on nothing else.
 */
export function layered(factory: IDBFactory, layer: Layer): IDBFactory {
  const { request: around } = layer;
  const known = new WeakSet<object>();
  const probes = new WeakMap<object, () => IDBRequest>();

  function connect(connection: IDBDatabase): void {
    if (isKnown(connection)) return;
    const begin = connection.transaction.bind(connection);
    replace(connection, 'transaction', (original, args) => {
      const [names, mode] = args;
      const call: IndexedDBCall = {
        call: mode === 'readwrite' ? 'write' : 'read',
        database: connection.name,
        stores: typeof names === 'string' ? [names] : Array.from(names as Iterable<string>),
      };
      const make = (): MadeTransaction => {
        const transaction = original() as IDBTransaction;
        return { transaction, probe: watch(transaction, connection.name) };
      };
      return layer.transaction === undefined ? make().transaction : layer.transaction(call, make, connection);
    });
    layer.connected?.(connection, (stores) => begin([...stores]));
  }

  function watch(transaction: IDBTransaction, database: string): () => IDBRequest {
    const storeOf = transaction.objectStore.bind(transaction);
    const watched = (store: IDBObjectStore): IDBObjectStore => {
      if (around !== undefined) {
        watchSource(store, { store: store.name, index: undefined, transaction, database }, around);
      }
      return store;
    };
    if (around !== undefined) {
      replace(transaction, 'objectStore', (original) => watched(original() as IDBObjectStore));
    }
    return () => {
      const store = watched(storeOf(transaction.objectStoreNames[0] ?? ''));
      return probes.get(store)?.() ?? store.getKey(0);
    };
  }

  function watchSource(
    source: IDBObjectStore | IDBIndex,
    where: Pick<RequestMade, 'store' | 'index' | 'transaction' | 'database'>,
    ask: NonNullable<Layer['request']>,
  ): void {
    if (isKnown(source)) return;
    const getKey = source.getKey.bind(source);
    const probe = (): IDBRequest => getKey(0);
    probes.set(source, probe);
    for (const method of [...requests, ...writes]) {
      replace(source, method, (original, args) =>
        ask({ ...where, method, args, probe }, () => {
          const request = original() as IDBRequest;
          if (method.endsWith('Cursor')) watchCursors(request, { ...where, probe }, ask);
          return request;
        }),
      );
    }
    replace(source, 'index', (original) => {
      const index = original() as IDBIndex;
      watchSource(index, { ...where, index: index.name }, ask);
      return index;
    });
  }

  function watchCursors(
    request: IDBRequest,
    where: Omit<RequestMade, 'method' | 'args'>,
    ask: NonNullable<Layer['request']>,
  ): void {
    request.addEventListener('success', () => {
      const cursor = request.result as IDBCursor | null;
      if (cursor === null || isKnown(cursor)) return;
      for (const method of ofCursors) {
        replace(cursor, method, (original, args) => ask({ ...where, method, args }, () => original() as IDBRequest));
      }
    });
  }

  function isKnown(one: object): boolean {
    if (known.has(one)) return true;
    known.add(one);
    return false;
  }

  return {
    open: (name, version) => {
      const make = (): IDBOpenDBRequest => {
        const request = version === undefined ? factory.open(name) : factory.open(name, version);
        for (const type of ['upgradeneeded', 'success'] as const) {
          request.addEventListener(type, () => {
            connect(request.result);
          });
        }
        return request;
      };
      return layer.open === undefined ? make() : layer.open({ call: 'open', database: name, stores: [] }, make);
    },
    deleteDatabase: (name) => factory.deleteDatabase(name),
    databases: () => factory.databases(),
    cmp: (first, second) => factory.cmp(first, second),
  };
}

/** Puts a method of its own over that of an object, if it has one. */
function replace(
  target: object,
  method: string,
  instead: (original: () => unknown, args: readonly unknown[]) => unknown,
): void {
  const original: unknown = Reflect.get(target, method);
  if (typeof original !== 'function') return;
  setOwn(target, method, (...args: unknown[]) => instead(() => Reflect.apply(original, target, args) as unknown, args));
}
