import type { DocumentEvent } from '../model/event.js';
import type { Queue } from '../queue/queue.js';
import { sequenceOf, type Header } from '../queue/stored.js';
import type { Events, Place } from './events.js';
import { hashOfDocument, type Held } from './held.js';
import { NewPage, type Page } from './page.js';
import { entriesOf, isAtEnd, isOver, isPassed, noEntry, readableEnd, type Entry, type Progress } from './progress.js';
import { firstOf, type Range } from './ranges.js';

const perRead = 100;

export interface RoundParts {
  readonly queue: Queue;
  readonly events: Events;
  readonly storeId: string;
  /** Documents with an event that waits. Outlives the round. */
  readonly held: Held;
  /** What waits is looked at again. */
  readonly looksAgain: boolean;
  /** Hashes of documents whose waiting events are not asked about in this round. */
  readonly stays?: ReadonlySet<number>;
  /** Whether a person has given up what the server has refused: its event is not sent, and holds back no other. */
  readonly isGivenUp?: (place: Place) => boolean;
}

/**
 * One way through the outbox, from the oldest event to the newest: what waits is looked at once more, if the round says
 * so, then what is new. An event whose document has an earlier one that waits is held back; no page has two events of one
 * document, and none is sent before an earlier one of its bulk operation unless that one waits (O8). Holds no events, only
 * a hash for each document that waits.
 */
export class Round {
  readonly #parts: RoundParts;
  /** Hashes of documents with an event that was found waiting in this round. */
  readonly #found = new Set<number>();
  /** How far it has come among those that wait; those behind `end` were found waiting in this round. */
  #at = { sequence: 0, index: 0, end: 0 };

  constructor(parts: RoundParts) {
    this.#parts = parts;
  }

  /** The next page after what was looked at; undefined when the round is over. */
  async next(progress: Progress): Promise<Page | undefined> {
    const page = new NewPage();
    const entries = entriesOf(progress);
    // Each page begins with the oldest again: what has come to be durable there meanwhile comes before all later ones.
    for (const header of this.#parts.queue.headers.all()) {
      const sequence = sequenceOf(header._id);
      if (isPassed(progress, entries, sequence)) continue;
      const entry = entries.get(sequence) ?? noEntry(sequence);
      if (isOver(header, entry)) continue;
      if (!(await this.#read(header, entry, page))) return page.done();
    }
    return page.places.length === 0 ? undefined : page.done();
  }

  /** These events wait from now on, or still do. */
  wait(events: readonly DocumentEvent[]): void {
    for (const event of events) this.#found.add(hashOfDocument(event));
  }

  /** Adds the operations of one bulk operation to the page. False: the page is full. */
  async #read(header: Header, entry: Entry, page: NewPage): Promise<boolean> {
    if (!(await this.#readWaiting(header, entry, page))) return false;
    const { n, o } = entry;
    const late = isAtEnd(header) ? header.total : header.cursor;
    if (!(await this.#readListed(header, o, 0, late, (places) => this.#take(places, page)))) return false;
    if (header.unsettled !== undefined) await this.#holdOpen(header, o);
    const end = readableEnd(header);
    for (let from = n; from < end;) {
      const indexes = firstOf([[from, end]], from, end, perRead);
      const places = await this.#placesAt(header, indexes);
      if (!this.#take(places, page)) return false;
      if (places.length < indexes.length) break;
      from += indexes.length;
    }
    return true;
  }

  /** What waits is looked at once in a round. */
  async #readWaiting(header: Header, { w, n }: Entry, page: NewPage): Promise<boolean> {
    const sequence = sequenceOf(header._id);
    if (!this.#parts.looksAgain || sequence < this.#at.sequence) return true;
    if (sequence > this.#at.sequence) this.#at = { sequence, index: 0, end: n };
    return this.#readListed(header, w, this.#at.index, this.#at.end, (places) => {
      for (const place of places) {
        if (!this.#takeOne(place, page, true)) return false;
        this.#at.index = place.index + 1;
      }
      return true;
    });
  }

  /** Reads the listed ones of these, a hundred at a time. False: the page is full. */
  async #readListed(
    header: Header,
    listed: readonly Range[],
    least: number,
    end: number,
    take: (places: readonly Place[]) => boolean,
  ): Promise<boolean> {
    for (let from = least; ;) {
      const indexes = firstOf(listed, from, end, perRead);
      const last = indexes[indexes.length - 1];
      if (last === undefined) return true;
      if (!take(await this.#placesAt(header, indexes))) return false;
      from = last + 1;
    }
  }

  /**
   * Of one that was cancelled in the middle of a write later ones are not held back by the queue (R17): their events are
   * held back here, until it is known what the write has done.
   */
  async #holdOpen(header: Header, open: readonly Range[]): Promise<void> {
    await this.#readListed(header, open, header.cursor, header.total, (places) => {
      for (const place of places) this.#holdIfUnsettled(place);
      return true;
    });
  }

  #holdIfUnsettled({ header, documentId, isOpen }: Place): void {
    if (!isOpen || header.unsettled === undefined || documentId === undefined) return;
    this.#found.add(hashOfDocument({ target: header.target, documentId }));
  }

  #take(places: readonly Place[], page: NewPage): boolean {
    return places.every((place) => this.#takeOne(place, page, false));
  }

  #takeOne(place: Place, page: NewPage, isWaiting: boolean): boolean {
    if (page.isFull) return false;
    const { event } = place;
    if (event === undefined) {
      this.#holdIfUnsettled(place);
      page.pass(place);
      return true;
    }
    const { held, stays, isGivenUp } = this.#parts;
    if (isGivenUp?.(place) === true) {
      page.drop(place);
      return true;
    }
    const hash = hashOfDocument(event);
    if (page.has(hash)) return false;
    // What waits holds back what came after it; what waits itself is held back only by what was found before it.
    const isHeld = this.#found.has(hash) || (isWaiting ? stays?.has(hash) === true : held.has(hash));
    if (isHeld) {
      page.hold(place);
      this.#found.add(hash);
    } else page.send(place, event, hash);
    return true;
  }

  #placesAt(header: Header, indexes: readonly number[]): Promise<readonly Place[]> {
    return this.#parts.events.at(this.#parts.storeId, header, indexes);
  }
}
