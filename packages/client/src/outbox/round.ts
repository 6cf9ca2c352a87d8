import type { DocumentEvent } from '../model/event.js';
import type { Queue } from '../queue/queue.js';
import { sequenceOf, type Header } from '../queue/stored.js';
import { hashOf } from '../queue/subjects.js';
import type { Events, Place } from './events.js';
import { entryOf, isAtEnd, isOver, readableEnd, type Progress } from './progress.js';
import { firstOf } from './ranges.js';

/** Events of one publication. */
const mostEvents = 100;
/** Operations that are looked at for one publication: most of those without an event are passed over in one step. */
const mostLooked = 1000;
const perRead = 100;

/** What one publication is made of: the operations that were looked at, and which of their events are to be sent. */
export interface Page {
  readonly places: readonly Place[];
  readonly events: readonly DocumentEvent[];
  /** Places of events that stay: an earlier one of their document waits. */
  readonly held: ReadonlySet<Place>;
}

/**
 * One way through the outbox, from the oldest event to the newest: what waits is looked at once more, if the round says
 * so, then what is new. An event whose document has an earlier one that waits is held back; no page has two events of one
 * document, and none is sent before an earlier one of its bulk operation unless that one waits (O8). Holds no events, only
 * a hash for each document that waits.
 */
export class Round {
  readonly #queue: Queue;
  readonly #events: Events;
  readonly #storeId: string;
  /** What waits is looked at again. */
  readonly #looksAgain: boolean;
  /** Hashes of documents with an event that waits, and how many of them. Outlives the round. */
  readonly #held: Held;
  /** Hashes of documents with an event that was found waiting in this round. */
  readonly #found = new Set<number>();
  #at = { sequence: 0, waiting: 0 };

  constructor(parts: { queue: Queue; events: Events; storeId: string; held: Held; looksAgain: boolean }) {
    this.#queue = parts.queue;
    this.#events = parts.events;
    this.#storeId = parts.storeId;
    this.#held = parts.held;
    this.#looksAgain = parts.looksAgain;
  }

  /** The next page after what was looked at; undefined when the round is over. */
  async next(progress: Progress): Promise<Page | undefined> {
    const page = new NewPage();
    for (const header of this.#queue.headers()) {
      const sequence = sequenceOf(header._id);
      if (sequence <= progress.upTo || sequence < this.#at.sequence) continue;
      if (sequence > this.#at.sequence) this.#at = { sequence, waiting: 0 };
      if (isOver(header, entryOf(progress, sequence))) continue;
      if (!(await this.#read(header, progress, page))) return page.done();
    }
    return page.places.length === 0 ? undefined : page.done();
  }

  /** These events wait from now on, or still do. */
  wait(events: readonly DocumentEvent[]): void {
    for (const event of events) this.#found.add(hashOfDocument(event));
  }

  /** Adds the operations of one bulk operation to the page. False: the page is full. */
  async #read(header: Header, progress: Progress, page: NewPage): Promise<boolean> {
    const { n, w, o } = entryOf(progress, sequenceOf(header._id));
    const end = readableEnd(header);
    if (this.#looksAgain) {
      for (;;) {
        const indexes = firstOf(w, this.#at.waiting, n, perRead);
        if (indexes.length === 0) break;
        if (!this.#take(await this.#events.at(this.#storeId, header, indexes), page, true)) return false;
      }
    }
    const late = firstOf(o, 0, isAtEnd(header) ? header.total : header.cursor, perRead);
    if (!this.#take(await this.#events.at(this.#storeId, header, late), page, false)) return false;
    for (let from = n; from < end;) {
      const indexes = Array.from({ length: Math.min(perRead, end - from) }, (_, place) => from + place);
      const places = await this.#events.at(this.#storeId, header, indexes);
      if (!this.#take(places, page, false)) return false;
      if (places.length < indexes.length) break;
      from += indexes.length;
    }
    return true;
  }

  #take(places: readonly Place[], page: NewPage, isWaiting: boolean): boolean {
    for (const place of places) {
      if (page.isFull) return false;
      const { event, index } = place;
      if (event === undefined) page.add(place);
      else {
        const hash = hashOfDocument(event);
        // What waits holds back what came after it; what waits itself is held back only by what was found before it.
        const isHeld = this.#found.has(hash) || (!isWaiting && this.#held.has(hash));
        if (!isHeld && page.has(hash)) return false;
        page.add(place, isHeld ? undefined : hash);
        if (isHeld) this.#found.add(hash);
      }
      if (isWaiting) this.#at.waiting = index + 1;
    }
    return true;
  }
}

class NewPage {
  readonly places: Place[] = [];
  readonly #events: DocumentEvent[] = [];
  readonly #held = new Set<Place>();
  readonly #documents = new Set<number>();

  get isFull(): boolean {
    return this.#events.length >= mostEvents || this.places.length >= mostLooked;
  }

  has(hash: number): boolean {
    return this.#documents.has(hash);
  }

  /** `hash`: of the document whose event is to be sent. */
  add(place: Place, hash?: number): void {
    this.places.push(place);
    if (place.event === undefined) return;
    if (hash === undefined) this.#held.add(place);
    else {
      this.#documents.add(hash);
      this.#events.push(place.event);
    }
  }

  done(): Page {
    return { places: this.places, events: this.#events, held: this.#held };
  }
}

/** How many events of each document wait, by the document's hash: too much may be held back, never too little. */
export class Held {
  readonly #counts = new Map<number, number>();

  has(hash: number): boolean {
    return this.#counts.has(hash);
  }

  change(event: DocumentEvent, step: 1 | -1): void {
    const hash = hashOfDocument(event);
    const count = (this.#counts.get(hash) ?? 0) + step;
    if (count > 0) this.#counts.set(hash, count);
    else this.#counts.delete(hash);
  }
}

/** A local document and one of the server are two, even if they have one id. */
function hashOfDocument({ target, documentId }: DocumentEvent): number {
  return hashOf(`${target} ${documentId}`);
}
