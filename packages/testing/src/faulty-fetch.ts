import type { Clock } from '@afield/client';
import { captivePortalAnswer } from '@afield/devserver';
import { endsLike, Rules, switchboard, type ActiveRule, type Turn } from './rules.js';

/** Which requests a rule is about; every part may be left out. */
export interface FetchCondition extends Turn {
  /** One method or several; all of them by default. */
  readonly method?: string | readonly string[];
  /** How the path (without the query) ends; `*` stands for any text. */
  readonly path?: string;
}

/** `commit`: the server gets the request and does the work; only its answer is lost. Default: false. */
interface Commit {
  readonly commit?: boolean;
}

/** What happens to a request. Times are milliseconds. */
export type FetchFault =
  /** Rejects with the `TypeError` of this engine. Default: Chromium's. */
  | ({ readonly type: 'network-error'; readonly engine?: Engine } & Commit)
  /** Nothing ever comes back. Rejects when the caller aborts, as every fetch does. */
  | ({ readonly type: 'no-answer' } & Commit)
  /** Another answer: with a JSON `body`, or with `text`. Default: status 200 and an empty body. */
  | ({
      readonly type: 'answer';
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: unknown;
      readonly text?: string;
    } & Commit)
  /** The page of a hotspot that wants a sign-in. Default: status 200. */
  | { readonly type: 'captive-portal'; readonly status?: number }
  /** The server's true status and headers with an empty body. */
  | { readonly type: 'empty' }
  /** The server's true answer, of which this share of the bytes (0 to 1) comes; then it ends, or its body rejects. */
  | { readonly type: 'cut'; readonly share: number; readonly then?: 'end' | 'error' }
  /** The request waits before it is sent; with `commit` its answer waits. Other rules still act. */
  | ({ readonly type: 'delay'; readonly ms: number } & Commit)
  /** As `delay`, until the rule is taken away. */
  | ({ readonly type: 'hold' } & Commit);

/** Whose words a network error has. No code should read them; these are there to prove that it does not. */
export type Engine = 'chromium' | 'firefox' | 'webkit' | 'node';

/** Plain data: what a rule is about, and what it does. */
export interface FetchRule {
  readonly when?: FetchCondition;
  readonly do: FetchFault;
}

/** A request as it was made, without its content: no query, no headers, no body. */
export interface SeenFetch {
  readonly method: string;
  readonly origin: string;
  readonly path: string;
  /** What was done to it. */
  readonly faults: readonly FetchFault['type'][];
}

/** A fetch with faults, and the switchboard for them. */
export interface FaultyFetch {
  readonly fetch: typeof fetch;
  /** Everything that was asked, oldest first. */
  readonly requests: readonly SeenFetch[];
  /** False: no rule acts and none counts. */
  enabled: boolean;
  /** Adds a rule; the answer takes it away again. Of several that meet a request, delays act first, then one other. */
  add(rule: FetchRule): () => void;
  /** Takes all rules away. */
  clear(): void;
}

/** Wraps any fetch. `clock` is for `delay`; default: the system's timers. */
export function faultyFetch(
  real: typeof fetch,
  rules: readonly FetchRule[] = [],
  { clock }: { readonly clock?: Pick<Clock, 'setTimer' | 'clearTimer'> } = {},
): FaultyFetch {
  const book = new Rules<FetchRule>(rules);
  const requests: SeenFetch[] = [];
  const wait = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (clock === undefined) setTimeout(resolve, ms);
      else clock.setTimer(resolve, ms);
    });
  return Object.assign(switchboard(book), {
    requests,
    fetch: async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
      const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
      signal?.throwIfAborted();
      const method = (init?.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase();
      const { origin, path } = placeOf(input instanceof Request ? input.url : String(input));
      const taken = book.take(({ when = {} }) => isAbout(when, method, path));
      requests.push({ method, origin, path, faults: taken.map(({ rule }) => rule.do.type) });
      const answer = faulty(() => real(input, init), taken, wait);
      if (taken.length === 0 || signal === undefined || signal === null) return answer;
      return unlessAborted(answer, signal);
    },
  });
}

async function faulty(
  real: () => Promise<Response>,
  taken: readonly ActiveRule<FetchRule>[],
  wait: (ms: number) => Promise<void>,
): Promise<Response> {
  let answer: Promise<Response> | undefined;
  const send = (): Promise<Response> => (answer ??= real());
  const commit = async (fault: Commit): Promise<void> => {
    if (fault.commit === true) await send();
  };
  for (const { rule, over } of taken) {
    if (rule.do.type !== 'delay' && rule.do.type !== 'hold') continue;
    await commit(rule.do);
    await (rule.do.type === 'hold' ? over : wait(rule.do.ms));
  }
  const fault = taken.map(({ rule }) => rule.do).find(({ type }) => type !== 'delay' && type !== 'hold');
  switch (fault?.type) {
    case 'network-error':
      await commit(fault);
      throw new TypeError(words[fault.engine ?? 'chromium']);
    case 'no-answer':
      await commit(fault);
      return new Promise<never>(() => undefined);
    case 'answer':
      await commit(fault);
      return given(fault);
    case 'captive-portal': {
      const { status, headers, body } = captivePortalAnswer(fault.status);
      return new Response(String(body), { status, headers: headers as Record<string, string> });
    }
    case 'empty':
      return cut(await send(), 0, 'end');
    case 'cut':
      return cut(await send(), fault.share, fault.then ?? 'end');
    default:
      return send();
  }
}

/** What each engine says when there is no answer. */
const words: Readonly<Record<Engine, string>> = {
  chromium: 'Failed to fetch',
  firefox: 'NetworkError when attempting to fetch resource.',
  webkit: 'Load failed',
  node: 'fetch failed',
};

function given({ status = 200, headers, body, text = '' }: Extract<FetchFault, { type: 'answer' }>): Response {
  const isEmpty = [204, 205, 304].includes(status);
  const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  return new Response(isEmpty ? null : body === undefined ? text : JSON.stringify(body), {
    status,
    headers: { ...json, ...headers },
  });
}

async function cut(answer: Response, share: number, then: 'end' | 'error'): Promise<Response> {
  const whole = new Uint8Array(await answer.arrayBuffer());
  const part = whole.slice(0, Math.floor(whole.length * share));
  const headers = new Headers(answer.headers);
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) headers.delete(name);
  const body = new ReadableStream<Uint8Array>({
    start: (stream) => {
      if (part.length > 0) stream.enqueue(part);
      if (then === 'end') stream.close();
    },
    pull: (stream) => {
      if (then === 'error') stream.error(new TypeError('network error'));
    },
  });
  const { status, statusText } = answer;
  return new Response([204, 205, 304].includes(status) ? null : body, { status, statusText, headers });
}

function isAbout({ method, path }: FetchCondition, seenMethod: string, seenPath: string): boolean {
  if (method !== undefined && ![method].flat().some((name) => name.toUpperCase() === seenMethod)) return false;
  return path === undefined || endsLike(seenPath, path);
}

function placeOf(url: string): { origin: string; path: string } {
  const nowhere = 'http://relative.invalid';
  const { origin, pathname } = new URL(url, nowhere);
  return { origin: origin === nowhere ? '' : origin, path: pathname };
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', abort);
    });
  });
}
