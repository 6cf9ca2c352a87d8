import { StoreLeftError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { LocalDatabase } from '../store/local-database.js';
import { readAs, removed, type StoredDocs } from './stored-docs.js';
import { wipeNoteDoc, type WipeNote } from './stored.js';

/** The note that the store is being removed, among the headers: whoever finds it keeps away from the store (S7). */
export class WipeNotes {
  readonly #db: LocalDatabase;
  readonly #docs: StoredDocs;
  /** Which removal of the store is this tab's own: it keeps only others away. */
  #own: string | undefined;

  constructor(db: LocalDatabase, docs: StoredDocs) {
    this.#db = db;
    this.#docs = docs;
  }

  /** Throws `StoreLeftError` when another tab's note is among these documents. */
  assertNotLeft(docs: readonly Doc[]): void {
    if (docs.some((doc) => isWipeNote(doc) && doc['wipe'] !== this.#own)) throw new StoreLeftError();
  }

  /** The note that is stored, by whomever. */
  async find(): Promise<WipeNote | undefined> {
    const docs = await this.#db.range('h:', 'h:\uffff');
    const found = docs.find(isWipeNote);
    return found === undefined ? undefined : readAs(wipeNoteDoc, found, 'A note');
  }

  /** Stores a note of this tab. Answers with its revision; undefined when its number is taken. */
  async add(note: WipeNote): Promise<string | undefined> {
    this.#own = note.wipe;
    return (await this.#docs.write([note])).revs.get(note._id);
  }

  /** The store is not removed after all. */
  async remove({ _id, _rev }: WipeNote): Promise<void> {
    await this.#docs.write([removed(_id, _rev)]);
    this.#own = undefined;
  }
}

/** Whether what stands among the headers is a note, and no header. */
export function isWipeNote(doc: Doc): boolean {
  return 'wipe' in doc;
}
