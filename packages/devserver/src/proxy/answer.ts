/** Headers of an answer; names in any case. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[]>>;

/** A whole answer to a request. */
export interface HttpAnswer {
  readonly status: number;
  /** Length and connection headers are worked out anew and may be left out. */
  readonly headers?: AnswerHeaders;
  /** An object or a list is sent as JSON (`content-type: application/json` unless a header says otherwise). */
  readonly body?: Buffer | string | object;
}

/** What a page or client gets: an answer, a connection that is reset, or an answer whose body breaks off. */
export type Answer =
  | HttpAnswer
  | { readonly reset: true }
  | {
      /** The share of the body that is sent before the connection is closed, from 0 to 1. */
      readonly cutAt: number;
      readonly answer: HttpAnswer;
    };

/** A true answer of the upstream server, read to its end. */
export interface UpstreamAnswer extends HttpAnswer {
  readonly headers: AnswerHeaders;
  readonly body: Buffer;
  /** The body as JSON. Throws a SyntaxError if it is none. */
  json(): unknown;
}

/** An answer ready to be written: the body in bytes, header names in lower case. */
export interface PreparedAnswer {
  readonly status: number;
  readonly headers: Record<string, string | readonly string[]>;
  readonly body: Buffer;
}

/** Headers that concern one connection, or that the proxy sets itself. */
const ofConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'content-length',
  'upgrade',
  'trailer',
  'te',
  'expect',
]);

/** The headers that are passed on from one side to the other, with names in lower case. */
export function passedOn(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string | readonly string[]> {
  const kept: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (value !== undefined && !ofConnection.has(lower)) kept[lower] = value;
  }
  return kept;
}

/** Turns the body into bytes and names its type when nobody did. */
export function prepared({ status, headers = {}, body = '' }: HttpAnswer): PreparedAnswer {
  const kept = passedOn(headers);
  if (Buffer.isBuffer(body)) return { status, headers: kept, body };
  const isText = typeof body === 'string';
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json';
  const text = isText ? body : `${JSON.stringify(body)}\n`;
  return { status, headers: { 'content-type': type, ...kept }, body: Buffer.from(text) };
}
