import { z } from 'zod';
import { ServerCommandError } from './errors.js';

/** A user name and a password of the server. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** What a request may be given. */
export interface RequestOptions {
  readonly body?: unknown;
  /** Statuses other than 2xx that the caller knows how to read. */
  readonly accept?: readonly number[];
}

/** An answer of CouchDB. The body is JSON from outside: whoever reads it parses it with a schema. */
export interface CouchAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** How long one request may take: the first use of an index waits until the server has built it. */
const mostMs = 300_000;

const welcome = z.object({ couchdb: z.string(), version: z.string() });
const session = z.object({ userCtx: z.object({ name: z.nullable(z.string()), roles: z.array(z.string()) }) });
const refusal = z.object({ error: z.string(), reason: z.optional(z.nullable(z.string())) });

/** A CouchDB, signed in to with each request. Its errors say what to do and never hold a password. */
export class Couch {
  readonly #url: string;
  readonly #authorization: string;
  readonly #fetch: typeof fetch;
  /** The password was accepted: another 401 is about rights. */
  #isSignedIn = false;

  constructor(url: string, { username, password }: Credentials, fetcher: typeof fetch = fetch) {
    this.#url = url;
    this.#authorization = `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
    this.#fetch = fetcher;
  }

  /** Looks whether a CouchDB 3 or later answers, and who we are there. */
  async greet(): Promise<{ readonly roles: readonly string[] }> {
    const { body } = await this.send('GET', '/');
    const found = welcome.safeParse(body);
    if (!found.success) {
      throw new ServerCommandError(
        'not_couchdb',
        `What answers at ${this.#url} is not the root of a CouchDB. Give its address without the name of a database.`,
      );
    }
    const major = Number(found.data.version.split('.')[0]);
    if (!(major >= 3)) {
      throw new ServerCommandError('not_couchdb', 'This CouchDB is older than version 3, which Afield needs.');
    }
    const who = session.safeParse((await this.send('GET', '/_session')).body);
    if (!who.success || who.data.userCtx.name === null) throw notSignedIn();
    this.#isSignedIn = true;
    return { roles: who.data.userCtx.roles };
  }

  /**
   * Sends a request, with the body as JSON, and reads the JSON answer.
   * @throws ServerCommandError unless the status is 2xx or one of `accept`
   */
  async send(method: string, path: string, options: RequestOptions = {}): Promise<CouchAnswer> {
    const { body, accept = [] } = options;
    const { status, text } = await this.#answerTo(method, path, body);
    if (status >= 300 && status < 400) {
      throw new ServerCommandError(
        'not_couchdb',
        `${this.#url} sends us on to another address: a login page or a proxy stands in front. Give CouchDB's own address.`,
      );
    }
    const json = jsonOf(text);
    if (json === undefined) {
      if (status >= 500) throw inTrouble(status);
      throw new ServerCommandError(
        'not_couchdb',
        `What answers at ${this.#url} (status ${String(status)}) does not speak JSON: a login page, a proxy or another web server. Give CouchDB's own address.`,
      );
    }
    const isFine = (status >= 200 && status < 300) || accept.includes(status);
    if (!isFine) throw refusalError(method, path, status === 401 && this.#isSignedIn ? 403 : status, json);
    return { status, body: json };
  }

  async #answerTo(method: string, path: string, body: unknown): Promise<{ status: number; text: string }> {
    try {
      const answer = await this.#fetch(this.#url + path, {
        method,
        // A password must never follow a redirect to somebody else.
        redirect: 'manual',
        signal: AbortSignal.timeout(mostMs),
        headers: {
          accept: 'application/json',
          authorization: this.#authorization,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.status, text: await answer.text() };
    } catch (error) {
      throw new ServerCommandError('unreachable', unreachable(this.#url, codeOf(error)));
    }
  }
}

/** What an answer has to be. @throws ServerCommandError with code `not_couchdb` when it is something else */
export function parsed<Shape extends z.ZodType>(shape: Shape, body: unknown): z.infer<Shape> {
  const found = shape.safeParse(body);
  if (found.success) return found.data;
  throw new ServerCommandError('not_couchdb', 'The server answered in a shape that CouchDB 3 does not have.');
}

/** A name as a part of a path. */
export function pathPart(name: string): string {
  return encodeURIComponent(name);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function refusalError(method: string, path: string, status: number, body: unknown): ServerCommandError {
  const what = `${method} ${path.split('?')[0] ?? path}`;
  const said = refusal.safeParse(body);
  if (status === 401) return notSignedIn();
  if (status === 403) {
    return new ServerCommandError(
      'forbidden',
      `This user has no right to do this: ${what}. An admin has it; reading results takes the role afield-supervisor.`,
    );
  }
  if (status === 404) {
    return new ServerCommandError('database_missing', `Not found: ${what}. Has "afield-server setup" been run there?`);
  }
  if (status >= 500 || status === 429) return inTrouble(status);
  const word = said.success && /^[a-z_]{1,40}$/.test(said.data.error) ? `, ${said.data.error}` : '';
  return new ServerCommandError('server', `The server refused ${what} (status ${String(status)}${word}).`);
}

function inTrouble(status: number): ServerCommandError {
  return new ServerCommandError(
    'server',
    `The server has a trouble of its own (status ${String(status)}). Run the same command again later.`,
  );
}

function notSignedIn(): ServerCommandError {
  return new ServerCommandError(
    'unauthorized',
    'The server does not accept this name and password: look at COUCHDB_USER and COUCHDB_PASSWORD.',
  );
}

function unreachable(url: string, code: string): string {
  const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/.test(code);
  return isCertificate
    ? `The certificate of ${url} is not trusted (${code}). Give its authority in NODE_EXTRA_CA_CERTS.`
    : `Nothing answers at ${url} (${code}). Is the address right, and does CouchDB run?`;
}

/** The name of what went wrong in the network; never the words of the message. */
function codeOf(error: unknown): string {
  const { cause, name } = error as { readonly cause?: { readonly code?: unknown }; readonly name?: string };
  return typeof cause?.code === 'string' ? cause.code : name === 'TimeoutError' ? 'timeout' : 'network error';
}
