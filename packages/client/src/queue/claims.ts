import type { Clock } from '../model/environment.js';
import { ClaimWait, type ClaimWaitParts } from './claim-wait.js';
import type { Queue } from './queue.js';
import type { StoredDoc } from './stored-docs.js';
import { claimDoc, storedVersion, type StoredClaim } from './stored.js';

/** A key that an enqueue wants to be the first to use. */
export interface WantedKey {
  /** The id of its record. */
  readonly _id: string;
  /** Place of the operation in the request; -1 for the key of the bulk operation. */
  readonly index: number;
  readonly hash: string;
}

export interface ClaimsParts extends Omit<ClaimWaitParts, 'isUnderWay'> {
  readonly queue: Queue;
  readonly clock: Clock;
}

const claimsPerWrite = 500;

/**
 * The records of given keys (O4). Each is created, never looked up first, and counts once the header of its bulk operation
 * exists.
 *
 *   created ──▶ ours                                       the header makes it count
 *   409 ─ its header is there ──▶ held: a duplicate or a conflict
 *       ─ its enqueue is under way ──▶ wait ─ header there, or record gone ──▶ once more
 *                                           └ its tab is gone ──▶ taken over, under its revision
 *
 * Records are made in the order of their ids, and whoever waits for one gives back its own behind that: so two enqueues
 * never wait for each other.
 */
export class Claims {
  readonly #parts: ClaimsParts;
  readonly #wait: ClaimWait;
  /** Bulk operations whose enqueue is under way in this tab. */
  readonly #underWay = new Set<string>();
  /** Records that could not be removed, by the bulk operation that they name. */
  readonly #left = new Map<string, readonly string[]>();

  constructor(parts: ClaimsParts) {
    this.#parts = parts;
    this.#wait = new ClaimWait({ ...parts, isUnderWay: (bulkOperationId) => this.#underWay.has(bulkOperationId) });
  }

  /**
   * Makes the records. Answers with those that another bulk operation holds; all others are ours, until they are
   * given back.
   */
  async take(bulkOperationId: string, wanted: readonly WantedKey[]): Promise<ReadonlyMap<string, StoredClaim>> {
    await this.tidy();
    const held = new Map<string, StoredClaim>();
    const gone = new Set<string>();
    const tab = await this.#wait.tab();
    const inOrder = [...wanted].sort((a, b) => (a._id < b._id ? -1 : 1));
    for (let at = 0; at < inOrder.length;) {
      const page = inOrder.slice(at, at + claimsPerWrite);
      const found = await this.#takeSome(bulkOperationId, tab, page, gone);
      const stuck = page.findIndex(({ _id }) => this.#isOpen(found.get(_id)));
      const sure = stuck < 0 ? page : page.slice(0, stuck);
      for (const { _id } of sure) {
        const claim = found.get(_id);
        if (claim !== undefined) held.set(_id, claim);
      }
      at += sure.length;
      const open = found.get(page[stuck]?._id ?? '');
      if (open === undefined) continue;
      const behind = page.slice(stuck + 1);
      await this.#giveBack(
        bulkOperationId,
        behind.map(({ _id }) => _id),
      );
      if ((await this.#wait.until(open)) === 'gone') gone.add(open.bulkOperationId);
    }
    return held;
  }

  /** An enqueue begins: whoever meets its records waits for it. */
  begin(bulkOperationId: string): void {
    this.#underWay.add(bulkOperationId);
  }

  /** Its header is there, or its records are given back. */
  end(bulkOperationId: string): void {
    this.#underWay.delete(bulkOperationId);
    this.#wait.news();
  }

  /**
   * Removes the records that name this bulk operation, unless it counts: it never will. Where that does not work now, it is
   * tried again later.
   */
  async giveBack(bulkOperationId: string, ids: readonly string[]): Promise<void> {
    const { queue } = this.#parts;
    try {
      await queue.headers.loadNew();
      const header = queue.headers.known(bulkOperationId);
      if (header === undefined || header.withdrawn === true) await this.#giveBack(bulkOperationId, ids);
    } catch {
      this.#left.set(bulkOperationId, ids);
    }
  }

  /** Whether all of these name this bulk operation still. */
  async areOurs(bulkOperationId: string, ids: readonly string[]): Promise<boolean> {
    for (let from = 0; from < ids.length; from += claimsPerWrite) {
      const some = ids.slice(from, from + claimsPerWrite);
      const stored = await this.#parts.queue.docs.readMany(some, claimDoc);
      if (some.some((id) => stored.get(id)?.bulkOperationId !== bulkOperationId)) return false;
    }
    return true;
  }

  /** The records of these keys, as far as there are some. */
  async read(ids: readonly string[]): Promise<ReadonlyMap<string, StoredClaim>> {
    const found = new Map<string, StoredClaim>();
    for (let from = 0; from < ids.length; from += claimsPerWrite) {
      const stored = await this.#parts.queue.docs.readMany(ids.slice(from, from + claimsPerWrite), claimDoc);
      for (const [id, claim] of stored) found.set(id, claim);
    }
    return found;
  }

  /** Something is stored, or was removed, that someone may wait for. */
  news(): void {
    this.#wait.news();
    if (this.#left.size > 0) void this.tidy();
  }

  /** Removes what could not be removed before. */
  async tidy(): Promise<void> {
    for (const [bulkOperationId, ids] of [...this.#left]) {
      this.#left.delete(bulkOperationId);
      await this.giveBack(bulkOperationId, ids);
    }
  }

  /** Whether its bulk operation does not count, or not yet. */
  #isOpen(claim: StoredClaim | undefined): boolean {
    return claim !== undefined && !this.#wait.counts(claim);
  }

  /** Answers with the records that are not ours. */
  async #takeSome(
    bulkOperationId: string,
    tab: string | null,
    page: readonly WantedKey[],
    gone: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, StoredClaim>> {
    const { queue, clock } = this.#parts;
    const at = clock.wall();
    const wanted = new Map(page.map((key) => [key._id, { ...key, v: storedVersion, bulkOperationId, tab, at }]));
    const found = new Map<string, StoredClaim>();
    let open: readonly StoredDoc[] = [...wanted.values()];
    while (open.length > 0) {
      const { conflicts } = await queue.docs.write(open);
      if (conflicts.size === 0) break;
      const stored = await queue.docs.readMany([...conflicts], claimDoc);
      if ([...stored.values()].some((claim) => this.#isOpen(claim) && claim.bulkOperationId !== bulkOperationId)) {
        await queue.headers.loadNew();
      }
      open = [...conflicts].flatMap((id) => {
        const [claim, mine] = [stored.get(id), wanted.get(id)];
        if (mine === undefined) return [];
        if (claim === undefined) return [mine]; // removed meanwhile
        if (claim.bulkOperationId === bulkOperationId) return []; // ours: an answer got lost
        if (this.#isOpen(claim) && gone.has(claim.bulkOperationId)) return [{ ...mine, _rev: claim._rev }];
        found.set(id, claim);
        return [];
      });
    }
    return found;
  }

  async #giveBack(bulkOperationId: string, ids: readonly string[]): Promise<void> {
    const { queue, announce } = this.#parts;
    for (let from = 0; from < ids.length; from += claimsPerWrite) {
      const stored = await queue.docs.readMany(ids.slice(from, from + claimsPerWrite), claimDoc);
      const ours = [...stored.values()].filter((claim) => claim.bulkOperationId === bulkOperationId);
      // Who took one over meanwhile has it.
      if (ours.length > 0) await queue.docs.write(ours.map((claim) => ({ ...claim, _deleted: true })));
    }
    this.#wait.news();
    announce();
  }
}
