import { valueHash } from '../queue/content-hash.js';
import type { Queue } from '../queue/queue.js';
import { editFailureId, failureDoc, type StoredFailure } from '../queue/stored.js';

/** Documents that the app edited itself and the server refused: failures of no bulk operation. */
export class EditFailures {
  readonly #queue: Queue;
  #known: readonly StoredFailure[] = [];
  /** The reading that `known` is from, or will be; undefined: it must be read again. */
  #reading: Promise<readonly StoredFailure[]> | undefined;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** They may have changed: they are read again when someone asks for them. */
  changed(): void {
    this.#reading = undefined;
  }

  /** As they are stored, read again when they may have changed. */
  async list(): Promise<readonly StoredFailure[]> {
    this.#reading ??= this.#queue.docs.readRange(editFailureId(''), failureDoc);
    const reading = this.#reading;
    try {
      const list = await reading;
      if (this.#reading === reading) this.#known = list;
      return list;
    } catch (error) {
      if (this.#reading === reading) this.changed();
      throw error;
    }
  }

  /** As they are stored now, and a number that grows with each change of the store. */
  async snapshot(): Promise<{ list: readonly StoredFailure[]; changes: number }> {
    // The number first: what is read after it is at least as new.
    const changes = await this.#queue.docs.writes();
    this.changed();
    return { list: await this.list(), changes };
  }

  /** How many no person has decided on, as they were read last. */
  get open(): number {
    return this.#known.filter(({ resolution }) => resolution === undefined).length;
  }
}

/** As one text: when it differs from what was delivered, they are sent again. */
export function truthOfEdits(list: readonly StoredFailure[]): string {
  return list.length === 0 ? '' : valueHash(list.map(({ _id, _rev }) => [_id, _rev]));
}
