import type { Clock } from '@afield/client';
import { errorOf, type StoreError } from '../store-faults.js';
import { eventFor, eventsOf, gated, setOwn } from './events.js';
import { layered, type IndexedDBCall } from './layer.js';
import {
  abortAtTheEnd,
  failAfterCommit,
  failReads,
  failRequest,
  FaultyTransaction,
  hang,
  ifActive,
} from './transaction-faults.js';

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
  /** Its end is never heard of. It is carried out so many milliseconds later, if nobody aborts it then; left out: never. */
  | { readonly type: 'hang'; readonly commitAfterMs?: number };

/** A call that may meet a fault: `put` is one `put` or `add` in a transaction. */
export interface FaultableCall extends Omit<IndexedDBCall, 'call'> {
  readonly call: IndexedDBCall['call'] | 'put';
}

/** An IndexedDB in which each call meets the fault that `faultOf` says. Of a `put` only rejections happen. */
export function withFaults(
  real: IDBFactory,
  faultOf: (call: FaultableCall) => IndexedDBFault | undefined,
  clock?: Pick<Clock, 'setTimer'>,
): IDBFactory {
  const connections = new Connections();
  const transactions = new WeakMap<IDBTransaction, FaultyTransaction>();

  return layered(real, {
    open: ({ call, database }, make) => {
      const fault = faultOf({ call, database, stores: [] });
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
      const fault = faultOf({ call, database, stores });
      if (fault?.type === 'reject' && fault.when === 'at-once') {
        if (fault.thenDead === true) connections.kill(database);
        throw errorOf(fault.error);
      }
      const faulty = new FaultyTransaction(make());
      transactions.set(faulty.transaction, faulty);
      if (fault?.type === 'hang') {
        const carryOut = hang(faulty);
        if (fault.commitAfterMs !== undefined) {
          later(
            () => {
              inLateTransaction(real, database, stores, faulty.transaction.mode, carryOut);
            },
            fault.commitAfterMs,
            clock,
          );
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
      const fault = isPut ? faultOf({ call: 'put', database: request.database, stores: [request.store] }) : undefined;
      if (fault?.type !== 'reject') return faulty.request(request, make);
      if (fault.when === 'at-once') throw errorOf(fault.error);
      return failRequest(faulty, request.probe(), fault.error);
    },
  });
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

/** A transaction on a connection of its own: that of one that hung may be closed by now. */
function inLateTransaction(
  real: IDBFactory,
  database: string,
  stores: readonly string[],
  mode: IDBTransactionMode,
  carryOut: (late: IDBTransaction) => void,
): void {
  const request = real.open(database);
  request.addEventListener('success', () => {
    const connection = request.result;
    ifActive(() => {
      carryOut(connection.transaction([...stores], mode));
    });
    connection.close();
  });
}

function later(run: () => void, ms: number, clock: Pick<Clock, 'setTimer'> | undefined): void {
  if (ms <= 0) run();
  else if (clock === undefined) setTimeout(run, ms);
  else clock.setTimer(run, ms);
}
