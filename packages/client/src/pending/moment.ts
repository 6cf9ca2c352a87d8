import { withOutcomes } from '../queue/control.js';
import type { Queue } from '../queue/queue.js';
import {
  isOutcome,
  recordDoc,
  recordPrefix,
  rowStates,
  sequenceOf,
  type Header,
  type RowState,
} from '../queue/stored.js';
import { endStates } from '../model/states.js';
import type { Documents } from './documents.js';
import { pagesOf } from './pages.js';
import type { Chosen } from './selection.js';

/** A batch as it goes into a file. */
export interface CarriedBatch {
  readonly from: number;
  readonly at: number;
  readonly rows: readonly RowState[];
}

/**
 * What is said of a bulk operation that runs while it is exported: it must fit the documents in the file, which were read
 * before. An intent is durable before its write, so of each operation one of three things is true:
 *
 *   it had its outcome when the export began        ──▶ the documents have it
 *   it has it now ─ the document's history shows it ──▶ it stays
 *                 └ it does not                     ──▶ as it was then: it is done again, on the document as it is in the file
 *   it has an intent now                            ──▶ it stays: the history will tell
 */
export class Moment {
  readonly #queue: Queue;
  readonly #documents: Documents;
  /** Whether the operations of this place work on local documents. */
  readonly #isLocal: (header: Header, index: number) => boolean;

  constructor(queue: Queue, documents: Documents, isLocal: (header: Header, index: number) => boolean) {
    this.#queue = queue;
    this.#documents = documents;
    this.#isLocal = isLocal;
  }

  /** The batches of one, in their order. `undone` is told of operations whose outcomes came too late. */
  async *batches({ header, rows }: Chosen, undone: (index: number) => void): AsyncGenerator<CarriedBatch> {
    const isOver = endStates.has(header.state);
    for await (const page of pagesOf(this.#queue.docs, recordPrefix(sequenceOf(header._id)), recordDoc)) {
      for (const { from, at, rows: text } of page) {
        const present = rowStates.parse(JSON.parse(text));
        const isLate = !isOver && from >= header.cursor;
        const before = from === header.cursor ? rows : [];
        yield { from, at, rows: isLate ? await this.#fitting(header, from, before, present, undone) : present };
      }
    }
  }

  async #fitting(
    header: Header,
    from: number,
    before: readonly RowState[],
    present: readonly RowState[],
    undone: (index: number) => void,
  ): Promise<readonly RowState[]> {
    const late = present.map(
      (row, place) =>
        isOutcome(row) && !isOutcome(before[place]) && row.s !== 'failed' && this.#isLocal(header, from + place),
    );
    if (!late.includes(true)) return present;
    const operations = await this.#queue.contents.operations(header, from, present.length);
    const ids = operations.map(({ i }) => (typeof i === 'string' ? i : ''));
    const histories = await this.#documents.histories(ids.filter((_id, place) => late[place] === true));
    return present.map((row, place) => {
      if (late[place] !== true) return row;
      if (row.r !== undefined && histories.get(ids[place] ?? '')?.has(row.r) === true) return row;
      undone(from + place);
      return before[place] ?? { s: 'open' };
    });
  }
}

/** Follows the batches of one to the header that fits them, when outcomes among them were undone. */
export class Standing {
  readonly #now: Header;
  #header: Header;
  #isUndone = false;

  /** `then` is the header when the export began, `now` the one that was read before the batches. */
  constructor(then: Header, now: Header) {
    this.#now = now;
    const { cursor, applied, alreadyApplied, failed, events } = then;
    this.#header = { ...now, cursor, applied, alreadyApplied, failed, ...(events === undefined ? {} : { events }) };
  }

  undone(): void {
    this.#isUndone = true;
  }

  passed({ from, rows }: Pick<CarriedBatch, 'from' | 'rows'>): void {
    if (from !== this.#header.cursor || !rows.every(isOutcome)) return;
    this.#header = { ...withOutcomes(this.#header, rows), cursor: from + rows.length };
  }

  header(): Header {
    const now = this.#now;
    if (!this.#isUndone) return now;
    const isStill = now.state === 'paused' || now.state === 'cancelled' || this.#header.cursor === now.cursor;
    return isStill ? this.#header : { ...this.#header, state: 'queued' };
  }
}
