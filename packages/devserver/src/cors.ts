import type { IncomingMessage, ServerResponse } from 'node:http';

/** Headers that a page of another origin must be able to read: without them a 503 has no `Retry-After`. */
const exposed = [
  'Retry-After',
  'Date',
  'ETag',
  'Content-Type',
  'Content-Length',
  'Cache-Control',
  'Accept-Ranges',
  'Location',
  'Server',
  'WWW-Authenticate',
  'X-Couch-Request-ID',
  'X-CouchDB-Body-Time',
].join(', ');

const methods = 'GET, HEAD, POST, PUT, DELETE, COPY, OPTIONS';
const usualHeaders = 'Accept, Authorization, Content-Type, If-Match, If-None-Match, Origin, Referer, X-Requested-With';

/** How long a browser may remember a preflight, in seconds. */
const preflightMaxAge = 600;

/** What the request asks of CORS; a plain record, so that it can be built from any kind of request. */
export interface CorsRequest {
  /** The `Origin` header; without it no CORS header is sent. */
  readonly origin?: string | undefined;
  /** The `Access-Control-Request-Headers` header of a preflight. */
  readonly requestHeaders?: string | undefined;
  /** Whether `Access-Control-Request-Private-Network: true` was sent. */
  readonly privateNetwork?: boolean;
}

/** The CORS headers of an ordinary answer: the origin is reflected, so that cookies and `Authorization` may be sent. */
export function corsHeaders(origin: string | undefined): Record<string, string> {
  if (origin === undefined) return { vary: 'Origin' };
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': exposed,
    vary: 'Origin',
  };
}

/** The headers of the answer to a preflight. */
export function preflightHeaders(request: CorsRequest): Record<string, string> {
  return {
    ...corsHeaders(request.origin),
    'access-control-allow-methods': methods,
    'access-control-allow-headers': request.requestHeaders ?? usualHeaders,
    'access-control-max-age': String(preflightMaxAge),
    ...(request.privateNetwork === true ? { 'access-control-allow-private-network': 'true' } : {}),
  };
}

/** Whether the request is a preflight, which a browser sends on its own before the real request. */
export function isPreflight(request: IncomingMessage): boolean {
  return (
    request.method === 'OPTIONS' &&
    request.headers.origin !== undefined &&
    request.headers['access-control-request-method'] !== undefined
  );
}

/** Answers a preflight with 204 and ends the response. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  const requestHeaders = request.headers['access-control-request-headers'];
  response.writeHead(
    204,
    preflightHeaders({
      origin: request.headers.origin,
      requestHeaders: typeof requestHeaders === 'string' ? requestHeaders : undefined,
      privateNetwork: request.headers['access-control-request-private-network'] === 'true',
    }),
  );
  response.end();
}
