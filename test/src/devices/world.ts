import type { ClientOptions, PouchConstructor } from '@afield/client';
import type { Credentials } from '@afield/devserver';
import { FakeDevice } from '@afield/testing';
import { TestDevice, type Breaking } from './device.js';
import { firstDocuments, idsOf, randomOperation } from './operations.js';
import { pouchPlace, type Place } from './places.js';
import { Random } from './random.js';
import { goOnline, trouble } from './troubles.js';

export interface Plan {
  readonly seed: number;
  readonly devices: number;
  /** Operations of each device. */
  readonly operations: number;
  readonly documents: number;
  /** Apps also edit documents past the queue. */
  readonly foreign: boolean;
}

/** The server of a run, with an empty database for the documents and one for the results. */
export interface ServerOfRun {
  readonly records: string;
  readonly results: string;
  readonly fetch: typeof fetch;
  readonly auth: Credentials | undefined;
  readonly place: Place;
  readonly write: (docs: readonly object[]) => Promise<unknown>;
  readonly allResults: () => Promise<readonly Record<string, unknown>[]>;
}

/** It never comes to rest. */
export class NoEndError extends Error {}

/** How often all devices must have looked, and nothing was written. */
const quietRounds = 3;
const mostRounds = 200;

/** Devices and their server while a plan is carried out. */
export class World {
  readonly devices: readonly TestDevice[];
  readonly ids: readonly string[];
  readonly trace: string[] = [];
  /** Documents that an app has edited past the queue. */
  readonly foreign = new Set<string>();
  rounds = 0;
  readonly #plan: Plan;
  readonly #server: ServerOfRun;
  readonly #places: readonly Place[];
  readonly #random: Random;

  constructor(plan: Plan, server: ServerOfRun, storeOf: () => PouchConstructor, breaking: () => Breaking) {
    this.#plan = plan;
    this.#server = server;
    this.#random = new Random(plan.seed);
    this.ids = idsOf(plan.documents);
    const devices: TestDevice[] = [];
    const places: Place[] = [];
    for (let number = 1; number <= plan.devices; number += 1) {
      const PouchDB = storeOf();
      const beside = devices[0]?.device;
      const device = new TestDevice({
        name: `device-${String(number)}`,
        device: new FakeDevice({ PouchDB, fetch: server.fetch, ...(beside === undefined ? {} : { beside }) }),
        options: this.#options(),
        breaking: breaking(),
        note: (line) => this.note(line),
      });
      devices.push(device);
      places.push(pouchPlace(device.name, device.device.database(device.name)));
    }
    this.devices = devices;
    this.#places = [...places, server.place];
  }

  get places(): readonly Place[] {
    return this.#places;
  }

  get results(): Promise<readonly Record<string, unknown>[]> {
    return this.#server.allResults();
  }

  get #clock(): FakeDevice['clock'] {
    const [first] = this.devices;
    if (first === undefined) throw new Error('There is no device.');
    return first.device.clock;
  }

  note(line: string): void {
    this.trace.push(`${String(Math.round(this.#clock.monotonic() / 1000))}s ${line}`);
  }

  /** Everything that happens: the operations amid the troubles, then peace until nothing more is written. */
  async run(): Promise<void> {
    await this.#server.write(firstDocuments(this.ids));
    for (const device of this.devices) device.open();
    // All begin with what is on the server.
    await this.#clock.advance(120_000);
    let left = this.devices.filter((device) => device.asked.length < this.#plan.operations);
    while (left.length > 0) {
      await this.#step(this.#random.oneOf(left));
      left = this.devices.filter((device) => device.asked.length < this.#plan.operations);
    }
    await this.#settle();
  }

  /** Closes what is open; with `destroys` also removes the databases, where they outlive the constructor. */
  async dispose(destroys: boolean): Promise<void> {
    for (const device of this.devices) if (device.isOpen) await device.device.until(device.client.close());
    if (destroys) for (const { device } of this.devices) await device.dispose();
  }

  async #step(device: TestDevice): Promise<void> {
    const random = this.#random;
    const what = random.weighted({ enqueue: 70, trouble: 12, sync: 8, edit: this.#plan.foreign ? 30 : 0 });
    if (what === 'enqueue') await this.#enqueue(device);
    if (what === 'trouble' && device.isOpen && device.onlineAt === undefined) {
      this.note(`${device.name} ${trouble(random, device, this.#clock.monotonic())}`);
    }
    if (what === 'sync' && device.isOpen) device.client.syncNow();
    if (what === 'edit') await this.#edit(device);
    await this.#clock.advance(random.isTrue(0.5) ? random.between(0, 2000) : random.between(2, 240) * 1000);
    this.#wake();
  }

  /** Networks come back, and people open their apps again. */
  #wake(): void {
    const now = this.#clock.monotonic();
    for (const device of this.devices) {
      if (device.onlineAt !== undefined && device.onlineAt <= now) goOnline(device);
      if (device.isOpen) continue;
      device.openAt ??= now + 60_000;
      if (device.openAt <= now) device.open();
    }
  }

  async #enqueue(device: TestDevice): Promise<void> {
    const random = this.#random;
    const count = Math.min(random.between(1, 4), this.#plan.operations - device.asked.length);
    const operations = [];
    for (let number = 0; number < count; number += 1) {
      const key = `${device.name}/${String(device.asked.length + number)}`;
      const id = random.oneOf(this.ids);
      operations.push(randomOperation(random, { device: device.name, key, id }, await device.document(id)));
    }
    this.note(`${device.name} asks ${operations.map(({ action, id, key }) => `${key} ${action} ${id}`).join(', ')}`);
    device.enqueue(operations);
  }

  /** The app changes a document itself, as a form of its own would. */
  async #edit(device: TestDevice): Promise<void> {
    const id = this.#random.oneOf(this.ids);
    const doc = await device.document(id);
    if (doc === undefined) return;
    this.foreign.add(id);
    await device.device.database(device.name).bulkDocs([{ ...doc, edited: this.trace.length }]);
    this.note(`${device.name} edits ${id}`);
  }

  async #settle(): Promise<void> {
    this.note('peace');
    for (const device of this.devices) {
      goOnline(device);
      device.killSoon(Infinity, false);
      if (!device.isOpen) device.open();
    }
    let before = '';
    for (let quiet = 0; quiet < quietRounds; this.rounds += 1) {
      if (this.rounds === mostRounds) throw new NoEndError(this.#restlessness());
      for (const device of this.devices) {
        device.client.syncNow();
        await this.#clock.advance(10_000);
      }
      // Long enough for whatever waits for the next step of the ramp.
      await this.#clock.advance(400_000);
      const now = (await Promise.all(this.#places.map((place) => place.sequence()))).join(' ');
      quiet = now === before && this.devices.every(isAtRest) ? quiet + 1 : 0;
      before = now;
    }
  }

  #restlessness(): string {
    const restless = this.devices.filter((device) => !isAtRest(device));
    if (restless.length === 0) return 'the devices go on writing';
    return restless.map((device) => `${device.name}: ${JSON.stringify(device.status())}`).join('\n');
  }

  #options(): Partial<ClientOptions> {
    const { records, results, auth } = this.#server;
    return {
      server: records,
      results,
      pullEveryS: 300,
      ...(auth === undefined
        ? {}
        : { auth: { credentials: () => Promise.resolve({ type: 'basic' as const, ...auth }) } }),
    };
  }
}

/** Nothing is pending, and nothing waits: whatever it is that a client carries. */
function isAtRest(device: TestDevice): boolean {
  const status = device.status();
  if (status?.leader !== true || status.state !== 'idle' || status.pending > 0 || status.unreported > 0) return false;
  return Object.values(status).every((value: unknown) => {
    const state = typeof value === 'object' && value !== null && 'state' in value ? value.state : 'idle';
    return state === 'idle' || state === 'off';
  });
}
