import { defer, type Observable } from 'rxjs';
import type { Channel, Clock, Locks } from '../model/environment.js';
import { ClientClosedError, IndexNotReadyError } from '../model/errors.js';
import type {
  IndexAnswer,
  IndexDefinition,
  IndexQuery,
  IndexQueryOptions,
  IndexState,
  LocalIndex,
  SkippedDocument,
} from '../model/lookup.js';
import { localStoreError } from '../retry/classify.js';
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait } from '../retry/wait.js';
import type { LocalDatabase } from '../store/local-database.js';
import { AnnouncedState } from './announced-state.js';
import { Connection } from './connection.js';
import type { IndexStore, Meta } from './index-store.js';
import { databaseName, removeOlder } from './names.js';
import { covers, exceeds } from './pass.js';
import { checkQueryOptions, rangesOf } from './ranges.js';
import { Upkeep } from './upkeep.js';
import { withDocs } from './with-docs.js';

/** Changes that come close together are read together. */
const followAfterMs = 50;

/** What is stored beside the rows, and the rows that fit, as of one moment. */
type Found = Awaited<ReturnType<IndexStore['read']>>;

export interface KeptIndexParts {
  /** Names the client's stores. */
  readonly client: string;
  readonly documents: LocalDatabase;
  readonly indexedDB: IDBFactory | undefined;
  readonly locks: Locks;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  /** Milliseconds after which a call on a store that has not settled counts as failed. */
  readonly timeoutMs: number;
  readonly channel: (name: string, news: (message?: unknown) => void) => Channel;
  readonly breathe: () => Promise<void>;
  readonly random: () => number;
  readonly warn: (line: string) => void;
  readonly closed: AbortSignal;
  /** It has become ready, or is not ready any more. */
  readonly changed: () => void;
}

/**
 * One index, kept up to date from the documents' changes.
 *
 *   idle ─▶ building ─ all changes are stored ─▶ ready ─ follows the feed
 *             ▲  │ an error that may pass: again from the resume point, at most 10 times without progress
 *             │  └─ any other error, or the 11th ─▶ parked
 *             └──────────────── resume(), or the next start ──┘
 */
export class KeptIndex implements LocalIndex {
  readonly name: string;
  readonly state$: Observable<IndexState>;
  readonly #definition: IndexDefinition;
  readonly #parts: KeptIndexParts;
  readonly #state: AnnouncedState;
  readonly #connection: Connection;
  readonly #upkeep: Upkeep;
  #feed: { cancel(): void } | undefined;
  #looking: Promise<void> | undefined;
  #olderGone = false;

  constructor(definition: IndexDefinition, parts: KeptIndexParts) {
    const { client, clock, channel } = parts;
    this.name = definition.name;
    this.#definition = definition;
    this.#parts = parts;
    const database = databaseName(client, definition);
    this.#state = new AnnouncedState({
      clock,
      channel: (news) => channel(database, news),
      changed: () => {
        this.#changed();
      },
      heard: (state) => {
        this.#upkeep.heard(state);
      },
    });
    this.#connection = new Connection({
      ...parts,
      database,
      removed: () => {
        this.#upkeep.removed();
      },
    });
    this.#upkeep = new Upkeep({
      ...parts,
      definition,
      lock: database,
      connection: this.#connection,
      state: this.#state,
    });
    this.state$ = defer(() => {
      void this.#look();
      return this.#state.changes;
    });
  }

  /** Whether it can be asked now, as far as this tab knows. */
  get isReady(): boolean {
    return this.#state.value.state === 'ready';
  }

  /** Keeps it up to date from now on; what is parked is tried again (B2). */
  follow(): void {
    if (this.#feed !== undefined || this.#parts.closed.aborted) return;
    this.#state.listen();
    this.#feed = this.#listenToChanges();
    void this.#upkeep.again(false);
  }

  /** A feed that breaks costs nothing but the early start: queries look for themselves, and the client pokes. */
  #listenToChanges(): { cancel(): void } {
    try {
      const feed = this.#parts.documents.pouch.changes({ live: true, since: 'now', return_docs: false });
      feed.on('change', () => {
        this.poke();
      });
      feed.on('error', () => undefined);
      Promise.resolve(feed).catch(() => undefined);
      return feed;
    } catch {
      return { cancel: () => undefined };
    }
  }

  /** Documents may have been written. */
  poke(): void {
    const { scheduler, clock, closed } = this.#parts;
    const key = `index:${this.name}`;
    if (this.#feed === undefined || closed.aborted || scheduler.isWaiting(key)) return;
    scheduler.wait(key, beginWait(clock, followAfterMs), () => {
      void this.#upkeep.catchUp();
    });
  }

  async query(query: IndexQuery, options: IndexQueryOptions = {}): Promise<IndexAnswer> {
    const { documents, indexedDB, breathe } = this.#parts;
    this.#assertOpen();
    const { include_docs, limit, waitMs, stale } = checkQueryOptions(options);
    const ranges = rangesOf(query, (a, b) => indexedDB?.cmp(a, b) ?? 0);
    const stopped = this.#upkeep.parked;
    // Only `resume()` ends it: to look into a store that was removed would make it again.
    if (stopped?.isStored === false) throw new IndexNotReadyError(this.name, 'parked', stopped.reason);
    const read = (): Promise<Found> => this.#reading((store) => store.read(ranges, limit));
    // Side by side: the head is of a moment after the call, and rows that cover it have all writes made before.
    const [{ source, head }, first] = await Promise.all([this.#head(), read()]);
    let found = first;
    let meta = this.#asked(found.meta, source);
    // A write between the two, or a database that was set back: then its next writes must not seem to be seen.
    if (exceeds(meta, head) && exceeds(meta, (await this.#head()).head)) this.#beginAnew();
    if (!covers(meta, head)) {
      found = await this.#readUntil(head, waitMs, read);
      meta = this.#asked(found.meta, source);
    }
    const behind = !covers(meta, head);
    const bounded: Pick<LocalDatabase, 'read'> = { read: (ids) => this.#connection.within(documents.read(ids)) };
    if (behind && stale === 'refuse') throw new IndexNotReadyError(this.name, 'behind');
    return { rows: include_docs ? await withDocs(found.rows, bounded, breathe) : found.rows, behind };
  }

  build(): Promise<void> {
    return this.#bring(false);
  }

  resume(): Promise<void> {
    return this.#bring(false);
  }

  rebuild(): Promise<void> {
    return this.#bring(true);
  }

  async skipped(): Promise<readonly SkippedDocument[]> {
    this.#assertOpen();
    return this.#reading((store) => store.skipped());
  }

  async close(): Promise<void> {
    this.#feed?.cancel();
    this.#connection.close();
    await this.#upkeep.idle();
    this.#state.close();
  }

  async #bring(anew: boolean): Promise<void> {
    this.#assertOpen();
    this.#state.listen();
    await this.#upkeep.again(anew);
    this.#assertOpen();
    const { parked } = this.#upkeep;
    if (parked !== undefined) {
      throw new IndexNotReadyError(this.name, 'parked', parked.reason, { cause: parked.error });
    }
  }

  /** Shows what is stored to whoever looks before this tab has done anything itself. */
  #look(): Promise<void> {
    this.#looking ??= (async () => {
      this.#state.listen();
      try {
        const meta = await this.#reading((store) => store.meta());
        if (this.#state.value.state === 'idle') this.#state.found(this.#upkeep.stateOf(meta));
      } catch {
        this.#looking = undefined; // it stays `idle`: looked at again by the next who asks
      }
    })();
    return this.#looking;
  }

  /** What the source holds at this moment. */
  async #head(): Promise<{ source: string; head: number | string }> {
    const { documents } = this.#parts;
    const [source, { sequence }] = await this.#connection.within(Promise.all([documents.id(), documents.extent()]));
    return { source, head: sequence };
  }

  /** Throws when the index cannot answer. */
  #asked(meta: Meta | undefined, source: string): Meta {
    const parked = this.#upkeep.seen(meta);
    if (parked !== undefined) {
      if (this.#state.value.state !== 'parked') this.#state.found(this.#upkeep.stateOf(meta));
      throw new IndexNotReadyError(this.name, 'parked', parked.reason);
    }
    if (meta === undefined)
      throw new IndexNotReadyError(this.name, this.#state.value.state === 'building' ? 'building' : 'idle');
    if (!meta.complete) throw new IndexNotReadyError(this.name, 'building');
    if (meta.source !== source) return this.#beginAnew();
    // Another tab has said so, and what is stored says otherwise.
    if (this.#state.value.state === 'parked') this.#state.found(this.#upkeep.stateOf(meta));
    return meta;
  }

  /** The database was made anew, or set back: what is stored is of the one before. */
  #beginAnew(): never {
    void this.#upkeep.catchUp();
    throw new IndexNotReadyError(this.name, 'building');
  }

  /** Reads again until all changes up to `head` are stored, the index stops, or the time is over. */
  async #readUntil(head: number | string, waitMs: number, read: () => Promise<Found>): Promise<Found> {
    const { clock, closed } = this.#parts;
    let isOver = false;
    let end: () => void = () => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    const timer = clock.setTimer(() => {
      isOver = true;
      end();
    }, waitMs);
    try {
      for (;;) {
        await Promise.race([this.#upkeep.catchUp(), over]);
        const found = await read();
        const { meta } = found;
        if (this.#upkeep.seen(meta) !== undefined || meta?.complete !== true || covers(meta, head)) return found;
        if (isOver || closed.aborted || this.#upkeep.parked !== undefined) return found;
      }
    } finally {
      clock.clearTimer(timer);
    }
  }

  /** Reads from the store; once more through another connection when this one has died. */
  async #reading<Value>(read: (store: IndexStore) => Promise<Value>): Promise<Value> {
    const connection = this.#connection;
    const once = async (): Promise<Value> => {
      const opening = connection.store();
      try {
        return await connection.within(opening.then((store) => read(store)));
      } catch (error) {
        // Not one that someone else has opened since.
        connection.drop(opening);
        throw error;
      }
    };
    try {
      return await once();
    } catch (error) {
      if (error instanceof ClientClosedError) throw error;
    }
    try {
      return await once();
    } catch (error) {
      throw error instanceof ClientClosedError ? error : localStoreError(error);
    }
  }

  #changed(): void {
    const { indexedDB, client, changed } = this.#parts;
    if (this.isReady && !this.#olderGone && indexedDB !== undefined) {
      this.#olderGone = true;
      void removeOlder(indexedDB, client, this.#definition);
    }
    changed();
  }

  #assertOpen(): void {
    if (this.#parts.closed.aborted) throw new ClientClosedError();
  }
}
