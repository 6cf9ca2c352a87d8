import type { Doc, PouchChanges, PouchLike } from '@afield/client';
import { BehaviorSubject, type Observable } from 'rxjs';

/** What the screen and a move need to know of a document. */
export interface Entry {
  readonly id: string;
  readonly rev: string;
  readonly type: string;
  readonly form: string | undefined;
  readonly name: string;
  readonly parentId: string | undefined;
  /** Ids of the contact's lineage, the contact first; empty when there is none. */
  readonly contact: readonly string[];
}

/** Where the places and persons are, as a move sees them. */
export interface Places {
  get(id: string): Entry | undefined;
  childrenOf(id: string | undefined): readonly Entry[];
  entries(): Iterable<Entry>;
}

const pageSize = 2000;

/**
 * The device's documents by place, kept up to date from the changes feed. Small on purpose: names and links, no bodies.
 */
export class Catalogue implements Places {
  readonly #entries = new Map<string, Entry>();
  readonly #children = new Map<string | undefined, Map<string, Entry>>();
  readonly #sorted = new Map<string | undefined, readonly Entry[]>();
  readonly #version = new BehaviorSubject(0);
  #feed: PouchChanges | undefined;

  /** Emits after every change of what this holds. */
  readonly version$: Observable<number> = this.#version.asObservable();

  /** Reads everything once, then follows. Resolves when the first reading is done. */
  async follow(db: PouchLike): Promise<void> {
    const { update_seq: since } = (await db.info()) as { update_seq: number };
    let startkey = '';
    for (;;) {
      const { rows } = await db.allDocs({ include_docs: true, startkey, limit: pageSize });
      for (const row of rows as { doc: Doc }[]) this.#put(row.doc);
      const last = (rows as { id: string }[])[rows.length - 1];
      if (rows.length < pageSize || !last) break;
      startkey = `${last.id}\u0000`;
    }
    this.#changed();
    this.#feed = db.changes({ since, live: true, include_docs: true });
    this.#feed.on('change', (change: { doc: Doc }) => {
      this.#put(change.doc);
      this.#changed();
    });
  }

  stop(): void {
    this.#feed?.cancel();
  }

  get(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  entries(): Iterable<Entry> {
    return this.#entries.values();
  }

  /** Places and persons below a place, or those that have none above them, by name. */
  childrenOf(id: string | undefined): readonly Entry[] {
    let sorted = this.#sorted.get(id);
    if (!sorted) {
      sorted = [...(this.#children.get(id)?.values() ?? [])].sort(byName);
      this.#sorted.set(id, sorted);
    }
    return sorted;
  }

  countOf(id: string): number {
    return this.#children.get(id)?.size ?? 0;
  }

  #put(doc: Doc): void {
    const before = this.#entries.get(doc._id);
    if (before && isContact(before)) {
      this.#children.get(before.parentId)?.delete(doc._id);
      this.#sorted.delete(before.parentId);
    }
    this.#entries.delete(doc._id);
    if (doc._deleted === true || doc._id.startsWith('_design/')) return;
    const entry = toEntry(doc);
    this.#entries.set(entry.id, entry);
    if (!isContact(entry)) return;
    const siblings = this.#children.get(entry.parentId) ?? new Map<string, Entry>();
    siblings.set(entry.id, entry);
    this.#children.set(entry.parentId, siblings);
    this.#sorted.delete(entry.parentId);
  }

  #changed(): void {
    this.#version.next(this.#version.value + 1);
  }
}

export function isContact(entry: Entry): boolean {
  return entry.type !== 'data_record' && entry.type !== '';
}

export function isPlace(entry: Entry): boolean {
  return isContact(entry) && entry.type !== 'person';
}

const names = new Intl.Collator('en', { numeric: true });

function byName(a: Entry, b: Entry): number {
  return names.compare(a.name, b.name) || (a.id < b.id ? -1 : 1);
}

function toEntry(doc: Doc): Entry {
  return {
    id: doc._id,
    rev: doc._rev ?? '',
    type: textOf(doc['type']),
    form: typeof doc['form'] === 'string' ? doc['form'] : undefined,
    name: textOf(doc['name']) || doc._id,
    parentId: lineageIds(doc['parent'])[0],
    contact: lineageIds(doc['contact']),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Ids from the bottom up; stops at what is not a lineage, and at 100 levels. */
function lineageIds(lineage: unknown): string[] {
  const ids: string[] = [];
  let level = lineage as { _id?: unknown; parent?: unknown } | null | undefined;
  while (typeof level === 'object' && level !== null && typeof level._id === 'string' && ids.length < 100) {
    ids.push(level._id);
    level = level.parent as typeof level;
  }
  return ids;
}
