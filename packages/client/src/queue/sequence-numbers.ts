import { generationOf } from '../model/revision.js';
import type { Headers } from './headers.js';
import { removed, type StoredDocs } from './stored-docs.js';
import type { StoreRecord } from './store-record.js';
import { headerDoc, headerId, sequenceOf, storedVersion, type Header, type WipeNote } from './stored.js';
import type { WipeNotes } from './wipe-notes.js';

/** The numbers of bulk operations: each is taken by the write of what stands there, never by looking first (R17). */
export class SequenceNumbers {
  readonly #docs: StoredDocs;
  readonly #store: StoreRecord;
  readonly #headers: Headers;
  readonly #wipeNotes: WipeNotes;
  #taking: Promise<unknown> = Promise.resolve();
  /** Up to this number others have taken all, whether or not their headers are in memory. */
  #taken = 0;
  /** Up to this number none is free for a note, whatever the headers say. */
  #skipped = 0;

  constructor(parts: { docs: StoredDocs; store: StoreRecord; headers: Headers; wipeNotes: WipeNotes }) {
    this.#docs = parts.docs;
    this.#store = parts.store;
    this.#headers = parts.headers;
    this.#wipeNotes = parts.wipeNotes;
  }

  /** Stores a header, under the next number: from then on it makes count what is stored already. */
  take(header: Omit<Header, '_id' | '_rev'>): Promise<Header> {
    // One after another: a later one must not be written, and run, while the number before it is still on its way.
    const taking = this.#taking.then(() => this.#takeNumber(header));
    this.#taking = taking.catch(() => undefined); // the next one does not care how this one ended
    return taking;
  }

  /**
   * Notes that the store is being removed, where the next header would stand: from then on nobody queues anything. Answers
   * with undefined when something was queued after the number `upTo`.
   */
  takeForNote(given: Pick<WipeNote, 'wipe' | 'documents'>, upTo: number): Promise<WipeNote | undefined> {
    const taking = this.#taking.then(() => this.#takeLastNumber(given, upTo));
    this.#taking = taking.catch(() => undefined);
    return taking;
  }

  get #last(): number {
    return Math.max(this.#headers.last, this.#taken);
  }

  async #takeNumber(given: Omit<Header, '_id' | '_rev'>): Promise<Header> {
    const { user } = this.#store;
    const header = user === undefined ? given : { ...given, user };
    for (;;) {
      // A number is used up only when it is known who has it: one whose write got no answer is tried again.
      const sequence = this.#last + 1;
      const doc = { ...header, _id: headerId(sequence) };
      const stored = await this.#create(doc);
      if (stored === undefined) {
        // Someone else was faster: what comes before ours must be known before ours may run.
        await this.#headers.loadNew();
        this.#taken = Math.max(this.#taken, sequence);
        continue;
      }
      if (isReused(stored) && (await this.#giveBack(stored))) continue;
      this.#headers.keep(stored);
      return stored;
    }
  }

  /** The created header as it is stored, or undefined when the number is taken. */
  async #create(doc: Omit<Header, '_rev'>): Promise<Header | undefined> {
    try {
      const rev = (await this.#docs.write([doc])).revs.get(doc._id);
      return rev === undefined ? undefined : { ...doc, _rev: rev };
    } catch (error) {
      // An error does not say that nothing was written: what is stored is looked at before anyone is told. It may have
      // run already, in this tab or another.
      const stored = await this.#docs.read(doc._id, headerDoc).catch(() => undefined);
      if (stored?.id === doc.id) return stored;
      throw error;
    }
  }

  /**
   * The number of this header was used before: its old header was removed since this tab has last looked, and a document
   * that is created anew goes on from its tombstone. Takes it away again, unless someone runs it already.
   */
  async #giveBack(header: Header): Promise<boolean> {
    const { conflicts } = await this.#docs.write([removed(header._id, header._rev)]);
    if (conflicts.size > 0) {
      const stored = await this.#docs.read(header._id, headerDoc);
      if (stored?.id === header.id) return false;
    }
    await this.#headers.loadNew();
    this.#taken = Math.max(this.#taken, sequenceOf(header._id));
    return true;
  }

  async #takeLastNumber(given: Pick<WipeNote, 'wipe' | 'documents'>, upTo: number): Promise<WipeNote | undefined> {
    for (;;) {
      await this.#headers.loadNew();
      if (this.#headers.all().some(({ _id }) => sequenceOf(_id) > upTo)) return undefined;
      const sequence = Math.max(this.#last, this.#skipped) + 1;
      const note: WipeNote = { _id: headerId(sequence), v: storedVersion, ...given };
      const rev = await this.#wipeNotes.add(note);
      if (rev === undefined) continue;
      const stored = { ...note, _rev: rev };
      // A number that was used before would not be in the way of who takes the next one.
      if (generationOf(rev) === 1) return stored;
      await this.#wipeNotes.remove(stored);
      this.#skipped = sequence;
    }
  }
}

/** Whether a header that was just created has taken a number that was used before. One that runs already stays. */
function isReused({ _rev, state, attempts }: Header): boolean {
  return generationOf(_rev) > 1 && state === 'queued' && attempts === 0;
}
