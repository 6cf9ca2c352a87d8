import type { FakeClock } from '../fake-clock.js';
import { StoreFaults, type StoreError, type StoreFault } from '../store-faults.js';
import type { WatchedCall } from '../watched-pouch.js';
import type { FaultBook } from './fault-book.js';
import type { StorageFault } from './schema.js';

/** What case files call a local database. */
export type LocalWord = 'docs' | 'queue' | 'index';

export interface StorageFaultsOptions {
  readonly faults: FaultBook;
  readonly clock: FakeClock;
  readonly wordOf: (database: string) => LocalWord;
  /** The batch (from 1) that works on these documents; undefined when none does. */
  readonly batchOf: (ids: readonly string[]) => number | undefined;
}

/** Says which storage fault of a case a call meets. */
export class StorageFaults {
  readonly #happening: StoreFaults;

  constructor(private readonly options: StorageFaultsOptions) {
    this.#happening = new StoreFaults(options.clock);
  }

  around<T>(call: WatchedCall, run: () => Promise<T>): Promise<T> {
    return this.#happening.around(call, run, () => this.#faultOf(call));
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
function rejection(error: object): Extract<StoreFault, { type: 'reject' }> {
  return { type: 'reject', error: error as StoreError };
}
