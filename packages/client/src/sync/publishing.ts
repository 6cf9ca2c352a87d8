import { DivisibleError, RetryableError, SignInRequiredError, type ErrorClass } from '../model/errors.js';
import type { DocumentEvent, PublishContext, Publisher } from '../model/event.js';
import { judgeAnswer, type EventConflict, type JudgedAnswer } from '../outbox/publish-answer.js';
import type { PublishError } from '../outbox/publish-error.js';
import { untilAborted } from '../run/handlers.js';

export interface PublishingParts {
  readonly publisher: Publisher;
  readonly context: (attempt: number) => PublishContext;
  /** Which of these revisions the server does not have; undefined: nothing can be confirmed, and nothing waits. */
  readonly missing:
    ((asked: ReadonlyMap<string, readonly string[]>) => Promise<ReadonlyMap<string, readonly string[]>>) | undefined;
  /** Resolves when the push has taken the step that it is at. False: it waits, and what is local may not be there. */
  readonly pushStep: () => Promise<boolean>;
  /** Keeps both versions. Durable when it resolves. */
  readonly quarantine: (conflicts: readonly EventConflict[]) => Promise<void>;
  readonly closed: AbortSignal;
}

/** What one publication brought. What is neither taken nor unconfirmed was sent, and the place did not take it. */
export interface Publishing {
  readonly taken: ReadonlySet<DocumentEvent>;
  /** How many of those the place has; the others are in quarantine. */
  readonly accepted: number;
  /** Not sent: the server does not have their revision. */
  readonly unconfirmed: ReadonlySet<DocumentEvent>;
  /** Why some were not taken: they are looked at again later, and the next ones go on. */
  readonly refused?: PublishError;
  /** The call ended early: nothing more is sent before the ramp, or the floor of the place, says so. */
  readonly error?: unknown;
}

/** Of these classes the next events would fare no better. */
const ending: ReadonlySet<ErrorClass | undefined> = new Set<ErrorClass>(['network', 'auth', 'throttled', 'storage']);

/** One call of a publisher. Never throws. */
export async function publishOnce(
  events: readonly DocumentEvent[],
  attempt: number,
  parts: PublishingParts,
): Promise<Publishing> {
  const { publisher, context, closed, quarantine } = parts;
  const taken = new Set<DocumentEvent>();
  const unconfirmed = new Set<DocumentEvent>();
  let accepted = 0;
  if (events.length === 0) return { taken, accepted, unconfirmed };
  try {
    const absent = await missingOf(events, parts);
    for (const event of events) if (event.target === 'local' && absent.has(event.documentId)) unconfirmed.add(event);
    const ready = events.filter((event) => !unconfirmed.has(event));
    const refused: PublishError = { class: 'server', code: 'unconfirmed' };
    if (ready.length === 0) return { taken, accepted, unconfirmed, refused };
    // A publisher that never answers must not keep a client from closing: what it answers then is asked again.
    const answer = await untilAborted(publisher.publish(ready, context(attempt)), closed);
    const judged = judgeAnswer(publisher, ready, answer);
    for (const event of judged.accepted) taken.add(event);
    accepted = taken.size;
    if (judged.conflicts.length > 0) await quarantine(judged.conflicts);
    for (const { event } of judged.conflicts) taken.add(event);
    if (taken.size === events.length) return { taken, accepted, unconfirmed };
    if (taken.size === ready.length) return { taken, accepted, unconfirmed, refused };
    return { taken, accepted, unconfirmed, ...whyNot(judged) };
  } catch (error) {
    return { taken, accepted, unconfirmed, error: thrownBy(publisher, error) };
  }
}

async function missingOf(
  events: readonly DocumentEvent[],
  { publisher, missing, pushStep }: PublishingParts,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const asked = new Map<string, string[]>();
  if (missing === undefined || publisher.afterConfirmation === false) return asked;
  for (const { target, documentId, rev } of events) {
    if (target === 'local' && rev !== null) asked.set(documentId, [rev]);
  }
  if (asked.size === 0) return asked;
  // What the push is about to bring, or cannot bring now, needs no question.
  return (await pushStep()) ? missing(asked) : asked;
}

function whyNot({ error }: JudgedAnswer): Pick<Publishing, 'refused' | 'error'> {
  if (error === undefined) return { refused: { class: 'server', code: 'refused' } };
  const { class: errorClass = 'server', code, notBeforeMs = 0 } = error;
  if (!ending.has(error.class) && notBeforeMs <= 0) return { refused: error };
  return { error: new RetryableError('The publisher stopped early.', { class: errorClass, code, notBeforeMs }) };
}

/** What the place says of the user does not concern the client's own sign-in, unless it is the client's server. */
function thrownBy({ name, needs = 'server' }: Publisher, error: unknown): unknown {
  // Who rejects with nothing has not taken anything either.
  if (error === undefined) return new TypeError(`The publisher "${name}" rejected without an error.`);
  if (error instanceof SignInRequiredError && needs !== 'server') {
    return new RetryableError('The publisher is not signed in.', { class: 'auth', code: error.code, cause: error });
  }
  if (!(error instanceof DivisibleError)) return error;
  return new RetryableError('The publisher was refused.', { class: 'server', code: error.code, cause: error });
}
