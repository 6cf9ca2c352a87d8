import { createClient, type Client, type ClientOptions } from '@afield/client';
import type { FakeChannels, FakeClock, FakeConnectivity, FakeLocks, MemoryStore, StoreCall } from '@afield/testing';

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
  readonly #parts: DeviceParts;
  readonly #timers = new Set<unknown>();
  readonly #ends: (() => void)[] = [];
  readonly #locks: ReturnType<FakeLocks['tab']>;
  #alive = true;
  #calls = 0;
  #killAt = Infinity;
  #killWhenDone = false;

  constructor(parts: DeviceParts) {
    this.#parts = parts;
    this.#locks = parts.locks.tab();
    const { clock, connectivity, channels, random, newId } = parts;
    this.client = createClient({
      ...parts.options,
      PouchDB: parts.store.constructorFor((call, run) =>
        this.#call(() => parts.storeCall(call, () => (this.#alive ? run() : never()))),
      ),
      environment: {
        clock: {
          wall: () => clock.wall(),
          monotonic: () => clock.monotonic(),
          setTimer: (run, delayMs) => this.#setTimer(run, delayMs),
          clearTimer: (timer) => {
            this.#timers.delete(timer);
            clock.clearTimer(timer);
          },
        },
        fetch: (input, init = {}) => this.#call(() => parts.fetch(String(input), init)),
        locks: this.#locks,
        connectivity: {
          online: () => connectivity.online(),
          subscribe: (changed) => {
            const end = connectivity.subscribe(changed);
            this.#ends.push(end);
            return end;
          },
        },
        channel: (name, news) => {
          const channel = channels.open(name, () => {
            if (this.#alive) news();
          });
          this.#ends.push(() => {
            channel.close();
          });
          return channel;
        },
        breathe: () => Promise.resolve(),
        random,
        newId,
        warn: () => undefined,
      },
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Timers that it has set and that still wait. */
  get timers(): number {
    return this.#timers.size;
  }

  /** Kills the process at one of its next calls: before the call is made, or when it is done and the answer is on its way. */
  killAt(afterCalls: number, whenDone: boolean): void {
    this.#killAt = this.#calls + 1 + afterCalls;
    this.#killWhenDone = whenDone;
  }

  kill(): void {
    this.#alive = false;
    this.#locks.die();
    for (const timer of this.#timers) this.#parts.clock.clearTimer(timer);
    this.#timers.clear();
    for (const end of this.#ends) end();
  }

  #setTimer(run: () => void, delayMs: number): unknown {
    if (!this.#alive) return undefined;
    const timer = this.#parts.clock.setTimer(() => {
      this.#timers.delete(timer);
      run();
    }, delayMs);
    this.#timers.add(timer);
    return timer;
  }

  async #call<Value>(run: () => Promise<Value>): Promise<Value> {
    if (!this.#alive) return never();
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
