import type { PouchConstructor, PouchLike } from '@afield/client';
import { MemoryPouch } from './cases/memory-pouch.js';
import { FakeChannels } from './fake-channels.js';
import { FakeClock } from './fake-clock.js';
import { FakeConnectivity } from './fake-connectivity.js';
import { FakeLocks } from './fake-locks.js';
import { FakePresence } from './fake-presence.js';
import { FakeProcess, type ProcessHooks } from './fake-process.js';
import { faultyFetch, type FaultyFetch } from './faulty-fetch.js';
import { faultyIndexedDB, type FaultyIndexedDB } from './faulty-indexeddb.js';
import { faultyStore, type FaultyStore } from './faulty-store.js';
import { InFlight } from './in-flight.js';
import { memoryIndexedDB } from './indexeddb/memory-indexeddb.js';
import { trackedIndexedDB } from './indexeddb/tracked.js';
import { watchedPouch } from './watched-pouch.js';
import { wholeAnswer } from './whole-answer.js';

export interface FakeDeviceOptions {
  /** Where its databases live. Default: `MemoryPouch`. */
  readonly PouchDB?: PouchConstructor;
  /** Where its indexes live. Default: a new `memoryIndexedDB()`. */
  readonly indexedDB?: IDBFactory;
  /** The network beyond the device. Default: the `fetch` of the system. */
  readonly fetch?: typeof fetch;
  /** The wall clock at the start, milliseconds since 1970. */
  readonly startAt?: number;
  /** A device that it lives beside: both have one clock, and time goes on when both are at rest. Default: a clock of its own. */
  readonly beside?: FakeDevice;
}

/** What was waited for did not come, although all the time was given that it may take. */
export class NothingHappensError extends Error {
  readonly code = 'nothing_happens';
  constructor(why: string) {
    super(`What the test waits for does not come: ${why}.`);
    this.name = 'NothingHappensError';
  }
}

let devices = 0;

/**
 * A device in a test: its databases, clock, locks and network, with a switchboard of faults for each. Nothing in it
 * sleeps: time goes on when the test says so, and after each step the device comes to rest.
 */
export class FakeDevice {
  readonly inFlight: InFlight;
  readonly clock: FakeClock;
  readonly connectivity = new FakeConnectivity();
  readonly presence = new FakePresence();
  readonly locks = new FakeLocks();
  readonly channels = new FakeChannels();
  /** Faults of its databases. */
  readonly store: FaultyStore;
  /** Faults of its IndexedDB, where the indexes are. */
  readonly indexStore: FaultyIndexedDB;
  /** Faults of its network. */
  readonly network: FaultyFetch;
  /** Its IndexedDB, past all faults and kills: to write and read what a test needs. */
  readonly indexedDB: IDBFactory;
  readonly #databases = new Set<string>();
  readonly #connections = new Set<IDBDatabase>();
  readonly #processes: FakeProcess[] = [];
  /** Its databases, past all faults and kills; their calls count as under way. */
  readonly #PouchDB: PouchConstructor;
  #ids = 0;
  #seed = 1;

  constructor({
    PouchDB = MemoryPouch,
    indexedDB = memoryIndexedDB(),
    fetch = globalThis.fetch,
    startAt,
    beside,
  }: FakeDeviceOptions = {}) {
    devices += 1;
    const inFlight = beside?.inFlight ?? new InFlight();
    this.inFlight = inFlight;
    this.clock = beside?.clock ?? new FakeClock(() => inFlight.rest(), startAt);
    this.#PouchDB = watchedPouch(named(PouchDB, `device${String(devices)}-`, this.#databases), {
      around: (_call, run) => inFlight.track(() => run()),
    });
    this.store = faultyStore(this.#PouchDB, [], { clock: this.clock });
    this.indexedDB = trackedIndexedDB(indexedDB, inFlight, this.#connections);
    this.indexStore = faultyIndexedDB(this.indexedDB, [], { clock: this.clock });
    this.network = faultyFetch((input, init) => inFlight.track(() => wholeAnswer(fetch(input, init))), [], {
      clock: this.clock,
    });
  }

  /** A new tab. What `createClient` needs of it: `PouchDB` and `environment`. */
  process(hooks: ProcessHooks = {}): FakeProcess {
    const process = new FakeProcess({
      clock: this.clock,
      inFlight: this.inFlight,
      locks: this.locks.tab(),
      channels: this.channels,
      connectivity: this.connectivity,
      presence: this.presence,
      PouchDB: this.store.PouchDB,
      indexedDB: this.indexStore.indexedDB,
      fetch: this.network.fetch,
      random: () => (this.#seed = (this.#seed * 16_807) % 2_147_483_647) / 2_147_483_647,
      newId: () => `id-${String((this.#ids += 1))}`,
      hooks,
    });
    this.#processes.push(process);
    return process;
  }

  /** One of its databases, past all faults and kills: to write and read what a test needs. */
  database(name: string): PouchLike {
    return new this.#PouchDB(name);
  }

  /**
   * Lets time go on, from timer to timer, until the promise settles; answers with what it brings.
   * Throws `NothingHappensError` when no timer is left, or after `withinMs` of its time (default: an hour).
   */
  async until<T>(promise: Promise<T>, withinMs = 3_600_000): Promise<T> {
    let settled = false;
    const note = (): void => void (settled = true);
    promise.then(note, note);
    const end = this.clock.monotonic() + withinMs;
    for (;;) {
      await this.clock.advance(0);
      if (settled) return promise;
      const next = this.clock.nextTimerAt;
      if (next === undefined) throw new NothingHappensError('nothing is under way, and no timer waits');
      if (next > end) throw new NothingHappensError(`${String(withinMs)} ms of its time have passed`);
      await this.clock.advance(Math.max(0, next - this.clock.monotonic()));
    }
  }

  /** Kills its processes and removes its databases. */
  async dispose(): Promise<void> {
    for (const process of this.#processes) process.kill();
    await this.inFlight.rest();
    for (const name of this.#databases) await this.database(name).destroy();
    for (const connection of this.#connections) connection.close();
    for (const name of new Set([...this.#connections].map((connection) => connection.name))) {
      this.indexedDB.deleteDatabase(name);
    }
    await this.inFlight.rest();
  }
}

/**
 * Databases of one device have names of their own, and are remembered. Each tab of a browser has its own connection; in
 * one process PouchDB shares it, and whoever closed it would cut off the others: here only the handle is closed.
 */
function named(PouchDB: PouchConstructor, prefix: string, names: Set<string>): PouchConstructor {
  function NamedPouch(name: string, options?: object): PouchLike {
    if (/^https?:/.test(name)) return new PouchDB(name, options);
    names.add(name);
    const handle = new PouchDB(`${prefix}${name}`, options);
    return Object.assign(handle, {
      _close: (done: () => void) => {
        done();
      },
    });
  }
  return Object.assign(NamedPouch, {
    replicate: (source: PouchLike, target: PouchLike, options?: object) => PouchDB.replicate(source, target, options),
  }) as unknown as PouchConstructor;
}
