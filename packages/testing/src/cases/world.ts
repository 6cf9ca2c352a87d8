import { couchdbPublisher, type PouchLike } from '@afield/client';
import { FakeChannels } from '../fake-channels.js';
import { FakeClock } from '../fake-clock.js';
import { FakeConnectivity } from '../fake-connectivity.js';
import { FakeLocks } from '../fake-locks.js';
import { FakePresence } from '../fake-presence.js';
import { InFlight } from '../in-flight.js';
import { caseActions } from './actions.js';
import { Rollback } from './rollback.js';
import { LocalDatabase, writeGiven, type Database, type HttpDatabase } from './database.js';
import { FaultBook } from './fault-book.js';
import { caseIndex } from './index-keys.js';
import { IndexWatch } from './index-watch.js';
import { Interception } from './interception.js';
import { isObject, ownOf, type JsonObject } from './json.js';
import { MemoryPouch } from './memory-pouch.js';
import { Moments } from './moments.js';
import { Observation } from './observation.js';
import { Publications } from './publications.js';
import type { Case } from './read.js';
import { fetchOfCases, type CaseServer } from './server.js';
import { eventsWord, ServerDatabases } from './server-databases.js';
import { StorageFaults } from './storage-faults.js';
import { Tab, type Browser } from './tab.js';
import { Traffic } from './traffic.js';

/** Everything that one case runs in: server databases, a browser with its tabs, faults, and who watches. */
export class World {
  readonly inFlight = new InFlight();
  readonly clock = new FakeClock(() => this.rest());
  readonly connectivity: FakeConnectivity;
  readonly presence = new FakePresence();
  readonly faults: FaultBook;
  readonly traffic: Traffic;
  readonly observation: Observation;
  readonly moments: Moments;
  readonly tabs: Tab[] = [];
  /** Keys of the operations of each bulk operation, by the bulk operation's key. */
  readonly queued = new Map<string, readonly string[]>();
  readonly rejectedKeys: string[] = [];
  /** What the refused calls of enqueue said. */
  readonly rejections: string[] = [];
  /** Revisions that other actors added, by document. */
  readonly foreignEdits = new Map<string, number>();
  /** When the first client was started, on the harness's watch. */
  startedAt = 0;
  readonly local: Database;
  readonly databases: ServerDatabases;
  readonly publications = new Publications();
  readonly index: IndexWatch;
  readonly rollback: Rollback;
  readonly #browser: Browser;
  readonly #name: string;
  #login: (() => void) | undefined;
  #loggedIn = false;
  #ids = 0;
  #synced = false;
  readonly #problems: string[] = [];
  readonly #noteProblem = (error: unknown): void => void this.#problems.push(`start(): ${String(error)}`);
  #started = false;

  constructor(
    readonly given: Case,
    server: CaseServer,
    run: string,
  ) {
    this.#name = `case-${run}`;
    this.databases = new ServerDatabases(given, server, run);
    this.local = new LocalDatabase(() => this.#openDocuments());
    this.rollback = new Rollback(given, this.databases.main);
    const { index } = given.config;
    this.index = new IndexWatch({
      definition: index === undefined ? undefined : caseIndex(index),
      client: this.#name,
      inFlight: this.inFlight,
      documents: () => this.#openDocuments(),
      parked: (tab) => {
        this.moments.reach('index-parked', { tab });
      },
    });
    this.connectivity = new FakeConnectivity(given.config.start_online ?? true);
    const elapsedS = (): number => this.clock.elapsed / 1000;
    const armed = !given.steps.some((step) => step.do === 'arm-faults');
    this.faults = new FaultBook(given.faults, armed, elapsedS);
    this.moments = new Moments(given, this.faults, this.clock, () => this.tabs.filter((tab) => tab.alive));
    const hitsThePush =
      given.target === 'local' && given.faults.some((one) => one.at === 'request' || one.at === 'row');
    this.traffic = new Traffic((id) => this.idsOfTheCase.includes(id), given.target === 'server' || hitsThePush);
    this.observation = new Observation(
      { elapsed: () => this.clock.elapsed, wall: () => this.clock.wall() },
      (key) => this.queued.get(key) ?? [],
      hitsThePush,
      (tab) => this.moments.reach('after-batch', { tab }),
      () => this.traffic.requests.get('POST /_bulk_docs docs') ?? 0,
    );
    const interception = new Interception({
      faults: this.faults,
      traffic: this.traffic,
      wordOf: (name) => this.databases.wordOf(name),
      database: (word) => this.#database(word),
      carriedOut: (word, docs, rows) => this.#carriedOut(word, docs, rows),
      edited: (id) => this.foreignEdits.set(id, (this.foreignEdits.get(id) ?? 0) + 1),
      now: () => this.clock.wall(),
    });
    server.intercept((request, forward) => interception.answer(request, forward));
    this.#browser = this.#makeBrowser(server);
  }

  get main(): HttpDatabase | undefined {
    return this.databases.main;
  }

  get users(): HttpDatabase | undefined {
    return this.databases.users;
  }

  /** Ids of the documents that the case is about. */
  get idsOfTheCase(): readonly string[] {
    const { serverDocs, seedDocs, operations } = this.given;
    const ids = [...serverDocs, ...seedDocs].map((doc) => doc['_id']).concat(operations.map((one) => one.id));
    return [...new Set(ids.filter((id) => typeof id === 'string' && id !== ''))] as string[];
  }

  /** Whether nothing is left that the client would do by itself. */
  get isSettled(): boolean {
    const { status } = this.observation;
    return this.observation.isSettled && this.rollback.isSeen(status) && this.index.isSettled(this.tabs);
  }

  /** Writes the documents of the case and opens its tabs, stopped. */
  async open(): Promise<void> {
    await this.databases.create();
    for (const user of this.given.serverUsers) if (this.users !== undefined) await writeGiven(this.users, user);
    for (const doc of this.given.serverDocs) if (this.main !== undefined) await writeGiven(this.main, doc);
    if (this.given.target === 'local' && this.main !== undefined) await this.#copyDown(this.main);
    await this.rollback.prepare();
    for (const doc of this.given.seedDocs) {
      const there = await this.local.winner(String(doc['_id']));
      if (there === undefined) await writeGiven(this.local, doc);
    }
    for (let number = 1; number <= (this.given.config.tabs ?? 1); number += 1) this.openTab(number);
  }

  openTab(number: number): Tab {
    const tab = new Tab(this.#browser, number);
    this.tabs.push(tab);
    this.observation.watch(tab);
    return tab;
  }

  /** The living tab of that number. */
  tab(number = 1): Tab {
    const tab = this.tabs.find((one) => one.alive && one.number === number);
    if (tab === undefined) throw new Error(`no tab ${String(number)} is alive`);
    return tab;
  }

  /** A tab that was killed meanwhile stays away: only the step `restart` opens it anew. */
  async start(number = 1): Promise<void> {
    if (!this.#started) this.startedAt = this.clock.elapsed;
    this.#started = true;
    const wasKilled =
      this.tabs.some((one) => one.number === number) && !this.tabs.some((one) => one.alive && one.number === number);
    if (!wasKilled) await this.#begin(this.tab(number));
  }

  /** A tab ends, by closing or by a kill, and opens anew. */
  async restart(number: number, kill: boolean): Promise<void> {
    const tab = this.tabs.find((one) => one.alive && one.number === number);
    if (kill) tab?.kill();
    else if (tab !== undefined) {
      this.observation.forget(tab);
      await tab.client.close();
      tab.kill();
    }
    await this.#begin(this.openTab(number));
  }

  /** Waits until nothing is left to do at the present time, restarts of killed tabs included. */
  async rest(): Promise<void> {
    for (;;) {
      await this.inFlight.rest();
      this.observation.sample();
      if (this.moments.afterAttempts(this.observation.attempts.length)) continue;
      if (await this.#firstSync()) continue;
      const killed = this.moments.restarts.shift();
      if (killed === undefined) return;
      this.#startClient(this.openTab(killed.number));
    }
  }

  /** The first time that both sides have the same: what is to happen then happens; says whether it is that time. */
  async #firstSync(): Promise<boolean> {
    if (this.#synced || !this.observation.isSynced) return false;
    this.#synced = true;
    this.moments.reach('after-first-sync');
    await this.rollback.atPoint('after-first-sync', this.observation.status);
    return true;
  }

  /** Starts a client; it does not wait for one that is killed, or whose store hangs, meanwhile. */
  async #begin(tab: Tab): Promise<void> {
    this.#startClient(tab);
    await this.rest();
  }

  #startClient(tab: Tab): void {
    void tab.client.start().catch(this.#noteProblem);
    this.index.watch(tab);
  }

  /** The user signs in again. */
  login(): void {
    this.#loggedIn = true;
    this.#login?.();
    for (const tab of this.tabs) if (tab.alive) tab.client.signedIn();
  }

  /** Closes everything; answers with what a closed client left behind. */
  async close(): Promise<readonly string[]> {
    const left: string[] = [...this.#problems];
    for (const tab of this.tabs) {
      if (!tab.alive) continue;
      let closed = false;
      void tab.client.close().then(() => (closed = true));
      await this.inFlight.rest();
      if (!closed) left.push(`close() of tab ${String(tab.number)} did not end`);
      if (tab.timers > 0) left.push(`close() left ${String(tab.timers)} timers of tab ${String(tab.number)}`);
    }
    if (this.presence.listeners > 0) left.push(`close() left ${String(this.presence.listeners)} listeners of the page`);
    if (this.connectivity.listeners > 0) left.push(`close() left ${String(this.connectivity.listeners)} listeners`);
    for (const tab of this.tabs) tab.kill();
    return left;
  }

  /** Removes the databases and the users. */
  async drop(): Promise<void> {
    this.index.close();
    await this.databases.drop();
    await this.#openDocuments().destroy();
    await new MemoryPouch(`${this.#name}-afield-queue`, { adapter: 'memory' }).destroy();
  }

  #openDocuments(): PouchLike {
    return new MemoryPouch(`${this.#name}-docs`, { adapter: 'memory' });
  }

  /** The leader did it: what it is told of it, it is told after the fault of this point. */
  #carriedOut(word: string, docs: readonly JsonObject[], rows: readonly unknown[]): void {
    const leader = this.observation.leader;
    const tab = leader === undefined ? {} : { tab: leader };
    if (word === eventsWord) {
      const published = this.publications.note(docs, rows);
      if (published.length > 0) this.moments.reach('after-publish', { keys: published.map(({ key }) => key), ...tab });
    }
    if (word !== 'main' || this.given.target !== 'server') return;
    const refused = new Set(
      rows.filter((row) => isObject(row) && row['error'] !== undefined).map((row) => ownOf(row, 'id')),
    );
    const stored = docs.filter((doc) => !refused.has(doc['_id']));
    if (stored.length > 0) this.moments.reach('after-doc-write', { docs: stored, ...tab });
  }

  #database(word: string): Database {
    const database = word === 'docs' || word === 'local' ? this.local : this.databases.of(word);
    if (database === undefined) throw new Error(`the case names a database that it does not have: ${word}`);
    return database;
  }

  async #copyDown(main: HttpDatabase): Promise<void> {
    const source = new MemoryPouch(main.url, { fetch: signedInFetch(main.authorization) });
    const done: unknown = await MemoryPouch.replicate(source, this.#openDocuments());
    if (!isObject(done) || done['ok'] !== true) throw new Error('the harness could not copy the documents down');
  }

  #makeBrowser(server: CaseServer): Browser {
    const { given, databases } = this;
    const hasServer = databases.main !== undefined;
    const batchSize = given.config.batch_size;
    const credentials = { type: 'basic', username: server.username, password: server.password } as const;
    const hasLogin = given.steps.some((step) => step.do === 'login');
    let seed = 1;
    const storage = new StorageFaults({
      faults: this.faults,
      clock: this.clock,
      wordOf: (name) => (name === `${this.#name}-docs` ? 'docs' : 'queue'),
      batchOf: (ids) => {
        const index = given.operations.findIndex((one) => typeof one.id === 'string' && ids.includes(one.id));
        return index < 0 ? undefined : Math.floor(index / (batchSize ?? 100)) + 1;
      },
    });
    return {
      clock: this.clock,
      inFlight: this.inFlight,
      locks: new FakeLocks(),
      channels: new FakeChannels(),
      connectivity: this.connectivity,
      presence: this.presence,
      storage,
      indexedDB: storage.indexedDB(this.index.indexedDB),
      indexed: (call) => {
        if (call.call === 'write') storage.indexWritten();
        this.index.ended(call);
      },
      random: () => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647,
      newId: () => `${this.#name}-${String((this.#ids += 1))}`,
      fetch: fetchOfCases,
      othersLive: (tab) => this.tabs.some((one) => one !== tab && one.alive),
      written: (call, tab) => {
        if (call.database !== `${this.#name}-docs` || given.target !== 'local') return;
        if (!this.traffic.countsServerRows) this.traffic.countRows(call.docs);
        if (this.main === undefined) this.traffic.countUploads(call.docs);
        this.moments.reach('after-doc-write', { docs: call.docs as readonly JsonObject[], tab });
      },
      options: {
        name: this.#name,
        documents: `${this.#name}-docs`,
        actions: caseActions,
        ...(given.config.index === undefined ? {} : { indexes: [caseIndex(given.config.index)] }),
        autoStart: false,
        jitter: given.expect.tolerance === undefined ? 0 : 0.2,
        replication: given.target === 'local' && hasServer,
        publishers: [couchdbPublisher({ url: databases.addressOf(eventsWord) })],
        // The app knows whose device it is: nobody has to ask the server first.
        user: server.username,
        auth: {
          credentials: async (why) => {
            if (why === 'refused' && hasLogin && !this.#loggedIn) {
              await new Promise<void>((resolve) => (this.#login = resolve));
            }
            return credentials;
          },
        },
        ...(batchSize === undefined ? {} : { batchSize }),
        ...(hasServer ? { server: databases.addressOf('main'), results: databases.addressOf('results') } : {}),
      },
    };
  }
}

/** A fetch that signs in, and whose answers give PouchDB in Node the Buffers it asks for. */
function signedInFetch(authorization: string): typeof fetch {
  return async (input, init = {}) => {
    const headers = { ...Object.fromEntries(new Headers(init.headers)), authorization };
    const answer = await fetch(input, { ...init, headers });
    return Object.assign(answer, { buffer: async () => Buffer.from(await answer.arrayBuffer()) });
  };
}
