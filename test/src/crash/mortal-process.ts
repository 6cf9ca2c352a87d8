import { createClient, type Client, type Environment, type PouchConstructor } from '@afield/client';
import { FakeProcess, InFlight, type FakeLocks, type IndexedDBCall } from '@afield/testing';
import type { CrashWorld } from './world.js';

/** Where a process waits for something outside of it: it may end there. */
export interface Await {
  readonly on: 'store' | 'index' | 'network' | 'lock' | 'channel' | 'note';
  /** Such as `bulkDocs device-afield-queue`. */
  readonly what: string;
}

export interface Death {
  /** At this await of the process, counted from 1. */
  readonly at: number;
  /** Before it has any effect; or after it, with the answer lost. */
  readonly when: 'before' | 'after';
  /** `freeze`: it does not die but stands still, until `thaw()`. */
  readonly how: 'kill' | 'freeze';
}

/** Stands between the client and the store that it is given: how a mistake in the SDK would look from outside. */
export type Breaking = (PouchDB: PouchConstructor) => PouchConstructor;

/**
 * One process with a client. It counts its awaits on stores, network, locks, channel and notes, and may end at one of
 * them: from then on nothing of it has any effect, and nothing in its memory survives.
 */
export class MortalProcess {
  readonly client: Client;
  readonly awaits: Await[] = [];
  /** Resolves when it has died, or stands still. */
  readonly ended: Promise<void>;
  readonly #world: CrashWorld;
  readonly #process: FakeProcess;
  readonly #death: Death | undefined;
  readonly #indexCalls = new WeakMap<IndexedDBCall, number>();
  #noteEnd = (): void => undefined;
  #thawed: Promise<void> | undefined;
  #thaw = (): void => undefined;

  constructor(world: CrashWorld, death?: Death, locks: FakeLocks = world.locks) {
    this.#world = world;
    this.#death = death;
    this.ended = new Promise((resolve) => (this.#noteEnd = resolve));
    const PouchDB = world.store.constructorFor((call, run) =>
      this.#around({ on: 'store', what: `${call.method} ${call.database}` }, () => world.storeCall(call, run)),
    );
    const request: typeof fetch = (input, init = {}) => {
      const url = new URL(input instanceof Request ? input.url : String(input));
      const what = `${init.method ?? 'GET'} ${url.pathname}`;
      return this.#around({ on: 'network', what }, () => world.request(url, init));
    };
    const { clock, connectivity, presence, channels } = world;
    this.#process = new FakeProcess({
      clock,
      connectivity,
      presence,
      channels,
      locks: locks.tab(),
      inFlight: new InFlight(),
      PouchDB,
      indexedDB: world.indexedDB,
      hooks: {
        indexedDB: (call, moment) => {
          this.#onIndexCall(call, moment === 'before' ? 'before' : 'after');
        },
      },
      fetch: request,
      random: () => world.random(),
      newId: () => world.newId(),
    });
    this.client = createClient({
      ...world.options,
      PouchDB: world.breaking(PouchDB),
      environment: this.#environment(request),
    });
  }

  get alive(): boolean {
    return this.#process.alive;
  }

  kill(): void {
    this.#process.kill();
  }

  /** Goes on where it stood still: late timers fire, late answers arrive. */
  thaw(): void {
    this.#thawed = undefined;
    this.#process.thaw();
    this.#thaw();
  }

  #environment(request: typeof fetch): Environment {
    const { environment } = this.#process;
    return {
      ...environment,
      fetch: request,
      locks: {
        request: async (name, signal, whileHeld) => {
          const at = this.#count({ on: 'lock', what: name });
          await this.#maybeEnd(at, 'before');
          return environment.locks.request(name, signal, async () => {
            await this.#maybeEnd(at, 'after');
            return whileHeld();
          });
        },
      },
      channel: (name, news) => {
        const channel = environment.channel(name, news);
        return {
          announce: (message) => {
            this.#atOnce({ on: 'channel', what: name }, () => {
              channel.announce(message);
            });
          },
          close: () => {
            channel.close();
          },
        };
      },
      presence: {
        ...environment.presence,
        note: (name, text) => {
          this.#atOnce({ on: 'note', what: name }, () => {
            environment.presence.note(name, text);
          });
        },
      },
    };
  }

  async #around<Value>(one: Await, run: () => Promise<Value>): Promise<Value> {
    if (!this.alive) return never();
    const at = this.#count(one);
    await this.#maybeEnd(at, 'before');
    while (this.#thawed !== undefined) await this.#thawed;
    if (!this.alive) return never();
    const answer = await run().then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error;
      },
    );
    await this.#maybeEnd(at, 'after');
    while (this.#thawed !== undefined) await this.#thawed;
    return this.alive ? answer() : never();
  }

  /** An effect that nobody waits for: it happens at once, or the process is dead before. */
  #atOnce(one: Await, run: () => void): void {
    if (!this.alive) return;
    const at = this.#count(one);
    void this.#maybeEnd(at, 'before');
    if (this.alive) run();
    void this.#maybeEnd(at, 'after');
  }

  #onIndexCall(call: IndexedDBCall, when: Death['when']): void {
    const at = this.#indexCalls.get(call) ?? this.#count({ on: 'index', what: `${call.call} ${call.database}` });
    this.#indexCalls.set(call, at);
    void this.#maybeEnd(at, when);
  }

  #count(one: Await): number {
    return this.alive ? this.awaits.push(one) : 0;
  }

  /** Never resolves when the process dies here; when it only freezes, after it was thawed. */
  async #maybeEnd(at: number, when: Death['when']): Promise<void> {
    const death = this.#death;
    if (death?.at !== at || death.when !== when || !this.alive) return;
    if (death.how === 'kill') this.kill();
    else {
      this.#thawed = new Promise((resolve) => (this.#thaw = resolve));
      this.#process.freeze();
    }
    this.#world.note(`${death.how} ${when} ${JSON.stringify(this.awaits[at - 1])}`);
    this.#noteEnd();
    if (death.how === 'kill') return never();
    await this.#thawed;
  }
}

function never<Value>(): Promise<Value> {
  return new Promise<Value>(() => undefined);
}
