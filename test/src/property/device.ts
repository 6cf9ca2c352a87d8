import { createClient, type Client, type ClientOptions } from '@afield/client';
import {
  FakePresence,
  FakeProcess,
  InFlight,
  type FakeChannels,
  type FakeClock,
  type FakeConnectivity,
  type FakeLocks,
  type MemoryStore,
  type StoreCall,
} from '@afield/testing';

export interface DeviceParts {
  readonly clock: FakeClock;
  readonly connectivity: FakeConnectivity;
  readonly channels: FakeChannels;
  readonly locks: FakeLocks;
  readonly store: MemoryStore;
  readonly options: Omit<ClientOptions, 'PouchDB' | 'environment'>;
  readonly random: () => number;
  readonly newId: () => string;
  /** A call on the store, and whatever happens to it. */
  readonly storeCall: <Value>(call: StoreCall, run: () => Promise<Value>) => Promise<Value>;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
}

/**
 * A client in a process that can be killed: from then on nothing that it calls is done, nothing that is under way
 * comes back, its timers are gone and its locks are free.
 */
export class Device {
  readonly client: Client;
  readonly #process: FakeProcess;
  #calls = 0;
  #killAt = Infinity;
  #killWhenDone = false;

  constructor(parts: DeviceParts) {
    const { clock, connectivity, channels, random, newId, store } = parts;
    const PouchDB = store.constructorFor((call, run) =>
      this.#call(() => parts.storeCall(call, () => (this.alive ? run() : never()))),
    );
    const request: typeof fetch = (input, init = {}) => this.#call(() => parts.fetch(String(input), init));
    this.#process = new FakeProcess({
      clock,
      connectivity,
      channels,
      locks: parts.locks.tab(),
      // Nobody looks: kills of a page in the background are no stops (R16).
      presence: new FakePresence(false),
      inFlight: new InFlight(),
      PouchDB,
      fetch: request,
      random,
      newId,
    });
    // Past the watched store of the process: this one is killed at a call that a script names.
    this.client = createClient({
      ...parts.options,
      PouchDB,
      environment: { ...this.#process.environment, fetch: request },
    });
  }

  get alive(): boolean {
    return this.#process.alive;
  }

  /** Timers that it has set and that still wait. */
  get timers(): number {
    return this.#process.timers;
  }

  /** Kills the process at one of its next calls: before the call is made, or when it is done and the answer is on its way. */
  killAt(afterCalls: number, whenDone: boolean): void {
    this.#killAt = this.#calls + 1 + afterCalls;
    this.#killWhenDone = whenDone;
  }

  kill(): void {
    this.#process.kill();
  }

  async #call<Value>(run: () => Promise<Value>): Promise<Value> {
    if (!this.alive) return never();
    const number = (this.#calls += 1);
    if (number === this.#killAt && !this.#killWhenDone) this.kill();
    if (!this.alive) return never();
    try {
      const value = await run();
      if (number === this.#killAt) this.kill();
      return this.alive ? value : await never<Value>();
    } catch (error) {
      if (!this.alive) return never();
      throw error;
    }
  }
}

function never<Value>(): Promise<Value> {
  return new Promise<Value>(() => undefined);
}
