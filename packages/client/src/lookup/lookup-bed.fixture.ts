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
  writes = 0;
  reads = 0;
  /** Reads of the changes, with the number of rows that each has brought. */
  readonly pages: { readonly since: number; readonly rows: number }[] = [];
  /** Names of the locks that are held now. */
  readonly held = new Set<string>();
  /** Web Locks: one holder at a time. */
  locks: Locks = {
    request: async (name, _signal, whileHeld) => {
      while (this.held.has(name)) await breathe();
      this.held.add(name);
      try {
        await whileHeld();
      } finally {
        this.held.delete(name);
      }
    },
  };
  readonly #channels = new Map<string, Set<(message?: unknown) => void>>();
  readonly #opened: KeptIndex[] = [];
  readonly #closings: AbortController[] = [];
  readonly pouch: PouchLike;

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
      indexedDB: faultyTransactions(this.factory, (mode) =>
        mode === 'readwrite' ? this.writeFault?.(++this.writes) : this.readFault?.(++this.reads),
      ),
      locks: this.locks,
      clock,
      scheduler,
      timeoutMs: 60_000,
      channel: (name, news) => this.#channel(name, news),
      breathe,
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

  async close(): Promise<void> {
    for (const closing of this.#closings) closing.abort();
    await Promise.all(this.#opened.map((index) => index.close()));
    await this.pouch.destroy();
  }

  #watched(): PouchLike {
    const pouch = new this.PouchDB('clinic');
    const changes = pouch.changes.bind(pouch);
    const watched = (options: {
      live?: boolean;
      since: number;
    }): PouchLike['changes'] extends (o: object) => infer C ? C : never => {
      if (options.live === true) return changes(options);
      const error = this.changesFault?.(this.pages.length + 1);
      const answer = error === undefined ? Promise.resolve(changes(options)) : Promise.reject(error as Error);
      const page = { since: options.since, rows: 0 };
      this.pages.push(page);
      const counted = answer.then((result) => {
        page.rows = (result as { results: unknown[] }).results.length;
        return result;
      });
      return Object.assign(counted, { on: () => counted, cancel: () => undefined });
    };
    return Object.assign(pouch, { changes: watched });
  }

  #channel(name: string, news: (message?: unknown) => void): { announce(message?: unknown): void; close(): void } {
    const all = this.#channels.get(name) ?? new Set();
    this.#channels.set(name, all);
    all.add(news);
    return {
      announce: (message) => {
        for (const other of all) if (other !== news) queueMicrotask(() => all.has(other) && other(message));
      },
      close: () => {
        all.delete(news);
      },
    };
  }
}
