import type { DocumentEvent } from '../model/event.js';
import type { Place } from './events.js';

/** Events of one publication. */
export const mostEvents = 100;
/** Operations that are looked at for one publication: most of those without an event are passed over in one step. */
const mostLooked = 1000;

/** What one publication is made of: the operations that were looked at, and which of their events are to be sent. */
export interface Page {
  readonly places: readonly Place[];
  readonly events: readonly DocumentEvent[];
  /** Places of events that stay: an earlier one of their document waits. */
  readonly held: ReadonlySet<Place>;
  /** Places of events that are never sent: a person has given their operations up. */
  readonly dropped: ReadonlySet<Place>;
}

/** A page that is being filled. */
export class NewPage {
  readonly places: Place[] = [];
  readonly #events: DocumentEvent[] = [];
  readonly #held = new Set<Place>();
  readonly #dropped = new Set<Place>();
  readonly #documents = new Set<number>();

  get isFull(): boolean {
    return this.#events.length >= mostEvents || this.places.length >= mostLooked;
  }

  /** Whether it has an event of the document with this hash. */
  has(hash: number): boolean {
    return this.#documents.has(hash);
  }

  /** A place without an event. */
  pass(place: Place): void {
    this.places.push(place);
  }

  drop(place: Place): void {
    this.places.push(place);
    this.#dropped.add(place);
  }

  hold(place: Place): void {
    this.places.push(place);
    this.#held.add(place);
  }

  send(place: Place, event: DocumentEvent, hash: number): void {
    this.places.push(place);
    this.#documents.add(hash);
    this.#events.push(event);
  }

  done(): Page {
    return { places: this.places, events: this.#events, held: this.#held, dropped: this.#dropped };
  }
}
