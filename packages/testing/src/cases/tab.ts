import { createClient, type Client, type ClientOptions, type Environment } from '@afield/client';
import type { FakeClock } from '../fake-clock.js';
import type { FakeConnectivity } from '../fake-connectivity.js';
import type { FakeChannels } from '../fake-channels.js';
import type { FakePresence } from '../fake-presence.js';
import type { FakeLocks, FakeTabLocks } from '../fake-locks.js';
import type { InFlight } from '../in-flight.js';
import type { StorageFaults } from './storage-faults.js';
import { watchedPouch, type StoreCall } from '../watched-pouch.js';
import { MemoryPouch } from './memory-pouch.js';

/** What all tabs of a browser share. */
export interface Browser {
  readonly clock: FakeClock;
  readonly inFlight: InFlight;
  readonly locks: FakeLocks;
  readonly channels: FakeChannels;
  readonly connectivity: FakeConnectivity;
  readonly presence: FakePresence;
  readonly storage: StorageFaults;
  readonly random: () => number;
  readonly newId: () => string;
  readonly fetch: typeof fetch;
  readonly options: Omit<ClientOptions, 'PouchDB' | 'environment'>;
  /** A local write with new revisions was carried out; the client does not know it yet. */
  readonly written: (call: StoreCall, tab: Tab) => void;
}

/** One tab with its client. `kill()` is what the system does to a process: every call that is under way never returns. */
export class Tab {
  readonly client: Client;
  readonly #browser: Browser;
  readonly #locks: FakeTabLocks;
  readonly #timers = new Set<unknown>();
  readonly #ends = new Set<() => void>();
  #alive = true;

  constructor(
    browser: Browser,
    readonly number: number,
  ) {
    this.#browser = browser;
    this.#locks = browser.locks.tab();
    this.client = createClient({
      ...browser.options,
      PouchDB: watchedPouch(MemoryPouch, {
        options: { adapter: 'memory' },
        around: (call, run) => this.#local(call, run),
        during: (ended) => {
          const leave = browser.inFlight.enter();
          const end = (): void => {
            this.#ends.delete(end);
            leave();
          };
          // In a tab that was killed it would never end.
          this.#ends.add(end);
          ended.then(end, end);
        },
        fetch: (input, init) => this.#fetch(input, init),
      }),
      environment: this.#environment(),
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Timers of this tab that still wait. */
  get timers(): number {
    return this.#timers.size;
  }

  kill(): void {
    this.#alive = false;
    this.#locks.die();
    for (const timer of this.#timers) this.#browser.clock.clearTimer(timer);
    this.#timers.clear();
    for (const end of [...this.#ends]) end();
  }

  #environment(): Environment {
    const { clock, connectivity, presence, random, newId } = this.#browser;
    return {
      clock: {
        wall: () => clock.wall(),
        monotonic: () => clock.monotonic(),
        setTimer: (run, delayMs) => {
          if (!this.#alive) return undefined;
          const timer = clock.setTimer(() => {
            this.#timers.delete(timer);
            run();
          }, delayMs);
          this.#timers.add(timer);
          return timer;
        },
        clearTimer: (timer) => {
          this.#timers.delete(timer);
          clock.clearTimer(timer);
        },
      },
      fetch: (input, init) => this.#fetch(input, init),
      locks: this.#locks,
      connectivity: {
        online: () => connectivity.online(),
        subscribe: (changed) => {
          const end = connectivity.subscribe(changed);
          this.#ends.add(end);
          return end;
        },
      },
      presence: {
        visible: () => presence.visible(),
        noted: (name) => presence.noted(name),
        note: (name, text) => {
          if (this.#alive) presence.note(name, text);
        },
        subscribe: (changed) => {
          const end = presence.subscribe(changed);
          this.#ends.add(end);
          return end;
        },
      },
      channel: (name, news) => {
        const channel = this.#browser.channels.open(name, () => {
          if (this.#alive) news();
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

  /** Local calls fail as the case says; what is carried out counts as under way. */
  #local<T>(call: StoreCall, run: () => Promise<T>): Promise<T> {
    if (!this.#alive) return never();
    return this.#whileAlive(
      this.#browser.storage.around(call, () =>
        this.#browser.inFlight.track(async () => {
          const result = await run();
          if (call.kind === 'write') this.#browser.written(call, this);
          return result;
        }),
      ),
    );
  }

  /** A request counts as under way until its whole answer is there. */
  #fetch(input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    if (!this.#alive) return never();
    return this.#whileAlive(
      this.#browser.inFlight.track(async () => {
        const answer = await this.#browser.fetch(input, init);
        let body: BodyInit | null;
        try {
          body = await answer.arrayBuffer();
        } catch (error) {
          body = new ReadableStream({ start: (controller) => controller.error(error) });
        }
        const copy = new Response([204, 205, 304].includes(answer.status) ? null : body, {
          status: answer.status,
          statusText: answer.statusText,
          headers: answer.headers,
        });
        // PouchDB in Node asks for a Buffer where a browser gives a Blob, which its memory adapter cannot hash.
        Object.assign(copy, { buffer: async () => Buffer.from(await copy.arrayBuffer()) });
        Object.defineProperty(copy, 'url', { value: answer.url });
        Object.defineProperty(copy, 'redirected', { value: answer.redirected });
        return copy;
      }),
    );
  }

  /** What comes back to a tab that was killed meanwhile reaches no one. */
  async #whileAlive<T>(call: Promise<T>): Promise<T> {
    try {
      const result = await call;
      if (!this.#alive) return await never<T>();
      return result;
    } catch (error) {
      if (!this.#alive) return await never<T>();
      throw error;
    }
  }
}

function never<T>(): Promise<T> {
  return new Promise<T>(() => undefined);
}
