import { isDeepStrictEqual } from 'node:util';
import { AfieldError, type IndexDefinition, type IndexState, type LocalIndex, type PouchLike } from '@afield/client';
import type { InFlight } from '../in-flight.js';
import { memoryIndexedDB } from '../indexeddb/memory-indexeddb.js';
import type { IndexedDBCall } from '../indexeddb/layer.js';
import { trackedIndexedDB } from '../indexeddb/tracked.js';
import { changesOf, keysExpected, readStored, unstored, type StoredIndex } from './index-store.js';
import type { Tab } from './tab.js';

const nothing: StoredIndex = { rows: new Map(), skipped: new Set(), point: undefined };

export interface IndexWatchParts {
  readonly definition: IndexDefinition | undefined;
  /** Name of the client, with which the name of the index's database begins. */
  readonly client: string;
  readonly inFlight: InFlight;
  /** The documents, past all faults. */
  readonly documents: () => PouchLike;
  readonly parked: (tab: Tab) => void;
}

/** Looks after the index of a case: begins what its steps say, hears its states, and looks into its store after each write. */
export class IndexWatch {
  /** The device's IndexedDB, past all faults. */
  readonly indexedDB: IDBFactory;
  /** Resume points that lay past something that was not stored. */
  readonly pastUnstored: string[] = [];
  /** Queries that were answered from a part of the index, or failed in a way that is no refusal. */
  readonly wrongAnswers: string[] = [];
  /** Queries that were answered or refused. */
  queries = 0;
  /** How often the store was looked into. */
  looks = 0;
  readonly #parts: IndexWatchParts;
  readonly #states = new Map<Tab, IndexState>();
  #pending = 0;
  #opening: Promise<IDBDatabase> | undefined;
  #connection: IDBDatabase | undefined;

  constructor(parts: IndexWatchParts) {
    this.#parts = parts;
    this.indexedDB = trackedIndexedDB(memoryIndexedDB(), parts.inFlight);
  }

  /** What the first of these tabs shows that lives and has looked. */
  state(tabs: readonly Tab[]): IndexState | undefined {
    const tab = tabs.find((one) => one.alive && this.#states.has(one));
    return tab === undefined ? undefined : this.#states.get(tab);
  }

  /** Whether nothing of it is left to do by itself. */
  isSettled(tabs: readonly Tab[]): boolean {
    return this.#pending === 0 && !tabs.some((tab) => tab.alive && this.#states.get(tab)?.state === 'building');
  }

  /** The tab's client works on the index from now on, or is asked to. */
  watch(tab: Tab): void {
    const index = this.#indexOf(tab);
    if (index === undefined || this.#states.has(tab)) return;
    this.#states.set(tab, { state: 'idle' });
    index.state$.subscribe((state) => {
      if (!tab.alive) return;
      this.#states.set(tab, state);
      if (state.state === 'parked') this.#parts.parked(tab);
    });
  }

  build(tab: Tab): void {
    this.#begin(tab, (index) => index.build());
  }

  resume(tab: Tab): void {
    this.#begin(tab, (index) => index.resume());
  }

  /** Asks each of these tabs for all rows, and holds the answers against the documents. */
  query(tabs: readonly Tab[]): void {
    for (const tab of tabs) {
      this.watch(tab);
      if (tab.alive) this.#count(tab, () => this.#ask(tab));
    }
  }

  /** A call of a tab on IndexedDB has ended. */
  ended({ call, database }: IndexedDBCall): void {
    const { definition, client, inFlight } = this.#parts;
    if (database !== `${client}-afield-index-${definition?.name ?? ''}-v1`) return;
    if (call === 'open') this.#opening ??= inFlight.track(() => this.#open(database));
    else if (call === 'write') void inFlight.track(() => this.look());
  }

  /** Holds what is stored now against the documents: nothing before the resume point may be missing (B3). */
  async look(): Promise<void> {
    const { definition, documents } = this.#parts;
    if (definition === undefined) return;
    this.looks += 1;
    const stored = await this.stored();
    this.pastUnstored.push(...unstored(stored, await changesOf(documents()), definition));
  }

  /** What is stored now, past all faults. Begins to read at once: it is of before the next write. */
  async stored(): Promise<StoredIndex> {
    const connection = this.#connection ?? (await this.#opening);
    return connection === undefined ? nothing : readStored(connection);
  }

  close(): void {
    this.#connection?.close();
  }

  async #open(database: string): Promise<IDBDatabase> {
    this.#connection = await opened(this.indexedDB, database);
    return this.#connection;
  }

  async #ask(tab: Tab): Promise<void> {
    const { definition, documents, inFlight } = this.#parts;
    const index = this.#indexOf(tab);
    if (index === undefined || definition === undefined) return;
    try {
      const { rows } = await index.query({});
      const changes = await inFlight.track(() => changesOf(documents()));
      const expected = changes.flatMap(({ id, doc }) =>
        (keysExpected(definition, doc) ?? ['cannot be indexed']).map((key) => JSON.stringify([id, key])),
      );
      const found = rows.map(({ id, key }) => JSON.stringify([id, key]));
      if (!isDeepStrictEqual(found.sort(), expected.sort())) {
        this.wrongAnswers.push(`answered with ${found.join(' ')}, but there is ${expected.join(' ')}`);
      }
    } catch (error) {
      if (!(error instanceof AfieldError)) this.wrongAnswers.push(`a query failed: ${String(error)}`);
    }
    this.queries += 1;
  }

  #begin(tab: Tab, what: (index: LocalIndex) => Promise<void>): void {
    const index = this.#indexOf(tab);
    if (index === undefined) return;
    this.#count(tab, async () => {
      try {
        await what(index);
      } catch (error) {
        if (!(error instanceof AfieldError)) this.wrongAnswers.push(`a build failed: ${String(error)}`);
      }
    });
    this.watch(tab);
  }

  /** A call counts until it ends; in a tab that was killed it never ends. */
  #count(tab: Tab, call: () => Promise<void>): void {
    this.#pending += 1;
    let isOver = false;
    const over = (): void => {
      if (!isOver) this.#pending -= 1;
      isOver = true;
    };
    tab.whenKilled(over);
    void call().finally(over);
  }

  #indexOf(tab: Tab): LocalIndex | undefined {
    const { definition } = this.#parts;
    return definition === undefined ? undefined : tab.client.index(definition.name);
  }
}

function opened(factory: IDBFactory, name: string): Promise<IDBDatabase> {
  const request = factory.open(name);
  return new Promise((resolve, reject) => {
    request.onsuccess = () => {
      resolve(request.result);
    };
    request.onerror = () => {
      reject(new Error('the harness could not open the index'));
    };
  });
}
