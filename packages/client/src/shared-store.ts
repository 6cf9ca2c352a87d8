import type { Channel, Environment } from './model/environment.js';
import { ClientClosedError, OtherStoreError, StoreLeftError } from './model/errors.js';
import type { Owner } from './model/store-name.js';
import type { Session } from './http/session.js';
import type { PageEvents } from './outbox/page-events.js';
import type { Claims } from './queue/claims.js';
import type { Failures } from './queue/failures.js';
import type { OpenConflicts } from './heal/open-conflicts.js';
import type { Quarantine } from './queue/quarantine.js';
import type { Queue } from './queue/queue.js';
import type { Reports } from './queue/reports.js';
import type { Header } from './queue/stored.js';
import type { EditFailures } from './sync/edit-failures.js';
import type { TabLock } from './tabs/tab-lock.js';

export interface SharedStoreParts {
  readonly name: string;
  /** Whom the app says that the store is for. */
  readonly owner: Owner;
  readonly queue: Queue;
  readonly reports: Reports;
  readonly session: Session;
  readonly failures: Failures;
  readonly pageEvents: PageEvents;
  readonly claims: Claims;
  readonly quarantine: Quarantine;
  readonly openConflicts: OpenConflicts;
  readonly edits: EditFailures;
  readonly tabLock: TabLock;
  readonly environment: Environment;
  readonly closed: AbortSignal;
  /** Something that is shown has changed. */
  readonly changed: () => void;
  /** There may be something to run. */
  readonly poke: () => void;
  /** Someone else has changed these. */
  readonly noticed: (headers: readonly Header[]) => void;
  /** A person has decided something in another tab, and it was read. */
  readonly decided: () => void;
  /** The store is about to be used. */
  readonly opening: () => void;
  /** An earlier logout was cut off: resolves when what it has left is removed. */
  readonly finishWipe: () => Promise<void>;
  /** The store is being removed: its person has logged out in another tab. */
  readonly left: () => void;
}

/** The queue's store, which all tabs share: opened once, read again when another tab says that there is news. */
export class SharedStore {
  readonly #parts: SharedStoreParts;
  #refusal: OtherStoreError | undefined;
  #opening: Promise<string> | undefined;
  #reading: Promise<void> | undefined;
  #channel: Channel | undefined;
  /** A person has decided something in another tab. */
  #controlChannel: Channel | undefined;

  constructor(parts: SharedStoreParts) {
    this.#parts = parts;
  }

  /** Opens the store, and answers with its name; a failed opening is tried again by the next who needs it. */
  open(): Promise<string> {
    if (this.#parts.closed.aborted) return Promise.reject(new ClientClosedError());
    this.#opening ??= this.#openOnce().then(
      (storeId) => {
        this.#refusal = undefined;
        return storeId;
      },
      (error: unknown) => {
        this.#opening = undefined;
        if (error instanceof OtherStoreError) this.#refusal = error;
        throw error;
      },
    );
    return this.#opening;
  }

  /** Why the store is not this client's (S7); undefined when it is, or it is not known yet. */
  get refusal(): OtherStoreError | undefined {
    return this.#refusal;
  }

  async #openOnce(): Promise<string> {
    const { name, environment, pageEvents, tabLock } = this.#parts;
    void tabLock.hold();
    this.#controlChannel ??= environment.channel(`afield:${name}:control`, () => {
      void this.#onceOurs(() => this.lookForDecisions());
    });
    this.#channel ??= environment.channel(`afield:${name}`, () => {
      void this.#onceOurs(() => this.#lookForNew());
    });
    this.#parts.opening();
    const storeId = await this.read().catch(async (error: unknown) => {
      if (!(error instanceof StoreLeftError)) throw error;
      await this.#parts.finishWipe();
      return this.read();
    });
    pageEvents.listen((news) => environment.channel(`afield:${name}:events`, news));
    this.#reading = this.#readLater();
    return storeId;
  }

  /** Nothing is read of a store that may be someone else's (S7). */
  async #onceOurs(look: () => Promise<void>): Promise<void> {
    const isOurs = await this.#opening?.then(
      () => true,
      () => false,
    );
    if (isOurs === true) await look();
  }

  /** Opening reads headers alone: what is in quarantine, and refused edits of the app, are shown a moment later. */
  async #readLater(): Promise<void> {
    const { quarantine, edits, environment, closed } = this.#parts;
    await environment.breathe();
    edits.follow();
    try {
      if (!closed.aborted) await quarantine.ready();
    } catch {
      environment.warn('What is in quarantine could not be read. It is read when someone asks for it.');
    }
  }

  /** Reads what is stored now: others may have stored more since it was opened. */
  async read(): Promise<string> {
    const { queue, reports, session, environment, owner, changed } = this.#parts;
    const opened = await queue.open(environment.newId(), environment.clock.wall(), owner);
    const { storeId, reports: stored } = opened;
    session.expect(opened.user);
    reports.loaded(stored);
    changed();
    return storeId;
  }

  /** Tells the other tabs that something new is stored. */
  announceNew(): void {
    this.#channel?.announce();
  }

  /** Tells the other tabs that a person has decided something about what was queued before. */
  announceChanged(): void {
    this.#controlChannel?.announce();
  }

  /** Another tab has queued something, or given a key back. */
  async #lookForNew(): Promise<void> {
    const { queue, claims, environment, poke } = this.#parts;
    try {
      if (await queue.headers.loadNew()) poke();
      claims.news();
    } catch {
      environment.warn('What another tab has queued could not be read. It runs after the next start.');
    }
  }

  /** Another tab has changed something that was queued before, or may have without our hearing of it. */
  async lookForChanged(): Promise<void> {
    const { queue, environment, noticed, poke } = this.#parts;
    try {
      await queue.headers.loadNew();
      noticed(await queue.headers.refreshOpen());
      poke();
    } catch (error) {
      if (error instanceof StoreLeftError) {
        this.#parts.left();
        return;
      }
      environment.warn('What another tab has changed could not be read. It is looked at again in a minute.');
    }
  }

  /** A person has decided something in another tab, or a file was taken in: all is read anew that may have changed. */
  async lookForDecisions(): Promise<void> {
    try {
      await this.#readAll();
    } catch {
      this.#parts.environment.warn('What was decided in another tab could not be read. It is read at the next start.');
    }
  }

  async #readAll(): Promise<void> {
    const { queue, reports, failures, edits, quarantine, openConflicts } = this.#parts;
    const { changed, noticed, decided, poke } = this.#parts;
    const stored = await queue.refreshAll();
    reports.reread(stored);
    await failures.reload();
    await quarantine.load();
    await openConflicts.reload();
    edits.changed();
    noticed(stored.headers);
    decided();
    changed();
    poke();
  }

  /** Resolves when no opening is under way, nor what follows it. */
  async settled(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    await this.#reading;
  }

  /** Hears and says nothing any more. */
  close(): void {
    this.#parts.tabLock.release();
    this.#channel?.close();
    this.#controlChannel?.close();
  }
}
