import type { Observable, Subscription } from 'rxjs';
import type { ToPage } from './messages.js';
import { wireErrorOf } from './wire-error.js';

/** Values in a message: a page that was busy gets a turn between two hundreds. */
const mostAtOnce = 100;

/**
 * One observable on its way to a page. There is one message under way at most: what comes meanwhile waits, and of states
 * only the newest, so that a busy page is never behind by more than one.
 *
 *   next ─▶ waiting ──(nothing under way)──▶ sent ──took──▶ …
 */
export class Feed {
  readonly #id: number;
  readonly #send: (message: ToPage) => void;
  readonly #keepsAll: boolean;
  #waiting: unknown[] = [];
  #underWay = 0;
  readonly #subscription: Subscription;

  /** `keepsAll`: every value counts (events), not only the newest. */
  constructor(id: number, values: Observable<unknown>, keepsAll: boolean, send: (message: ToPage) => void) {
    this.#id = id;
    this.#send = send;
    this.#keepsAll = keepsAll;
    this.#subscription = values.subscribe({
      next: (value) => {
        if (this.#keepsAll) this.#waiting.push(value);
        else this.#waiting = [value];
        if (this.#underWay === 0) this.#sendSome();
      },
      complete: () => {
        this.flush();
        send({ kind: 'complete', id });
      },
      error: (error: unknown) => {
        this.flush();
        send({ kind: 'error', id, error: wireErrorOf(error) });
      },
    });
  }

  /** The page is done with one message. */
  took(): void {
    this.#underWay--;
    if (this.#underWay === 0) this.#sendSome();
  }

  /** Sends all that waits: an answer that comes after it must not be earlier at the page. */
  flush(): void {
    while (this.#waiting.length > 0) this.#sendSome();
  }

  end(): void {
    this.#subscription.unsubscribe();
  }

  #sendSome(): void {
    if (this.#waiting.length === 0) return;
    this.#underWay++;
    this.#send({ kind: 'next', id: this.#id, values: this.#waiting.splice(0, mostAtOnce) });
  }
}
