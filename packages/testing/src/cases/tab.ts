import { createClient, type Client, type ClientOptions } from '@afield/client';
import type { FakeClock } from '../fake-clock.js';
import type { FakeConnectivity } from '../fake-connectivity.js';
import type { FakeChannels } from '../fake-channels.js';
import type { FakeLocks } from '../fake-locks.js';
import type { FakePresence } from '../fake-presence.js';
import { FakeProcess } from '../fake-process.js';
import type { IndexedDBCall } from '../indexeddb/layer.js';
import type { InFlight } from '../in-flight.js';
import type { WatchedCall } from '../watched-pouch.js';
import { wholeAnswer } from '../whole-answer.js';
import { MemoryPouch } from './memory-pouch.js';
import type { StorageFaults } from './storage-faults.js';

/** What all tabs of a browser share. */
export interface Browser {
  readonly clock: FakeClock;
  readonly inFlight: InFlight;
  readonly locks: FakeLocks;
  readonly channels: FakeChannels;
  readonly connectivity: FakeConnectivity;
  readonly presence: FakePresence;
  readonly storage: StorageFaults;
  readonly indexedDB: IDBFactory;
  readonly random: () => number;
  readonly newId: () => string;
  readonly fetch: typeof fetch;
  readonly options: Omit<ClientOptions, 'PouchDB' | 'environment'>;
  /** A local write with new revisions was carried out; the client does not know it yet. */
  readonly written: (call: WatchedCall, tab: Tab) => void;
  /** A call on IndexedDB has ended; the client does not know it yet. */
  readonly indexed: (call: IndexedDBCall) => void;
  /** Whether another tab is alive: the local databases are one per process here, and its handles must stay open. */
  readonly othersLive: (tab: Tab) => boolean;
}

/** One tab with its client. `kill()` is what the system does to a process: every call that is under way never returns. */
export class Tab {
  readonly client: Client;
  readonly #browser: Browser;
  readonly #process: FakeProcess;
  readonly #ends: (() => void)[] = [];

  constructor(
    browser: Browser,
    readonly number: number,
  ) {
    this.#browser = browser;
    this.#process = new FakeProcess({
      clock: browser.clock,
      inFlight: browser.inFlight,
      locks: browser.locks.tab(),
      channels: browser.channels,
      connectivity: browser.connectivity,
      presence: browser.presence,
      PouchDB: MemoryPouch,
      indexedDB: browser.indexedDB,
      storeOptions: { adapter: 'memory' },
      fetch: (input, init) => browser.inFlight.track(() => wholeAnswer(browser.fetch(input, init))),
      random: browser.random,
      newId: browser.newId,
      hooks: {
        call: (call, run) => this.#local(call, run),
        indexedDB: (call, moment) => {
          if (moment === 'after') browser.indexed(call);
        },
      },
    });
    const { PouchDB, environment } = this.#process;
    this.client = createClient({ ...browser.options, PouchDB, environment });
  }

  get alive(): boolean {
    return this.#process.alive;
  }

  /** Timers of this tab that still wait. */
  get timers(): number {
    return this.#process.timers;
  }

  kill(): void {
    this.#process.kill();
    for (const end of this.#ends.splice(0)) end();
  }

  /** Calls back when it is killed: what waits for an answer of its client waits for ever then. */
  whenKilled(end: () => void): void {
    this.#ends.push(end);
  }

  /** Local calls fail as the case says; what is carried out counts as under way. */
  #local<T>(call: WatchedCall, run: () => Promise<T>): Promise<T> {
    return this.#browser.storage.around(call, () =>
      this.#browser.inFlight.track(async () => {
        if (call.method === 'close' && this.#browser.othersLive(this)) return undefined as T;
        const result = await run();
        if (call.kind === 'write') this.#browser.written(call, this);
        return result;
      }),
    );
  }
}
