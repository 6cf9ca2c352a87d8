import type { Clock } from '@afield/client';
import { setOwn } from './cases/json.js';
import type { WatchedCall } from './watched-pouch.js';

/**
 * An error of a store, as data. With `domException` a real DOMException; else an Error with exactly these fields, as
 * PouchDB throws them: `{ name: 'indexed_db_went_bad', status: 500, reason: 'InvalidStateError' }`.
 */
export interface StoreError {
  readonly name: string;
  readonly domException?: boolean;
  readonly status?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly [field: string]: unknown;
}

/** What happens to a call on a store. `commit`: the call is carried out all the same (default: false). */
export type StoreFault =
  /** Rejects. `thenDead`: later calls on this database reject too, until it is closed and opened anew. */
  | {
      readonly type: 'reject';
      readonly error: StoreError;
      readonly commit?: boolean;
      readonly thenDead?: boolean | StoreError;
    }
  /** This call still works; the later ones reject until the database is closed and opened anew. */
  | { readonly type: 'dies'; readonly error?: StoreError }
  /** Never settles. It is carried out so many milliseconds later; left out: never. */
  | { readonly type: 'hang'; readonly commitAfterMs?: number }
  /** The quota is used up: a write rejects as PouchDB in a browser does, a read works. */
  | { readonly type: 'full' }
  /** A bulk write answers for these documents with this word (`conflict`, `forbidden` …); the others are written. */
  | {
      readonly type: 'refuse-rows';
      readonly ids: readonly string[];
      readonly error: string;
      readonly status?: number;
      readonly commit?: boolean;
    };

/** Carries a call out, if given with other documents. */
export type Run<T> = (docs?: readonly object[]) => Promise<T>;

/** Makes store faults happen, and knows which handles are dead. */
export class StoreFaults {
  /** Databases whose open handle is dead, with what their calls reject with. */
  readonly #dead = new Map<string, StoreError>();

  constructor(private readonly clock: Pick<Clock, 'setTimer'> | undefined) {}

  /** `faultOf` is asked only when the call reaches the store: a dead handle comes first. */
  around<T>(call: WatchedCall, run: Run<T>, faultOf: () => StoreFault | undefined): Promise<T> {
    if (call.method === 'close') {
      this.#dead.delete(call.database);
      return run();
    }
    const dead = this.#dead.get(call.database);
    if (dead !== undefined) return Promise.reject(errorOf(dead));
    const fault = faultOf();
    return fault === undefined ? run() : this.#happen(fault, call, run);
  }

  async #happen<T>(fault: StoreFault, call: WatchedCall, run: Run<T>): Promise<T> {
    switch (fault.type) {
      case 'reject':
        if (fault.commit === true) await run();
        if (fault.thenDead !== undefined && fault.thenDead !== false) {
          this.#dead.set(call.database, fault.thenDead === true ? fault.error : fault.thenDead);
        }
        throw errorOf(fault.error);
      case 'dies':
        this.#dead.set(call.database, fault.error ?? { name: 'InvalidStateError', domException: true });
        return run();
      case 'hang':
        if (fault.commitAfterMs !== undefined)
          this.#later(() => void run().catch(() => undefined), fault.commitAfterMs);
        return new Promise<T>(() => undefined);
      case 'full':
        if (call.kind === 'write') throw errorOf(quotaExceeded);
        return run();
      case 'refuse-rows':
        return call.method === 'bulkDocs' ? refuseRows(fault, call, run) : run();
    }
  }

  #later(run: () => void, ms: number): void {
    if (ms <= 0) run();
    else if (this.clock === undefined) setTimeout(run, ms);
    else this.clock.setTimer(run, ms);
  }
}

/** How PouchDB's idb adapter says it. */
const quotaExceeded: StoreError = {
  status: 500,
  name: 'indexed_db_went_bad',
  message: 'unknown',
  error: true,
  reason: 'QuotaExceededError',
};

/** A missing field stays missing. */
export function errorOf({ domException, ...fields }: StoreError): Error {
  const message = String(fields.message ?? fields.reason ?? fields.name);
  if (domException === true) return new DOMException(message, fields.name);
  const error = new Error(message);
  for (const [key, value] of Object.entries(fields)) setOwn(error, key, value);
  return error;
}

async function refuseRows<T>(
  fault: Extract<StoreFault, { type: 'refuse-rows' }>,
  call: WatchedCall,
  run: Run<T>,
): Promise<T> {
  const idOf = (doc: object): unknown => (doc as { _id?: unknown })._id;
  const isRefused = (doc: object): boolean => fault.ids.includes(String(idOf(doc)));
  const sent = fault.commit === true ? call.written : call.written.filter((doc) => !isRefused(doc));
  // PouchDB answers in the order of the documents, and PouchDB's own rows have `error: true` and the word as `name`.
  const rows = sent.length === 0 ? [] : ((await run(sent)) as unknown[]);
  const refused = (doc: object): object => ({
    id: idOf(doc),
    error: true,
    name: fault.error,
    status: fault.status ?? statuses[fault.error] ?? 500,
    message: `made to answer ${fault.error}`,
  });
  const bySent = new Map(sent.map((doc, at) => [doc, rows[at]]));
  return call.written.map((doc) => (isRefused(doc) ? refused(doc) : bySent.get(doc))) as T;
}

const statuses: Readonly<Record<string, number | undefined>> = {
  conflict: 409,
  forbidden: 403,
  unauthorized: 401,
  missing_stub: 412,
};
