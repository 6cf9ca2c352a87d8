import { healErrand, withAgain, type HealData, type HealStep } from './heal/errand.js';
import { Healing, type HealingParts } from './heal/healing.js';
import type { OpenConflicts } from './heal/open-conflicts.js';
import { Settling } from './heal/settling.js';
import type { ResolveConflict } from './model/conflict.js';
import type { TransferStatus } from './model/states.js';
import { beginWait } from './retry/wait.js';
import { Transfer, type Errand, type TransferParts } from './sync/transfer.js';

/** Changes that come in a burst are looked at together. */
const soonMs = 1000;
const soonKey = 'heal-soon';

interface DecidingParts {
  readonly conflicts: OpenConflicts;
  readonly resolve: ResolveConflict | undefined;
  /** Conflicts may come at any time, not only with a pull of ours. */
  readonly follows: boolean;
}

/** Looks for documents with conflicts, and heals them. In the tab that leads; wired together here. */
export class ConflictWatch {
  readonly #parts: TransferParts & Pick<HealingParts, 'local'> & DecidingParts;
  readonly #transfer: Transfer<HealData, HealStep>;
  readonly #errand: Errand<HealData, HealStep>;
  #listening: { cancel(): void } | undefined;

  constructor(
    parts: Omit<HealingParts, 'settling'> &
      TransferParts &
      DecidingParts & {
        /** The list of open conflicts has changed. */
        readonly found: () => void;
      },
  ) {
    this.#parts = parts;
    const healing = new Healing({ ...parts, settling: new Settling(parts) });
    // It works on what is here: whether there is a network, or who is signed in, is nothing to it.
    const gate: TransferParts['gate'] = { state: () => 'open', failed: () => undefined };
    this.#errand = healErrand({ ...parts, healing });
    this.#transfer = new Transfer(this.#errand, { ...parts, gate });
  }

  async resume(): Promise<void> {
    if (this.#parts.follows) this.#listening ??= this.#listen();
    const undecided = await this.#undecided();
    await this.#transfer.resume(undecided.length === 0 ? undefined : (data) => withAgain(data, undecided));
  }

  /** A resolver may be new, or answer otherwise than that of the app's last version: what was left alone is asked again. */
  async #undecided(): Promise<readonly string[]> {
    const { conflicts, resolve } = this.#parts;
    if (resolve === undefined) return [];
    await conflicts.ready();
    return conflicts.list().map(({ id }) => id);
  }

  /** There may be new conflicts. */
  poke(): void {
    this.#transfer.poke();
  }

  /** These documents may have conflicts: the app says so. */
  async look(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#transfer.amend((data) => withAgain(data, ids));
  }

  /** Whether nothing is left to be healed, by what is stored. */
  isOver(): Promise<boolean> {
    return this.#transfer.present().then(async (data) => (await this.#errand.next(data)) === undefined);
  }

  status(): TransferStatus {
    return this.#transfer.status();
  }

  async close(): Promise<void> {
    this.#listening?.cancel();
    await this.#transfer.idle();
  }

  #listen(): { cancel(): void } {
    const { local, scheduler, clock } = this.#parts;
    // Without it the look once a minute finds what it would have told.
    return local.follow(() => {
      if (scheduler.isWaiting(soonKey)) return;
      scheduler.wait(soonKey, beginWait(clock, soonMs), () => {
        this.poke();
      });
    });
  }
}
