import type { RevisionRead } from '../model/pouch.js';
import type { LocalDatabase } from '../store/local-database.js';
import { isForgottenStub } from '../sync/forgotten.js';
import { readBounded } from '../sync/read-bounded.js';

const documentsAtOnce = 100;

/** Local documents as they go into a file: all leaves of each, with their histories and attachments. */
export class Documents {
  readonly #local: LocalDatabase;
  /** The leaves of documents that were handed out: their histories are read again where someone asks. */
  readonly #leaves = new Map<string, readonly string[]>();

  constructor(local: LocalDatabase) {
    this.#local = local;
  }

  /** A document that was never there, and one that is only forgotten here, has none. */
  async *read(ids: ReadonlySet<string>): AsyncGenerator<RevisionRead> {
    const all = [...ids].sort();
    for (let at = 0; at < all.length; at += documentsAtOnce) {
      const leaves = (await this.#local.leaves(all.slice(at, at + documentsAtOnce))).filter(
        ({ doc }) => !isForgottenStub(doc),
      );
      for (const { id, doc } of leaves) this.#leaves.set(id, [...(this.#leaves.get(id) ?? []), doc._rev ?? '']);
      const wanted = leaves.map(({ id, doc }) => ({ id, rev: doc._rev ?? '' }));
      for await (const { reads } of readBounded(this.#local, wanted)) yield* reads;
    }
  }

  /** All revisions, by document, that are in the histories of what was handed out. */
  async histories(ids: readonly string[]): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
    const wanted = ids.flatMap((id) => (this.#leaves.get(id) ?? []).map((rev) => ({ id, rev })));
    const found = new Map<string, Set<string>>();
    for (const { id, ancestors } of await this.#local.readRevisions(wanted)) {
      const known = found.get(id) ?? new Set();
      for (const rev of ancestors) known.add(rev);
      found.set(id, known);
    }
    return found;
  }
}
