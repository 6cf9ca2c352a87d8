import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { pathSegments } from '../server/names.js';

/** A request that reached the proxy, read to its end. */
export interface ProxyRequest {
  readonly method: string;
  /** Path and query as they were sent. */
  readonly url: string;
  /** Path without the query, as it was sent. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Decoded name of the database, or `undefined` for requests to the server itself. */
  readonly database: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The body as JSON, parsed anew with each call. Throws a SyntaxError if it is none. */
  json(): unknown;
}

const systemDatabases = new Set(['_users', '_replicator', '_global_changes']);

/** Reads a request's body to the end. Rejects if the client goes away before. */
export async function readRequest(incoming: IncomingMessage): Promise<ProxyRequest> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  const url = incoming.url ?? '/';
  const mark = url.indexOf('?');
  const body = Buffer.concat(parts);
  return {
    method: incoming.method ?? 'GET',
    url,
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark)),
    database: databaseOf(url),
    headers: incoming.headers,
    body,
    json: () => JSON.parse(body.toString()) as unknown,
  };
}

function databaseOf(url: string): string | undefined {
  const first = pathSegments(url)[0];
  return first === undefined || (first.startsWith('_') && !systemDatabases.has(first)) ? undefined : first;
}
