import type { Clock } from '../model/environment.js';
import { ClientClosedError, IndexNotReadyError } from '../model/errors.js';
import type { IndexAnswer, IndexQuery, IndexQueryOptions } from '../model/lookup.js';
import type { LocalDatabase } from '../store/local-database.js';
import type { AnnouncedState } from './announced-state.js';
import type { Connection } from './connection.js';
import type { IndexStore, Meta } from './index-store.js';
import { covers, exceeds } from './pass.js';
import { checkQueryOptions, rangesOf } from './ranges.js';
import type { Upkeep } from './upkeep.js';
import { withDocs } from './with-docs.js';

/** What is stored beside the rows, and the rows that fit, as of one moment. */
type Found = Awaited<ReturnType<IndexStore['read']>>;

export interface QueriesParts {
  /** The index's name. */
  readonly name: string;
  readonly documents: LocalDatabase;
  readonly connection: Connection;
  readonly upkeep: Upkeep;
  readonly state: AnnouncedState;
  readonly indexedDB: IDBFactory | undefined;
  readonly clock: Clock;
  readonly breathe: () => Promise<void>;
  readonly closed: AbortSignal;
}

/** Answers queries of one index: never from a part of it, and never silently old. */
export class Queries {
  readonly #parts: QueriesParts;

  constructor(parts: QueriesParts) {
    this.#parts = parts;
  }

  async answer(query: IndexQuery, options: IndexQueryOptions): Promise<IndexAnswer> {
    const { name, documents, connection, upkeep, indexedDB, breathe, closed } = this.#parts;
    if (closed.aborted) throw new ClientClosedError();
    const { include_docs, limit, waitMs, stale } = checkQueryOptions(options);
    const ranges = rangesOf(query, (a, b) => indexedDB?.cmp(a, b) ?? 0);
    const stopped = upkeep.parked;
    // Only `resume()` ends it: to look into a store that was removed would make it again.
    if (stopped?.isStored === false) throw new IndexNotReadyError(name, 'parked', stopped.reason);
    const read = (): Promise<Found> => connection.read((store) => store.read(ranges, limit));
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
    const bounded: Pick<LocalDatabase, 'read'> = { read: (ids) => connection.within(documents.read(ids)) };
    if (behind && stale === 'refuse') throw new IndexNotReadyError(name, 'behind');
    return { rows: include_docs ? await withDocs(found.rows, bounded, breathe) : found.rows, behind };
  }

  /** What the source holds at this moment. */
  async #head(): Promise<{ source: string; head: number | string }> {
    const { documents, connection } = this.#parts;
    const [source, { sequence }] = await connection.within(Promise.all([documents.id(), documents.extent()]));
    return { source, head: sequence };
  }

  /** Throws when the index cannot answer. */
  #asked(meta: Meta | undefined, source: string): Meta {
    const { name, upkeep, state } = this.#parts;
    const parked = upkeep.seen(meta);
    if (parked !== undefined) {
      if (state.value.state !== 'parked') state.found(upkeep.stateOf(meta));
      throw new IndexNotReadyError(name, 'parked', parked.reason);
    }
    if (meta === undefined) throw new IndexNotReadyError(name, state.value.state === 'building' ? 'building' : 'idle');
    if (!meta.complete) throw new IndexNotReadyError(name, 'building');
    if (meta.source !== source) return this.#beginAnew();
    // Another tab has said so, and what is stored says otherwise.
    if (state.value.state === 'parked') state.found(upkeep.stateOf(meta));
    return meta;
  }

  /** The database was made anew, or set back: what is stored is of the one before. */
  #beginAnew(): never {
    const { name, upkeep } = this.#parts;
    void upkeep.catchUp();
    throw new IndexNotReadyError(name, 'building');
  }

  /** Reads again until all changes up to `head` are stored, the index stops, or the time is over. */
  async #readUntil(head: number | string, waitMs: number, read: () => Promise<Found>): Promise<Found> {
    const { upkeep, clock, closed } = this.#parts;
    let isOver = false;
    let end: () => void = () => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    const timer = clock.setTimer(() => {
      isOver = true;
      end();
    }, waitMs);
    try {
      for (;;) {
        await Promise.race([upkeep.catchUp(), over]);
        const found = await read();
        const { meta } = found;
        if (upkeep.seen(meta) !== undefined || meta?.complete !== true || covers(meta, head)) return found;
        if (isOver || closed.aborted || upkeep.parked !== undefined) return found;
      }
    } finally {
      clock.clearTimer(timer);
    }
  }
}
