import { Requests } from './http/requests.js';
import { ServerDatabase } from './http/server-database.js';
import type { ClientOptions, ForgetReceipt, PullOptions } from './model/client.js';
import { AfieldError } from './model/errors.js';
import type { PouchConstructor } from './model/pouch.js';
import type { ClientStatus } from './model/states.js';
import type { Replicating } from './replicating.js';
import { beginWait } from './retry/wait.js';
import type { LocalDatabase } from './store/local-database.js';
import { Forgetting } from './sync/forgetting.js';
import { isPassedOver } from './sync/hidden-deletions.js';
import { OutOfSight } from './sync/out-of-sight.js';
import type { DocumentHashes } from './queue/document-hashes.js';
import type { Failures } from './queue/failures.js';
import { Outgoing, presentRevisions, type OutgoingParts } from './sync/outgoing.js';
import { Pull } from './sync/pull.js';
import { Checkpoint, type PushData } from './sync/checkpoint.js';
import { PullList } from './sync/pull-list.js';
import { pushErrand, unsentIds, withBehind, type PushErrand, type PushStep } from './sync/push.js';
import type { Refusals } from './sync/refusals.js';
import { Transfer, type Carrier } from './sync/transfer.js';

/** What the client has seen itself needs no report. */
export function notExternal(): AfieldError {
  return new AfieldError(
    'not_external',
    'sync.report() is for apps that replicate themselves: `replication: "external"`.',
  );
}

/** Push and pull of the app's documents, wired together. */
export class Replication implements Replicating {
  readonly #push: Outgoing<PushData, PushStep>;
  readonly #pull: Pull;
  readonly #pullTransfer: Carrier;
  readonly #local: LocalDatabase;
  readonly #pushErrand: PushErrand;
  readonly #forgetting: Forgetting;
  #storeId = '';

  constructor(
    parts: OutgoingParts & {
      url: string;
      requests: Requests;
      PouchDB: PouchConstructor;
      refusals: Refusals;
      pullEveryMs: number;
      newId: () => string;
      pull: PullOptions | undefined;
      outOfSight: ClientOptions['outOfSight'];
      /** The local documents through a handle that keeps one revision of a document's past. */
      forgetful: LocalDatabase;
      hashes: DocumentHashes;
      failures: Failures;
      /** A pull has come to its end: documents may have come, also with one that failed. */
      pulled: () => void;
    },
  ) {
    const { local, url, requests, refusals, clock, scheduler } = parts;
    this.#local = local;
    const server = new ServerDatabase(url, requests);
    const checkpoint = new Checkpoint({
      local,
      server,
      storeId: () => this.#storeId,
      newId: parts.newId,
      isRefused: async (id, rev) => (await refusals.isRefused(id, rev)) || isPassedOver(local, refusals, id, rev),
    });
    this.#pushErrand = pushErrand({ local, server, refusals, checkpoint });
    this.#push = new Outgoing(this.#pushErrand, parts);
    this.#forgetting = new Forgetting({ ...parts, unsent: () => this.unsentIds() });
    const sight = new OutOfSight(local, parts.outOfSight, (ids) => this.forget(ids));
    const list = new PullList(parts.queue, (ids) => sight.tell(ids));
    this.#pull = new Pull({ ...parts, list, withheld: (ids) => sight.tell(ids) });
    const pullErrand = this.#pull.errand(() => {
      scheduler.wait('pull-again', beginWait(clock, parts.pullEveryMs), () => {
        this.pullNow();
      });
    });
    const pull = async (...step: Parameters<typeof pullErrand.carry>): ReturnType<typeof pullErrand.carry> => {
      try {
        return await pullErrand.carry(...step);
      } catch (error) {
        // It may be another server when it comes back.
        this.#pushErrand.wantLook();
        throw error;
      } finally {
        parts.pulled();
      }
    };
    this.#pullTransfer = new Transfer({ ...pullErrand, carry: pull }, parts);
  }

  async resume(storeId: string): Promise<void> {
    this.#storeId = storeId;
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

  /** Whether the server has still what it had is asked by the way, also when nothing new is to be pushed. */
  pullNow(): void {
    this.#pushErrand.wantLook();
    this.#push.poke();
    this.#pull.want();
    this.#pullTransfer.poke();
  }

  isPushed(): boolean {
    return this.#push.isPushed();
  }

  pushStep(): Promise<boolean> {
    return this.#push.pushStep();
  }

  forget(ids: readonly string[]): Promise<ForgetReceipt> {
    return this.#forgetting.forget(ids);
  }

  async sendAgain(ids: readonly string[]): Promise<void> {
    const again = await presentRevisions(this.#local, ids);
    if (again.length > 0) await this.#push.amend((data) => withBehind(data, again));
  }

  report(): Promise<void> {
    return Promise.reject(notExternal());
  }

  reread(): void {
    this.#push.reread();
  }

  isConfirmed(): Promise<boolean> {
    return this.#push.isOver();
  }

  unconfirmed(): number {
    return this.#push.unconfirmed();
  }

  async unsentIds(): Promise<ReadonlySet<string>> {
    return unsentIds(this.#local, await this.#push.present());
  }

  status(): Pick<ClientStatus, 'push' | 'pull'> {
    return { push: this.#push.status(), pull: this.#pullTransfer.status() };
  }

  async close(): Promise<void> {
    await Promise.all([this.#push.close(), this.#pullTransfer.idle()]);
  }
}
