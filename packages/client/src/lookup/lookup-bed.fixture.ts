import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { filter, firstValueFrom } from 'rxjs';
import { defaultEnvironment } from '../environment.js';
import type { Locks } from '../model/environment.js';
import type { Doc } from '../model/json.js';
import type { IndexDefinition, IndexState } from '../model/lookup.js';
import type { PouchConstructor, PouchLike } from '../model/pouch.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { Scheduler } from '../retry/scheduler.js';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import { defineIndex } from './define.js';
import { faultyTransactions, type TransactionFault } from './faulty-transactions.fixture.js';
import { KeptIndex } from './kept-index.js';

export const byColour = defineIndex({
  name: 'by-colour',
  version: 1,
  keys: (doc) => doc['colour'] as string | undefined,
});

/** The longest time between two retries (B1). */
const longestRetryMs = 1000;
const { breathe } = defaultEnvironment();

function openDB(factory: IDBFactory, name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = factory.open(name);
    request.onsuccess = () => {
      resolve(request.result);
    };
    request.onerror = () => {
      reject(request.error ?? new Error('not opened'));
    };
  });
}

/** A database of documents, an IndexedDB, one clock, and as many indexes on them as a test opens. */
export class LookupBed {
  readonly PouchDB: PouchConstructor;
  readonly clock = new ManualClock();
  readonly factory = new IDBFactory();
  readonly warnings: string[] = [];
  /** Faults of write transactions of an index, asked for each: the first is 1. */
  writeFault: ((nth: number) => TransactionFault | undefined) | undefined;
  readFault: ((nth: number) => TransactionFault | undefined) | undefined;
  /** Errors of the documents' changes, asked for each read: the first is 1. */
  changesFault: ((nth: number) => unknown) | undefined;
  /** Holds what a read of the changes has brought until its promise resolves; asked for each read: the first is 1. */
  pageHeld: ((nth: number) => Promise<void> | undefined) | undefined;
  writes = 0;
  reads = 0;
  /** Connections that were opened. */
  opens = 0;
  /** Transactions that have begun and not ended. */
  openTransactions = 0;
  /** Called after each write that was carried out, with its number. */
  afterWrite: ((nth: number) => Promise<void>) | undefined;
  /** Called when all rows are cleared. */
  cleared: (() => void) | undefined;
  /** Called when an index gives the page a turn. */
  breathed: (() => void) | undefined;
  /** What the database says its last sequence is, where a test lies about it. */
  sequenceShown: number | undefined;
  readonly #looking: Promise<void>[] = [];
  /** Reads of the changes, with the number of rows that each has brought. */
  readonly pages: { readonly since: number; readonly rows: number }[] = [];
  /** Names of the locks that are held now. */
  readonly held = new Set<string>();
  /** Web Locks: one holder at a time. */
  locks: Locks = {
    request: async (name, signal, whileHeld) => {
      while (this.held.has(name)) {
        signal.throwIfAborted();
        await breathe();
      }
      this.held.add(name);
      try {
        await whileHeld();
      } finally {
        this.held.delete(name);
      }
    },
  };
  /** Whether what one tab says reaches the others. */
  news = true;
  readonly #channels = new Map<string, Set<(message?: unknown) => void>>();
  readonly #opened: KeptIndex[] = [];
  readonly #closings: AbortController[] = [];
  pouch: PouchLike;

  constructor() {
    this.PouchDB = memoryPouch();
    this.pouch = new this.PouchDB('clinic');
  }

  /** Writes documents `<prefix>1` … with these fields. */
  async fill(count: number, fields: (n: number) => object = () => ({}), prefix = 'd'): Promise<void> {
    const docs = Array.from({ length: count }, (_, at) => ({
      _id: `${prefix}${String(at + 1).padStart(4, '0')}`,
      ...fields(at + 1),
    }));
    await this.pouch.bulkDocs(docs);
  }

  async edit(id: string, fields: object): Promise<void> {
    const doc = (await this.pouch.get(id)) as Doc;
    await this.pouch.bulkDocs([{ ...doc, ...fields }]);
  }

  /** One tab's index. `end`: the tab is closed. */
  open(definition: IndexDefinition = byColour): KeptIndex {
    return this.openTab(definition).index;
  }

  openTab(definition: IndexDefinition = byColour): { index: KeptIndex; end: () => Promise<void> } {
    const closing = new AbortController();
    const { clock } = this;
    const scheduler = new Scheduler(clock, () => 0);
    const index = new KeptIndex(definition, {
      client: 'clinic',
      documents: new LocalDatabase(() => this.#watched()),
      indexedDB: faultyTransactions(this.factory, {
        fault: (mode) => {
          if (mode !== 'readwrite') return this.readFault?.((this.reads += 1));
          this.writes += 1;
          return this.writeFault?.(this.writes);
        },
        opened: () => (this.opens += 1),
        begun: (tx) => {
          this.#watch(tx, this.writes);
        },
      }),
      locks: this.locks,
      clock,
      scheduler,
      timeoutMs: 60_000,
      channel: (name, news) => this.#channel(name, news),
      breathe: () => {
        this.breathed?.();
        return breathe();
      },
      random: () => 1,
      warn: (line) => this.warnings.push(line),
      closed: closing.signal,
      changed: () => undefined,
    });
    this.#opened.push(index);
    this.#closings.push(closing);
    const end = async (): Promise<void> => {
      closing.abort();
      scheduler.close();
      await index.close();
    };
    return { index, end };
  }

  /** Lets time go on, retry by retry, until the promise settles. Waits longer than a retry are a test's own to end. */
  async until<Value>(promise: Promise<Value>): Promise<Value> {
    let settled = false;
    const note = (): void => void (settled = true);
    promise.then(note, note);
    while (!settled) {
      await breathe();
      const left = (this.clock.nextTimerAt ?? Infinity) - this.clock.monotonic();
      if (!settled && left <= longestRetryMs) this.clock.advance(Math.max(0, left));
    }
    return promise;
  }

  reaches(index: KeptIndex, state: IndexState['state']): Promise<IndexState> {
    return this.until(firstValueFrom(index.state$.pipe(filter((one) => one.state === state))));
  }

  /** All that `afterWrite` does is done. */
  async looked(): Promise<void> {
    await Promise.all(this.#looking);
  }

  /** Resolves when so many writes have begun. */
  async wroteTimes(times: number): Promise<void> {
    while (this.writes < times) await breathe();
    await this.rest();
  }

  /** Resolves when the changes have been read so many times. */
  async readTimes(times: number): Promise<void> {
    while (this.pages.length < times) await breathe();
    await this.rest();
  }

  /** Resolves when a timer waits that is due so soon. */
  async timerWithin(ms: number): Promise<void> {
    while ((this.clock.nextTimerAt ?? Infinity) - this.clock.monotonic() > ms) await breathe();
  }

  /** One turn of the event loop. */
  turn(): Promise<void> {
    return breathe();
  }

  /** Gives the stores the turns that they need to come to rest. */
  async rest(): Promise<void> {
    for (let turn = 0; turn < 100; turn += 1) await breathe();
  }

  /** The resume point, and how many rows are stored; past all faults. */
  async stored(name = 'by-colour'): Promise<{ seq: number; rows: number }> {
    const db = await openDB(this.factory, `clinic-afield-index-${name}-v1`);
    const tx = db.transaction(['rows', 'meta'], 'readonly');
    const [meta, rows] = [tx.objectStore('meta').get('meta'), tx.objectStore('rows').count()];
    await new Promise<void>((resolve) => (tx.oncomplete = () => resolve()));
    db.close();
    return { seq: (meta.result as { seq?: number } | undefined)?.seq ?? 0, rows: rows.result };
  }

  async storedIds(name = 'by-colour'): Promise<readonly string[]> {
    const db = await openDB(this.factory, `clinic-afield-index-${name}-v1`);
    const tx = db.transaction('rows', 'readonly');
    const ids = tx.objectStore('rows').getAllKeys();
    await new Promise<void>((resolve) => (tx.oncomplete = () => resolve()));
    db.close();
    return ids.result as string[];
  }

  async storedUpTo(seq: number): Promise<void> {
    while ((await this.stored()).seq < seq) await breathe();
  }

  async databasesAre(names: readonly string[]): Promise<void> {
    const now = async (): Promise<string> => (await this.factory.databases()).map(({ name }) => name).join();
    while ((await now()) !== names.join()) await breathe();
  }

  /** The database of the documents is destroyed and made again. */
  async remake(): Promise<void> {
    await this.pouch.destroy();
    this.pouch = new this.PouchDB('clinic');
    await this.pouch.info();
  }

  async close(): Promise<void> {
    for (const closing of this.#closings) closing.abort();
    await Promise.all(this.#opened.map((index) => index.close()));
    await this.pouch.destroy();
  }

  #watched(): PouchLike {
    const pouch = new this.PouchDB('clinic');
    const changes = pouch.changes.bind(pouch);
    const watched = (options: {
      include_docs?: boolean;
      since: number;
    }): PouchLike['changes'] extends (o: object) => infer C ? C : never => {
      if (options.include_docs !== true) return changes(options); // the feed, and what it reads for itself
      const error = this.changesFault?.(this.pages.length + 1);
      const answer = error === undefined ? Promise.resolve(changes(options)) : Promise.reject(error as Error);
      const page = { since: options.since, rows: 0 };
      this.pages.push(page);
      const held = this.pageHeld?.(this.pages.length);
      const counted = answer.then(async (result) => {
        await held;
        page.rows = (result as { results: unknown[] }).results.length;
        return result;
      });
      return Object.assign(counted, { on: () => counted, cancel: () => undefined });
    };
    const info = pouch.info.bind(pouch);
    const shown = async (): Promise<unknown> => {
      const said = (await info()) as object;
      return this.sequenceShown === undefined ? said : { ...said, update_seq: this.sequenceShown };
    };
    return Object.assign(pouch, { changes: watched, info: shown });
  }

  #watch(tx: IDBTransaction, nth: number): void {
    this.openTransactions += 1;
    let isOpen = true;
    const ended = (): void => {
      if (isOpen) this.openTransactions -= 1;
      isOpen = false;
    };
    // A transaction that is aborted tells its requests first: by then it holds nothing any more.
    tx.addEventListener('error', ended);
    tx.addEventListener('abort', ended);
    tx.addEventListener('complete', ended);
    if (tx.mode !== 'readwrite') return;
    tx.addEventListener('complete', () => {
      const looking = this.afterWrite?.(nth);
      if (looking !== undefined) this.#looking.push(looking);
    });
    const objectStore = tx.objectStore.bind(tx);
    tx.objectStore = (name) => {
      const store = objectStore(name);
      const clear = store.clear.bind(store);
      store.clear = () => {
        if (name === 'rows') this.cleared?.();
        return clear();
      };
      return store;
    };
  }

  #channel(name: string, news: (message?: unknown) => void): { announce(message?: unknown): void; close(): void } {
    const all = this.#channels.get(name) ?? new Set();
    this.#channels.set(name, all);
    all.add(news);
    return {
      announce: (message) => {
        if (!this.news) return;
        for (const other of all) if (other !== news) queueMicrotask(() => all.has(other) && other(message));
      },
      close: () => {
        all.delete(news);
      },
    };
  }
}
