import { Requests } from './http/requests.js';
import { ServerDatabase } from './http/server-database.js';
import type { PouchConstructor } from './model/pouch.js';
import type { ClientStatus } from './model/states.js';
import type { Replicating } from './replicating.js';
import { beginWait } from './retry/wait.js';
import type { LocalDatabase } from './store/local-database.js';
import { Outgoing, presentRevisions, type OutgoingParts } from './sync/outgoing.js';
import { Pull } from './sync/pull.js';
import { pushErrand, withBehind, type PushData, type PushStep } from './sync/push.js';
import type { Refusals } from './sync/refusals.js';
import { Transfer, type Carrier } from './sync/transfer.js';

/** Push and pull of the app's documents, wired together. */
export class Replication implements Replicating {
  readonly #push: Outgoing<PushData, PushStep>;
  readonly #pull: Pull;
  readonly #pullTransfer: Carrier;
  readonly #local: LocalDatabase;

  constructor(
    parts: OutgoingParts & {
      url: string;
      requests: Requests;
      PouchDB: PouchConstructor;
      refusals: Refusals;
      pullEveryMs: number;
      /** A pull has come to its end: documents may have come, also with one that failed. */
      pulled: () => void;
    },
  ) {
    const { local, url, requests, PouchDB, refusals, clock, scheduler } = parts;
    this.#local = local;
    this.#push = new Outgoing(pushErrand({ local, server: new ServerDatabase(url, requests), refusals }), parts);
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
    await this.#push.resume();
    await this.#pullTransfer.resume();
  }

  poke(): void {
    this.#push.poke();
    this.#pullTransfer.poke();
  }

  pushNow(): void {
    this.#push.poke();
  }

  pullNow(): void {
    this.#pull.want();
    this.#pullTransfer.poke();
  }

  isPushed(): boolean {
    return this.#push.isPushed();
  }

  pushStep(): Promise<boolean> {
    return this.#push.pushStep();
  }

  async sendAgain(ids: readonly string[]): Promise<void> {
    const again = await presentRevisions(this.#local, ids);
    if (again.length > 0) await this.#push.amend((data) => withBehind(data, again));
  }

  isConfirmed(): Promise<boolean> {
    return this.#push.isOver();
  }

  status(): Pick<ClientStatus, 'push' | 'pull'> {
    return { push: this.#push.status(), pull: this.#pullTransfer.status() };
  }

  async close(): Promise<void> {
    this.#pull.cancel();
    await Promise.all([this.#push.close(), this.#pullTransfer.idle()]);
  }
}
