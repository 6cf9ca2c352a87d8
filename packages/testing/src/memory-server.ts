import { databaseAnswer, ok, type MemoryAnswer, type MemoryRequest } from './memory/answers.js';
import { MemoryDatabase, Refusal } from './memory/memory-database.js';

export interface MemoryServerOptions {
  /** The address that its clients are given. Default: `http://memory.test`. */
  readonly url?: string;
  /** Names and passwords. Without it everyone may do everything, and is whoever they say. */
  readonly users?: Readonly<Record<string, string>>;
  /** Called for each request before it is answered: to count, or to note. */
  readonly onRequest?: (request: MemoryRequest) => void;
}

/**
 * A CouchDB in the memory of this process, for exactly the requests that the SDK makes. Its `fetch` answers in
 * microtasks: no socket, no timer. What it does not know is answered 404 or 405 with CouchDB's body, and is listed in
 * `unknown`, so that a test can say that nothing was asked in vain.
 */
export class MemoryServer {
  readonly url: string;
  readonly databases = new Map<string, MemoryDatabase>();
  /** Requests that this server does not know, as `GET /path`. */
  readonly unknown: string[] = [];
  readonly #users: Map<string, string> | undefined;
  readonly #onRequest: ((request: MemoryRequest) => void) | undefined;

  constructor(options: MemoryServerOptions = {}) {
    this.url = options.url ?? 'http://memory.test';
    this.#users = options.users === undefined ? undefined : new Map(Object.entries(options.users));
    this.#onRequest = options.onRequest;
  }

  /** Makes a database; one that is there stays as it is. */
  create(name: string): MemoryDatabase {
    const database = this.databases.get(name) ?? new MemoryDatabase();
    this.databases.set(name, database);
    return database;
  }

  /** The address of a database, without credentials. */
  urlOf(name: string): string {
    return `${this.url}/${encodeURIComponent(name)}`;
  }

  /** From now on the user signs in with this password only. */
  setPassword(user: string, password: string): void {
    this.#users?.set(user, password);
  }

  /** Answers like `fetch`. Rejects only when the signal is aborted already. */
  readonly fetch = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    const url = input instanceof Request ? input.url : String(input);
    const { status, body } = this.answer(url, init);
    return Promise.resolve(
      new Response(`${JSON.stringify(body)}\n`, { status, headers: { 'content-type': 'application/json' } }),
    );
  };

  /** The answer to a request, at once. */
  answer(url: string, init: RequestInit = {}): MemoryAnswer {
    try {
      const request = this.#request(url, init);
      this.#onRequest?.(request);
      if (request.user === undefined && authorizationOf(init) !== null) {
        throw new Refusal(401, 'unauthorized', 'Name or password is incorrect.');
      }
      return this.#route(request);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { status: error.status, body: { error: error.error, reason: error.reason } };
    }
  }

  #request(url: string, init: RequestInit): MemoryRequest {
    const { pathname, searchParams } = new URL(url);
    const segments = pathname.split('/').slice(1).map(decodeURIComponent);
    const [first = '', ...rest] = segments;
    const isDatabase = first !== '' && (!first.startsWith('_') || this.databases.has(first));
    return {
      method: (init.method ?? 'GET').toUpperCase(),
      path: `/${segments.join('/')}`,
      database: isDatabase ? first : undefined,
      resource: isDatabase ? rest.join('/') : first,
      query: searchParams,
      body: parsed(init.body),
      user: this.#userOf(authorizationOf(init)),
    };
  }

  /** Undefined without credentials, and with wrong ones. */
  #userOf(authorization: string | null): string | undefined {
    if (authorization === null) return undefined;
    const text = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString();
    const [name = '', password = ''] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
    return this.#users === undefined || this.#users.get(name) === password ? name : undefined;
  }

  #route(request: MemoryRequest): MemoryAnswer {
    const { database: name } = request;
    if (name === undefined) return this.#serverAnswer(request);
    if (this.#users !== undefined && request.user === undefined) {
      throw new Refusal(401, 'unauthorized', 'You are not authorized to access this db.');
    }
    const database = this.databases.get(name);
    if (database === undefined) throw new Refusal(404, 'not_found', 'Database does not exist.');
    return databaseAnswer(database, request) ?? this.#unknownRequest(request);
  }

  #serverAnswer(request: MemoryRequest): MemoryAnswer {
    const { method, resource } = request;
    if (method === 'GET' && resource === '') return ok({ couchdb: 'Welcome', version: '3.5.0', uuid: 'memory' });
    if (method === 'GET' && resource === '_session') {
      return ok({ ok: true, userCtx: { name: request.user ?? null, roles: [] }, info: {} });
    }
    return this.#unknownRequest(request);
  }

  #unknownRequest({ method, path, resource }: MemoryRequest): never {
    this.unknown.push(`${method} ${path}`);
    if (resource.startsWith('_')) throw new Refusal(404, 'not_found', 'missing');
    throw new Refusal(405, 'method_not_allowed', 'Only GET allowed');
  }
}

function authorizationOf(init: RequestInit): string | null {
  return new Headers(init.headers).get('authorization');
}

function parsed(body: RequestInit['body']): unknown {
  if (typeof body !== 'string' || body === '') return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    throw new Refusal(400, 'bad_request', 'invalid UTF-8 JSON');
  }
}
