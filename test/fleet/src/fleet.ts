import { createClient, type Client } from '@afield/client';
import { setParent } from '@afield/contacts';
import {
  FakeChannels,
  FakeClock,
  FakeConnectivity,
  FakeLocks,
  FakePresence,
  InFlight,
  MemoryServer,
  MemoryStore,
} from '@afield/testing';
import { seededRandom, seedOf } from './seeded-random.js';

const second = 1000;
const minute = 60 * second;

export interface FleetOptions {
  /** How many clients meet the outage. */
  readonly clients: number;
  /** The share of jitter that each client is given: 0.2 is the SDK's default, 0 means exact times. */
  readonly jitter: number;
  /** How long the server does not answer, from the moment 0. Minutes. */
  readonly outageMinutes: number;
  /** How long is looked at, from the moment 0. Minutes. */
  readonly watchedMinutes: number;
  /** Requests that the server answers in one second; those above it get 503 at once. Default: without limit. */
  readonly ratePerSecond?: number;
  /** A proxy answers 503 with this `Retry-After` (seconds) to what is refused, also while the server is away. Default: none. */
  readonly retryAfterS?: number;
  /** The same seed brings the same figures. */
  readonly seed: number;
}

export interface FleetRun {
  readonly options: FleetOptions;
  /** Requests that came to the server's address in each second, answered or not. */
  readonly perSecond: readonly number[];
  /** When each client's bulk operation was done at the server; undefined: not while it was looked at. Seconds. */
  readonly deliveredAt: readonly (number | undefined)[];
}

/**
 * Many clients of the SDK, whole and unchanged, at one server on one time line. Each is queued one bulk operation at a
 * random moment of the first second; from the moment 0 the server does not answer.
 */
export async function simulateFleet(options: FleetOptions): Promise<FleetRun> {
  const fleet = new Fleet(options);
  try {
    await fleet.open();
    await fleet.run();
    return fleet.result();
  } finally {
    await fleet.close();
  }
}

class Fleet {
  readonly #options: FleetOptions;
  readonly #inFlight = new InFlight();
  readonly #clock = new FakeClock(() => this.#inFlight.rest(3));
  readonly #server = new MemoryServer();
  readonly #clients: Client[] = [];
  readonly #perSecond: number[];
  readonly #deliveredAt: (number | undefined)[];
  readonly #failed: unknown[] = [];

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#perSecond = Array<number>(options.watchedMinutes * 60).fill(0);
    this.#deliveredAt = Array<number | undefined>(options.clients).fill(undefined);
  }

  /** Opens all clients; nothing waits yet. */
  async open(): Promise<void> {
    const { clients, seed } = this.#options;
    const database = this.#server.create('fleet');
    database.write(
      Array.from({ length: clients }, (_, at) => ({ _id: personOf(at), parent: { _id: 'before' } })),
      true,
    );
    for (let at = 0; at < clients; at++) {
      const random = seededRandom(seedOf(seed, at));
      const client = this.#client(at, random);
      this.#clients.push(client);
      client.bulkOperations$.subscribe(([one]) => {
        if (one?.state === 'done') this.#deliveredAt[at] ??= this.#clock.monotonic() / second;
      });
      await client.start();
      this.#clock.setTimer(
        () => {
          this.#enqueue(client, at);
        },
        Math.floor(random() * second),
      );
    }
  }

  /** Lets the time pass. */
  async run(): Promise<void> {
    await this.#clock.advance(this.#options.watchedMinutes * minute - 1);
    if (this.#failed.length > 0) throw this.#failed[0];
  }

  result(): FleetRun {
    return { options: this.#options, perSecond: this.#perSecond, deliveredAt: this.#deliveredAt };
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  #client(at: number, random: () => number): Client {
    const channels = new FakeChannels();
    return createClient({
      name: `device-${String(at)}`,
      PouchDB: new MemoryStore().constructorFor(),
      actions: [setParent],
      server: this.#server.urlOf('fleet'),
      replication: false,
      autoStart: false,
      jitter: this.#options.jitter,
      environment: {
        clock: this.#clock,
        random,
        fetch: (input, init) => this.#inFlight.track(() => this.#answer(input, init)),
        locks: new FakeLocks().tab(),
        channel: (name, news) => channels.open(name, news),
        connectivity: new FakeConnectivity(),
        presence: new FakePresence(),
      },
    });
  }

  #answer(input: RequestInfo | URL, init: RequestInit | undefined): Promise<Response> {
    const now = this.#clock.monotonic();
    const at = Math.floor(now / second);
    this.#perSecond[at] = (this.#perSecond[at] ?? 0) + 1;
    const { outageMinutes, ratePerSecond = Infinity, retryAfterS } = this.#options;
    const isAway = now < outageMinutes * minute;
    if (isAway && retryAfterS === undefined) return Promise.reject(new TypeError('Failed to fetch'));
    if (isAway || this.#perSecond[at] > ratePerSecond) {
      const headers: Record<string, string> = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
      return Promise.resolve(new Response('busy', { status: 503, headers }));
    }
    return this.#server.fetch(input, init);
  }

  #enqueue(client: Client, at: number): void {
    const operations = [{ id: personOf(at), parent: { _id: 'after' } }];
    this.#inFlight
      .track(() => client.enqueue({ target: 'server', actions: [{ action: 'set-parent', operations }] }))
      .catch((error: unknown) => this.#failed.push(error));
  }
}

const personOf = (at: number): string => `person-${String(at)}`;
