import type { Clock, PouchConstructor } from '@afield/client';
import { endsLike, Rules, switchboard, type Turn } from './rules.js';
import { StoreFaults, type StoreFault } from './store-faults.js';
import { watchedPouch, type WatchedCall } from './watched-pouch.js';

/** Which calls a rule is about; every part may be left out. Calls that PouchDB makes on itself are never met. */
export interface StoreCondition extends Turn {
  /** A kind of call, or one method of PouchDB. */
  readonly call?:
    'read' | 'write' | 'allDocs' | 'bulkDocs' | 'bulkGet' | 'changes' | 'get' | 'put' | 'post' | 'remove' | 'info';
  /** How the database's name ends; `*` stands for any text. The queue's ends with `-afield-queue`. */
  readonly database?: string;
  /** A document that the call names. */
  readonly id?: string;
}

/** Plain data: what a rule is about, and what it does. */
export interface StoreRule {
  readonly when?: StoreCondition;
  readonly do: StoreFault;
}

/** A call as it was made, without its content. */
export interface SeenCall {
  readonly method: string;
  readonly database: string;
  readonly fault: StoreFault['type'] | undefined;
}

/** A PouchDB with faults, and the switchboard for them. */
export interface FaultyStore {
  readonly PouchDB: PouchConstructor;
  /** All calls so far, oldest first. */
  readonly calls: readonly SeenCall[];
  /** False: no rule acts and none counts. A dead handle stays dead. */
  enabled: boolean;
  /** Adds a rule; the answer takes it away again. Of several that meet a call, the first acts. */
  add(rule: StoreRule): () => void;
  /** Takes all rules away. */
  clear(): void;
}

/** Wraps a PouchDB constructor; databases of a server (`http://…`) are left alone. `clock` is for `commitAfterMs`. */
export function faultyStore(
  real: PouchConstructor,
  rules: readonly StoreRule[] = [],
  { clock }: { readonly clock?: Pick<Clock, 'setTimer'> } = {},
): FaultyStore {
  const book = new Rules<StoreRule>(rules);
  const happening = new StoreFaults(clock);
  const calls: SeenCall[] = [];
  return Object.assign(switchboard(book), {
    calls,
    PouchDB: watchedPouch(real, {
      around: (call, run) => {
        let fault: StoreFault | undefined;
        const result = happening.around(call, run, () => {
          fault = book.take(({ when = {} }) => isAbout(when, call))[0]?.rule.do;
          return fault;
        });
        calls.push({ method: call.method, database: call.database, fault: fault?.type });
        return result;
      },
    }),
  });
}

function isAbout({ call: wanted, database, id }: StoreCondition, call: WatchedCall): boolean {
  if (wanted !== undefined && wanted !== call.kind && wanted !== call.method) return false;
  if (database !== undefined && !endsLike(call.database, database)) return false;
  return id === undefined || call.ids.includes(id);
}
