import { DocumentHashes } from '../queue/document-hashes.js';
import { eventNameOf, keyOf } from '../queue/keys.js';
import type { Queue } from '../queue/queue.js';
import { hasEvent, isOutcome, isUnplanned, sequenceOf, type Header, type RowState } from '../queue/stored.js';
import { hashOf } from '../queue/subjects.js';

/** A mutation whose previous one is asked for. */
export interface Mutation {
  readonly index: number;
  /** The operation's id. */
  readonly id: string;
  /** The document that its event is of: another one where the action says so. */
  readonly documentId: string;
}

/**
 * Finds the event before: which earlier mutation of the same document is still kept (O8). Nothing is stored for it: each
 * bulk operation says by hashes which documents it may concern; only where one fits are its operations and outcomes read.
 */
export class Trail {
  readonly #queue: Queue;
  readonly #hashes: DocumentHashes;

  constructor(queue: Queue, hashes = new DocumentHashes(queue.contents)) {
    this.#queue = queue;
    this.#hashes = hashes;
  }

  /** The rows of a batch that have their outcome now, with what their events say of the one before. */
  async named(
    header: Header,
    batch: { readonly from: number; readonly operations: readonly { readonly id: unknown }[] },
    before: readonly RowState[],
    rows: readonly RowState[],
  ): Promise<readonly RowState[]> {
    const fresh = rows.flatMap((row, place) => {
      const id = batch.operations[place]?.id;
      if (!hasEvent(row) || isOutcome(before[place]) || typeof id !== 'string') return [];
      return [{ index: batch.from + place, id, documentId: row.e?.[1] ?? id }];
    });
    if (fresh.length === 0) return rows;
    const previous = await this.#previousOf(header, fresh);
    if (previous.size === 0) return rows;
    return rows.map((row, place) => ({ ...row, ...previous.get(batch.from + place) }));
  }

  /** The names of the previous events (see `eventNameOf`), by the index of the mutation. Those without one are left out. */
  async previousOf(header: Header, mutations: readonly Mutation[]): Promise<ReadonlyMap<number, string>> {
    return new Map([...(await this.#previousOf(header, mutations))].map(([index, { p }]) => [index, p]));
  }

  async #previousOf(header: Header, mutations: readonly Mutation[]): Promise<ReadonlyMap<number, Previous>> {
    const found = new Map<number, Previous>();
    const open = byHash(mutations);
    const own = sequenceOf(header._id);
    const earlier = this.#queue.headers.all().filter((one) => {
      const sequence = sequenceOf(one._id);
      if (sequence === own) return header.cursor > 0 && mayRepeat(header);
      return sequence < own && one.target === header.target && !isUnplanned(one) && (one.events ?? 0) > 0;
    });
    for (const one of earlier.reverse()) {
      if (open.size === 0) break;
      const store = one.origin?.store ?? '';
      const isOther = store !== (header.origin?.store ?? '');
      for (const [index, name] of await this.#in(one, open, own)) {
        if (!found.has(index)) found.set(index, { p: name, ...(isOther ? { ps: store } : {}) });
      }
      for (const [hash, asked] of open) if (asked.every(({ index }) => found.has(index))) open.delete(hash);
    }
    return found;
  }

  /** The latest events of these documents in one bulk operation; none when another tab removes it meanwhile. */
  async #in(
    header: Header,
    open: ReadonlyMap<number, readonly Mutation[]>,
    own: number,
  ): Promise<ReadonlyMap<number, string>> {
    try {
      return await this.#read(header, open, own);
    } catch (error) {
      if (sequenceOf(header._id) !== own && (await this.#queue.headers.isForgotten(header))) return new Map();
      throw error;
    }
  }

  async #read(
    header: Header,
    open: ReadonlyMap<number, readonly Mutation[]>,
    own: number,
  ): Promise<ReadonlyMap<number, string>> {
    const names = new Map<number, string>();
    const wanted = new Set(await this.#hashes.among(header, new Set(open.keys())));
    if (wanted.size === 0) return names;
    const sequence = sequenceOf(header._id);
    const candidates: { at: number; mutation: Mutation }[] = [];
    for (const { at, hash } of await this.#hashes.placesOf(header, wanted)) {
      for (const mutation of open.get(hash) ?? []) {
        if (sequence !== own || at < mutation.index) candidates.push({ at, mutation });
      }
    }
    if (candidates.length === 0) return names;
    const places = candidates.map(({ at }) => at);
    const operations = await this.#queue.contents.operationsAt(header, places);
    const rows = await this.#queue.records.rowsAt(sequence, places);
    for (const { at, mutation } of candidates) {
      const [operation, row] = [operations.get(at), rows.get(at)];
      // Two documents may have one hash, and what failed has no event.
      if (operation?.i !== mutation.id || !hasEvent(row)) continue;
      if ((row.e?.[1] ?? mutation.id) !== mutation.documentId) continue;
      names.set(mutation.index, eventNameOf(keyOf(header, operation, at)));
    }
    return names;
  }
}

/** As a row says it. */
type Previous = { readonly p: string; readonly ps?: string };

function byHash(mutations: readonly Mutation[]): Map<number, Mutation[]> {
  const found = new Map<number, Mutation[]>();
  for (const mutation of mutations) {
    const hash = hashOf(mutation.id);
    found.set(hash, [...(found.get(hash) ?? []), mutation]);
  }
  return found;
}

/** Whether a bulk operation may change a document more than once. */
function mayRepeat({ subjects, total }: Header): boolean {
  if (subjects === null) return true;
  return (Array.isArray(subjects) ? subjects.length : subjects.count) < total;
}
