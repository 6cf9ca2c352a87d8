import type { ServerDatabase } from './http/server-database.js';
import type { ForgetReceipt } from './model/client.js';
import { AfieldError } from './model/errors.js';
import type { Clock } from './model/environment.js';
import type { ClientStatus } from './model/states.js';
import type { Failures } from './queue/failures.js';
import type { Replicating } from './replicating.js';
import type { Scheduler } from './retry/scheduler.js';
import { noTransfer } from './status.js';
import type { LocalDatabase } from './store/local-database.js';
import { beginWait } from './retry/wait.js';
import {
  confirmErrand,
  withAgain,
  withDenied,
  type ConfirmData,
  type ConfirmErrand,
  type ConfirmStep,
} from './sync/confirm.js';
import { Outgoing, presentRevisions, type OutgoingParts } from './sync/outgoing.js';
import { unsentIds } from './sync/push.js';
import type { Seen } from './sync/seen.js';
import type { Refusals } from './sync/refusals.js';

/** So often it is asked whether the server has still what it had: one request, also when nothing else is to be asked. */
const lookMs = 300_000;

/** Stubs of forgotten documents would be taken for deletions by any push but ours. */
export function notManaged(): AfieldError {
  return new AfieldError('not_managed', 'Documents can be forgotten only with `replication: "managed"`.');
}

/** The app replicates itself: nothing is pushed or pulled here, only asked whether the server has it. */
export class ExternalReplication implements Replicating {
  readonly #confirm: Outgoing<ConfirmData, ConfirmStep>;
  readonly #local: LocalDatabase;
  readonly #scheduler: Scheduler;
  readonly #clock: Clock;
  readonly #errand: ConfirmErrand;

  constructor(parts: OutgoingParts & { server: ServerDatabase; refusals: Refusals; failures: Failures }) {
    this.#local = parts.local;
    this.#scheduler = parts.scheduler;
    this.#clock = parts.clock;
    const errand = confirmErrand(parts);
    this.#errand = errand;
    const carry = async (...step: Parameters<typeof errand.carry>): ReturnType<typeof errand.carry> => {
      try {
        return await errand.carry(...step);
      } catch (error) {
        // It may be another server when it comes back.
        errand.wantLook();
        throw error;
      }
    };
    this.#confirm = new Outgoing({ ...errand, carry }, parts);
  }

  async resume(): Promise<void> {
    this.#armLook();
    await this.#confirm.resume();
  }

  #armLook(): void {
    this.#scheduler.wait('confirm-look', beginWait(this.#clock, lookMs), () => {
      this.#armLook();
      this.pullNow();
    });
  }

  poke(): void {
    this.#confirm.poke();
  }

  pushNow(): void {
    this.#confirm.poke();
  }

  /** The app pulls. Whether the server has still what it had is asked by the way. */
  pullNow(): void {
    this.#errand.wantLook();
    this.poke();
  }

  isPushed(): boolean {
    return this.#confirm.isPushed();
  }

  pushStep(): Promise<boolean> {
    return this.#confirm.pushStep();
  }

  forget(): Promise<ForgetReceipt> {
    return Promise.reject(notManaged());
  }

  /** By ourselves: the app's replication has passed them, and does not come back. */
  async sendAgain(ids: readonly string[]): Promise<void> {
    const again = await presentRevisions(this.#local, ids);
    if (again.length > 0) await this.#confirm.amend((data) => withAgain(data, again));
  }

  async report({ denied, isPushed }: Pick<Seen, 'denied' | 'isPushed'>): Promise<void> {
    if (denied.length > 0) await this.#confirm.amend((data) => withDenied(data, denied));
    // What an app says is asked, not believed: at once, where it waited for a time.
    if (isPushed) this.#errand.wantLook();
    if (isPushed || denied.length > 0) this.#scheduler.wakeOne('confirm');
    this.#confirm.poke();
  }

  reread(): void {
    this.#confirm.reread();
  }

  isConfirmed(): Promise<boolean> {
    return this.#confirm.isOver();
  }

  unconfirmed(): number {
    return this.#confirm.unconfirmed();
  }

  async unsentIds(): Promise<ReadonlySet<string>> {
    const { since, behind, again, denied } = await this.#confirm.present();
    const ids = await unsentIds(this.#local, { since, behind });
    return new Set([...ids, ...again.map(({ id }) => id), ...denied.map(({ id }) => id)]);
  }

  status(): Pick<ClientStatus, 'push' | 'pull'> {
    return { push: this.#confirm.status(), pull: noTransfer };
  }

  close(): Promise<void> {
    return this.#confirm.close();
  }
}
