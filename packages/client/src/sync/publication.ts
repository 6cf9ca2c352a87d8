import type { ErrorSummary } from '../model/errors.js';
import type { DocumentEvent } from '../model/event.js';
import type { PublisherStatus } from '../model/states.js';
import type { Events, Place } from '../outbox/events.js';
import { Held, hashOfDocument } from '../outbox/held.js';
import { looksAt } from '../outbox/looks.js';
import type { Page } from '../outbox/page.js';
import {
  afterLook,
  entriesOf,
  nothingTaken,
  progressData,
  untaken,
  waitingCount,
  withLate,
  type Progress,
} from '../outbox/progress.js';
import { firstOf, within } from '../outbox/ranges.js';
import { Round } from '../outbox/round.js';
import { sequenceOf } from '../queue/stored.js';
import { clampFloor } from '../retry/ramp.js';
import { classifyError } from '../retry/classify.js';
import { beginWait } from '../retry/wait.js';
import { publishOnce, type Publishing, type PublishingParts } from './publishing.js';
import { bugOf } from '../run/transitions.js';
import { PlaceMark } from '../outbox/place-mark.js';
import { Transfer, type Carried, type Carrier, type Errand, type TransferParts } from './transfer.js';

const lookEveryMs = 300_000;

export interface PublicationParts extends TransferParts, PublishingParts {
  readonly events: Events;
  readonly storeId: string;
  readonly newId: () => string;
  /** Whether the push has brought over all that it can. */
  readonly isPushed: () => boolean;
  /** Reads what another tab that runs bulk operations may have written of them. */
  readonly refresh: () => Promise<void>;
  /** What a person has decided about operations that the server has refused. */
  readonly givenUp?: GivenUp;
}

export interface GivenUp {
  /** Resolves when it can be asked. */
  ready(): Promise<void>;
  has(place: Place): boolean;
}

/**
 * Publishes events to one place, a page at a time, with the states and the ramp of all transfers (O6–O8).
 *
 *   durable ──page──▶ sent ──accepted──▶ taken
 *      │                ├──other content is there──▶ quarantine
 *      │                └──not accepted──▶ waits ──ramp──▶ sent
 *      └──revision not at the server yet──▶ waits ──push──▶ sent
 *
 * What waits holds back only later events of its document.
 */
export class Publication implements Carrier {
  readonly #parts: PublicationParts;
  readonly #transfer: Transfer<Progress, Page | 'look'>;
  readonly #mark: PlaceMark;
  readonly #againKey: string;
  /** What all that is kept in memory here belongs to. Another progress: another tab has come further, or a write failed. */
  #known: Progress | undefined;
  #held = new Held();
  /** An event that waited is none any more: of which document it was is not known, so all that wait are read again. */
  #isHeldStale = false;
  #round: Round | undefined;
  /** The page that is to be published next: it stays while the network or a sign-in is awaited. */
  #page: Page | undefined;
  /** Which of those that wait the next round looks at: after a step of the push not those that the place did not take. */
  #looks: 'none' | 'unconfirmed' | 'all' = 'all';
  /** Hashes of documents whose event the place did not take since all that waits was looked at. */
  readonly #refused = new Set<number>();
  /** Since then, an event was found whose revision the server does not have. */
  #waitsForPush = false;
  /** The push is behind the outbox: nothing is asked until it has brought more. */
  #isAhead = false;
  #refusals = 0;
  #lastRefusal: ErrorSummary | undefined;
  #bug: PublisherStatus['bug'];
  #notBeforeMs = 0;

  constructor(parts: PublicationParts) {
    this.#parts = parts;
    this.#mark = new PlaceMark(parts);
    this.#againKey = `again:${parts.publisher.name}`;
    this.#transfer = new Transfer(this.#errand(), parts);
  }

  get name(): string {
    return this.#parts.publisher.name;
  }

  resume(): Promise<void> {
    return this.#transfer.resume();
  }

  poke(): void {
    this.#transfer.poke();
  }

  idle(): Promise<void> {
    return this.#transfer.idle();
  }

  /** The server may have revisions that it did not have before. */
  pushed(): void {
    if (!this.#isAhead && !this.#waitsForPush) return;
    this.#isAhead = false;
    if (this.#looks === 'none') this.#looks = 'unconfirmed';
    this.poke();
  }

  /**
   * These operations have events again that it may have passed. Durable when it resolves with true; false: it is at work, and
   * is to be asked again.
   */
  async lookAgain(late: readonly { readonly sequence: number; readonly index: number }[]): Promise<boolean> {
    if (this.#transfer.isRunning) return false;
    await this.#transfer.amend((progress) => withLate(progress, late, this.#parts.queue.headers.all()));
    return true;
  }

  /** A person has decided about failures: an event that waits may have been given up. */
  decided(): void {
    if (this.#looks === 'none') this.#looks = 'unconfirmed';
    this.poke();
  }

  /** The push has nothing left that it could bring: what the server does not have now is not on its way. */
  pushRests(): void {
    if (this.#isAhead) this.pushed();
  }

  /** Before its progress was read, all events that are kept count: too many are shown, never too few. */
  status(): PublisherStatus {
    const { queue, scheduler } = this.#parts;
    const shown = this.#transfer.status();
    const unpublished = untaken(this.#known ?? nothingTaken, queue.headers.all());
    const againAt = scheduler.dueAt(this.#againKey);
    const common = { ...shown, unpublished, bug: this.#bug };
    if (shown.state !== 'idle' || againAt === undefined || this.#lastRefusal === undefined) return common;
    return { ...common, state: 'waiting-retry', nextAttemptAt: againAt, lastError: this.#lastRefusal };
  }

  #errand(): Errand<Progress, Page | 'look'> {
    return {
      name: `publish:${this.#parts.publisher.name}`,
      initial: nothingTaken,
      parse: (json) => {
        const parsed = progressData.safeParse(json);
        return parsed.success ? parsed.data : undefined;
      },
      isAside: (step) => step === 'look',
      next: (progress) => (this.#mark.isDue ? Promise.resolve('look' as const) : this.#next(progress)),
      carry: async (page, progress) => {
        if (page === 'look') return this.#look(progress);
        this.#page = undefined;
        const outcome = await publishOnce(page.events, this.#transfer.status().attempt, this.#parts);
        this.#known = this.#settle(page, progress, outcome);
        const { accepted, error } = outcome;
        // What is neither the network's nor the server's doing is for the publisher's author.
        this.#bug = error !== undefined && classifyError(error).kind === 'bug' ? bugOf(error) : undefined;
        if (accepted > 0) this.#mark.taken();
        // It may be another place when it comes back.
        if (error !== undefined) this.#mark.want();
        if (error !== undefined) this.#startAnew('all');
        return { data: this.#known, transferred: accepted, ...(error === undefined ? {} : { error }) };
      },
    };
  }

  async #look(progress: Progress): Promise<Carried<Progress>> {
    const { scheduler, clock } = this.#parts;
    const data = await this.#mark.look(progress);
    scheduler.wait(`look:${this.name}`, beginWait(clock, lookEveryMs), () => {
      this.#mark.want();
      this.poke();
    });
    return { data, transferred: 0 };
  }

  async #next(progress: Progress): Promise<Page | undefined> {
    if (progress !== this.#known) await this.#takeUp(progress);
    else if (this.#isHeldStale) await this.#readHeld(progress);
    if (this.#isAhead && !this.#parts.isPushed()) return undefined;
    this.#isAhead = false;
    if (this.#looks !== 'none') this.#page = undefined;
    if (this.#page !== undefined) return this.#page;
    await this.#parts.refresh();
    await this.#parts.givenUp?.ready();
    if (this.#round === undefined || this.#looks !== 'none') this.#round = this.#newRound();
    this.#page = await this.#round.next(progress);
    if (this.#page !== undefined) return this.#page;
    this.#round = undefined;
    this.#waitForAgain(progress);
    return undefined;
  }

  #newRound(): Round {
    const { queue, events, storeId, givenUp } = this.#parts;
    if (this.#looks === 'all') {
      this.#refused.clear();
      this.#notBeforeMs = 0;
    }
    if (this.#looks !== 'none') this.#waitsForPush = false;
    const looksAgain = this.#looks !== 'none';
    this.#looks = 'none';
    const isGivenUp = givenUp === undefined ? {} : { isGivenUp: (place: Place) => givenUp.has(place) };
    return new Round({ queue, events, storeId, held: this.#held, looksAgain, stays: this.#refused, ...isGivenUp });
  }

  /** When it begins, and when another tab has written how far it came. */
  async #takeUp(progress: Progress): Promise<void> {
    await this.#readHeld(progress);
    this.#startAnew('all');
    this.#known = progress;
  }

  /** Which documents have events that wait. */
  async #readHeld(progress: Progress): Promise<void> {
    const { queue, events, storeId } = this.#parts;
    const held = new Held();
    for (const { s, n, w } of progress.open) {
      const header = queue.headers.get(s);
      if (header === undefined) continue;
      for (let indexes = firstOf(w, 0, n, 100); indexes.length > 0;) {
        for (const { event } of await events.at(storeId, header, indexes)) {
          if (event !== undefined) held.change(hashOfDocument(event), 1);
        }
        indexes = firstOf(w, (indexes[indexes.length - 1] ?? n) + 1, n, 100);
      }
    }
    this.#held = held;
    this.#isHeldStale = false;
    this.#round = undefined;
    this.#page = undefined;
  }

  #settle(page: Page, progress: Progress, { taken, unconfirmed, refused, error }: Publishing): Progress {
    if (error !== undefined && taken.size === 0) return progress;
    if (unconfirmed.size > 0) this.#waitsForPush = true;
    // The push is on its way: asking page after page would only be told the same.
    const isBehind = unconfirmed.size > 0 && unconfirmed.size === page.events.length;
    if (isBehind && !this.#parts.isPushed()) {
      this.#isAhead = true;
      this.#startAnew('unconfirmed');
      return progress;
    }
    const waits = (place: Place): boolean =>
      place.event !== undefined && !taken.has(place.event) && !page.dropped.has(place);
    const entries = entriesOf(progress);
    const looks = looksAt(page.places, waits);
    const waited = new Map(
      looks.map(({ sequence, indexes }) => [sequence, within(entries.get(sequence)?.w ?? [], indexes)]),
    );
    const waiting: DocumentEvent[] = [];
    for (const place of page.places) {
      const { event, header, index } = place;
      const didWait = waited.get(sequenceOf(header._id))?.has(index) === true;
      if (event === undefined) {
        this.#isHeldStale ||= didWait;
        continue;
      }
      const hash = hashOfDocument(event);
      if (waits(place) !== didWait) this.#held.change(hash, didWait ? -1 : 1);
      // Something that waited has moved: the ramp of those that wait begins anew (R2).
      if (!waits(place) && didWait) this.#refusals = 0;
      if (!waits(place)) continue;
      waiting.push(event);
      if (!page.held.has(place) && !unconfirmed.has(event)) this.#refused.add(hash);
    }
    this.#round?.wait(waiting);
    if (refused !== undefined) this.#lastRefusal = { class: refused.class ?? 'server', code: refused.code };
    this.#notBeforeMs = Math.max(this.#notBeforeMs, clampFloor(refused?.notBeforeMs ?? 0));
    return afterLook(progress, looks, this.#parts.queue.headers.all());
  }

  /** What waits is looked at again on the ramp, beside what is new. */
  #waitForAgain(progress: Progress): void {
    const { scheduler, policy, clock } = this.#parts;
    if (waitingCount(progress) === 0) {
      this.#refusals = 0;
      this.#lastRefusal = undefined;
      scheduler.clear(this.#againKey);
      return;
    }
    if (scheduler.isWaiting(this.#againKey)) return;
    this.#refusals++;
    const delay = policy.delay(this.#refusals, this.#notBeforeMs);
    scheduler.wait(this.#againKey, beginWait(clock, delay), () => {
      this.#looks = 'all';
      this.poke();
    });
  }

  #startAnew(looks: 'unconfirmed' | 'all'): void {
    this.#round = undefined;
    this.#page = undefined;
    if (this.#looks !== 'all') this.#looks = looks;
  }
}
