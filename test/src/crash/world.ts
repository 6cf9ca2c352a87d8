import { couchdbPublisher, type ClientOptions, type ClientStatus, type DocumentAction } from '@afield/client';
import {
  FakeChannels,
  FakeClock,
  FakeConnectivity,
  FakeLocks,
  FakePresence,
  InFlight,
  memoryIndexedDB,
  MemoryServer,
  MemoryStore,
  trackedIndexedDB,
  type MemoryDatabase,
  type StoreCall,
  type StoredDocument,
  type Validate,
} from '@afield/testing';
import { actionsOf, builtInNames } from './actions.js';
import { isToldOfDevice } from './document-invariants.js';
import { isPublished } from './event-invariants.js';
import type { Invariant } from './invariant.js';
import { invariants } from './invariants.js';
import type { Breaking } from './mortal-process.js';
import { StoredQueue } from './stored.js';

/** The database whose documents the operations change. */
export type Target = 'local' | 'server';

/** An invariant that did not hold, and how that was seen. */
export interface Violation {
  readonly invariant: string;
  readonly message: string;
}

/** The name of the store of every client here; its documents live under it too. */
export const storeName = 'device';

/** All that outlives a process: the stores of the device, the server, what the app was told, and the clock. */
export class CrashWorld {
  readonly server = new MemoryServer({ users: { ann: 'secret' } });
  readonly records = this.server.create('records');
  readonly results = this.server.create('results');
  readonly events = this.server.create('events');
  readonly store = new MemoryStore();
  readonly local: MemoryDatabase = this.store.database(storeName);
  readonly queueStore: MemoryDatabase = this.store.database(`${storeName}-afield-queue`);
  readonly queue = new StoredQueue(this.queueStore);
  readonly #indexing = new InFlight();
  /** Where the indexes of the device are. */
  readonly indexedDB: IDBFactory = trackedIndexedDB(memoryIndexedDB(), this.#indexing);
  readonly clock = new FakeClock(() => this.rest());
  readonly connectivity = new FakeConnectivity();
  readonly presence = new FakePresence();
  readonly locks = new FakeLocks();
  readonly channels = new FakeChannels();
  /** The app has a bug: its own action throws what it should not. */
  appIsBroken = false;
  readonly actions: ReadonlyMap<string, DocumentAction> = actionsOf(() => this.appIsBroken);
  /** What each client is opened with. */
  readonly options: Omit<ClientOptions, 'PouchDB' | 'environment'>;
  /** Keys of the bulk operations whose enqueue was confirmed to the app, in that order. */
  readonly confirmed: string[] = [];
  /** Keys of those whose cancel was confirmed. */
  readonly cancelled = new Set<string>();
  /** Revisions that others made: the first ones, and those of other editors. */
  readonly foreign = new Set<string>();
  readonly violations: Violation[] = [];
  readonly trace: string[] = [];
  /** How often an invariant was asked. */
  checks = 0;
  /** What the server takes no change of. */
  refuses: Validate = () => undefined;
  /** Called around each write of documents where the target's are: another editor may come in between. */
  onDocuments: { before?: () => void; after?: () => void } = {};
  /** What arrives of the rows of a write of documents where the target's are. */
  rowsArrive: (rows: readonly unknown[]) => readonly unknown[] = (rows) => rows;
  /** Whether a request is answered with a 503 before the server has done it, or its answer gets lost after. */
  refusesRequest: (method: string, path: string) => 'before' | 'after' | 'never' = () => 'never';
  #ids = 0;
  #random = 7;
  #isForeign = false;

  constructor(
    readonly target: Target,
    options: Partial<ClientOptions> = {},
    readonly breaking: Breaking = (PouchDB) => PouchDB,
  ) {
    this.options = {
      name: storeName,
      actions: [...this.actions.values()].filter(({ name }) => !builtInNames.has(name)),
      server: this.server.urlOf('records'),
      results: this.server.urlOf('results'),
      publishers: [couchdbPublisher({ url: this.server.urlOf('events') })],
      auth: { credentials: () => Promise.resolve({ type: 'basic', username: 'ann', password: 'secret' }) },
      batchSize: 2,
      jitter: 0,
      pullEveryS: 1800,
      ...options,
    };
    this.events.validate = (doc) => this.#watchEvents(doc);
    this.queueStore.validate = (doc, before) => this.#watchQueue(doc, before);
    this.documents.validate = (doc, before) => this.#watchDocuments(doc) ?? this.#judgeOf(this.documents)(doc, before);
    if (target === 'local') this.records.validate = (doc, before) => this.refuses(doc, before);
  }

  /** Where the operations of this world take effect. */
  get documents(): MemoryDatabase {
    return this.target === 'local' ? this.local : this.records;
  }

  /** Documents that are on the server and, replicated, on the device before anything begins. */
  begin(docs: readonly object[]): void {
    this.#byOthers(() => {
      for (const row of this.records.write(docs)) if (row.ok) this.foreign.add(row.rev);
      for (const id of this.records.ids()) {
        const doc = this.records.read(id, undefined, { revs: true, attachments: true });
        this.local.write([doc], false);
      }
    });
  }

  /** Another editor makes documents where the target's are. */
  add(docs: readonly object[]): void {
    this.#byOthers(() => {
      for (const row of this.documents.write(docs)) if (row.ok) this.foreign.add(row.rev);
    });
  }

  /** Another editor changes a document where the target's are. */
  edit(id: string, change: (doc: StoredDocument) => StoredDocument): void {
    const doc = this.documents.read(id);
    if (doc === undefined) throw new Error(`There is no ${id} to be edited.`);
    this.#byOthers(() => {
      const [row] = this.documents.write([change(doc)]);
      if (row?.ok !== true) throw new Error(`${id} could not be edited.`);
      this.foreign.add(row.rev);
    });
  }

  /**
   * Another editor has changed the first revision of a document, so many times in a row: a branch of its own, at the server
   * and on the device. Done twice, it is done once.
   */
  diverge(id: string, changes: readonly StoredDocument[]): void {
    const [first = ''] = [...(this.records.tree(id)?.path(this.records.tree(id)?.winner?.rev ?? '') ?? [])].slice(-1);
    this.buildUpon(id, first, changes);
  }

  /** The same, upon any revision. */
  buildUpon(id: string, base: string, changes: readonly StoredDocument[]): void {
    const there = [this.records, this.local].find((database) => database.tree(id)?.get(base) !== undefined);
    const path = there?.tree(id)?.path(base) ?? [];
    const ids = path.map((rev) => rev.slice(rev.indexOf('-') + 1));
    let doc = there?.read(id, base) ?? {};
    this.#byOthers(() => {
      changes.forEach((change, place) => {
        doc = { ...doc, ...change };
        const start = path.length + place + 1;
        ids.unshift(`${JSON.stringify(changes).length.toString(16).padStart(4, '0')}${String(place)}`.padEnd(32, 'f'));
        const rev = `${String(start)}-${ids[0] ?? ''}`;
        this.foreign.add(rev);
        for (const database of [this.records, this.local]) {
          database.write([{ ...doc, _id: id, _rev: rev, _revisions: { start, ids: [...ids] } }], false);
        }
      });
    });
  }

  #byOthers(change: () => void): void {
    this.#isForeign = true;
    change();
    this.#isForeign = false;
  }

  async storeCall<Value>({ database, method }: StoreCall, run: () => Promise<Value>): Promise<Value> {
    const isWrite = this.target === 'local' && database === storeName && method === 'bulkDocs';
    if (!isWrite) return run();
    this.onDocuments.before?.();
    const answer = await run();
    this.onDocuments.after?.();
    return Array.isArray(answer) ? (this.rowsArrive(answer) as Value) : answer;
  }

  async request(url: URL, init: RequestInit): Promise<Response> {
    const isWrite = this.target === 'server' && url.pathname === '/records/_bulk_docs';
    const refusal = this.refusesRequest(init.method ?? 'GET', url.pathname);
    if (refusal === 'before') return new Response('{"error":"down","reason":"busy"}', { status: 503 });
    if (isWrite) this.onDocuments.before?.();
    const answer = await this.server.fetch(url, init);
    if (isWrite) this.onDocuments.after?.();
    if (refusal === 'after') throw new TypeError('Failed to fetch');
    if (!isWrite) return answer;
    const rows = (await answer.json()) as readonly unknown[];
    return new Response(JSON.stringify(this.rowsArrive(rows)), { status: answer.status, headers: answer.headers });
  }

  /** The app was told that this is durable. */
  confirm(key: string): void {
    this.confirmed.push(key);
    this.ask((invariant) => invariant.confirmed?.(key, this));
  }

  violated(invariant: string, message: string): void {
    this.violations.push({ invariant, message });
  }

  /** Asks every invariant, and keeps what does not hold. */
  ask(question: (invariant: Invariant) => readonly string[] | undefined): void {
    for (const invariant of invariants) {
      const answer = question(invariant);
      if (answer === undefined) continue;
      this.checks += 1;
      for (const message of answer) this.violated(invariant.name, message);
    }
  }

  /** Nothing is left to be done, here or at the server. */
  isSettled(status: ClientStatus): boolean {
    const { leader, pending, unreported, push, pull, results, healing } = status;
    const isAtRest = [push, pull, results, healing].every(({ state }) => state === 'idle' || state === 'off');
    return (
      leader &&
      pending === 0 &&
      unreported === 0 &&
      isAtRest &&
      (push.state === 'off' || push.attempts > 0) &&
      this.queue.headers().every(({ unsettled }) => unsettled === undefined) &&
      isPublished(this) &&
      isToldOfDevice(this)
    );
  }

  note(line: string): void {
    this.trace.push(line);
  }

  newId(): string {
    return `id-${String((this.#ids += 1))}`;
  }

  random(): number {
    return (this.#random = (this.#random * 16_807) % 2_147_483_647) / 2_147_483_647;
  }

  /**
   * All calls come back in microtasks, but for those on IndexedDB, or wait for the clock: a few turns of the event loop
   * without them, and nothing moves.
   */
  rest(): Promise<void> {
    return this.#indexing.rest(3);
  }

  /** Lets time go on, from timer to timer, until the promise settles. Throws when it does not within ten hours. */
  async until<Value>(promise: Promise<Value>, what: string): Promise<Value> {
    let isSettled = false;
    const note = (): void => void (isSettled = true);
    promise.then(note, note);
    const end = this.clock.monotonic() + 36_000_000;
    for (;;) {
      await this.clock.advance(0);
      if (isSettled) return promise;
      const next = this.clock.nextTimerAt;
      if (next === undefined || next > end) throw new Error(`It never came to: ${what}.`);
      await this.clock.advance(Math.max(0, next - this.clock.monotonic()));
    }
  }

  #watchQueue(doc: StoredDocument, before: StoredDocument | undefined): undefined {
    this.ask((invariant) => invariant.stored?.({ doc, before }, this));
  }

  #watchDocuments(doc: StoredDocument): undefined {
    const isCopy = doc['_revisions'] !== undefined;
    if (this.#isForeign || isCopy) return;
    this.ask((invariant) => invariant.written?.(doc, this));
  }

  #watchEvents(doc: StoredDocument): undefined {
    this.ask((invariant) => invariant.published?.(doc, this));
  }

  #judgeOf(database: MemoryDatabase): Validate {
    return database === this.records && !this.#isForeign ? this.refuses : () => undefined;
  }
}
