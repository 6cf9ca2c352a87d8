import { generationOf } from '../model/revision.js';
import type { QuarantineEntry, QuarantineKind } from '../model/quarantine.js';
import type { Clock } from '../model/environment.js';
import { shownEntries } from './quarantined.js';
import type { Queue } from './queue.js';
import { quarantineDoc, storedVersion, type Header, type StoredQuarantine } from './stored.js';

/** A conflict as whoever finds it hands it over. */
export interface NewQuarantineEntry extends Pick<
  StoredQuarantine,
  'kind' | 'key' | 'bulkOperationId' | 'index' | 'first' | 'second' | 'content' | 'as' | 'hash'
> {
  /** What the first version is known by: the same key with the same first and second version is stored once. */
  readonly against: string;
}

const letters: Readonly<Record<QuarantineKind, string>> = {
  operation: 'o',
  'bulk-operation': 'b',
  create: 'c',
  event: 'e',
};
const entriesPerWrite = 500;

/** Conflicting duplicates, with both versions of each (O4, O5, O6). Read soon after the store was opened. */
export class Quarantine {
  readonly #queue: Queue;
  readonly #clock: Clock;
  readonly #changed: () => void;
  readonly #added: () => void;
  readonly #known = new Map<string, StoredQuarantine>();
  #open = 0;
  #reading: Promise<unknown> = Promise.resolve();
  #ready: Promise<void> | undefined;

  constructor(parts: {
    queue: Queue;
    clock: Clock;
    /** Something that is shown has changed. */
    changed: () => void;
    /** This tab has stored or removed something: the others read it. */
    added: () => void;
  }) {
    this.#queue = parts.queue;
    this.#clock = parts.clock;
    this.#changed = parts.changed;
    this.#added = parts.added;
  }

  /** Resolves when they were read once. */
  ready(): Promise<void> {
    this.#ready ??= this.load().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }

  /** Reads what is stored now. */
  async load(): Promise<void> {
    const reading = this.#reading.then(() => this.#read());
    this.#reading = reading.catch(() => undefined); // the next reading does not care how this one ended
    await reading;
  }

  /** How many no person has decided on. */
  get open(): number {
    return this.#open;
  }

  get(quarantineId: string): StoredQuarantine | undefined {
    return this.#known.get(quarantineId);
  }

  /** Those of a bulk operation: it holds the first version, or queues the second. */
  of({ id, taken }: Pick<Header, 'id' | 'taken'>): readonly StoredQuarantine[] {
    return [...this.#known.values()].filter((entry) => entry.bulkOperationId === id || entry._id === taken);
  }

  /** All that are known, as they are stored. */
  entries(): readonly StoredQuarantine[] {
    return [...this.#known.values()];
  }

  /** Whole bulk operations that are kept as second versions. */
  contents(): readonly NonNullable<StoredQuarantine['content']>[] {
    return [...this.#known.values()].flatMap(({ content }) => content ?? []);
  }

  /** What is removed from the store, with the bulk operation that it belonged to. */
  removed(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.#known.get(id)?.resolution === undefined && this.#known.has(id)) this.#open--;
      this.#known.delete(id);
    }
    if (ids.length > 0) this.#changed();
  }

  /** What this tab has removed, because it is no conflict any more. */
  takenBack(ids: readonly string[]): void {
    if (ids.length === 0) return;
    this.removed(ids);
    this.#added();
  }

  /** Those that are open, or those that a person has decided on; oldest first. */
  list(resolved: boolean): Promise<readonly QuarantineEntry[]> {
    const chosen = [...this.#known.values()].filter(({ resolution }) => (resolution !== undefined) === resolved);
    return shownEntries(
      chosen.sort((a, b) => a.at - b.at || (a._id < b._id ? -1 : 1)),
      this.#queue,
    );
  }

  /** What is to be written of a conflict, by `add` or in a write of the caller's: then `added` is called after it. */
  docOf(entry: NewQuarantineEntry): StoredQuarantine {
    const { kind, key, bulkOperationId, index, first, second, content, as, hash } = entry;
    const _id = quarantineIdOf(entry);
    const at = this.#clock.wall();
    return { _id, v: storedVersion, kind, key, bulkOperationId, index, first, second, content, as, hash, at };
  }

  /** Makes conflicts durable. Those that are stored already stay as they are. */
  async add(entries: readonly NewQuarantineEntry[]): Promise<void> {
    const docs = entries.map((entry) => this.docOf(entry));
    for (let from = 0; from < docs.length; from += entriesPerWrite) {
      const some = docs.slice(from, from + entriesPerWrite);
      const { revs } = await this.#queue.docs.write(some);
      this.added(some.flatMap((doc) => (revs.has(doc._id) ? { ...doc, _rev: revs.get(doc._id) } : [])));
    }
    // An entry that was there already may be another tab's, of a moment ago.
    if (docs.some(({ _id }) => !this.#known.has(_id))) await this.load();
  }

  /** What was just stored. */
  added(docs: readonly StoredQuarantine[]): void {
    if (docs.length === 0) return;
    for (const doc of docs) this.#keep(doc);
    this.#changed();
    this.#added();
  }

  async #read(): Promise<void> {
    const known = [...this.#known.keys()];
    const stored = await this.#queue.docs.readRange('u:', quarantineDoc);
    // What was there before and is not found any more is removed.
    const names = new Set(stored.map(({ _id }) => _id));
    this.removed(known.filter((id) => !names.has(id)));
    const before = this.#known.size;
    const fresh = stored.filter(({ _id, _rev }) => this.#known.get(_id)?._rev !== _rev);
    for (const doc of fresh) this.#keep(doc);
    if (fresh.length > 0 || this.#known.size !== before) this.#changed();
  }

  #keep(doc: StoredQuarantine): void {
    const known = this.#known.get(doc._id);
    // Whoever wrote while this was read knows better.
    if (generationOf(known?._rev) > generationOf(doc._rev)) return;
    if (known !== undefined && known.resolution === undefined) this.#open--;
    if (doc.resolution === undefined) this.#open++;
    this.#known.set(doc._id, doc);
  }
}

/** Made of what conflicts: the same conflict has the same id. */
export function quarantineIdOf({ kind, key, against, hash }: NewQuarantineEntry): string {
  return `u:${letters[kind]}:${against}:${hash.slice(0, 32)}:${key}`;
}
