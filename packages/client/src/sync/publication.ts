import { z } from 'zod/mini';
import { DivisibleError, RetryableError, SignInRequiredError, type ErrorSummary } from '../model/errors.js';
import type { DocumentEvent, PublishAnswer, PublishContext, Publisher } from '../model/event.js';
import type { PublisherStatus } from '../model/states.js';
import type { Events, Place } from '../outbox/events.js';
import {
  afterLook,
  nothingTaken,
  progressData,
  untaken,
  waitingCount,
  type Looked,
  type Progress,
} from '../outbox/progress.js';
import { Held, Round, type Page } from '../outbox/round.js';
import { sequenceOf } from '../queue/stored.js';
import { beginWait } from '../retry/wait.js';
import { Transfer, type Carrier, type Errand, type TransferParts } from './transfer.js';

/** An event that the publisher's place has with other content. */
export interface EventConflict {
  readonly event: DocumentEvent;
  readonly stored: unknown;
}

export interface PublicationParts extends TransferParts {
  readonly publisher: Publisher;
  readonly events: Events;
  readonly storeId: string;
  readonly context: (attempt: number) => PublishContext;
  /** Which of these revisions the server does not have; undefined: nothing can be confirmed, and nothing waits. */
  readonly missing:
    ((asked: ReadonlyMap<string, readonly string[]>) => Promise<ReadonlyMap<string, readonly string[]>>) | undefined;
  /** Whether the push has brought over all that it can. */
  readonly isPushed: () => boolean;
  /** Resolves when the push has taken the step that it is at. False: it waits, and what is local may not be there. */
  readonly pushStep: () => Promise<boolean>;
  /** Keeps both versions. Durable when it resolves. */
  readonly quarantine: (conflicts: readonly EventConflict[]) => Promise<void>;
}

/** What one publication brought. */
interface Outcome {
  readonly taken: ReadonlySet<DocumentEvent>;
  /** Not taken: looked at again later. */
  readonly refused?: PublishAnswer['error'];
  /** The call ended early: what it did not answer is sent again on the ramp. */
  readonly error?: unknown;
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
  readonly #transfer: Transfer<Progress, Page>;
  readonly #held = new Held();
  readonly #againKey: string;
  #isHeldKnown = false;
  #progress: Progress = nothingTaken;
  #round: Round | undefined;
  /** The page that is to be published next: it stays while the network or a sign-in is awaited. */
  #page: Page | undefined;
  #looksAgain = true;
  /** The push is behind the outbox: nothing is asked until it has brought more, or has nothing left to bring. */
  #isAhead = false;
  #refusals = 0;
  #lastRefusal: ErrorSummary | undefined;
  #notBeforeMs = 0;

  constructor(parts: PublicationParts) {
    this.#parts = parts;
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
    this.#isAhead = false;
    this.#looksAgain = true;
    this.poke();
  }

  status(): PublisherStatus {
    const { queue, scheduler } = this.#parts;
    const shown = this.#transfer.status();
    const unpublished = untaken(this.#progress, queue.headers());
    const againAt = scheduler.dueAt(this.#againKey);
    if (shown.state !== 'idle' || againAt === undefined || this.#lastRefusal === undefined)
      return { ...shown, unpublished };
    return { ...shown, state: 'waiting-retry', nextAttemptAt: againAt, lastError: this.#lastRefusal, unpublished };
  }

  #errand(): Errand<Progress, Page> {
    return {
      name: `publish:${this.#parts.publisher.name}`,
      initial: nothingTaken,
      parse: (json) => {
        const parsed = progressData.safeParse(json);
        return parsed.success ? parsed.data : undefined;
      },
      next: (progress) => this.#next(progress),
      carry: async (page, progress) => {
        this.#page = undefined;
        const outcome = await this.#publish(page);
        const data = this.#settle(page, progress, outcome);
        const { error } = outcome;
        if (error !== undefined) this.#startAnew();
        return { data, transferred: outcome.taken.size, ...(error === undefined ? {} : { error }) };
      },
    };
  }

  async #next(progress: Progress): Promise<Page | undefined> {
    this.#progress = progress;
    const { queue, events, storeId, isPushed } = this.#parts;
    if (this.#isAhead && !isPushed()) return undefined;
    this.#isAhead = false;
    await this.#learnHeld(progress);
    if (this.#looksAgain) this.#page = undefined;
    if (this.#page !== undefined) return this.#page;
    if (this.#round === undefined || this.#looksAgain) {
      this.#round = new Round({ queue, events, storeId, held: this.#held, looksAgain: this.#looksAgain });
      this.#looksAgain = false;
    }
    this.#page = await this.#round.next(progress);
    if (this.#page !== undefined) return this.#page;
    this.#round = undefined;
    this.#waitForAgain(progress);
    return undefined;
  }

  /** Which documents have events that wait: read once, then kept. */
  async #learnHeld(progress: Progress): Promise<void> {
    if (this.#isHeldKnown) return;
    const { queue, events, storeId } = this.#parts;
    for (const { s, w } of progress.open) {
      const header = queue.header(s);
      if (header === undefined) continue;
      for (const [from, to] of w) {
        for (let at = from; at < to; at += 100) {
          const indexes = Array.from({ length: Math.min(100, to - at) }, (_, place) => at + place);
          for (const { event } of await events.at(storeId, header, indexes)) {
            if (event !== undefined) this.#held.change(event, 1);
          }
        }
      }
    }
    this.#isHeldKnown = true;
  }

  async #publish(page: Page): Promise<Outcome> {
    const taken = new Set<DocumentEvent>();
    const ready = await this.#confirmed(page.events);
    if (ready.length === 0) return { taken, refused: { class: 'server', code: 'unconfirmed' } };
    let answer: PublishAnswer;
    try {
      const { publisher, context } = this.#parts;
      answer = answerOf(publisher, ready, await publisher.publish(ready, context(this.#transfer.status().attempt)));
    } catch (error) {
      return { taken, error: this.#thrown(error) };
    }
    const accepted = new Set(answer.accepted);
    const conflicts = ready.flatMap((event) => {
      const conflict = answer.conflicts?.find(({ id }) => id === event.id);
      return conflict === undefined || accepted.has(event.id) ? [] : [{ event, stored: conflict.stored }];
    });
    if (conflicts.length > 0) await this.#parts.quarantine(conflicts);
    for (const { event } of conflicts) taken.add(event);
    for (const event of ready) if (accepted.has(event.id)) taken.add(event);
    if (taken.size === ready.length) {
      return ready.length === page.events.length
        ? { taken }
        : { taken, refused: { class: 'server', code: 'unconfirmed' } };
    }
    return { taken, refused: answer.error ?? { class: 'server', code: 'refused' } };
  }

  /** Events whose revisions the server has; all of them where nothing is to be confirmed. */
  async #confirmed(events: readonly DocumentEvent[]): Promise<readonly DocumentEvent[]> {
    const { publisher, missing, pushStep } = this.#parts;
    if (missing === undefined || publisher.afterConfirmation === false) return events;
    const asked = new Map<string, string[]>();
    for (const { target, documentId, rev } of events) {
      if (target === 'local' && rev !== null) asked.set(documentId, [rev]);
    }
    if (asked.size === 0) return events;
    // What the push is about to bring, or cannot bring now, needs no question.
    const absent = (await pushStep()) ? await missing(asked) : asked;
    return events.filter(({ target, documentId }) => target !== 'local' || !absent.has(documentId));
  }

  /** What the place says of the user does not concern the client's own sign-in, unless it is the client's server. */
  #thrown(error: unknown): unknown {
    const isOurs = (this.#parts.publisher.needs ?? 'server') === 'server';
    if (error instanceof SignInRequiredError && !isOurs) {
      return new RetryableError('The publisher is not signed in.', { class: 'auth', code: error.code, cause: error });
    }
    if (!(error instanceof DivisibleError)) return error;
    return new RetryableError('The publisher was refused.', { class: 'server', code: error.code, cause: error });
  }

  #settle(page: Page, progress: Progress, outcome: Outcome): Progress {
    const { queue, isPushed } = this.#parts;
    const { taken, refused, error } = outcome;
    const isWaiting = (place: Place): boolean => place.event !== undefined && !taken.has(place.event);
    // The push is on its way: asking page after page would only be told the same.
    if (refused?.code === 'unconfirmed' && taken.size === 0 && page.held.size === 0 && !isPushed()) {
      this.#isAhead = true;
      this.#startAnew();
      return progress;
    }
    if (error !== undefined && taken.size === 0) return progress;
    const looks = page.places.map((place): Looked => {
      const { header, index, event, isOpen } = place;
      const waits = isWaiting(place);
      const sequence = sequenceOf(header._id);
      const before = progress.open.find(({ s }) => s === sequence);
      const waited = before?.w.some(([from, to]) => index >= from && index < to) === true;
      if (event !== undefined && waits !== waited) this.#held.change(event, waits ? 1 : -1);
      return {
        sequence,
        indexes: [index],
        taken: event !== undefined && !waits ? 1 : 0,
        waiting: waits ? [index] : [],
        open: isOpen ? [index] : [],
      };
    });
    const waiting = page.places.flatMap((place) =>
      isWaiting(place) && place.event !== undefined ? [place.event] : [],
    );
    this.#round?.wait(waiting);
    if (taken.size > 0) this.#refusals = 0;
    if (refused !== undefined) {
      this.#lastRefusal = { class: refused.class ?? 'server', code: refused.code };
      this.#notBeforeMs = refused.notBeforeMs ?? 0;
    }
    this.#progress = afterLook(progress, looks, queue.headers());
    return this.#progress;
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
    const { delayMs, notBeforeMs } = policy.delay(this.#refusals, this.#notBeforeMs);
    scheduler.wait(this.#againKey, beginWait(clock, delayMs, notBeforeMs), () => {
      this.#looksAgain = true;
      this.poke();
    });
  }

  #startAnew(): void {
    this.#round = undefined;
    this.#looksAgain = true;
  }
}

const publishAnswer = z.object({
  accepted: z.array(z.string()),
  conflicts: z.optional(z.array(z.object({ id: z.string(), stored: z.unknown() }))),
  error: z.optional(
    z.object({
      class: z.optional(z.enum(['network', 'server', 'auth', 'storage', 'conflict', 'throttled', 'bug'])),
      code: z.string(),
      notBeforeMs: z.optional(z.number()),
    }),
  ),
});

/** What a publisher answers, checked: silence, or an answer in another shape, is not success. */
function answerOf(publisher: Publisher, sent: readonly DocumentEvent[], answer: unknown): PublishAnswer {
  const parsed = publishAnswer.safeParse(answer);
  if (!parsed.success) {
    throw new TypeError(`The publisher "${publisher.name}" must answer { accepted: [ids], conflicts, error }.`);
  }
  const ids = new Set(sent.map(({ id }) => id));
  const { accepted, conflicts, error } = parsed.data;
  return {
    accepted: accepted.filter((id) => ids.has(id)),
    ...(conflicts === undefined ? {} : { conflicts: conflicts.map(({ id, stored }) => ({ id, stored })) }),
    ...(error === undefined
      ? {}
      : {
          error: {
            code: error.code,
            ...(error.class === undefined ? {} : { class: error.class }),
            ...(error.notBeforeMs === undefined ? {} : { notBeforeMs: error.notBeforeMs }),
          },
        }),
  };
}
