import type { DocumentEvent } from '../model/event.js';
import type { Queue } from '../queue/queue.js';
import { isOutcome, sequenceOf, type Header } from '../queue/stored.js';
import { eventOf } from './event.js';
import { isAtEnd, readableEnd } from './progress.js';
import { firstOf } from './ranges.js';

/** An operation whose event may be there. */
export interface Place {
  readonly header: Header;
  readonly index: number;
  /** Undefined: it has none, or none yet. */
  readonly event: DocumentEvent | undefined;
  /** It has no outcome yet. */
  readonly isOpen: boolean;
  /** The document that the event is of, or would be of. */
  readonly documentId: string | undefined;
}

/** Reads events from what is durable: nothing is stored for them beside operations and outcomes. */
export class Events {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** These operations of a bulk operation, as far as anything is known of them. Two reads where they lie together. */
  async at(storeId: string, header: Header, indexes: readonly number[]): Promise<readonly Place[]> {
    try {
      return await this.#at(storeId, header, indexes);
    } catch (error) {
      // Removed by another tab while it was read: it has no events any more.
      if (await this.#queue.headers.isForgotten(header)) return [];
      throw error;
    }
  }

  async #at(storeId: string, header: Header, indexes: readonly number[]): Promise<readonly Place[]> {
    if (indexes.length === 0) return [];
    const rows = await this.#queue.records.rowsAt(sequenceOf(header._id), indexes);
    const operations = await this.#queue.contents.operationsAt(header, indexes);
    const found: Place[] = [];
    for (const index of indexes) {
      const row = rows.get(index);
      // Of a bulk operation that goes on, what no batch has taken up yet is nobody's business.
      if (row === undefined && !isAtEnd(header) && index >= header.cursor) break;
      const operation = operations.get(index);
      const event = eventOf(storeId, header, index, operation, row);
      const isOpen = !isOutcome(row) && !isAtEnd(header) && index >= header.cursor;
      const id = typeof operation?.i === 'string' ? operation.i : undefined;
      found.push({ header, index, event, isOpen, documentId: event?.documentId ?? id });
    }
    return found;
  }

  /** Events in the order in which this store has them, after a place. */
  async list(storeId: string, place: AfterPlace, limit: number): Promise<readonly DocumentEvent[]> {
    const found: DocumentEvent[] = [];
    const after = { sequence: this.#sequenceOf(storeId, place), index: place.index };
    for (const header of this.#queue.headers.all()) {
      const sequence = sequenceOf(header._id);
      if (sequence < after.sequence) continue;
      const end = readableEnd(header);
      for (let from = sequence === after.sequence ? after.index + 1 : 0; from < end; from += perRead) {
        const indexes = firstOf([[from, end]], from, end, perRead);
        for (const { event } of await this.at(storeId, header, indexes)) {
          if (event === undefined) continue;
          found.push(event);
          if (found.length === limit) return found;
        }
      }
    }
    return found;
  }

  /** Its number here: a file may have brought it from another store. */
  #sequenceOf(storeId: string, { store = storeId, sequence }: AfterPlace): number {
    if (store === storeId) return sequence;
    const brought = this.#queue.headers
      .all()
      .find(({ origin }) => origin?.store === store && origin.sequence === sequence);
    return brought === undefined ? 0 : sequenceOf(brought._id);
  }
}

const perRead = 100;

type AfterPlace = Pick<DocumentEvent, 'sequence' | 'index'> & { readonly store?: string | undefined };
