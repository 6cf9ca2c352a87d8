import { AfieldError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import { generationOf } from '../model/revision.js';
import { endStates } from '../model/states.js';
import type { LocalDatabase } from '../store/local-database.js';
import { readAs, type StoredDocs } from './stored-docs.js';
import { headerDoc, headerId, sequenceOf, withRev, type Header } from './stored.js';
import { isWipeNote, type WipeNotes } from './wipe-notes.js';

/** The headers of all bulk operations, kept in memory: read once, then what others have added or changed. */
export class Headers {
  readonly #db: LocalDatabase;
  readonly #docs: StoredDocs;
  readonly #wipeNotes: WipeNotes;
  readonly #known = new Map<number, Header>();
  /** Sequence numbers by the ids of the bulk operations. */
  readonly #sequences = new Map<string, number>();
  /** Sequence numbers in their order; unset when one was added. */
  #order: number[] | undefined;
  #last = 0;
  /** All numbers up to here were read: of those that are not in memory the headers are removed. */
  #readUpTo = 0;

  constructor(db: LocalDatabase, docs: StoredDocs, wipeNotes: WipeNotes) {
    this.#db = db;
    this.#docs = docs;
    this.#wipeNotes = wipeNotes;
  }

  /** In the order of their sequence numbers. */
  all(): readonly Header[] {
    this.#order ??= [...this.#known.keys()].sort((a, b) => a - b);
    return this.#order.flatMap((sequence) => this.#known.get(sequence) ?? []);
  }

  get(sequence: number): Header | undefined {
    return this.#known.get(sequence);
  }

  /** The bulk operation of this id, as far as it is in memory. */
  known(bulkOperationId: string): Header | undefined {
    return this.#known.get(this.#sequences.get(bulkOperationId) ?? 0);
  }

  /** The highest number of which this tab has seen a header. */
  get last(): number {
    return this.#last;
  }

  /** The bulk operation of this id; what another tab has queued is looked for. Throws `AfieldError` when there is none. */
  async find(bulkOperationId: string): Promise<Header> {
    if (this.known(bulkOperationId) === undefined) await this.loadNew();
    const header = this.known(bulkOperationId);
    if (header !== undefined) return header;
    throw new AfieldError('unknown_bulk_operation', `There is no bulk operation ${bulkOperationId} on this device.`);
  }

  /** Reads the headers that others have added since. Answers whether there were any. */
  async loadNew(): Promise<boolean> {
    const docs = await this.#db.range(headerId(this.#lastKnown() + 1), 'h:\uffff');
    this.#wipeNotes.assertNotLeft(docs);
    this.#noteRead(docs);
    this.#keepNewer(docs);
    return docs.length > 0;
  }

  /** Reads the headers anew that are not at their end. Answers with those that someone else has changed. */
  async refreshOpen(): Promise<readonly Header[]> {
    const open = this.all().filter(({ state }) => !endStates.has(state));
    const rows = await this.#db.read(open.map(({ _id }) => _id));
    return this.#keepNewer(rows.flatMap(({ doc }) => doc ?? []));
  }

  /** Keeps what was read of all headers at the start. */
  keepAll(docs: readonly Doc[]): void {
    this.#noteRead(docs);
    for (const doc of docs) if (isHeader(doc)) this.keep(readAs(headerDoc, doc, 'A bulk operation'));
  }

  /**
   * Keeps what was read of all headers anew; `before` are those that were known before that read. Answers with the headers
   * that someone else has added or changed, and the numbers of those that housekeeping has removed.
   */
  reread(docs: readonly Doc[], before: readonly Header[]): { headers: readonly Header[]; removed: readonly number[] } {
    this.#noteRead(docs);
    const present = new Set(docs.map(({ _id }) => _id));
    const removed = before.filter(({ _id }) => !present.has(_id)).map(({ _id }) => sequenceOf(_id));
    this.forget(removed);
    return { headers: this.#keepNewer(docs), removed };
  }

  /** Reads a header anew from the store, and keeps it. */
  async refresh(sequence: number): Promise<Header> {
    const header = await this.#docs.read(headerId(sequence), headerDoc);
    if (header === undefined) {
      const ended = this.#known.get(sequence);
      if (ended === undefined || !endStates.has(ended.state))
        throw new AfieldError('store_unreadable', 'A bulk operation is missing in the store.');
      this.forget([sequence]);
      throw new AfieldError('unknown_bulk_operation', `The bulk operation ${ended.id} is over and was removed.`);
    }
    // Whoever wrote while this read was under way knows better.
    const known = this.#known.get(sequence);
    if (known === undefined || generationOf(known._rev) <= generationOf(header._rev)) this.keep(header);
    return header;
  }

  /**
   * Changes a header by what is stored, as often as someone else is faster. `change` answers with what is to be stored,
   * or undefined when nothing is. Answers with the header as it is then, and whether this call has changed it.
   */
  async change(
    sequence: number,
    change: (header: Header) => Header | undefined | Promise<Header | undefined>,
  ): Promise<{ header: Header; isChanged: boolean }> {
    for (;;) {
      const header = await this.refresh(sequence);
      const next = await change(header);
      if (next === undefined) return { header, isChanged: false };
      const { revs, conflicts } = await this.#docs.write([next]);
      if (conflicts.size > 0) continue;
      const kept = withRev(next, revs);
      this.keep(kept);
      return { header: kept, isChanged: true };
    }
  }

  /** Whether the stored header still has this revision: asked after the documents were read and before they are written. */
  async isUnchanged(header: Header): Promise<boolean> {
    const [row] = await this.#db.read([header._id]);
    return row?.rev === header._rev;
  }

  /** Whether housekeeping has removed a bulk operation, here or in another tab: whoever still reads of it finds nothing. */
  async isForgotten({ _id }: Header): Promise<boolean> {
    const [row] = await this.#db.read([_id]);
    if (row?.rev !== undefined && !row.deleted) return false;
    this.forget([sequenceOf(_id)]);
    return true;
  }

  /** Headers that are removed from the store: they are shown no more. Their numbers stay used. */
  forget(sequences: readonly number[]): void {
    for (const sequence of sequences) {
      this.#sequences.delete(this.#known.get(sequence)?.id ?? '');
      this.#known.delete(sequence);
    }
    if (sequences.length > 0) this.#order = undefined;
  }

  /** Keeps a header as it was written. */
  keep(header: Header): void {
    const sequence = sequenceOf(header._id);
    if (!this.#known.has(sequence)) this.#order = undefined;
    this.#known.set(sequence, header);
    this.#sequences.set(header.id, sequence);
    this.#last = Math.max(this.#last, sequence);
  }

  /** Whoever wrote while these were read knows better. Answers with those that were kept. */
  #keepNewer(docs: readonly Doc[]): readonly Header[] {
    return docs.filter(isHeader).flatMap((doc) => {
      const known = this.#known.get(sequenceOf(doc._id));
      if (known !== undefined && generationOf(doc._rev) <= generationOf(known._rev)) return [];
      const header = readAs(headerDoc, doc, 'A bulk operation');
      this.keep(header);
      return [header];
    });
  }

  /** Up to here nothing new can come: numbers that others took may lie between ours. */
  #lastKnown(): number {
    let last = this.#readUpTo;
    while (this.#known.has(last + 1)) last++;
    this.#readUpTo = last;
    return last;
  }

  /** A number is taken only when the one before it is: what a read up to the end did not find is removed. */
  #noteRead(docs: readonly Doc[]): void {
    for (const { _id } of docs) {
      if (_id.startsWith('h:')) this.#readUpTo = Math.max(this.#readUpTo, sequenceOf(_id));
    }
  }
}

function isHeader(doc: Doc): boolean {
  return doc._id.startsWith('h:') && !isWipeNote(doc);
}
