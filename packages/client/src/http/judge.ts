import { DivisibleError, RetryableError, SignInRequiredError } from '../model/errors.js';
import { notBefore } from './retry-after.js';

/** An answer of a server, read to its end. */
export interface Answer {
  readonly status: number;
  header(name: string): string | null;
  readonly text: string;
}

/**
 * The JSON of an answer that did what was asked, else an error (R7, R11, R12, R13). `shape` gives the value in the
 * shape that was asked for, or undefined.
 *
 *   401, 407            sign in                     413             divide (too_large)
 *   429, Retry-After    throttled, not before       not CouchDB's   may pass (network)
 *   408, 409, 425, 5xx  may pass                    403             sign in (forbidden)
 *   404 of a database   may pass (database-missing) 412, other 4xx  divide
 */
export function judge<Value>(answer: Answer, shape: (json: unknown) => Value | undefined, nowWall: number): Value {
  const { status } = answer;
  const notBeforeMs = notBefore(answer.header('retry-after'), answer.header('date'), nowWall);
  if (status === 401) throw new SignInRequiredError('unauthorized');
  if (status === 407) throw new SignInRequiredError('proxy-unauthorized');
  if (status === 413) throw new DivisibleError('too_large', status);
  if (status === 429) throw passing('throttled', '429', notBeforeMs);
  const json = parse(answer.text);
  if (status >= 200 && status < 300) {
    const value = json === undefined ? undefined : shape(json);
    if (value !== undefined) return value;
    throw notCouch(notBeforeMs);
  }
  if (status === 503 && notBeforeMs > 0) throw passing('throttled', '503', notBeforeMs);
  const error = couchError(json);
  if (error === undefined) throw notCouch(notBeforeMs);
  if (status >= 500 || status === 408 || status === 425) throw passing('server', String(status), notBeforeMs);
  if (status === 409) throw passing('conflict', '409', notBeforeMs);
  if (status === 403) throw new SignInRequiredError('forbidden');
  if (status === 404) throw passing('server', 'database-missing', notBeforeMs);
  if (status === 412) throw new DivisibleError('missing_stub', status);
  if (status >= 400) throw new DivisibleError('unexpected', status);
  throw notCouch(notBeforeMs);
}

function passing(
  errorClass: 'server' | 'throttled' | 'conflict' | 'network',
  code: string,
  notBeforeMs: number,
): RetryableError {
  return new RetryableError(`The server cannot do it now (${code}). It is tried again.`, {
    class: errorClass,
    code,
    notBeforeMs,
  });
}

/** HTML of a captive portal, a login page, an empty or cut-off body, JSON of something else. */
function notCouch(notBeforeMs: number): RetryableError {
  return passing('network', 'not-couchdb', notBeforeMs);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // not JSON: judged as an answer of something else than CouchDB
  }
}

function couchError(json: unknown): string | undefined {
  if (typeof json !== 'object' || json === null) return undefined;
  const { error, reason } = json as { error?: unknown; reason?: unknown };
  return typeof error === 'string' && typeof reason === 'string' ? error : undefined;
}
