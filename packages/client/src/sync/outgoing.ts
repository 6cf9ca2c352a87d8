import { z } from 'zod/mini';
import type { TransferStatus } from '../model/states.js';
import type { LocalChange, LocalDatabase } from '../store/local-database.js';
import { Transfer, type Errand, type TransferParts } from './transfer.js';

const heardChange = z.object({ seq: z.union([z.number(), z.string()]) });

/** Whom the way of local revisions to the server concerns. */
export interface OutgoingParts extends TransferParts {
  readonly local: LocalDatabase;
  /** A step was taken without a failure: the server may have more now. */
  readonly pushed: () => void;
  /** Nothing is left that could be brought now. */
  readonly pushRests: () => void;
  /** The server has less than it had: what was confirmed is not any more. */
  readonly setBack?: () => void;
}

/** What is remembered of local changes: they were passed up to `since`, but for those that stayed behind. */
interface Passed {
  readonly since: number | string;
  readonly behind: readonly unknown[];
}

/**
 * Follows local revisions until the server has them, whoever brings them: an errand of ours that does, or one that only
 * asks. Says who else waits for them.
 */
export class Outgoing<Data extends Passed, Step> {
  readonly #transfer: Transfer<Data, Step>;
  readonly #local: LocalDatabase;
  readonly #errand: Errand<Data, Step>;
  #listening: { cancel(): void } | undefined;
  /** What is waited for are single documents that stayed behind: all others are there. */
  #hasBroughtTheRest = false;
  /** The newest local change that was heard of. */
  #newest: number | string = 0;
  /** Changes that were left at its last look, at most; before the first one nothing is known. */
  #left = 1;
  /** Who waits for the next step. */
  readonly #awaited: (() => void)[] = [];

  constructor(errand: Errand<Data, Step>, parts: OutgoingParts) {
    this.#local = parts.local;
    this.#errand = errand;
    this.#transfer = new Transfer(
      {
        ...errand,
        next: async (data) => {
          const before = this.#newest;
          const step = await errand.next(data);
          this.#left = errand.left?.() ?? (step === undefined ? 0 : Math.max(1, data.behind.length));
          // What was written while it looked is looked at next.
          if (before !== this.#newest) this.#left = Math.max(1, this.#left);
          if (step === undefined) parts.pushRests();
          return step;
        },
        ...(errand.fresh === undefined ? {} : { fresh: (data: Data) => this.#fresh(data, parts) }),
        carry: async (step, data, watch) => {
          if (errand.isAside?.(step) === true) {
            const looked = await errand.carry(step, data, watch);
            if (Number(looked.data.since) < Number(data.since)) parts.setBack?.();
            return looked;
          }
          this.#hasBroughtTheRest = false;
          const carried = await errand.carry(step, data, watch);
          // A step that failed is taken again; then there is more to be told.
          if (carried.error === undefined) {
            this.#stepTaken();
            parts.pushed();
          } else {
            this.#hasBroughtTheRest = true;
            parts.pushRests();
          }
          return carried;
        },
      },
      parts,
    );
  }

  /** What is new beside what waits; when there is nothing more of it, all has been brought that could be. */
  async #fresh(data: Data, { pushRests }: OutgoingParts): Promise<Step | undefined> {
    const step = await this.#errand.fresh?.(data);
    if (step === undefined && !this.#hasBroughtTheRest) {
      this.#hasBroughtTheRest = true;
      pushRests();
    }
    return step;
  }

  async resume(): Promise<void> {
    this.#listening ??= this.#listen();
    await this.#transfer.resume();
  }

  #listen(): { cancel(): void } {
    // Without it only the early wake-up is missing: bulk operations and pulls poke too.
    return this.#local.follow((change) => {
      const heard = heardChange.safeParse(change);
      if (heard.success) this.#newest = heard.data.seq;
      this.#left = Math.max(1, this.#left);
      this.poke();
    });
  }

  poke(): void {
    this.#transfer.poke();
  }

  /** Whether all is over there that can be, but for single documents that stayed behind. */
  isPushed(): boolean {
    const { state } = this.status();
    return state === 'idle' || (this.#hasBroughtTheRest && state.startsWith('waiting'));
  }

  /** Resolves when the step that it is at is taken, or it rests. False: it waits, and has more to bring. */
  async pushStep(): Promise<boolean> {
    await new Promise<void>((resolve) => {
      this.#awaited.push(resolve);
      void this.#transfer.idle().then(() => {
        this.#stepTaken();
      });
    });
    return this.isPushed() || !this.status().state.startsWith('waiting');
  }

  #stepTaken(): void {
    for (const resolve of this.#awaited.splice(0)) resolve();
  }

  /** What is remembered, as it is stored now. */
  present(): Promise<Data> {
    return this.#transfer.present();
  }

  /** Another tab may have changed what is remembered. */
  reread(): void {
    this.#transfer.reread();
  }

  /** Changes what is remembered. Durable when it resolves. */
  amend(change: (data: Data) => Data): Promise<void> {
    return this.#transfer.amend(change);
  }

  /** Whether nothing is left, by what is stored. Asks no server. */
  async isOver(): Promise<boolean> {
    // A look that nobody else hears of: whoever asks is woken by those that they hear of.
    const data = await this.present();
    return (await this.#errand.isOver?.(data)) ?? (await this.#errand.next(data)) === undefined;
  }

  /** Changes that are not passed, by what is in memory: too many rather than too few. */
  unconfirmed(): number {
    return this.#left;
  }

  status(): TransferStatus {
    return this.#transfer.status();
  }

  async close(): Promise<void> {
    this.#listening?.cancel();
    await this.#transfer.idle();
  }
}

/** What is stored of these documents now, as changes: all leaves, for what was refused may have lost meanwhile. */
export async function presentRevisions(local: LocalDatabase, ids: readonly string[]): Promise<readonly LocalChange[]> {
  const leaves = new Map<string, string[]>();
  for (const { id, doc } of await local.leaves([...new Set(ids)])) {
    leaves.set(id, [...(leaves.get(id) ?? []), doc._rev ?? '']);
  }
  return [...leaves].map(([id, revs]) => ({ id, revs }));
}
