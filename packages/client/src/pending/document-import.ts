import type { Doc } from '../model/json.js';
import type { LocalDatabase } from '../store/local-database.js';

/** So much is written together: documents, and characters of them as JSON. */
const atOnce = 100;
const textAtOnce = 1_000_000;

/** Stores documents as they are, with their histories: revisions that are here already change nothing. */
export class DocumentImport {
  readonly #local: LocalDatabase;
  #open: Doc[] = [];
  #text = 0;
  /** Revisions that were not here. */
  count = 0;

  constructor(local: LocalDatabase) {
    this.#local = local;
  }

  async take(doc: Doc): Promise<void> {
    this.#open.push(doc);
    this.#text += JSON.stringify(doc).length;
    if (this.#open.length >= atOnce || this.#text >= textAtOnce) await this.end();
  }

  /** Writes what is open. */
  async end(): Promise<void> {
    if (this.#open.length === 0) return;
    const docs = this.#open;
    this.#open = [];
    this.#text = 0;
    const wanted = docs.map(({ _id, _rev = '' }) => ({ id: _id, rev: _rev }));
    const present = new Set((await this.#local.readRevisions(wanted)).map(({ id, doc }) => nameOf(id, doc._rev)));
    const missing = docs.filter(({ _id, _rev }) => !present.has(nameOf(_id, _rev)));
    if (missing.length === 0) return;
    await this.#local.storeRevisions(missing);
    this.count += missing.length;
  }
}

function nameOf(id: string, rev: string | undefined): string {
  return JSON.stringify([id, rev]);
}
