import type { Environment, PouchConstructor } from '@afield/client';
import type { FakeChannels } from './fake-channels.js';
import type { FakeClock } from './fake-clock.js';
import type { FakeConnectivity } from './fake-connectivity.js';
import type { FakeTabLocks } from './fake-locks.js';
import type { FakePresence } from './fake-presence.js';
import type { InFlight } from './in-flight.js';
import type { IndexedDBCall } from './indexeddb/layer.js';
import { ProcessIndexedDB } from './indexeddb/process-indexeddb.js';
import { watchedPouch, type WatchedCall } from './watched-pouch.js';

/** A request as a process makes it. */
export interface ProcessRequest {
  readonly method: string;
  readonly path: string;
}

/** Stands between a process and what it calls. */
export interface ProcessHooks {
  /** A call on a store. `run` carries it out. */
  readonly call?: <T>(call: WatchedCall, run: (docs?: readonly object[]) => Promise<T>) => Promise<T>;
  /** A call that a replication makes by itself. */
  readonly callOfPass?: <T>(call: WatchedCall, run: () => Promise<T>) => Promise<T>;
  readonly request?: (request: ProcessRequest, run: () => Promise<Response>) => Promise<Response>;
  /**
   * A call on IndexedDB begins, or it has come to its end (`failed`: nothing was stored) and the process does not know it
   * yet. Both times it is the same object. A process that is killed at its beginning changes nothing.
   */
  readonly indexedDB?: (call: IndexedDBCall, moment: 'before' | 'after' | 'failed') => void;
}

export interface ProcessParts {
  readonly clock: FakeClock;
  readonly inFlight: InFlight;
  readonly locks: FakeTabLocks;
  readonly channels: FakeChannels;
  readonly connectivity: FakeConnectivity;
  readonly presence: FakePresence;
  readonly PouchDB: PouchConstructor;
  /** Default: none, as in an engine that has none. */
  readonly indexedDB?: IDBFactory;
  /** Options for local databases. */
  readonly storeOptions?: object;
  readonly fetch: typeof fetch;
  readonly random: () => number;
  readonly newId: () => string;
  readonly hooks?: ProcessHooks;
}

/**
 * One process (a tab) of a device: what `createClient` needs of it, and its end. After `kill()` nothing of it reaches a
 * store or the network any more, what was under way never returns to it, and transactions that are not committed are
 * lost. While it is frozen, neither timers nor answers reach it.
 */
export class FakeProcess {
  readonly PouchDB: PouchConstructor;
  readonly fetch: typeof fetch;
  readonly environment: Environment;
  readonly #parts: ProcessParts;
  readonly #indexedDB: ProcessIndexedDB | undefined;
  readonly #timers = new Set<unknown>();
  readonly #ends = new Set<() => void>();
  #alive = true;
  #thawed: Promise<void> | undefined;
  #thaw = (): void => undefined;

  constructor(parts: ProcessParts) {
    this.#parts = parts;
    const hooks = parts.hooks ?? {};
    this.fetch = (input, init) => {
      const method = (init?.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase();
      const path = new URL(input instanceof Request ? input.url : String(input), 'http://relative.invalid').pathname;
      const send = (): Promise<Response> => parts.fetch(input, init);
      return this.#whileAlive(() => (hooks.request === undefined ? send() : hooks.request({ method, path }, send)));
    };
    this.PouchDB = watchedPouch(parts.PouchDB, {
      around: (call, run) => this.#whileAlive(() => (hooks.call === undefined ? run() : hooks.call(call, run))),
      // A replication is as busy as its calls are: one that waits for the network lets time go on.
      within: (call, run) =>
        this.#counted(() =>
          this.#whileAlive(() => (hooks.callOfPass === undefined ? run() : hooks.callOfPass(call, run))),
        ),
      following: (feed) => {
        this.#ends.add(() => {
          feed.cancel();
        });
      },
      hears: () => this.#alive,
      fetch: this.fetch,
      ...(parts.storeOptions === undefined ? {} : { options: parts.storeOptions }),
    });
    this.#indexedDB =
      parts.indexedDB === undefined
        ? undefined
        : new ProcessIndexedDB({
            indexedDB: parts.indexedDB,
            isAlive: () => this.#alive,
            awake: (run) => {
              this.#awake(run);
            },
            seen: (call, moment) => hooks.indexedDB?.(call, moment),
          });
    this.environment = this.#environment();
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Its timers that still wait. */
  get timers(): number {
    return this.#timers.size;
  }

  /** The system ends the process, without a word to it. */
  kill(): void {
    this.#alive = false;
    this.#parts.locks.die();
    this.#indexedDB?.kill();
    for (const timer of this.#timers) this.#parts.clock.clearTimer(timer);
    this.#timers.clear();
    for (const end of [...this.#ends]) end();
  }

  /** The browser freezes the tab: it keeps its locks, and gets nothing until `thaw()`. */
  freeze(): void {
    this.#thawed ??= new Promise((resolve) => (this.#thaw = resolve));
  }

  /** Late timers fire, and what was answered meanwhile arrives. */
  thaw(): void {
    this.#thawed = undefined;
    this.#thaw();
  }

  #environment(): Environment {
    const { clock, connectivity, presence, channels, locks, random, newId } = this.#parts;
    return {
      clock: {
        wall: () => clock.wall(),
        monotonic: () => clock.monotonic(),
        setTimer: (run, delayMs) => {
          if (!this.#alive) return undefined;
          const timer = clock.setTimer(() => {
            this.#awake(() => {
              if (this.#timers.delete(timer)) run();
            });
          }, delayMs);
          this.#timers.add(timer);
          return timer;
        },
        clearTimer: (timer) => {
          this.#timers.delete(timer);
          clock.clearTimer(timer);
        },
      },
      fetch: this.fetch,
      indexedDB: this.#indexedDB?.indexedDB,
      locks,
      connectivity: {
        online: () => connectivity.online(),
        subscribe: (changed) => this.#subscribed(connectivity, changed),
      },
      presence: {
        visible: () => presence.visible(),
        noted: (name) => presence.noted(name),
        note: (name, text) => {
          if (this.#alive) presence.note(name, text);
        },
        subscribe: (changed) => this.#subscribed(presence, changed),
      },
      channel: (name, news) => {
        const channel = channels.open(name, (message) => {
          this.#awake(() => {
            news(message);
          });
        });
        this.#ends.add(() => {
          channel.close();
        });
        return channel;
      },
      breathe: () => Promise.resolve(),
      random,
      newId,
      warn: () => undefined,
    };
  }

  #subscribed(source: { subscribe(changed: () => void): () => void }, changed: () => void): () => void {
    const end = source.subscribe(() => {
      this.#awake(changed);
    });
    this.#ends.add(end);
    return end;
  }

  /** At once, or when the process is thawed; never when it is dead. */
  #awake(run: () => void): void {
    if (this.#thawed !== undefined) void this.#thawed.then(() => this.#awake(run));
    else if (this.#alive) run();
  }

  /** A pass counts as under way until it ends; in a process that was killed it would never end. */
  #counted<T>(call: () => Promise<T>): Promise<T> {
    const ended = call();
    if (!this.#alive) return ended; // it was killed by this call
    const leave = this.#parts.inFlight.enter();
    const end = (): void => {
      this.#ends.delete(end);
      leave();
    };
    this.#ends.add(end);
    ended.then(end, end);
    return ended;
  }

  /** What comes back to a process that was killed meanwhile reaches no one. */
  async #whileAlive<T>(call: () => Promise<T>): Promise<T> {
    if (!this.#alive) return never();
    try {
      return await this.#arrived(await call());
    } catch (error) {
      await this.#arrived(undefined);
      throw error;
    }
  }

  async #arrived<T>(result: T): Promise<T> {
    while (this.#thawed !== undefined) await this.#thawed;
    return this.#alive ? result : never();
  }
}

/** The rest of a killed process: it never happens. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined);
}
