import { z } from 'zod/mini';
import type { Clock } from '../model/environment.js';
import { RetryableError, SignInRequiredError } from '../model/errors.js';
import { answerError, classifyService, networkError } from '../retry/classify.js';
import { otherAnswers } from '../retry/table.js';
import { RequestLimit } from '../retry/request-size.js';
import { couchErrorOf, judge, type Answer } from './judge.js';
import { notBefore } from './retry-after.js';
import type { Session, SignIn } from './session.js';

export interface JsonRequest<Value> {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly url: string;
  /** The body: JSON, as it is sent. */
  readonly text?: string;
  /**
   * What a 403 of the whole request means: that the user may not do this at all (`sign-in`, default), or that only this
   * database is closed to them (`retry`): then everything else goes on. At another server than the client's own `retry`
   * means the same of a sign-in that is not known there. `told`: a 401 or 403 is thrown, and is the caller's to judge.
   */
  readonly forbidden?: 'sign-in' | 'retry' | 'told';
  /** A bulk write: rows in that shape count whatever the status says (R7). */
  readonly rows?: true;
  /** The answer in the shape that was asked for, or undefined when it is not. */
  readonly shape: (json: unknown) => Value | undefined;
}

/** For whom requests are sent: who ends them all, and hears how they go on. */
export interface RequestScope {
  readonly signal: AbortSignal;
  /** An answer came, or a request was sent that may take `moreMs` until there is a sign of it. */
  alive(moreMs?: number): void;
  /** So many bytes of an answer came in. */
  received(bytes: number): void;
}

interface RequestsParts {
  readonly fetch: typeof fetch;
  readonly session: Session;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly closed: AbortSignal;
  readonly server: string | undefined;
  /** Where the server says whose the credentials are, before they are used; undefined: nobody asks. */
  readonly sessionUrl?: string | undefined;
  readonly maxRequestBytes?: number | undefined;
}

/** Sends requests to the server, and judges what comes back before anyone else sees it. */
export class Requests {
  /** How large the body of a request may be now. */
  readonly limit: RequestLimit;
  readonly #parts: RequestsParts;
  readonly #scope: RequestScope | undefined;
  readonly #fetch: typeof fetch;
  readonly #session: Session;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #closed: AbortSignal;
  readonly #server: string | undefined;
  readonly #sessionUrl: string | undefined;

  constructor(parts: RequestsParts, scope?: RequestScope, limit = new RequestLimit(parts.maxRequestBytes)) {
    this.limit = limit;
    this.#parts = parts;
    this.#scope = scope;
    this.#fetch = parts.fetch;
    this.#session = parts.session;
    this.#clock = parts.clock;
    this.#timeoutMs = parts.timeoutMs;
    this.#closed = scope?.signal ?? parts.closed;
    this.#server = parts.server;
    this.#sessionUrl = parts.sessionUrl;
  }

  /** The same for one scope. Its signal must abort when the client is closed. */
  within(scope: RequestScope): Requests {
    return new Requests(this.#parts, scope, this.limit);
  }

  /** Milliseconds that an answer may need to begin. */
  get timeoutMs(): number {
    return this.#timeoutMs;
  }

  /** Throws `RetryableError`, `SignInRequiredError` or `DivisibleError`; see `judge`. */
  async json<Value>(request: JsonRequest<Value>): Promise<Value> {
    return this.#json(await this.#signIn(), request);
  }

  /** Resolves when it is known whose sign-in this is, as far as the server says it: asked once per sign-in, before any request. */
  async identified(): Promise<void> {
    await this.#signIn();
  }

  async #json<Value>(signIn: SignIn, request: JsonRequest<Value>): Promise<Value> {
    const answer = await this.#answer(request.url, {
      method: request.method,
      headers: { accept: 'application/json', 'content-type': 'application/json', ...signIn.headers },
      credentials: signIn.cookies ? 'include' : 'omit',
      redirect: 'manual',
      ...(request.text === undefined ? {} : { body: request.text }),
    });
    const decide = (): Value => judge(answer, request.shape, this.#clock.wall(), request.rows);
    return this.#judged(signIn, decide, request);
  }

  /**
   * A fetch for PouchDB's replicator: signs in, gives up after the timeout, and turns whatever is not CouchDB's into
   * an error. A 404 is passed on where it is an answer (`passMissing`): a checkpoint that is not there yet.
   */
  async pouchFetch(url: string, init: RequestInit = {}): Promise<Response> {
    const signIn = await this.#signIn();
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(signIn.headers)) headers.set(name, value);
    const answer = await this.#answer(url, {
      ...init,
      headers,
      credentials: signIn.cookies ? 'include' : 'omit',
      redirect: 'manual',
    });
    // A checkpoint that is not there yet is an answer; a database that is not there is not.
    const isMissingCheckpoint = answer.status === 404 && /\/_local\/[^/]+$/.test(new URL(url).pathname);
    if (!isMissingCheckpoint || couchErrorOf(answer.text) === undefined) {
      this.#judged(signIn, () =>
        judge(answer, (json) => (typeof json === 'object' ? json : undefined), this.#clock.wall()),
      );
    }
    return new Response(answer.text, {
      status: answer.status,
      headers: { 'content-type': 'application/json' },
    });
  }

  /**
   * A fetch for handlers: what may pass is thrown as `RetryableError`, everything else is theirs to judge. Credentials
   * go only to the server that the client was made for.
   */
  async handlerFetch(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    const request = new Request(input, init); // throws what a bug of the handler is: a request that cannot be made
    const { url, method, headers, credentials, redirect, signal } = request;
    const body = typeof init.body === 'string' ? init.body : await bodyOf(request);
    const signIn = this.#isOurs(url) ? await this.#signIn() : undefined;
    for (const [name, value] of Object.entries(signIn?.headers ?? {})) headers.set(name, value);
    const answer = await this.#answer(url, {
      ...init,
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      signal,
      redirect: signIn === undefined ? redirect : 'manual',
      credentials: signIn?.cookies === true ? 'include' : credentials,
    });
    const { status } = answer;
    if (signIn !== undefined && (status === 401 || status === 407))
      this.#judged(signIn, () => judge(answer, () => undefined, 0));
    const notBeforeMs = notBefore(answer.header('retry-after'), answer.header('date'), this.#clock.wall());
    const passing = classifyService(status, notBeforeMs > 0);
    if (passing !== undefined) throw answerError(passing, status, notBeforeMs);
    // A redirect that was not followed has no status in a browser: whatever it leads to did not do what was asked.
    if (status < 200) throw answerError(otherAnswers, status, notBeforeMs);
    return new Response(status === 204 || status === 205 || status === 304 ? null : answer.text, {
      status,
      headers: { 'content-type': answer.header('content-type') ?? 'application/json' },
    });
  }

  /** What to send, once it is known that it is of the person whose work this is: the server is asked once per sign-in (S7). */
  async #signIn(): Promise<SignIn> {
    for (;;) {
      const signIn = await this.#unlessClosed(this.#session.signIn());
      if (this.#sessionUrl === undefined || !this.#session.isUnknown(signIn)) return signIn;
      const url = this.#sessionUrl;
      // In no scope: what ends one of those that wait is no answer for the others.
      const asking = this.#scope === undefined ? this : new Requests(this.#parts, undefined, this.limit);
      await this.#unlessClosed(this.#session.oneAtATime(() => asking.#identify(url, signIn)));
    }
  }

  async #identify(url: string, signIn: SignIn): Promise<void> {
    const answer = await this.#answer(url, {
      method: 'GET',
      headers: { accept: 'application/json', ...signIn.headers },
      credentials: signIn.cookies ? 'include' : 'omit',
      redirect: 'manual',
    });
    // A server that has no sessions, or a proxy that shows none, says nothing of who we are.
    const isNotThere = answer.status === 404 || answer.status === 405;
    const { name, roles } = isNotThere
      ? { name: null, roles: undefined }
      : this.#judged(signIn, () => judge(answer, userOf, this.#clock.wall()), { url, forbidden: 'sign-in' });
    await this.#session.identify(signIn, name, roles);
  }

  /** An app that never answers keeps nobody from closing. */
  #unlessClosed<Value>(answer: Promise<Value>): Promise<Value> {
    const closed = this.#closed;
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        reject(networkError(new DOMException('closed', 'AbortError'), false));
      };
      if (closed.aborted) stop();
      closed.addEventListener('abort', stop);
      answer.then(resolve, reject).finally(() => {
        closed.removeEventListener('abort', stop);
      });
    });
  }

  #isOurs(url: string): boolean {
    try {
      return this.#server !== undefined && new URL(url).origin === new URL(this.#server).origin;
    } catch {
      return false; // a relative address is not the server's
    }
  }

  /** Whether the server at this `_session` knows us as the user that we signed in as (R12). Throws as `json` does. */
  async isSignedIn(url: string): Promise<boolean> {
    const { name } = await this.json({ method: 'GET', url, shape: userOf });
    return this.#session.confirm(name);
  }

  /** A row of an answer says that we are not signed in (R12). */
  refusedByRow(): void {
    this.#session.refusePresent('unauthorized');
  }

  #judged<Value>(signIn: SignIn, decide: () => Value, asked?: Pick<JsonRequest<unknown>, 'url' | 'forbidden'>): Value {
    try {
      return decide();
    } catch (error) {
      if (error instanceof SignInRequiredError && asked?.forbidden === 'retry') {
        // What another server thinks of the credentials is no reason to ask the person, and to stop, at ours.
        if (error.code === 'forbidden' || (this.#server !== undefined && !this.#isOurs(asked.url)))
          throw new RetryableError('This database is closed to the user.', { class: 'auth', code: error.code });
      }
      const isTold = asked?.forbidden === 'told' && error instanceof SignInRequiredError;
      if (isTold && error.code !== 'proxy-unauthorized') throw error;
      if (error instanceof SignInRequiredError) this.#session.refuse(signIn, error.code);
      throw error;
    }
  }

  async #answer(url: string, init: RequestInit): Promise<Answer> {
    const abort = new AbortController();
    const stop = (): void => {
      abort.abort();
    };
    let timedOut = false;
    const giveUp = (): void => {
      timedOut = true;
      stop();
    };
    // A slow network gets the time that a large request needs; while an answer comes in, it is not given up.
    const sent = sizeOf(init.body);
    let timer = this.#clock.setTimer(giveUp, this.#timeoutMs + sent / slowestBytesPerMs);
    if (sent > 0) this.#scope?.alive(sent / slowestBytesPerMs);
    const goesOn = (bytes: number): void => {
      this.#scope?.received(bytes);
      this.#clock.clearTimer(timer);
      timer = this.#clock.setTimer(giveUp, this.#timeoutMs);
    };
    this.#closed.addEventListener('abort', stop);
    init.signal?.addEventListener('abort', stop);
    try {
      if (this.#closed.aborted || init.signal?.aborted === true) stop();
      const response = await this.#fetch(url, { ...init, signal: abort.signal });
      const text = await textOf(response, goesOn);
      this.#scope?.alive();
      return {
        status: response.status,
        header: (name) => response.headers.get(name),
        text,
      };
    } catch (error) {
      throw networkError(error, timedOut);
    } finally {
      this.#clock.clearTimer(timer);
      this.#closed.removeEventListener('abort', stop);
      init.signal?.removeEventListener('abort', stop);
    }
  }
}

/** Where the server of this database says who we are. It may live under a path: beside the database. */
export function sessionUrlOf(database: string): string {
  const address = database.replace(/\/+$/, '');
  return `${address.slice(0, address.lastIndexOf('/'))}/_session`;
}

/** The body of a request as it can be sent; undefined when there is none. */
async function bodyOf(request: Request): Promise<ArrayBuffer | undefined> {
  if (request.method === 'GET' || request.method === 'HEAD') return undefined;
  const body = await request.arrayBuffer();
  return body.byteLength === 0 ? undefined : body;
}

function sizeOf(body: RequestInit['body']): number {
  if (typeof body === 'string') return body.length;
  return body instanceof ArrayBuffer ? body.byteLength : 0;
}

/** 64 kbit/s: a request is given so much more time for its size. */
const slowestBytesPerMs = 8;

async function textOf(response: Response, goesOn: (bytes: number) => void): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return response.text();
  const decoder = new TextDecoder();
  let text = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    goesOn(part.value.byteLength);
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
}

const user = z.object({ name: z.nullable(z.string()), roles: z.optional(z.array(z.string())) });
const sessionAnswer = z.object({ userCtx: user });

function userOf(json: unknown): z.infer<typeof user> | undefined {
  const answer = sessionAnswer.safeParse(json);
  return answer.success ? answer.data.userCtx : undefined;
}
