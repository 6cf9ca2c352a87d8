import { couchdbPublisher, createClient, type Client, type ClientStatus } from '@afield/client';
import { setParent } from '@afield/contacts';
import { FakeDevice, MemoryServer } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { DayCounter, type DayCount } from './day-count.js';
import { databases } from './day-kinds.js';

const minute = 60_000;

/** One day of one device. Times are minutes after the app was opened. */
export interface Day {
  readonly name: string;
  /** How long the app is open. */
  readonly openMinutes: number;
  /** When the device has a network, from and to; else it knows that it is offline. */
  readonly connected: readonly (readonly [from: number, to: number])[];
  /** When the server does not answer although there is a network: each request fails at once. */
  readonly away: readonly (readonly [from: number, to: number])[];
  /** When a bulk operation on local documents is queued. */
  readonly bulkOperationsAt: readonly number[];
  /** Operations in each of them. */
  readonly operations: number;
  /** Of all operations of the day: on documents that are not there. They fail for good. */
  readonly failing: number;
  /** Documents that others change on the server, one by one over the day. */
  readonly changedByOthers: number;
  /** The client's option; undefined: its default. */
  readonly pullEveryS?: number;
}

export interface DayRun {
  readonly day: Day;
  /** The first pull of a new device, before the day. */
  readonly first: DayCount;
  readonly count: DayCount;
  /** Of the day: from the moment that the server is back until all is delivered and pulled; undefined: it was never away. */
  readonly back: DayCount | undefined;
  /** What the client says at the end of the day. */
  readonly left: Pick<ClientStatus, 'pending' | 'unconfirmed' | 'unreported' | 'unpublished'>;
}

/** Documents that are on the server and on the device before the day. */
export const documentsBefore = 1000;

/** The SDK as it is, with PouchDB and its replicator, for one day against a server in memory; its requests are counted. */
export async function simulateDay(day: Day, server = new MemoryServer()): Promise<DayRun> {
  const run = new DaySimulation(day, server);
  try {
    return await run.run();
  } finally {
    await run.close();
  }
}

class DaySimulation {
  readonly #day: Day;
  readonly #server: MemoryServer;
  readonly #device: FakeDevice;
  readonly #counters = new Set<DayCounter>();
  #client: Client | undefined;
  #isConnected = true;
  #isAway = false;

  constructor(day: Day, server: MemoryServer) {
    this.#day = day;
    this.#server = server;
    for (const name of Object.values(databases)) server.create(name);
    const before = Array.from({ length: documentsBefore }, (_, at) => person(at, 'area-0'));
    server.create(databases.records).write(before, true);
    this.#device = new FakeDevice({ fetch: (input, init) => this.#answer(input, init) });
  }

  async run(): Promise<DayRun> {
    const { clock } = this.#device;
    const first = this.#count();
    await this.#until(this.#open(), ({ pull }) => pull.transferred === documentsBefore && pull.state === 'idle');
    await this.#client?.close();
    this.#counters.clear();

    const count = this.#count();
    const openedAt = clock.monotonic();
    this.#network(0);
    const client = this.#open();
    let back: DayCounter | undefined;
    const lastBack = Math.max(...this.#day.away.map(([, to]) => to));
    for (const { at, act } of this.#moments()) {
      await clock.advance(Math.max(0, openedAt + at * minute - clock.monotonic()));
      await act(client);
      if (at !== lastBack || back !== undefined) continue;
      back = this.#count();
      await this.#until(client, isAllDelivered);
      this.#counters.delete(back);
    }
    const { pending, unconfirmed, unreported, unpublished } = await this.#status(client);
    const { unknown } = this.#server;
    if (unknown.length > 0) throw new Error(`The server in memory does not know ${unknown.join(', ')}.`);
    return {
      day: this.#day,
      first: first.result(),
      count: count.result(),
      back: back?.result(),
      left: { pending, unconfirmed, unreported, unpublished },
    };
  }

  async close(): Promise<void> {
    await this.#client?.close();
    await this.#device.dispose();
  }

  /** What happens in the day, in its order; the last is its end. */
  #moments(): { at: number; act: (client: Client) => unknown }[] {
    const { openMinutes, connected, away, bulkOperationsAt, changedByOthers } = this.#day;
    const moments = [
      ...[...connected, ...away].flat().map((at) => ({
        at,
        act: () => {
          this.#network(at);
        },
      })),
      ...bulkOperationsAt.map((at, which) => ({ at, act: (client: Client) => this.#enqueue(client, which) })),
      ...Array.from({ length: changedByOthers }, (_, which) => ({
        at: ((which + 0.5) * openMinutes) / changedByOthers,
        act: () => {
          this.#changeByOther(which);
        },
      })),
      { at: openMinutes, act: () => undefined },
    ];
    return moments.filter(({ at }) => at <= openMinutes).sort((one, other) => one.at - other.at);
  }

  #open(): Client {
    const { PouchDB, environment } = this.#device.process();
    const { pullEveryS } = this.#day;
    const url = (name: string): string => this.#server.urlOf(name);
    this.#client = createClient({
      name: 'device',
      PouchDB,
      actions: [setParent],
      user: 'ann',
      server: url(databases.records),
      results: url(databases.results),
      publishers: [couchdbPublisher({ url: url(databases.events) })],
      auth: { credentials: () => Promise.resolve({ type: 'basic', username: 'ann', password: 'secret' }) },
      environment,
      ...(pullEveryS === undefined ? {} : { pullEveryS }),
    });
    return this.#client;
  }

  #network(at: number): void {
    const isIn = ([from, to]: readonly [number, number]): boolean => from <= at && at < to;
    this.#isConnected = this.#day.connected.some(isIn);
    this.#isAway = this.#day.away.some(isIn);
    const { connectivity } = this.#device;
    if (connectivity.online() !== this.#isConnected) connectivity.set(this.#isConnected);
  }

  async #enqueue(client: Client, which: number): Promise<void> {
    const { operations: size, failing } = this.#day;
    const operations = Array.from({ length: size }, (_, index) => {
      const at = which * size + index;
      return { id: at < failing ? `nobody-${String(at)}` : idOf(at), parent: { _id: `area-${String(which + 1)}` } };
    });
    const actions = [{ action: 'set-parent', operations }];
    await this.#device.until(client.enqueue({ target: 'local', actions }));
  }

  #changeByOther(which: number): void {
    const id = idOf(documentsBefore - 1 - which);
    const database = this.#server.create(databases.records);
    const rev = database.tree(id)?.winner?.rev;
    database.write([{ ...person(documentsBefore - 1 - which, 'area-9'), _rev: rev }], true);
  }

  #count(): DayCounter {
    const counter = new DayCounter();
    this.#counters.add(counter);
    return counter;
  }

  async #answer(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    if (!this.#isConnected) throw new TypeError('Failed to fetch');
    const url = input instanceof Request ? input.url : String(input);
    const method = (init.method ?? 'GET').toUpperCase();
    const body = typeof init.body === 'string' ? init.body : '';
    const counters = [...this.#counters];
    for (const one of counters) one.request(method, url, body, Math.floor(this.#device.clock.monotonic() / minute));
    if (this.#isAway) {
      for (const one of counters) one.failed();
      throw new TypeError('Failed to fetch');
    }
    const answer = await this.#server.fetch(input, init);
    const text = await answer.clone().text();
    for (const one of counters) one.answered(method, url, body, text);
    return answer;
  }

  async #status(client: Client): Promise<ClientStatus> {
    return this.#device.until(firstValueFrom(client.status$));
  }

  async #until(client: Client, isSo: (status: ClientStatus) => boolean): Promise<void> {
    await this.#device.until(firstValueFrom(client.status$.pipe(filter(isSo))));
  }
}

/** While the server is away push and pull wait for their next try: idle they are after one that went well. */
const isAllDelivered = ({ pending, unconfirmed, unreported, unpublished, push, pull }: ClientStatus): boolean =>
  pending + unconfirmed + unreported + unpublished === 0 && push.state === 'idle' && pull.state === 'idle';

/** As long as a UUID. */
const idOf = (at: number): string => `5f0c9e1a-7b3d-4c56-9a18-${String(at).padStart(12, '0')}`;

/** About 400 bytes of JSON. */
function person(at: number, area: string): { _id: string; [field: string]: unknown } {
  return {
    _id: idOf(at),
    type: 'person',
    name: `Person ${String(at)}`,
    phone: `+49 30 ${String(at).padStart(7, '0')}`,
    date_of_birth: '1984-05-06',
    parent: { _id: area, parent: { _id: 'health-centre-1', parent: { _id: 'district-1' } } },
    reported_date: 1_770_091_506_000,
    note: 'x'.repeat(120),
  };
}
