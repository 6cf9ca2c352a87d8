import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { corsHeaders } from '../cors.js';
import type { PreparedAnswer } from './answer.js';
import type { StreamedAnswer } from './upstream.js';

/** How an answer is written. */
export interface WriteOptions {
  readonly origin: string | undefined;
  /** Whether CORS headers are set (those of the upstream are always taken away); default true. */
  readonly cors?: boolean;
  /** Bytes of the body in a second; without limit by default. */
  readonly bytesPerSecond?: number | undefined;
  /** The share of the body after which the connection is closed. */
  readonly cutAt?: number | undefined;
  readonly signal: AbortSignal;
}

/** A slowed body is written in this many parts a second. */
const partsPerSecond = 10;

/** Writes an answer whose body is known. */
export async function writeAnswer(
  response: ServerResponse,
  answer: PreparedAnswer,
  options: WriteOptions,
): Promise<void> {
  const { body, status } = answer;
  const isHead = response.req.method === 'HEAD';
  const hasNoBody = isHead || status === 204 || status === 304;
  const headers = finalHeaders(answer.headers, options);
  const length = hasNoBody && body.length === 0 ? {} : { 'content-length': String(body.length) };
  response.writeHead(status, { ...headers, ...length });
  if (options.cutAt !== undefined) return writeCut(response, body, { ...options, cutAt: options.cutAt });
  if (!hasNoBody) await writePart(response, body, options);
  response.end();
}

/** Writes an answer while it comes; a broken answer breaks off here, too. */
export async function writeStream(
  response: ServerResponse,
  answer: StreamedAnswer,
  options: WriteOptions,
): Promise<void> {
  const { contentLength } = answer;
  const headers = finalHeaders(answer.headers, options);
  response.writeHead(
    answer.status,
    contentLength === undefined ? headers : { ...headers, 'content-length': contentLength },
  );
  response.flushHeaders();
  for await (const part of answer.body) await writePart(response, part, options);
  response.end();
}

async function writeCut(
  response: ServerResponse,
  body: Buffer,
  options: WriteOptions & { cutAt: number },
): Promise<void> {
  const bytes = Math.min(Math.floor(body.length * options.cutAt), Math.max(0, body.length - 1));
  response.flushHeaders();
  await writePart(response, body.subarray(0, bytes), options);
  response.socket?.destroySoon();
}

async function writePart(
  response: ServerResponse,
  bytes: Buffer,
  { bytesPerSecond, signal }: WriteOptions,
): Promise<void> {
  if (bytesPerSecond === undefined) return write(response, bytes);
  const size = Math.max(1, Math.ceil(bytesPerSecond / partsPerSecond));
  for (let start = 0; start < bytes.length; start += size) {
    const part = bytes.subarray(start, start + size);
    await wait((part.length / bytesPerSecond) * 1000, undefined, { signal });
    await write(response, part);
  }
}

/** Resolves once the bytes were handed to the system. */
function write(response: ServerResponse, bytes: Buffer): Promise<void> {
  if (bytes.length === 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    response.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}

function finalHeaders(
  headers: Readonly<Record<string, string | readonly string[]>>,
  { origin, cors = true }: WriteOptions,
): Record<string, string | string[]> {
  const kept = Object.entries(headers)
    .filter(([name]) => !name.startsWith('access-control-'))
    .map(([name, value]) => [name, typeof value === 'string' ? value : [...value]] as const);
  return { ...Object.fromEntries(kept), ...(cors ? corsHeaders(origin) : {}) };
}
