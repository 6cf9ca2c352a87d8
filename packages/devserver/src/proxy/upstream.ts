import { Pool, type Dispatcher } from 'undici';
import { DevServerError } from '../errors.js';
import { passedOn, type AnswerHeaders, type UpstreamAnswer } from './answer.js';
import type { ProxyRequest } from './request.js';

/** What may be changed in a request before it is sent on. */
export interface RequestChange {
  readonly body?: Buffer | string | object;
  /** Headers laid over the sent ones; `undefined` takes one away. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

/** An answer whose body is still to come. */
export interface StreamedAnswer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly contentLength: string | undefined;
  readonly body: AsyncIterable<Buffer> & { destroy(): unknown };
}

/** The server behind the proxy. Names of headers come in lower case; nothing is decoded, followed or tried again. */
export class Upstream {
  /** Address without a slash at the end and without credentials. */
  readonly url: string;
  readonly #pool: Pool;
  readonly #prefix: string;

  /** @throws DevServerError with code `invalid_argument` */
  constructor(url: string) {
    const parsed = parseUrl(url);
    this.#prefix = parsed.pathname.replace(/\/+$/, '');
    this.url = parsed.origin + this.#prefix;
    // Feeds stay silent for as long as they like, so no time-outs; TCP_NODELAY is undici's default.
    this.#pool = new Pool(parsed.origin, { headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 1_000 });
  }

  /** Sends a request and gives its answer as soon as the head is there. */
  async stream(request: ProxyRequest, change: RequestChange, signal: AbortSignal): Promise<StreamedAnswer> {
    const { statusCode, headers, body } = await this.#pool.request({
      method: request.method as Dispatcher.HttpMethod,
      path: this.#prefix + request.url,
      headers: sentHeaders(request, change) as Record<string, string>,
      body: sentBody(request, change),
      signal,
    });
    const length = headers['content-length'];
    return { status: statusCode, headers: passedOn(headers), contentLength: length?.toString(), body };
  }

  /** Sends a request and reads its answer to the end. The answer is never compressed. */
  async whole(request: ProxyRequest, change: RequestChange, signal: AbortSignal): Promise<UpstreamAnswer> {
    const plain = { ...change, headers: { ...change.headers, 'accept-encoding': undefined } };
    const answer = await this.stream(request, plain, signal);
    const parts: Buffer[] = [];
    for await (const part of answer.body) parts.push(part);
    const body = Buffer.concat(parts);
    return {
      status: answer.status,
      headers: answer.headers,
      body,
      json: () => JSON.parse(body.toString()) as unknown,
    };
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function parseUrl(url: string): URL {
  let parsed: URL | undefined;
  try {
    parsed = new URL(url);
  } catch {
    // The message must not repeat the text: it may hold a password.
  }
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new DevServerError(
      'invalid_argument',
      'The upstream must be an address that starts with http:// or https://.',
    );
  }
  return parsed;
}

function sentHeaders(request: ProxyRequest, { headers = {} }: RequestChange): AnswerHeaders {
  const sent = passedOn(request.headers);
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (value === undefined) Reflect.deleteProperty(sent, lower);
    else sent[lower] = value;
  }
  return sent;
}

function sentBody(request: ProxyRequest, { body }: RequestChange): Buffer | null {
  if (body === undefined) {
    const hasBody = request.body.length > 0 || request.headers['content-length'] !== undefined;
    return hasBody && request.method !== 'GET' && request.method !== 'HEAD' ? request.body : null;
  }
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}
