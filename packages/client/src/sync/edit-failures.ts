import { valueHash } from '../queue/content-hash.js';
import type { Queue } from '../queue/queue.js';
import { editFailureId, failureDoc, type StoredFailure } from '../queue/stored.js';

/** Documents that the app edited itself and the server refused: failures of no bulk operation. */
export class EditFailures {
  readonly #queue: Queue;
  readonly #shown: () => void;
  readonly #unread: () => void;
  readonly #closed: AbortSignal;
  #isFollowed = false;
  #isReading = false;
  #known: readonly StoredFailure[] = [];
  /** The reading that `known` is from, or will be; undefined: it must be read again. */
  #reading: Promise<readonly StoredFailure[]> | undefined;

  constructor(parts: {
    queue: Queue;
    /** The number of those that are open is another one. */
    shown: () => void;
    /** They could not be read. */
    unread: () => void;
    closed: AbortSignal;
  }) {
    this.#queue = parts.queue;
    this.#shown = parts.shown;
    this.#unread = parts.unread;
    this.#closed = parts.closed;
  }

  /** They may have changed: they are read again when someone asks for them, at once when they are followed. */
  changed(): void {
    this.#reading = undefined;
    this.#follow();
  }

  /** What is shown counts them from now on (V1). The store is open. */
  follow(): void {
    this.#isFollowed = true;
    this.#follow();
  }

  /** As they are stored, read again when they may have changed. */
  async list(): Promise<readonly StoredFailure[]> {
    this.#reading ??= this.#queue.docs.readRange(editFailureId(''), failureDoc);
    const reading = this.#reading;
    try {
      const list = await reading;
      if (this.#reading === reading) this.#keep(list);
      return list;
    } catch (error) {
      if (this.#reading === reading) this.changed();
      throw error;
    }
  }

  /** As they are stored now, and a number that grows with each change of the store. */
  async snapshot(): Promise<{ list: readonly StoredFailure[]; changes: number }> {
    // The number first: what is read after it is at least as new.
    const changes = await this.#queue.docs.writes();
    this.changed();
    return { list: await this.list(), changes };
  }

  /** How many no person has decided on, as they were read last. */
  get open(): number {
    return openOf(this.#known);
  }

  #keep(list: readonly StoredFailure[]): void {
    const isNews = openOf(list) !== this.open;
    this.#known = list;
    if (isNews) this.#shown();
  }

  #follow(): void {
    if (!this.#isFollowed || this.#closed.aborted) return;
    if (!this.#isReading) void this.#readAll();
  }

  /** Whatever changes while they are read: the last reading is newer. */
  async #readAll(): Promise<void> {
    this.#isReading = true;
    try {
      do await this.list();
      while (this.#reading === undefined && !this.#closed.aborted);
    } catch {
      if (!this.#closed.aborted) this.#unread();
    }
    // Not a moment later: what changes from now on is read anew.
    this.#isReading = false;
  }
}

function openOf(list: readonly StoredFailure[]): number {
  return list.filter(({ resolution }) => resolution === undefined).length;
}

/** As one text: when it differs from what was delivered, they are sent again. */
export function truthOfEdits(list: readonly StoredFailure[]): string {
  return list.length === 0 ? '' : valueHash(list.map(({ _id, _rev }) => [_id, _rev]));
}
