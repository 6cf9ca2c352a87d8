import type { Clock, Locks } from '../model/environment.js';
import { PendingFileError } from '../model/errors.js';
import type { ImportReceipt } from '../model/client.js';
import type { Claims } from '../queue/claims.js';
import type { Queue } from '../queue/queue.js';
import type { StoredDoc } from '../queue/stored-docs.js';
import { claimId, editFailureId, storeDoc, storedVersion } from '../queue/stored.js';
import type { LocalDatabase } from '../store/local-database.js';
import { BulkImport } from './bulk-import.js';
import { check, type CheckedFile } from './check.js';
import { ConflictImport } from './conflict-import.js';
import { DocumentImport } from './document-import.js';
import { FileReader } from './file-reader.js';

export interface ImportParts {
  readonly queue: Queue;
  readonly claims: Claims;
  readonly local: LocalDatabase;
  readonly clock: Clock;
  readonly locks: Locks;
  readonly closed: AbortSignal;
  readonly breathe: () => Promise<void>;
  readonly newId: () => string;
  /** From now on the store is for this person, if it was for nobody before. */
  readonly claim: (user: string) => Promise<unknown>;
  /** Names the local stores. */
  readonly name: string;
  /** How the ids of payloads begin. */
  readonly payloadOf: (id: string) => string;
  /** The id of the request of a plan. */
  readonly planRequestOf: (id: string) => string;
}

/**
 * Takes in a file of pending work (S7), whole or not at all: it is read to its end before anything is stored. A crash in the
 * middle leaves some of it stored, and the next import of the same file brings the rest: documents are known by their
 * revisions, bulk operations by their names.
 */
export class Import {
  readonly #parts: ImportParts;
  #working: Promise<unknown> = Promise.resolve();

  constructor(parts: ImportParts) {
    this.#parts = parts;
  }

  /** One after another, in all tabs: two at once would bring everything twice. */
  file(given: Blob): Promise<ImportReceipt> {
    const { locks, name, closed } = this.#parts;
    const result = this.#working.then(async () => {
      let receipt: ImportReceipt | undefined;
      await locks.request(`afield:${name}:import`, closed, async () => {
        receipt = await this.#take(given);
      });
      if (receipt === undefined) throw new TypeError('The lock was let go before anything was done.');
      return receipt;
    });
    this.#working = result.catch(() => undefined); // the next one does not care how this one ended
    return result;
  }

  async #take(given: Blob): Promise<ImportReceipt> {
    const { queue, breathe, claim } = this.#parts;
    const reader = new FileReader(given, breathe);
    const store = await queue.docs.read('hs', storeDoc);
    const checked = await check(reader, { user: store?.user, server: store?.server });
    await queue.headers.loadNew();
    await this.#assertFree(checked);
    if (checked.head.user !== undefined) await claim(checked.head.user);
    const documents = new DocumentImport(this.#parts.local);
    const bulkOperations = new BulkImport(this.#parts);
    const conflicts = new ConflictImport(this.#parts);
    let isInQuarantine = false;
    for await (const { line } of reader.lines()) {
      if (line.kind === 'document') {
        await documents.take(line.doc);
        continue;
      }
      await documents.end();
      isInQuarantine ||= line.kind === 'conflict';
      if (line.kind === 'failed-edit') await this.#failedEdit(line.failure);
      else if (isInQuarantine) await conflicts.take(line);
      else await bulkOperations.take(line);
    }
    await documents.end();
    await conflicts.end();
    return { ...bulkOperations.counts(), documents: documents.count };
  }

  /** A given key that stands for other content here: nothing of the file is taken then. */
  async #assertFree({ keys }: CheckedFile): Promise<void> {
    const { claims, queue } = this.#parts;
    const held = await claims.read(keys.map(({ key }) => claimId('b', key)));
    for (const { key, hash, line } of keys) {
      const claim = held.get(claimId('b', key));
      if (claim === undefined || claim.hash === hash || queue.headers.known(claim.bulkOperationId) === undefined)
        continue;
      throw new PendingFileError('key_conflict', 'has a key that stands for other content on this device', line);
    }
  }

  async #failedEdit(failure: object & { id: string | null }): Promise<void> {
    if (failure.id === null) return;
    const doc: StoredDoc = { ...failure, _id: editFailureId(failure.id), v: storedVersion };
    await this.#parts.queue.docs.write([doc]); // what is there already says more
  }
}
