import type { BulkOperationStatus, ClientStatus, FailedOperation } from '@afield/client';
import {
  FakeChannels,
  FakeClock,
  FakeConnectivity,
  FakeLocks,
  MemoryServer,
  MemoryStore,
  type MemoryDatabase,
} from '@afield/testing';
import { Device } from './device.js';
import { actions, changesOf, firstDocuments, idOf, kindOf, requestOf } from './documents.js';
import type { Queued } from './model.js';
import { refusedForGood, RequestFaults } from './request-faults.js';
import type { Script, Step } from './script.js';
import { StoreFaults } from './store-faults.js';

const user = 'ann';
/** R13, and what a twin waits for another runner: no due time lies further ahead. */
const longestWaitMs = 3_600_000 * 1.2;

/** Broken: what must not be, in words. */
export class LawBroken extends Error {}

/** Everything one script happens in. */
export class World {
  readonly server = new MemoryServer({ users: { [user]: 'secret-0' } });
  readonly records: MemoryDatabase;
  readonly results: MemoryDatabase;
  readonly store = new MemoryStore();
  readonly clock = new FakeClock(() => this.#rest());
  readonly connectivity = new FakeConnectivity();
  /** What was asked to be queued, by key. */
  readonly asked = new Map<string, Queued>();
  /** Keys that `enqueue` confirmed. */
  readonly confirmed = new Set<string>();
  /** Revisions that other editors made. */
  readonly foreign = new Set<string>();
  /** How often others have edited a document. */
  readonly edits = new Map<string, number>();
  readonly trace: string[] = [];
  readonly #script: Script;
  readonly #requests: RequestFaults;
  readonly #stores: StoreFaults;
  readonly #locks = new FakeLocks();
  readonly #channels = new FakeChannels();
  readonly #devices: Device[] = [];
  #device: Device;
  #ids = 0;
  #random: number;
  #password = 0;
  #answers: Extract<Step, { do: 'password' }>['answers'] = 'fresh';
  #silent: (() => void)[] = [];
  #broken: string | undefined;
  #hasTwin = false;

  constructor(script: Script) {
    this.#script = script;
    this.#random = (script.seed % 2_147_483_646) + 1;
    this.records = this.server.create('records');
    this.results = this.server.create('results');
    this.records.write(firstDocuments('server'));
    // The documents of the local store are on the server, too.
    this.records.write(firstDocuments('local'));
    for (const { _id } of firstDocuments('local')) {
      const doc = this.records.read(_id, undefined, { revs: true });
      this.local.write([doc], false);
    }
    this.records.validate = refusedForGood;
    const note = (line: string): void => {
      this.trace.push(`${String(Math.round(this.clock.monotonic() / 1000))}s ${line}`);
    };
    this.#stores = new StoreFaults(this.clock, note, () => {
      for (const { _id } of firstDocuments('local')) this.#edit('local', _id);
    });
    this.#requests = new RequestFaults({
      server: this.server,
      records: this.records,
      clock: this.clock,
      edit: (ids) => {
        for (const id of ids) if (id.startsWith('server')) this.#edit('server', id);
      },
      note,
    });
    this.#device = this.#open(this.#locks);
  }

  /** The documents of the local store. */
  get local(): MemoryDatabase {
    return this.store.database('docs');
  }

  async run(): Promise<void> {
    await this.#rest();
    for (const step of this.#script.steps) {
      this.trace.push(`— ${JSON.stringify(step)}`);
      await this.#do(step);
      await this.#rest();
      if (!this.#device.alive) this.#device = this.#open(this.#locks);
      await this.#rest();
      this.#checkWaiting();
    }
    await this.#heal();
    await this.#settle();
  }

  /** Closes all clients, opens one more, and answers with what it shows: what is shown is what is stored. */
  async shown(): Promise<{ bulkOperations: readonly BulkOperationStatus[]; failures: readonly FailedOperation[] }> {
    await this.#closeAll();
    const device = this.#open(this.#locks);
    let bulkOperations: readonly BulkOperationStatus[] = [];
    let failures: readonly FailedOperation[] = [];
    device.client.bulkOperations$.subscribe((now) => (bulkOperations = now));
    device.client.failures$.subscribe((now) => (failures = now));
    await this.#rest();
    await this.#closeAll();
    if (this.connectivity.listeners > 0) throw new LawBroken('close() left listeners');
    return { bulkOperations, failures };
  }

  async #do(step: Step): Promise<void> {
    switch (step.do) {
      case 'enqueue':
        return this.#enqueue(step.bulk);
      case 'fault':
        return this.#requests.arm(step);
      case 'store-fault':
        return this.#stores.arm(step);
      case 'advance':
        return this.clock.advance(step.s * 1000);
      case 'edit':
        return this.#edit(step.target, idOf(step.target, step.doc));
      case 'kill':
        return this.#device.killAt(step.afterCalls, step.done);
      case 'reload':
        await this.#close(this.#device);
        this.#device = this.#open(this.#locks);
        return;
      case 'jump':
        return this.clock.jumpWall(step.days * 86_400_000);
      case 'sleep':
        return this.clock.freezeTimers(step.s * 1000);
      case 'network':
        return this.connectivity.set(step.online);
      case 'wake':
        return this.#device.client.syncNow();
      case 'signed-in':
        return this.#device.client.signedIn();
      case 'password':
        this.#answers = step.answers;
        return this.server.setPassword(user, `secret-${String((this.#password += 1))}`);
      case 'twin':
        if (process.env['NOTWIN'] !== undefined) return;
        // A second runner at the same time, as where the browser gives no lock.
        this.#hasTwin = true;
        this.#open(new FakeLocks());
        return;
    }
  }

  #enqueue(bulk: Extract<Step, { do: 'enqueue' }>['bulk']): void {
    const number = this.asked.size;
    const key = `key-${String(number)}`;
    const changes = changesOf(bulk, number);
    this.asked.set(key, { target: bulk.target, changes });
    this.#device.client.enqueue(requestOf(bulk, changes, key)).then(
      () => this.confirmed.add(key),
      (error: unknown) => this.trace.push(`enqueue rejected: ${String(error)}`),
    );
  }

  /** Someone else changes a document: a field of their own, or the contested one. */
  #edit(target: 'local' | 'server', id: string): void {
    const kind = kindOf(id);
    if (kind !== 'plain' && kind !== 'contested') return;
    const database = target === 'local' ? this.local : this.records;
    const doc = database.read(id);
    if (doc === undefined || doc['_deleted'] === true) return;
    const edits = (this.edits.get(id) ?? 0) + 1;
    const change = kind === 'plain' ? { edits } : { edits, parent: { _id: 'away', edits } };
    const [row] = database.write([{ ...doc, ...change }]);
    if (row?.ok !== true) return;
    this.edits.set(id, edits);
    this.foreign.add(row.rev);
    this.trace.push(`edited: ${id}`);
  }

  #open(locks: FakeLocks): Device {
    const device = new Device({
      clock: this.clock,
      connectivity: this.connectivity,
      channels: this.#channels,
      locks,
      store: this.store,
      random: () => (this.#random = (this.#random * 16_807) % 2_147_483_647) / 2_147_483_647,
      newId: () => `id-${String((this.#ids += 1))}`,
      storeCall: (call, run) => this.#stores.around(call, run),
      fetch: (url, init) => this.#requests.fetch(url, init),
      options: {
        name: 'device',
        documents: 'docs',
        actions,
        server: this.server.urlOf('records'),
        results: this.server.urlOf('results'),
        batchSize: this.#script.batchSize,
        jitter: this.#script.jitter,
        pullEveryS: 1800,
        auth: { credentials: () => this.#credentials() },
      },
    });
    this.#devices.push(device);
    device.client.bulkOperations$.subscribe((shown) => {
      this.#look(shown);
    });
    return device;
  }

  async #credentials(): Promise<{ type: 'basic'; username: string; password: string }> {
    this.#requests.sessionIsGone = false;
    const answers = this.#answers;
    if (answers === 'rejects') throw new Error('The app has none.');
    if (answers === 'silent') await new Promise<void>((resolve) => this.#silent.push(resolve));
    const number = answers === 'stale' && this.#answers === 'stale' ? Math.max(0, this.#password - 1) : this.#password;
    return { type: 'basic', username: user, password: `secret-${String(number)}` };
  }

  /** Whenever something is shown: no wait is too long, and what must wait for others has not begun. */
  #look(shown: readonly BulkOperationStatus[]): void {
    for (const { state, nextAttemptAt = 0, cursor, total } of shown) {
      const aheadMs = nextAttemptAt - this.clock.wall();
      if (aheadMs > longestWaitMs) this.#broken ??= `R18 ${state} waits ${String(aheadMs)} ms`;
      if (cursor > total) this.#broken ??= 'the cursor lies past the end';
    }
    if (this.#hasTwin) return; // what one of two runners shows of the other's work may be old
    const lanes = new Set<string>();
    for (const { key, lane, state, attempts } of shown) {
      if (lane === undefined) continue;
      if (attempts > 0 && lanes.has(lane)) this.#broken ??= `R17 ${key} runs before its lane is free`;
      if (state !== 'done' && state !== 'done-with-failures') lanes.add(lane);
    }
  }

  /** While work is pending, something runs, a time is due, or a state says what is awaited (R15). */
  #checkWaiting(): void {
    if (this.#broken !== undefined) throw new LawBroken(this.#broken);
    for (const device of this.#devices.filter(({ alive }) => alive)) {
      let status: ClientStatus | undefined;
      device.client.status$.subscribe((now) => (status = now)).unsubscribe();
      if (status === undefined || status.pending === 0 || status.state === 'waiting-auth') continue;
      if (device.timers === 0 && this.clock.pendingTimers === 0) {
        throw new LawBroken(`R15 ${status.state}: nothing runs, and no time is due`);
      }
    }
  }

  async #heal(): Promise<void> {
    this.trace.push('— healed');
    this.#requests.heal();
    this.#stores.heal();
    this.#answers = 'fresh';
    for (const answer of this.#silent.splice(0)) answer();
    this.connectivity.set(true);
    this.#device.killAt(Infinity, false);
    await this.#rest();
  }

  /** Time passes until everything has an end. */
  async #settle(): Promise<void> {
    // What is slow on its way arrives.
    await this.clock.advance(100_000);
    for (let minute = 0; minute < 600; minute += 10) {
      if (this.#isSettled()) {
        // What changed on the server since the last pull comes with one more.
        this.#device.client.syncNow();
        await this.clock.advance(2000);
        if (this.#isSettled()) return;
      }
      await this.clock.advance(600_000);
    }
    let shown: unknown;
    this.#device.client.status$.subscribe((now) => (shown = now)).unsubscribe();
    let bulks: unknown;
    this.#device.client.bulkOperations$.subscribe((now) => (bulks = now)).unsubscribe();
    throw new LawBroken(`R1 no end after ten hours: ${JSON.stringify(shown)} ${JSON.stringify(bulks)}`);
  }

  #isSettled(): boolean {
    let status: ClientStatus | undefined;
    this.#device.client.status$.subscribe((now) => (status = now)).unsubscribe();
    return (
      status?.leader === true &&
      status.state === 'idle' &&
      status.pending === 0 &&
      status.unreported === 0 &&
      status.push.state === 'idle' &&
      status.pull.state === 'idle'
    );
  }

  async #closeAll(): Promise<void> {
    for (const device of this.#devices.splice(0)) if (device.alive) await this.#close(device);
  }

  async #close(device: Device): Promise<void> {
    let isClosed = false;
    const closing = device.client.close().then(() => (isClosed = true));
    await this.#rest();
    // A slow call of the store is waited for.
    for (let s = 0; s < 900 && !isClosed && device.alive; s += 30) await this.clock.advance(30_000);
    if (!device.alive) return;
    if (!isClosed) throw new LawBroken('close() does not end');
    await closing;
    if (device.timers > 0) throw new LawBroken(`close() left ${String(device.timers)} timers`);
    device.kill();
  }

  /** All calls come back in microtasks, or wait for the clock: a few turns of the event loop, and nothing moves. */
  async #rest(): Promise<void> {
    for (let turn = 0; turn < 3; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
