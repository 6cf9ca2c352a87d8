import type { Doc } from '../model/json.js';
import type { EventsDatabase } from './events-feed.js';

/** A database whose feed gives documents in the order in which a test adds them, as that of a cluster may. */
export class OutOfOrderFeed implements EventsDatabase {
  readonly #rows: { seq: number; id: string; doc: Doc | undefined }[] = [];
  /** What was asked, as `changes`, `changes of <ids>` or `allDocs`. */
  readonly asked: string[] = [];
  #last = 0;

  /** Adds documents at the end of the feed; one that is there moves there. */
  add(...docs: readonly Doc[]): void {
    for (const doc of docs) this.#put(doc._id, doc);
  }

  /** Deletes a document; its deletion comes in the feed. */
  remove(id: string): void {
    this.#put(id, undefined);
  }

  changes(options: { since: number | string; limit?: number; doc_ids?: readonly string[] }): PromiseLike<unknown> {
    const { since, limit = Infinity, doc_ids: ids } = options;
    this.asked.push(ids === undefined ? 'changes' : `changes of ${ids.join(' ')}`);
    const after = Number.parseInt(String(since), 10);
    const found = this.#rows.filter(({ seq, id }) => seq > after && ids?.includes(id) !== false).slice(0, limit);
    const results = found.map(({ seq, id, doc }) => ({
      seq: `${String(seq)}-x`,
      id,
      ...(doc === undefined ? { deleted: true, doc: { _id: id, _deleted: true } } : { doc }),
    }));
    return Promise.resolve({ results, last_seq: `${String(found.at(-1)?.seq ?? after)}-x` });
  }

  allDocs({ keys = [] }: { keys?: readonly string[] }): Promise<{ rows: unknown[] }> {
    this.asked.push('allDocs');
    const rows = keys.map((key) => {
      const row = this.#rows.find(({ id }) => id === key);
      if (row === undefined) return { key, error: 'not_found' };
      if (row.doc === undefined) return { key, value: { rev: '2-x', deleted: true }, doc: null };
      return { key, value: { rev: '1-x' }, doc: row.doc };
    });
    return Promise.resolve({ rows });
  }

  #put(id: string, doc: Doc | undefined): void {
    const before = this.#rows.findIndex((row) => row.id === id);
    if (before >= 0) this.#rows.splice(before, 1);
    this.#rows.push({ seq: ++this.#last, id, doc });
  }
}
