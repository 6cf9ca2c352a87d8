import { z } from 'zod/mini';
import { ServerDatabase } from '../http/server-database.js';
import type { Requests } from '../http/requests.js';
import type { PouchConstructor, PouchReplication } from '../model/pouch.js';
import { RetryableError } from '../model/errors.js';
import { localStoreError } from '../retry/classify.js';
import type { LocalDatabase } from '../store/local-database.js';
import type { Errand } from './transfer.js';

const replicationResult = z.object({ docs_written: z.number(), ok: z.boolean() });

/** Brings the server's documents here, through PouchDB's replicator with our own fetch. One pull each time it is wanted. */
export class Pull {
  readonly #PouchDB: PouchConstructor;
  readonly #local: LocalDatabase;
  readonly #url: string;
  readonly #requests: Requests;
  #wanted = true;
  #replication: PouchReplication | undefined;

  constructor(parts: { PouchDB: PouchConstructor; local: LocalDatabase; url: string; requests: Requests }) {
    this.#PouchDB = parts.PouchDB;
    this.#local = parts.local;
    this.#url = parts.url;
    this.#requests = parts.requests;
  }

  /** The next step brings what is new. */
  want(): void {
    this.#wanted = true;
  }

  cancel(): void {
    this.#replication?.cancel();
  }

  errand(afterPull: () => void): Errand<Record<string, never>, true> {
    return {
      name: 'pull',
      initial: {},
      parse: () => ({}),
      next: () => Promise.resolve(this.#wanted ? true : undefined),
      carry: async () => {
        this.#wanted = false;
        try {
          const transferred = await this.#pull();
          afterPull();
          return { data: {}, transferred };
        } catch (error) {
          this.#wanted = true;
          throw error;
        }
      },
    };
  }

  async #pull(): Promise<number> {
    // PouchDB wraps what a fetch throws: the first error of our own is the true one.
    let failure: unknown;
    const watched = async <Value>(call: () => Promise<Value>): Promise<Value> => {
      try {
        return await call();
      } catch (error) {
        failure ??= error;
        throw error;
      }
    };
    const remote = new this.#PouchDB(this.#url, {
      adapter: 'http',
      skip_setup: true,
      fetch: (url: string, init?: RequestInit) => watched(() => this.#requests.pouchFetch(url, init)),
    });
    // The replicator asks for `info` without catching what it throws: an outage at that moment would be unhandled. The
    // answer only counts what is left to do, and `failure` is known already.
    const info = remote.info.bind(remote);
    const attachments = new AttachmentReads(new ServerDatabase(this.#url, this.#requests));
    Object.assign(remote, {
      // One by one and without a shape they could not be told from a captive portal.
      getAttachment: (id: string, name: string, { rev }: { rev: string }) =>
        watched(() => attachments.read(id, rev, name)),
      info: () => info().catch(() => ({ db_name: '', update_seq: 0, doc_count: 0 })),
    });
    try {
      this.#replication = this.#PouchDB.replicate(remote, this.#local.pouch, { batch_size: 200, batches_limit: 2 });
      const result = replicationResult.safeParse(await this.#replication);
      if (failure !== undefined) throw failure as Error;
      return result.success ? result.data.docs_written : 0;
    } catch (error) {
      throw failure ?? localStoreError(error);
    } finally {
      this.#replication = undefined;
      await remote.close();
    }
  }
}

/** Reads all attachments of a revision at once, however many of them are asked for at the same time. */
class AttachmentReads {
  readonly #server: ServerDatabase;
  readonly #open = new Map<string, { all: Promise<ReadonlyMap<string, string>>; asked: number }>();

  constructor(server: ServerDatabase) {
    this.#server = server;
  }

  async read(id: string, rev: string, name: string): Promise<string> {
    const key = JSON.stringify([id, rev]);
    const open = this.#open.get(key) ?? { all: this.#server.attachments(id, rev), asked: 0 };
    this.#open.set(key, open);
    open.asked++;
    try {
      const data = (await open.all).get(name);
      if (data === undefined) {
        throw new RetryableError('An attachment is not there now.', { class: 'server', code: 'attachment-missing' });
      }
      return data;
    } finally {
      open.asked--;
      if (open.asked === 0) this.#open.delete(key);
    }
  }
}
