import type { DocumentEvent, PublishAnswer, Publisher } from '../model/event.js';
import type { BulkOperationState, Target } from '../model/states.js';
import { newHeader } from '../queue/new-header.js';
import { Queue } from '../queue/queue.js';
import { withOutcomes } from '../queue/control.js';
import type { StoredDoc } from '../queue/stored-docs.js';
import { isOutcome, recordId, sequenceOf, storedVersion, type Header, type RowState } from '../queue/stored.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { Scheduler } from '../retry/scheduler.js';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import { Events } from './events.js';

export const applied: RowState = { s: 'applied', r: '1-a', t: 'person', a: 1 };
export const open: RowState = { s: 'open' };
export const failed: RowState = { s: 'failed' };

/** A queue with what a runner would have stored, for as many tabs as a test opens. */
export class OutboxBed {
  readonly clock = new ManualClock();
  readonly #PouchDB = memoryPouch();
  readonly #closing = new AbortController();
  /** Counts what is read: ids of documents that came from the store, in the order of the reads. */
  readonly reads: string[][] = [];
  readonly tab: Tab;

  constructor() {
    this.tab = this.open();
  }

  open(): Tab {
    const db = new LocalDatabase(() => new this.#PouchDB('queue'));
    const watched = Object.assign(Object.create(db) as LocalDatabase, {
      read: async (ids: readonly string[]) => {
        this.reads.push([...ids]);
        return db.read(ids);
      },
      range: async (from: string, to: string) => {
        const docs = await db.range(from, to);
        this.reads.push(docs.map(({ _id }) => _id));
        return docs;
      },
      names: (from: string, to: string, limit: number) => db.names(from, to, limit),
      write: (docs: Parameters<LocalDatabase['write']>[0]) => db.write(docs),
    });
    return new Tab(new Queue(watched), this.clock, this.#closing.signal);
  }

  close(): void {
    this.#closing.abort();
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }
}

let names = 0;

/** What one tab knows. */
export class Tab {
  readonly queue: Queue;
  readonly events: Events;
  readonly scheduler: Scheduler;

  constructor(
    queue: Queue,
    readonly clock: ManualClock,
    readonly closed: AbortSignal,
  ) {
    this.queue = queue;
    this.events = new Events(queue);
    this.scheduler = new Scheduler(clock, () => 0);
  }

  /** Queues a bulk operation on these documents. */
  append(ids: readonly string[], target: Target = 'local', action = 'paint'): Promise<Header> {
    const operations = ids.map((i) => ({ i, c: {} }));
    const name = `k${String(names++)}`;
    const parts = [{ action, count: ids.length }];
    const header = newHeader(
      { id: name, key: name, target, lane: undefined, parts, payload: `p:t:${name}:`, queuedAt: 0 },
      operations,
    );
    return this.queue.append(header, operations);
  }

  /** Stores the outcomes of its next batch, as a runner does: the cursor moves when all have one. */
  async outcome(header: Header, rows: readonly RowState[], more: Partial<Header> = {}): Promise<Header> {
    const sequence = sequenceOf(header._id);
    const from = header.cursor;
    const known = await this.queue.records.find(sequence, from);
    const record = {
      ...(known?.record ?? { _id: recordId(sequence, from), v: storedVersion, from, count: rows.length }),
      lease: 'l',
      at: 0,
      rows: JSON.stringify(rows),
    };
    const isComplete = rows.every(isOutcome);
    const cursor = from + rows.length;
    const state: BulkOperationState = cursor < header.total ? 'running' : 'done';
    const next: Header = isComplete
      ? { ...withOutcomes(header, rows), cursor, state, attempts: 1, lease: 'l', ...more }
      : { ...header, state: 'waiting-retry', attempts: 1, lease: 'l', ...more };
    return this.store(next, [record]);
  }

  async store(header: Header, docs: readonly StoredDoc[] = []): Promise<Header> {
    const { revs } = await this.queue.docs.write([...docs, header]);
    const kept = { ...header, _rev: revs.get(header._id) };
    this.queue.headers.keep(kept);
    return kept;
  }

  /** A bulk operation whose operations are all applied, in batches. */
  async done(ids: readonly string[], batch = 100, target: Target = 'local'): Promise<Header> {
    let header = await this.append(ids, target);
    while (header.cursor < header.total) {
      header = await this.outcome(header, Array<RowState>(Math.min(batch, header.total - header.cursor)).fill(applied));
    }
    return header;
  }
}

/** A place that takes what a test lets it take, and remembers each call. */
export class TestPlace implements Publisher {
  readonly name: string;
  readonly needs = 'nothing';
  readonly calls: (readonly DocumentEvent[])[] = [];
  answer: (events: readonly DocumentEvent[]) => PublishAnswer | Promise<PublishAnswer> = (events) => ({
    accepted: events.map(({ id }) => id),
  });

  constructor(name = 'place') {
    this.name = name;
  }

  async publish(events: readonly DocumentEvent[]): Promise<PublishAnswer> {
    this.calls.push(events);
    return this.answer(events);
  }

  /** What was sent, call by call: documents and places in their order. */
  get sent(): string[][] {
    return this.calls.map((events) => events.map(nameOf));
  }

  refuse(isRefused: (event: DocumentEvent) => boolean): void {
    this.answer = (events) => ({ accepted: events.filter((event) => !isRefused(event)).map(({ id }) => id) });
  }
}

export function nameOf({ documentId, sequence, index }: DocumentEvent): string {
  return `${documentId}@${String(sequence)}:${String(index)}`;
}
