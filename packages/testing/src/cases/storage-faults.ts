import type { FakeClock } from '../fake-clock.js';
import type { FaultBook } from './fault-book.js';
import { setOwn, type JsonObject } from './json.js';
import type { StorageFault } from './schema.js';
import type { LocalCall } from './tab-pouch.js';

/** What case files call a local database. */
export type LocalWord = 'docs' | 'queue' | 'index';

export interface StorageFaultsOptions {
  readonly faults: FaultBook;
  readonly clock: FakeClock;
  readonly wordOf: (database: string) => LocalWord;
  /** The batch (from 1) that works on these documents; undefined when none does. */
  readonly batchOf: (ids: readonly string[]) => number | undefined;
}

/** Makes the storage faults of a case happen: calls that reject, hang, or leave the open handle dead. */
export class StorageFaults {
  /** Databases whose open handle is dead, with what their calls reject with. */
  readonly #dead = new Map<string, JsonObject>();

  constructor(private readonly options: StorageFaultsOptions) {}

  async around<T>(call: LocalCall, run: () => Promise<T>): Promise<T> {
    if (call.method === 'close') {
      this.#dead.delete(call.database);
      return run();
    }
    const dead = this.#dead.get(call.database);
    if (dead !== undefined) throw asError(dead);
    for (const fault of this.options.faults.of('storage')) {
      if (!this.#concerns(fault, call)) continue;
      const now = this.options.faults.occurs(fault);
      if (now === 'now') return this.#happen(fault, call, run);
      if (now === 'later' && fault.do.then_reject !== undefined) throw asError(fault.do.then_reject);
    }
    return run();
  }

  async #happen<T>(fault: StorageFault, call: LocalCall, run: () => Promise<T>): Promise<T> {
    const todo = fault.do;
    if (todo.hang === true) {
      if (todo.carry_out_at_s !== undefined) {
        const lateMs = todo.carry_out_at_s * 1000 - this.options.clock.elapsed;
        this.options.clock.setTimer(() => void run().catch(() => undefined), lateMs);
      }
      return new Promise<T>(() => undefined);
    }
    if (todo.commit === true) await run();
    if (todo.break_handle === true) {
      this.#dead.set(call.database, todo.then_reject ?? todo.reject ?? { name: 'InvalidStateError' });
    }
    if (todo.reject !== undefined) throw asError(todo.reject);
    return run();
  }

  #concerns(fault: StorageFault, call: LocalCall): boolean {
    const { call: wanted, db, batch, point } = fault.when;
    if (point !== undefined || call.kind === 'other') return false;
    if (wanted === 'bulkDocs' ? call.method !== 'bulkDocs' : wanted !== undefined && wanted !== call.kind) return false;
    if (db !== undefined && db !== this.options.wordOf(call.database)) return false;
    return batch === undefined || this.options.batchOf(call.ids) === batch;
  }
}

/** An error with exactly these fields: a missing `status` stays missing. */
function asError(fields: JsonObject): Error {
  const error = new Error(String(fields['message'] ?? fields['reason'] ?? fields['name'] ?? 'made to fail'));
  for (const [key, value] of Object.entries(fields)) setOwn(error, key, value);
  return error;
}
