import type { Clock } from '@afield/client';
import { withFaults, type IndexedDBFault, type IndexedDBRejection, type FaultableCall } from './indexeddb/faults.js';
import { endsLike, Rules, switchboard, type Turn } from './rules.js';

/** Which calls a rule is about; every part may be left out. */
export interface IndexedDBCondition extends Turn {
  /** Opening a database; a transaction that reads; one that may write. Left out: all of these. */
  readonly call?: 'open' | 'read' | 'write';
  /** How the database's name ends; `*` stands for any text. */
  readonly database?: string;
  /** An object store that the transaction is about, maybe beside others. */
  readonly store?: string;
}

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
export interface SeenIndexedDBCall extends FaultableCall {
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
  const indexedDB = withFaults(
    real,
    ({ call, database, stores }) => {
      const fault = book.take(({ when = {} }) => isAbout(when, call, database, stores))[0]?.rule.do;
      if (call !== 'put' || fault !== undefined) calls.push({ call, database, stores, fault: fault?.type });
      return fault;
    },
    clock,
  );
  return Object.assign(switchboard(book), { indexedDB, calls });
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
