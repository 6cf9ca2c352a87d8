import { RetryableError } from '../model/errors.js';
import type { DocumentEvent, PublishAnswer, PublishContext, Publisher } from '../model/event.js';
import { eventJson } from './event-document.js';
import { idempotencyKey } from './idempotency-key.js';
import { wrongOption, type Taking } from './named-options.js';
import { publishErrorOf, shown, type PublishError } from './publish-error.js';
import { checkPublisher } from './publisher-options.js';

type HeaderFields = Readonly<Record<string, string>>;

export interface HttpPublisherOptions {
  /** Address that takes one event a request, without credentials. */
  readonly url: string;
  /** Under this name the outbox remembers what was published there. Default: `http`. */
  readonly name?: string;
  /**
   * Headers of the app, such as credentials: asked for once a call, kept nowhere, in no error. At the client's own server
   * the client's sign-in is sent too, and counts where both name the same header.
   */
  readonly headers?: HeaderFields | (() => HeaderFields | Promise<HeaderFields>);
}

/**
 * Posts each event as JSON, one after another in their order, with the header `Idempotency-Key`: the event's id in quotes,
 * percent-encoded. The endpoint stores an event under its key once, and answers:
 *
 * | answer              | meaning                                                                            |
 * | ------------------- | ---------------------------------------------------------------------------------- |
 * | 2xx, but no HTML    | it is there now, by this request or an earlier one with the same content           |
 * | 422                 | the key was used before with other content: a conflict                             |
 * | 409                 | the same key is still being worked on: tried again                                 |
 * | 408, 425, 429, 5xx  | tried again, `Retry-After` is kept to; so are no answer, a redirect, a page (HTML) |
 * | 401, 407            | nothing more is sent in this call; tried again                                     |
 * | any other 4xx       | this event is not taken, the next ones are sent; tried again                       |
 *
 * @throws AfieldError `invalid_option`
 */
export function httpPublisher(options: HttpPublisherOptions): Publisher {
  checkPublisher(taking, options, 'endpoint');
  const { url, name = 'http', headers = {} } = options;
  if (!isHeaders(headers)) throw wrongOption(taking.what, '`headers` must be an object, or a function that gives one');
  return {
    name,
    needs: 'network',
    publish: async (events, context) => publish(events, url, await headersOf(headers), context),
  };
}

const taking: Taking = {
  what: 'httpPublisher',
  known: ['url', 'name', 'headers'] satisfies (keyof HttpPublisherOptions)[],
};

function isHeaders(given: unknown): boolean {
  return typeof given === 'function' || (typeof given === 'object' && given !== null && !Array.isArray(given));
}

async function publish(
  events: readonly DocumentEvent[],
  url: string,
  headers: Headers,
  { fetch }: PublishContext,
): Promise<PublishAnswer> {
  const accepted: string[] = [];
  const conflicts: { id: string; stored: unknown }[] = [];
  const errors: PublishError[] = [];
  try {
    for (const event of events) {
      const own = new Headers(headers);
      own.set('content-type', 'application/json');
      own.set('idempotency-key', idempotencyKey(event.id));
      // A redirect is a page to sign in, or another place: what it leads to has not taken the event.
      const answer = await fetch(url, { method: 'POST', headers: own, body: eventJson(event), redirect: 'error' });
      const verdict = await verdictOf(answer);
      if (verdict === 'accepted') accepted.push(event.id);
      else if (verdict === 'conflict') conflicts.push({ id: event.id, stored: undefined });
      else errors.push(verdict);
    }
  } catch (error) {
    // Where nothing came of the call, its error keeps its type: signing in, the network, a floor of the server's.
    if (accepted.length + conflicts.length + errors.length === 0) throw error;
    errors.unshift(publishErrorOf(error));
  }
  return { accepted, conflicts, ...shown(errors) };
}

/** Throws `RetryableError` for what ends the call: the next events would fare no better. */
async function verdictOf(answer: Response): Promise<'accepted' | 'conflict' | PublishError> {
  const { status } = answer;
  const code = String(status);
  if (status === 422) return 'conflict';
  if (status === 409) return { class: 'conflict', code };
  if (status === 401 || status === 407) throw endedBy('The endpoint wants to know who we are.', 'auth', code);
  if (status >= 400) return { class: 'server', code };
  if (!answer.ok) throw endedBy('The endpoint answered with a redirect.', 'network', code);
  const isPage =
    /html/i.test(answer.headers.get('content-type') ?? '') || /^\s*<(!doctype|html)/i.test(await answer.text());
  if (isPage) throw endedBy('A page came instead of an answer.', 'network', 'page');
  return 'accepted';
}

function endedBy(message: string, errorClass: 'auth' | 'network', code: string): RetryableError {
  return new RetryableError(`${message} It is tried again.`, { class: errorClass, code });
}

/** Errors about headers hold their values: none of them is passed on. */
async function headersOf(given: HttpPublisherOptions['headers'] & {}): Promise<Headers> {
  try {
    return new Headers(typeof given === 'function' ? await given() : given);
  } catch {
    throw endedBy('The app gave no headers that can be sent.', 'auth', 'headers');
  }
}
