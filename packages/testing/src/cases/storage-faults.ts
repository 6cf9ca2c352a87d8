import type { FakeClock } from '../fake-clock.js';
import { StoreFaults, type StoreError, type StoreFault } from '../store-faults.js';
import { withFaults, type FaultableCall, type IndexedDBFault } from '../indexeddb/faults.js';
import type { WatchedCall } from '../watched-pouch.js';
import type { FaultBook } from './fault-book.js';
import type { StorageFault } from './schema.js';

/** What case files call a local database. */
export type LocalWord = 'docs' | 'queue' | 'index';

export interface StorageFaultsOptions {
  readonly faults: FaultBook;
  readonly clock: FakeClock;
  readonly wordOf: (database: string) => Exclude<LocalWord, 'index'>;
  /** The batch (from 1) that works on these documents; undefined when none does. */
  readonly batchOf: (ids: readonly string[]) => number | undefined;
}

/** Says which storage fault of a case a call meets. */
export class StorageFaults {
  readonly #happening: StoreFaults;
  #indexWrites = 0;

  constructor(private readonly options: StorageFaultsOptions) {
    this.#happening = new StoreFaults(options.clock);
  }

  around<T>(call: WatchedCall, run: () => Promise<T>): Promise<T> {
    return this.#happening.around(call, run, () => this.#faultOf(call));
  }

  /** The IndexedDB of the case's device, in which the calls on indexes meet their faults. */
  indexedDB(real: IDBFactory): IDBFactory {
    return withFaults(real, (call) => this.#faultOfIndex(call), this.options.clock);
  }

  /** A write transaction was carried out: the next one belongs to the next batch. */
  indexWritten(): void {
    this.#indexWrites += 1;
  }

  #faultOfIndex(call: FaultableCall): IndexedDBFault | undefined {
    if (call.call === 'open' || call.call === 'put') return undefined;
    for (const fault of this.options.faults.of('storage')) {
      const { call: wanted, db = 'index', batch, point } = fault.when;
      if (db !== 'index' || point !== undefined) continue;
      if (wanted !== undefined && (wanted === 'bulkDocs' ? 'write' : wanted) !== call.call) continue;
      if (batch !== undefined && (call.call !== 'write' || batch !== this.#indexWrites + 1)) continue;
      const now = this.options.faults.occurs(fault);
      if (now === 'now') return this.#inWordsOfIndexedDB(fault.do);
      // A connection that is dead throws by itself, until it is opened anew.
      if (now === 'later' && fault.do.then_reject !== undefined && fault.do.break_handle !== true) {
        return rejection(fault.do.then_reject);
      }
    }
    return undefined;
  }

  #inWordsOfIndexedDB(todo: StorageFault['do']): IndexedDBFault | undefined {
    const fault = this.#inWordsOfTheStore(todo);
    if (fault?.type === 'hang') return fault;
    if (todo.reject === undefined) return fault?.type === 'dies' ? { type: 'dies' } : undefined;
    return {
      type: 'reject',
      error: todo.reject as StoreError,
      when: todo.commit === true ? 'after-commit' : 'later',
      thenDead: todo.break_handle === true,
    };
  }

  #faultOf(call: WatchedCall): StoreFault | undefined {
    for (const fault of this.options.faults.of('storage')) {
      if (!this.#concerns(fault, call)) continue;
      const now = this.options.faults.occurs(fault);
      if (now === 'now') return this.#inWordsOfTheStore(fault.do);
      if (now === 'later' && fault.do.then_reject !== undefined) return rejection(fault.do.then_reject);
    }
    return undefined;
  }

  #inWordsOfTheStore(todo: StorageFault['do']): StoreFault | undefined {
    if (todo.hang === true) {
      if (todo.carry_out_at_s === undefined) return { type: 'hang' };
      return { type: 'hang', commitAfterMs: todo.carry_out_at_s * 1000 - this.options.clock.elapsed };
    }
    const dead = (todo.then_reject ?? todo.reject ?? { name: 'InvalidStateError' }) as StoreError;
    if (todo.reject === undefined) return todo.break_handle === true ? { type: 'dies', error: dead } : undefined;
    return {
      ...rejection(todo.reject),
      ...(todo.commit === undefined ? {} : { commit: todo.commit }),
      ...(todo.break_handle === true ? { thenDead: dead } : {}),
    };
  }

  #concerns(fault: StorageFault, call: WatchedCall): boolean {
    const { call: wanted, db, batch, point } = fault.when;
    if (point !== undefined || call.kind === 'other') return false;
    if (wanted === 'bulkDocs' ? call.method !== 'bulkDocs' : wanted !== undefined && wanted !== call.kind) return false;
    if (db !== undefined && db !== this.options.wordOf(call.database)) return false;
    return batch === undefined || this.options.batchOf(call.ids) === batch;
  }
}

/** The fields of a case file are the fields of the error: a missing `status` stays missing. */
function rejection(error: object): { readonly type: 'reject'; readonly error: StoreError } {
  return { type: 'reject', error: error as StoreError };
}
