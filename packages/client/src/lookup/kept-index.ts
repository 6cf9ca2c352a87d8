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
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait } from '../retry/wait.js';
import type { LocalDatabase } from '../store/local-database.js';
import { AnnouncedState } from './announced-state.js';
import { Connection } from './connection.js';
import { databaseName, removeOlder } from './names.js';
import { Queries } from './queries.js';
import { Upkeep } from './upkeep.js';

/** Changes that come close together are read together. */
const followAfterMs = 50;

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
  readonly #queries: Queries;
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
    this.#queries = new Queries({
      ...parts,
      name: this.name,
      connection: this.#connection,
      upkeep: this.#upkeep,
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
      return this.#parts.documents.follow(() => {
        this.poke();
      });
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

  query(query: IndexQuery, options: IndexQueryOptions = {}): Promise<IndexAnswer> {
    return this.#queries.answer(query, options);
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
    return this.#connection.read((store) => store.skipped());
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
        const meta = await this.#connection.read((store) => store.meta());
        if (this.#state.value.state === 'idle') this.#state.found(this.#upkeep.stateOf(meta));
      } catch {
        this.#looking = undefined; // it stays `idle`: looked at again by the next who asks
      }
    })();
    return this.#looking;
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
