import type { Clock } from '@afield/client';
import { eventFor, eventsOf, gated, setOwn } from './indexeddb/events.js';
import { layered, type IndexedDBCall, type RequestMade } from './indexeddb/layer.js';
import {
  abortAtTheEnd,
  failAfterCommit,
  failReads,
  failRequest,
  FaultyTransaction,
  hang,
  ifActive,
} from './indexeddb/transaction-faults.js';
import { endsLike, Rules, switchboard, type Turn } from './rules.js';
import { errorOf, type StoreError } from './store-faults.js';

/** Which calls a rule is about; every part may be left out. */
export interface IndexedDBCondition extends Turn {
  /** Opening a database; a transaction that reads; one that may write. Left out: all of these. */
  readonly call?: 'open' | 'read' | 'write';
  /** How the database's name ends; `*` stands for any text. */
  readonly database?: string;
  /** An object store that the transaction is about, maybe beside others. */
  readonly store?: string;
}

/** Rejects with this error. */
export interface IndexedDBRejection {
  readonly type: 'reject';
  readonly error: StoreError;
  /**
   * - `at-once`: the call itself throws.
   * - `later` (default): opening fails; a read's requests fail; the requests of a write succeed, and then it aborts with
   *   the error: nothing is stored.
   * - `after-commit`: all is stored, and whoever waits for it is told that it failed.
   */
  readonly when?: 'at-once' | 'later' | 'after-commit';
  /** Then the connections to this database are dead, as with `dies`. Default: false. */
  readonly thenDead?: boolean;
}

/** What happens to a call on IndexedDB. */
export type IndexedDBFault =
  | IndexedDBRejection
  /** This call still works; then the connections to this database are dead: they hear `close`, and transactions throw. */
  | { readonly type: 'dies' }
  /** Nothing is heard of it any more. Its writes are done so many milliseconds later; left out: never. */
  | { readonly type: 'hang'; readonly commitAfterMs?: number };

/** Plain data: what a rule is about, and what it does. */
export type IndexedDBRule =
  | { readonly when?: IndexedDBCondition; readonly do: IndexedDBFault }
  /** One `put` (or `add`) on an object store fails, and with it its transaction. */
  | {
      readonly when: Omit<IndexedDBCondition, 'call'> & { readonly call: 'put' };
      readonly do: Omit<IndexedDBRejection, 'when' | 'thenDead'> & {
        readonly when?: 'at-once' | 'later';
        readonly thenDead?: never;
      };
    };

/** A call as it was made, without its content. */
export interface SeenIndexedDBCall {
  readonly call: IndexedDBCall['call'] | 'put';
  readonly database: string;
  readonly stores: readonly string[];
  readonly fault: IndexedDBFault['type'] | undefined;
}

/** An IndexedDB with faults, and the switchboard for them. */
export interface FaultyIndexedDB {
  readonly indexedDB: IDBFactory;
  /** All calls so far, oldest first. Of `put` only those that failed. */
  readonly calls: readonly SeenIndexedDBCall[];
  /** False: no rule acts and none counts. A dead connection stays dead. */
  enabled: boolean;
  /** Adds a rule; the answer takes it away again. Of several that meet a call, the first acts. */
  add(rule: IndexedDBRule): () => void;
  /** Takes all rules away. */
  clear(): void;
}

/** Wraps an IndexedDB, in memory or a browser's own. `clock` is for `commitAfterMs`. */
export function faultyIndexedDB(
  real: IDBFactory,
  rules: readonly IndexedDBRule[] = [],
  { clock }: { readonly clock?: Pick<Clock, 'setTimer'> } = {},
): FaultyIndexedDB {
  const book = new Rules<IndexedDBRule>(rules);
  const calls: SeenIndexedDBCall[] = [];
  const connections = new Connections();
  const transactions = new WeakMap<IDBTransaction, FaultyTransaction>();

  const faultOf = (call: SeenIndexedDBCall['call'], database: string, stores: readonly string[]) => {
    const fault = book.take(({ when = {} }) => isAbout(when, call, database, stores))[0]?.rule.do;
    if (call !== 'put' || fault !== undefined) calls.push({ call, database, stores, fault: fault?.type });
    return fault;
  };

  const indexedDB = layered(real, {
    open: ({ call, database }, make) => {
      const fault = faultOf(call, database, []);
      if (fault === undefined) return make();
      if (fault.type === 'hang') return refusedOpen(real.open(database), undefined);
      if (fault.type === 'dies') {
        const request = make();
        request.addEventListener('success', () => {
          connections.kill(database);
        });
        return request;
      }
      if (fault.thenDead === true) connections.kill(database);
      if (fault.when === 'at-once') throw errorOf(fault.error);
      return fault.when === 'after-commit'
        ? refusedOpen(make(), fault.error, true)
        : refusedOpen(real.open(database), fault.error);
    },
    connected: (connection, begin) => {
      connections.add(connection, begin);
    },
    transaction: ({ call, database, stores }, make, connection) => {
      connections.check(connection);
      const fault = faultOf(call, database, stores);
      if (fault?.type === 'reject' && fault.when === 'at-once') {
        if (fault.thenDead === true) connections.kill(database);
        throw errorOf(fault.error);
      }
      const faulty = new FaultyTransaction(make());
      transactions.set(faulty.transaction, faulty);
      if (fault?.type === 'hang') {
        const asked: RequestMade[] = [];
        hang(faulty, (request) => asked.push(request));
        if (fault.commitAfterMs !== undefined) {
          later(() => void carryOut(real, database, asked), fault.commitAfterMs, clock);
        }
      } else if (fault?.type === 'reject') {
        if (fault.when === 'after-commit') failAfterCommit(faulty, fault.error);
        else if (call === 'read') failReads(faulty, fault.error);
        else abortAtTheEnd(faulty, fault.error);
      }
      if (fault?.type === 'dies' || (fault?.type === 'reject' && fault.thenDead === true)) connections.kill(database);
      return faulty.transaction;
    },
    request: (request, make) => {
      const faulty = transactions.get(request.transaction);
      if (faulty === undefined) return make();
      const isPut = request.method === 'put' || request.method === 'add';
      const fault = isPut ? faultOf('put', request.database, [request.store]) : undefined;
      if (fault?.type !== 'reject') return faulty.request(request, make);
      if (fault.when === 'at-once') throw errorOf(fault.error);
      return failRequest(faulty, request.probe(), fault.error);
    },
  });
  return Object.assign(switchboard(book), { indexedDB, calls });
}

type Begin = (stores: readonly string[]) => IDBTransaction;

/** The open connections: those to one database die together, as a browser closes them. */
class Connections {
  readonly #open = new Map<IDBDatabase, { emit: (event: Event) => void; begin: Begin }>();
  readonly #dead = new WeakSet<IDBDatabase>();

  add(connection: IDBDatabase, begin: Begin): void {
    const emit = gated(connection, eventsOf.database, (_event, deliver) => {
      deliver();
    });
    this.#open.set(connection, { emit, begin });
    const close = connection.close.bind(connection);
    setOwn(connection, 'close', () => {
      this.#open.delete(connection);
      close();
    });
  }

  /** Throws as every transaction on a closed connection does: it is no call that a rule counts. */
  check(connection: IDBDatabase): void {
    if (this.#dead.has(connection)) throw new DOMException('The database connection is closing.', 'InvalidStateError');
  }

  kill(database: string): void {
    for (const [connection, { emit, begin }] of this.#open) {
      if (connection.name !== database) continue;
      this.#open.delete(connection);
      // What is under way comes to its end first: a transaction over all stores ends after it.
      const stores = Array.from(connection.objectStoreNames);
      const told = (): void => {
        emit(eventFor(connection, 'close'));
      };
      if (stores.length === 0) told();
      else begin(stores).addEventListener('complete', told);
      this.#dead.add(connection);
      connection.close();
    }
  }
}

/** An opening that opens nothing for whoever asked; without an error it is never heard of. */
function refusedOpen(request: IDBOpenDBRequest, error: StoreError | undefined, isDone = false): IDBOpenDBRequest {
  const emit = gated(request, eventsOf.open, ({ type }, deliver) => {
    if (type === 'blocked') return;
    if (type === 'upgradeneeded') {
      if (isDone) deliver();
      else request.transaction?.abort();
      return;
    }
    if (type === 'success') request.result.close();
    if (error === undefined) return;
    setOwn(request, 'error', errorOf(error));
    setOwn(request, 'result', undefined);
    emit(eventFor(request, 'error'));
  });
  return request;
}

/** Does what was asked of a transaction that hung, in one of its own. */
function carryOut(real: IDBFactory, database: string, asked: readonly RequestMade[]): void {
  const writes = asked.filter(({ method }) => ['put', 'add', 'delete', 'clear'].includes(method));
  const stores = [...new Set(writes.map(({ store }) => store))];
  if (stores.length === 0) return;
  const request = real.open(database);
  request.addEventListener('success', () => {
    const connection = request.result;
    ifActive(() => {
      const transaction = connection.transaction(stores, 'readwrite');
      for (const { store, method, args } of writes) {
        const target = transaction.objectStore(store);
        Reflect.apply(Reflect.get(target, method) as () => unknown, target, args);
      }
    });
    connection.close();
  });
}

function later(run: () => void, ms: number, clock: Pick<Clock, 'setTimer'> | undefined): void {
  if (ms <= 0) run();
  else if (clock === undefined) setTimeout(run, ms);
  else clock.setTimer(run, ms);
}

function isAbout(
  { call: wanted, database: name, store }: Omit<IndexedDBCondition, 'call'> & { call?: SeenIndexedDBCall['call'] },
  call: SeenIndexedDBCall['call'],
  database: string,
  stores: readonly string[],
): boolean {
  if (wanted === undefined ? call === 'put' : wanted !== call) return false;
  if (name !== undefined && !endsLike(database, name)) return false;
  return store === undefined || stores.includes(store);
}
