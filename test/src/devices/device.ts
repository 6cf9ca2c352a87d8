import {
  createClient,
  type Client,
  type ClientOptions,
  type ClientStatus,
  type DocumentEvent,
  type FailedOperation,
  type OperationInput,
} from '@afield/client';
import { setContact, setParent } from '@afield/contacts';
import type { FakeDevice, FakeProcess, ProcessHooks, WatchedCall } from '@afield/testing';
import type { Asked } from './operations.js';

/** Stands between a client and its stores: the mistakes that the test must notice. */
export type Breaking = <T>(call: WatchedCall, run: (docs?: readonly object[]) => Promise<T>) => Promise<T>;

export interface DeviceParts {
  readonly name: string;
  readonly device: FakeDevice;
  readonly options: Partial<ClientOptions>;
  readonly breaking: Breaking;
  readonly note: (line: string) => void;
}

interface Bulk {
  readonly key: string;
  readonly operations: readonly Asked[];
  /** The app was told that it is durable. */
  isConfirmed: boolean;
}

/**
 * One device of the test and its app: a client with stores of its own, in a process that may be killed at any call. What the
 * app was not told to be durable it asks for again when it is opened the next time (O2, O4).
 */
export class TestDevice {
  readonly name: string;
  readonly device: FakeDevice;
  readonly asked: Asked[] = [];
  /** What `enqueue` rejected with; nothing may be here. */
  readonly refusals: string[] = [];
  /** When its network comes back, on the clock of the test; undefined: it is there. */
  onlineAt: number | undefined;
  /** When a person opens the app again; undefined: it is open. */
  openAt: number | undefined;
  #kills = 0;
  /** When its store has last said that there is no such document, by id; when an operation was asked for, by key. */
  readonly #noneAt = new Map<string, number>();
  readonly #askedAt = new Map<string, number>();
  readonly #parts: DeviceParts;
  readonly #bulks: Bulk[] = [];
  #process: FakeProcess | undefined;
  #client: Client | undefined;
  #calls = 0;
  #killAt = Infinity;
  #killWhenDone = false;
  #ids = 0;

  constructor(parts: DeviceParts) {
    this.#parts = parts;
    this.name = parts.name;
    this.device = parts.device;
    // Nobody looks: kills of a page in the background are no stops (R16).
    this.device.presence.set(false);
  }

  get kills(): number {
    return this.#kills;
  }

  get isOpen(): boolean {
    return this.#process?.alive === true;
  }

  get client(): Client {
    if (this.#client === undefined) throw new Error(`${this.name} is not open`);
    return this.#client;
  }

  open(): void {
    this.openAt = undefined;
    this.#killAt = Infinity;
    const hooks: ProcessHooks = {
      call: (call, run) => this.#around(call.method, () => this.#broken(call, run)),
      callOfPass: (call, run) => this.#around(call.method, run),
      request: ({ method, path }, run) => this.#around(`${method} ${path}`, run),
    };
    const process = this.device.process(hooks);
    this.#process = process;
    this.#client = createClient({
      name: this.name,
      PouchDB: process.PouchDB,
      actions: [setParent, setContact],
      ...this.#parts.options,
      environment: { ...process.environment, newId: () => `${this.name}-${String((this.#ids += 1))}` },
    });
    for (const bulk of this.#bulks) if (!bulk.isConfirmed) this.#enqueue(bulk);
  }

  enqueue(operations: readonly Asked[]): void {
    const bulk: Bulk = { key: `${this.name}:${String(this.#bulks.length)}`, operations, isConfirmed: false };
    this.#bulks.push(bulk);
    this.asked.push(...operations);
    for (const { key } of operations) this.#askedAt.set(key, this.device.clock.monotonic());
    if (this.isOpen) this.#enqueue(bulk);
  }

  /** The process ends at one of its next calls: before the call is made, or when it is done and the answer is on its way. */
  killSoon(afterCalls: number, whenDone: boolean): void {
    this.#killAt = this.#calls + 1 + afterCalls;
    this.#killWhenDone = whenDone;
  }

  kill(): void {
    if (this.#process?.alive !== true) return;
    this.#process.kill();
    this.#kills += 1;
    this.#parts.note(`${this.name} is killed`);
  }

  status(): ClientStatus | undefined {
    let status: ClientStatus | undefined;
    if (this.isOpen) this.client.status$.subscribe((now) => (status = now)).unsubscribe();
    return status;
  }

  /** The outcomes of all operations, and all failures that are open, as the client shows them. */
  async outcomes(): Promise<{ events: readonly DocumentEvent[]; failures: readonly FailedOperation[] }> {
    const events: DocumentEvent[] = [];
    for (;;) {
      const last = events.at(-1);
      const page = await this.device.until(
        this.client.listEvents(last === undefined ? {} : { after: { sequence: last.sequence, index: last.index } }),
      );
      if (page.length === 0) break;
      events.push(...page);
    }
    return { events, failures: await this.device.until(this.client.listFailures()) };
  }

  /** The document as the device has it now; undefined where there is none. */
  async document(id: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    const { rows } = await this.device.database(this.name).allDocs({ keys: [id], include_docs: true });
    return (rows[0] as { doc?: Record<string, unknown> | null } | undefined)?.doc ?? undefined;
  }

  /** Since the operation was asked for, the store has said that there is no such document. */
  sawNone({ id, key }: Asked): boolean {
    return (this.#noneAt.get(id) ?? -1) >= (this.#askedAt.get(key) ?? 0);
  }

  #enqueue(bulk: Bulk): void {
    const { name, note } = this.#parts;
    const parts: { action: string; operations: OperationInput[] }[] = [];
    for (const { id, key, action, content } of bulk.operations) {
      const last = parts.at(-1);
      const operation = { id, key, ...content };
      if (last?.action === action) last.operations.push(operation);
      else parts.push({ action, operations: [operation] });
    }
    this.client.enqueue({ target: 'local', key: bulk.key, actions: parts }).then(
      () => (bulk.isConfirmed = true),
      (error: unknown) => {
        note(`${name} refused ${bulk.key}: ${String(error)}`);
        this.refusals.push(`${bulk.key}: ${String(error)}`);
      },
    );
  }

  /** Mistakes are made about documents, never about the queue. */
  #broken<T>(call: WatchedCall, run: (docs?: readonly object[]) => Promise<T>): Promise<T> {
    if (call.database !== this.name) return run();
    return this.#parts.breaking(call, async (docs) => {
      const answer = await run(docs);
      for (const id of absentIn(call, answer)) this.#noneAt.set(id, this.device.clock.monotonic());
      return answer;
    });
  }

  async #around<T>(what: string, carryOut: () => Promise<T>): Promise<T> {
    const call = (this.#calls += 1);
    if (call !== this.#killAt) return carryOut();
    this.#parts.note(`${this.name} ends at ${what}`);
    if (!this.#killWhenDone) this.kill();
    else {
      await carryOut().catch(() => undefined);
      this.kill();
    }
    return new Promise<never>(() => undefined);
  }
}

/** Documents of which the answer to a read says that there is none. */
function absentIn({ method, ids }: WatchedCall, answer: unknown): readonly string[] {
  if (method === 'get' && Array.isArray(answer)) {
    const leaves = answer as { ok?: { _deleted?: boolean } }[];
    return leaves.every(({ ok }) => ok === undefined || ok._deleted === true) ? ids : [];
  }
  if (method !== 'allDocs') return [];
  const { rows } = answer as { rows: { key: string; value?: { deleted?: boolean } }[] };
  return rows.flatMap(({ key, value }) => (value === undefined || value.deleted === true ? [key] : []));
}
