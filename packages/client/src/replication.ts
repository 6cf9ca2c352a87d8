import { Requests } from './http/requests.js';
import { ServerDatabase } from './http/server-database.js';
import type { PouchConstructor } from './model/pouch.js';
import { beginWait } from './retry/wait.js';
import { LocalDatabase } from './store/local-database.js';
import { Pull } from './sync/pull.js';
import { pushErrand, withBehind, type PushData, type PushStep } from './sync/push.js';
import type { Refusals } from './sync/refusals.js';
import { Transfer, type Carrier, type TransferParts } from './sync/transfer.js';
import type { TransferStatus } from './model/states.js';

/** Push and pull of the app's documents, wired together. */
export class Replication {
  readonly #push: Transfer<PushData, PushStep>;
  readonly #pull: Pull;
  readonly #pullTransfer: Carrier;
  readonly #local: LocalDatabase;
  #listening: { cancel(): void } | undefined;
  /** What the push waits for are single documents that stayed behind: all others are there. */
  #hasBroughtTheRest = false;
  /** Who waits for the push's next step. */
  readonly #awaited: (() => void)[] = [];

  constructor(
    parts: TransferParts & {
      local: LocalDatabase;
      url: string;
      requests: Requests;
      PouchDB: PouchConstructor;
      refusals: Refusals;
      pullEveryMs: number;
      /** The push has taken a step without a failure: the server may have more now. */
      pushed: () => void;
      /** The push has nothing left that it could bring now. */
      pushRests: () => void;
      /** A pull has come to its end: documents may have come, also with one that failed. */
      pulled: () => void;
    },
  ) {
    const { local, url, requests, PouchDB, refusals, clock, scheduler } = parts;
    this.#local = local;
    const errand = pushErrand({ local, server: new ServerDatabase(url, requests), refusals });
    this.#push = new Transfer(
      {
        ...errand,
        next: async (data) => {
          const step = await errand.next(data);
          if (step === undefined) parts.pushRests();
          return step;
        },
        carry: async (step, data) => {
          this.#hasBroughtTheRest = false;
          const carried = await errand.carry(step, data);
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
    this.#pull = new Pull({ PouchDB, local, url, requests });
    const pullErrand = this.#pull.errand(() => {
      scheduler.wait('pull-again', beginWait(clock, parts.pullEveryMs), () => {
        this.pullNow();
      });
    });
    this.#pullTransfer = new Transfer(
      { ...pullErrand, carry: (step, data) => pullErrand.carry(step, data).finally(parts.pulled) },
      parts,
    );
  }

  async resume(): Promise<void> {
    this.#listening ??= this.#listen();
    await this.#push.resume();
    await this.#pullTransfer.resume();
  }

  #listen(): { cancel(): void } {
    const changes = this.#local.pouch.changes({ live: true, since: 'now', return_docs: false });
    changes.on('change', () => {
      this.#push.poke();
    });
    // A listener that breaks costs nothing but the early wake-up: bulk operations and pulls poke too.
    changes.on('error', () => undefined);
    Promise.resolve(changes).catch(() => undefined);
    return changes;
  }

  poke(): void {
    this.#push.poke();
    this.#pullTransfer.poke();
  }

  pushNow(): void {
    this.#push.poke();
  }

  /** Whether the push has brought over all that it can, but for single documents that stayed behind. */
  isPushed(): boolean {
    const { state } = this.#push.status();
    return state === 'idle' || (this.#hasBroughtTheRest && state.startsWith('waiting'));
  }

  /** Resolves when the push has taken the step that it is at, or rests. False: it waits, and has more to bring. */
  async pushStep(): Promise<boolean> {
    await new Promise<void>((resolve) => {
      this.#awaited.push(resolve);
      void this.#push.idle().then(() => {
        this.#stepTaken();
      });
    });
    return this.isPushed() || !this.#push.status().state.startsWith('waiting');
  }

  #stepTaken(): void {
    for (const resolve of this.#awaited.splice(0)) resolve();
  }

  /** Sends documents once more that the server has refused: their present revisions, with the refused ones in their past. */
  async sendAgain(ids: readonly string[]): Promise<void> {
    const rows = await this.#local.read([...new Set(ids)]);
    const again = rows.flatMap(({ id, rev }) => (rev === undefined ? [] : [{ id, revs: [rev] }]));
    if (again.length > 0) await this.#push.amend((data) => withBehind(data, again));
  }

  pullNow(): void {
    this.#pull.want();
    this.#pullTransfer.poke();
  }

  /** Whether the server has, or has refused for good, every revision that is stored here now. */
  isConfirmed(): Promise<boolean> {
    return this.#push.isOver();
  }

  status(): { push: TransferStatus; pull: TransferStatus } {
    return { push: this.#push.status(), pull: this.#pullTransfer.status() };
  }

  async close(): Promise<void> {
    this.#listening?.cancel();
    this.#pull.cancel();
    await Promise.all([this.#push.idle(), this.#pullTransfer.idle()]);
  }
}
