import type { ForgetReceipt, KeptDocument } from '../model/client.js';
import type { DocRow } from '../model/pouch.js';
import { endStates } from '../model/states.js';
import type { DocumentHashes } from '../queue/document-hashes.js';
import type { Failures } from '../queue/failures.js';
import type { Queue } from '../queue/queue.js';
import { hashOf } from '../queue/subjects.js';
import type { LocalDatabase } from '../store/local-database.js';
import { forgottenStub } from './forgotten.js';

const atOnce = 100;

export interface ForgettingParts {
  readonly local: LocalDatabase;
  /** The same database through a handle that keeps one revision of a document's past. */
  readonly forgetful: LocalDatabase;
  readonly queue: Queue;
  readonly hashes: DocumentHashes;
  readonly failures: Failures;
  /** Ids of documents that the push has not taken care of. */
  readonly unsent: () => Promise<ReadonlySet<string>>;
}

/**
 * Lets documents leave this device, and nothing else: at the server they stay as they are.
 *
 *   3-a (document) ──▶ 4-x (stub, deleted; its past is cut off, with all bodies and attachments)
 *   3-a comes from the server once more ──▶ beside 4-x, and it lives: it is the document again
 *
 * No adapter that is stored in a browser can purge. The stub is a deletion for whoever reads here (indexes, the app);
 * because 3-a is not known any more, the server's revision can come again as it is. The push passes over stubs.
 */
export class Forgetting {
  readonly #parts: ForgettingParts;
  readonly #hashes: DocumentHashes;

  constructor(parts: ForgettingParts) {
    this.#parts = parts;
    this.#hashes = parts.hashes;
  }

  /** Documents that hold something which is nowhere else are kept. Ids that are not here are in neither list. */
  async forget(ids: readonly string[]): Promise<ForgetReceipt> {
    const forgotten: string[] = [];
    const kept: KeptDocument[] = [];
    const all = [...new Set(ids)];
    for (let at = 0; at < all.length; at += atOnce) {
      const live = (await this.#parts.local.read(all.slice(at, at + atOnce))).filter(({ doc }) => doc !== undefined);
      const waiting = await this.#waiting(live.map(({ id }) => id));
      const free: DocRow[] = [];
      for (const row of live) {
        const why = row.conflicts === undefined || row.conflicts.length === 0 ? waiting(row.id) : 'conflict';
        if (why === undefined) free.push(row);
        else kept.push({ id: row.id, why });
      }
      const { rows, error } = await this.#parts.forgetful.write(
        free.map(({ id, rev }) => forgottenStub(id, rev ?? '')),
      );
      if (error !== undefined) throw error as Error;
      for (const row of rows) {
        if (row.ok) forgotten.push(row.id);
        // Someone has just edited it.
        else kept.push({ id: row.id, why: 'not_sent' });
      }
    }
    return { forgotten, kept };
  }

  async #waiting(ids: readonly string[]): Promise<(id: string) => KeptDocument['why'] | undefined> {
    const { queue, failures, unsent } = this.#parts;
    const wanted = new Set(ids.map(hashOf));
    const queued = new Set<number>();
    await queue.headers.loadNew();
    for (const header of queue.headers.all()) {
      if (header.target !== 'local' || endStates.has(header.state)) continue;
      for (const hash of await this.#hashes.among(header, wanted)) queued.add(hash);
    }
    await failures.load();
    const failed = new Set(failures.list().map(({ id }) => id));
    const onlyHere = await unsent();
    return (id) => {
      if (queued.has(hashOf(id))) return 'queued';
      if (failed.has(id)) return 'failed';
      return onlyHere.has(id) ? 'not_sent' : undefined;
    };
  }
}
