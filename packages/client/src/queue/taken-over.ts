import type { Clock } from '../model/environment.js';
import { AfieldError } from '../model/errors.js';
import type { EndedFailure, Endings } from './endings.js';
import type { Failures } from './failures.js';
import type { Queue } from './queue.js';
import { payloadSize, sequenceOf, type Header } from './stored.js';
import { withdraw } from './withdrawal.js';

/**
 * What bulk operations took over: failures that are retried, or the rest of another one (R19). The header that says so is
 * durable first; what it took over is marked after it, and before it runs.
 */
export class TakenOver {
  readonly #queue: Queue;
  readonly #failures: Failures;
  readonly #endings: Endings;
  readonly #clock: Clock;
  readonly #settling = new Map<string, Promise<boolean>>();
  /** Names of the failures that those are to do once more, as they are, which are not settled yet. By their ids. */
  readonly #asTheyAre = new Map<string, ReadonlySet<string>>();

  constructor(parts: { queue: Queue; failures: Failures; endings: Endings; clock: Clock }) {
    this.#queue = parts.queue;
    this.#failures = parts.failures;
    this.#endings = parts.endings;
    this.#clock = parts.clock;
  }

  /**
   * A bulk operation of this id is about to be queued, to do these open failures once more as they are. One that is none any
   * more when it is settled is applied after all (S2), and is not to be done a second time. What a person has edited is other
   * work, and runs; and what the server has refused is its own matter.
   */
  takes(bulkOperationId: string, failureIds: readonly string[]): void {
    if (failureIds.length === 0) this.#asTheyAre.delete(bulkOperationId);
    else this.#asTheyAre.set(bulkOperationId, new Set(failureIds));
  }

  /**
   * Marks what a bulk operation took over, as far as it is not marked yet. One whose operations another one took over at
   * the same moment is withdrawn before it runs. Answers whether this one stays.
   */
  settle(header: Header): Promise<boolean> {
    // Whoever has queued it and whoever runs it may ask at the same moment: marked twice would be counted twice for a while.
    const underWay = this.#settling.get(header.id);
    if (underWay !== undefined) return underWay;
    const settling = this.#settle(header).finally(() => {
      this.#settling.delete(header.id);
      this.#asTheyAre.delete(header.id);
    });
    this.#settling.set(header.id, settling);
    return settling;
  }

  async #settle(header: Header): Promise<boolean> {
    if (header.continues !== undefined) {
      const continuedBy = await this.#settleRest(header, header.continues);
      if (continuedBy !== header.id) return this.#withdraw(header, continuedBy);
    }
    if (header.retries !== true) return true;
    await this.#failures.load();
    const at = this.#clock.wall();
    const names: (string | undefined)[] = [];
    const marked: EndedFailure[] = [];
    for (let from = 0; from < header.total; from += payloadSize) {
      const operations = await this.#queue.contents.operations(header, from, payloadSize);
      operations.forEach(({ f }, place) => {
        names.push(f);
        const failure = f === undefined ? undefined : this.#failures.get(f);
        // What the server refused is over when the server takes it, not before.
        if (failure === undefined || failure.resolution !== undefined || failure.refused !== null) return;
        const resolution = { how: 'retried', bulkOperationId: header.id, index: from + place, at } as const;
        marked.push({ ...failure, resolution });
      });
    }
    await this.#endings.end(marked);
    // What a person took out of quarantine counts whatever becomes of the failure: discarded, or retried at the same moment.
    if (header.taken !== undefined) return true;
    const resolutions = names.map((name) => this.#failures.get(name ?? '')?.resolution);
    const asTheyAre = this.#asTheyAre.get(header.id);
    const isOurs = resolutions.some((one, place) =>
      one === undefined
        ? asTheyAre?.has(names[place] ?? '') !== true || this.#failures.get(names[place] ?? '') !== undefined
        : one.how === 'retried' && one.bulkOperationId === header.id,
    );
    if (isOurs) return true;
    const [first] = resolutions;
    return this.#withdraw(header, first?.how === 'retried' ? first.bulkOperationId : undefined);
  }

  /** Marks that the rest of one was taken over. Answers by whom: the first that says so. */
  async #settleRest(header: Header, continues: string): Promise<string> {
    try {
      const sequence = sequenceOf((await this.#queue.headers.find(continues))._id);
      const { header: old } = await this.#queue.headers.change(sequence, (stored) =>
        stored.continuedBy === undefined ? { ...stored, continuedBy: header.id } : undefined,
      );
      return old.continuedBy ?? header.id;
    } catch (error) {
      // It was removed since its rest was read: no one else can take that over.
      if (error instanceof AfieldError && error.code === 'unknown_bulk_operation') return header.id;
      throw error;
    }
  }

  /** Ends one that came too late, unless it runs already. Answers whether it stays. */
  async #withdraw(late: Header, continuedBy: string | undefined): Promise<boolean> {
    const by = continuedBy === undefined ? {} : { continuedBy };
    const header = await withdraw(this.#queue.headers, late, by);
    return header.state !== 'cancelled';
  }
}
