import { filter, firstValueFrom, map } from 'rxjs';
import { expect } from 'vitest';
import { z } from 'zod/mini';
import { defineAction, defineDocumentAction } from './actions/define.js';
import { createClient } from './client.js';
import { defaultEnvironment } from './environment.js';
import type { Client, ClientOptions, EnqueueRequest } from './model/client.js';
import type { Channel, Locks, Presence } from './model/environment.js';
import type { AnyAction, HandlerResult, OperationOf } from './model/handler.js';
import type { PouchConstructor } from './model/pouch.js';
import type { BulkOperationStatus } from './model/states.js';
import { ManualClock } from './retry/manual-clock.fixture.js';
import { memoryPouch } from './store/memory-pouch.fixture.js';

export const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  guard: (doc) => (doc['frozen'] === true ? { code: 'frozen', reason: 'It is frozen.' } : undefined),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to, times: ((doc['times'] as number | undefined) ?? 0) + 1 }),
});

export const paint = (ids: readonly unknown[], to: string, more: Partial<EnqueueRequest> = {}): EnqueueRequest => ({
  target: 'local',
  actions: [{ action: 'set-colour', operations: ids.map((id) => ({ id, to })) }],
  ...more,
});

/** A batch action whose answers a test gives, and whose calls it sees. */
export function handAction(name: string): {
  action: AnyAction;
  calls: { ids: string[]; answer(result: HandlerResult): void; fail(error: unknown): void }[];
} {
  const calls: { ids: string[]; answer(result: HandlerResult): void; fail(error: unknown): void }[] = [];
  const action = defineAction({
    name,
    operation: z.looseObject({}),
    run: (batch: readonly OperationOf<unknown>[]) =>
      new Promise<HandlerResult>((answer, fail) => calls.push({ ids: batch.map(({ id }) => id), answer, fail })),
  });
  return { action: action as AnyAction, calls };
}

/** A page that someone looks at or not. What it notes outlives the client. */
export class TestPresence implements Presence {
  isVisible = true;
  readonly notes = new Map<string, string>();
  readonly #listeners = new Set<() => void>();
  visible(): boolean {
    return this.isVisible;
  }
  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }
  note(name: string, text: string): void {
    this.notes.set(name, text);
  }
  noted(name: string): string | undefined {
    return this.notes.get(name);
  }
  forget(name: string): void {
    this.notes.delete(name);
  }
  set(visible: boolean): void {
    this.isVisible = visible;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** A turn of the event loop, not a time. */
const { breathe } = defaultEnvironment();

/** One store, one clock, and as many clients on them as a test opens. */
export class TestBed {
  PouchDB: PouchConstructor;
  readonly clock = new ManualClock();
  readonly presence = new TestPresence();
  readonly clients: Client[] = [];
  /** Channels by name; `null` while news between tabs get lost. */
  channels: Map<string, Set<(message?: unknown) => void>> | null = new Map();

  constructor(PouchDB = memoryPouch()) {
    this.PouchDB = PouchDB;
  }

  open(options: Partial<ClientOptions> = {}): Client {
    const client = createClient({
      name: 'clinic',
      PouchDB: this.PouchDB,
      actions: [setColour],
      jitter: 0,
      ...options,
      environment: {
        clock: this.clock,
        presence: this.presence,
        connectivity: { online: () => true, subscribe: () => () => undefined },
        channel: (name, news) => this.#channel(name, news),
        locks: freeLocks,
        ...options.environment,
      },
    });
    this.clients.push(client);
    return client;
  }

  /** A client whose process is killed: it has timers of its own, which end with it, and what it notes then is lost. */
  openMortal(options: Partial<ClientOptions> = {}): { client: Client; kill(): void } {
    let isAlive = true;
    const timers = new Set<number>();
    const { clock, presence } = this;
    const client = this.open({
      ...options,
      environment: {
        clock: {
          wall: () => clock.wall(),
          monotonic: () => clock.monotonic(),
          setTimer: (run, delayMs) => {
            if (!isAlive) return undefined;
            const timer = clock.setTimer(run, delayMs);
            timers.add(timer);
            return timer;
          },
          clearTimer: (timer) => {
            clock.clearTimer(timer);
          },
        },
        channel: (name, news) =>
          this.#channel(name, (message) => {
            if (isAlive) news(message);
          }),
        presence: {
          visible: () => presence.visible(),
          noted: (name) => presence.noted(name),
          subscribe: (changed) => presence.subscribe(changed),
          note: (name, text) => {
            if (isAlive) presence.note(name, text);
          },
          forget: (name) => {
            if (isAlive) presence.forget(name);
          },
        },
        ...options.environment,
      },
    });
    const kill = (): void => {
      isAlive = false;
      for (const timer of timers) clock.clearTimer(timer);
      this.forget(client);
    };
    return { client, kill };
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close()));
    expect(this.clock.timers).toBe(0);
  }

  /** Turns of the event loop until it is so, the clock going on by `stepMs` each time. Fails when it never is. */
  async until(isSo: () => boolean | Promise<boolean>, stepMs = 0): Promise<void> {
    for (let turn = 0; turn < 5000; turn++) {
      if (await isSo()) return;
      this.clock.advance(stepMs);
      await breathe();
    }
    throw new Error('it never came to be so');
  }

  /** So many turns of the event loop that whatever could begin now has begun: before a test says that nothing did. */
  async rest(): Promise<void> {
    for (let turn = 0; turn < 200; turn++) await breathe();
  }

  /** Killed clients are left alone: what they wait for never comes. */
  forget(client: Client): void {
    this.clients.splice(this.clients.indexOf(client), 1);
  }

  settled(client: Client, id: string): Promise<BulkOperationStatus> {
    return this.reaches(client, id, ['done', 'done-with-failures', 'failed', 'cancelled']);
  }

  reaches(client: Client, id: string, states: readonly string[]): Promise<BulkOperationStatus> {
    return this.becomes(client, id, ({ state }) => states.includes(state));
  }

  async becomes(
    client: Client,
    id: string,
    isSo: (bulk: BulkOperationStatus) => boolean,
  ): Promise<BulkOperationStatus> {
    await client.storeId; // a client that was not started opens its store now
    return firstValueFrom(
      client.bulkOperations$.pipe(
        map((list) => list.find((one) => one.id === id && isSo(one))),
        filter((found) => found !== undefined),
      ),
    );
  }

  /** All bulk operations, once the store is read. */
  async list(client: Client): Promise<readonly BulkOperationStatus[]> {
    await client.storeId;
    await Promise.resolve();
    return firstValueFrom(client.bulkOperations$);
  }

  now(client: Client, id: string): Promise<BulkOperationStatus> {
    return this.becomes(client, id, () => true);
  }

  async seed(client: Client, count: number, more: object = {}): Promise<string[]> {
    const ids = Array.from({ length: count }, (_, at) => `d${String(at).padStart(4, '0')}`);
    await client.documents.bulkDocs(ids.map((_id) => ({ _id, colour: 'red', ...more })));
    return ids;
  }

  async colours(client: Client): Promise<string[]> {
    const { rows } = (await client.documents.allDocs({ include_docs: true })) as {
      rows: { doc: { colour: string } }[];
    };
    return rows.map(({ doc }) => doc.colour);
  }

  #channel(name: string, news: (message?: unknown) => void): Channel {
    const listen = (): Set<(message?: unknown) => void> => this.channels?.get(name) ?? new Set();
    this.channels?.set(name, listen().add(news));
    return {
      announce: (message) => {
        for (const other of listen()) if (other !== news) other(structuredClone(message));
      },
      close: () => {
        for (const all of this.channels?.values() ?? []) all.delete(news);
      },
    };
  }
}

/** Every tab runs at once, as in an engine without locks. */
const freeLocks: Locks = { request: (_name, _signal, whileHeld) => whileHeld() };
