import { AfieldError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { Owner } from '../model/store-name.js';
import { assertOwner, claimed } from './store-owner.js';
import { readAs, type StoredDocs } from './stored-docs.js';
import { storedVersion, storeDoc, type StoredStore } from './stored.js';

/** Who this store is, and whose (S7). */
export class StoreRecord {
  readonly #docs: StoredDocs;
  #user: string | undefined;

  constructor(docs: StoredDocs) {
    this.#docs = docs;
  }

  /** The person whose work this store holds; undefined: not known yet. */
  get user(): string | undefined {
    return this.#user;
  }

  /**
   * Looks at the record, which is among what was `read` unless the store is new: then it gets its name. Throws
   * `OtherStoreError` when the store is not `owner`'s.
   */
  async open(read: readonly Doc[], newStoreId: string, now: number, owner: Owner): Promise<StoredStore> {
    const found = read.find(({ _id }) => _id === 'hs');
    const stored =
      found === undefined ? await this.#name(newStoreId, now, owner) : readAs(storeDoc, found, 'The local store');
    const owned = await this.#own(stored, owner);
    this.#user = owned.user;
    return owned;
  }

  /**
   * The server has said who is signed in: from now on the store is for this person, if it was for nobody before. Durable when
   * it resolves. Answers with whose it is.
   */
  async claim(user: string): Promise<string> {
    const stored = await this.#stored();
    const owned = stored.user === undefined ? await this.#own(stored, { user, server: undefined }) : stored;
    this.#user = owned.user;
    return owned.user ?? user;
  }

  /** Names a new store; when another tab was faster, its name counts. */
  async #name(storeId: string, createdAt: number, { user, server }: Owner): Promise<StoredStore> {
    const mine: StoredStore = { _id: 'hs', v: storedVersion, storeId, createdAt, user, server };
    await this.#docs.write([mine]);
    return this.#stored();
  }

  async #stored(): Promise<StoredStore> {
    const stored = await this.#docs.read('hs', storeDoc);
    if (stored === undefined) throw new AfieldError('store_unreadable', 'The local store has lost its name.');
    return stored;
  }

  /** Whose the store is: what was not known of it before is written down; of two tabs the faster one counts. */
  async #own(found: StoredStore, owner: Owner): Promise<StoredStore> {
    for (let stored = found; ; stored = await this.#stored()) {
      assertOwner(stored, owner);
      const next = claimed(stored, owner);
      if (next === undefined) return stored;
      const { conflicts } = await this.#docs.write([next]);
      if (conflicts.size === 0) return next;
    }
  }
}
