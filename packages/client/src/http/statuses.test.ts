import { describe, expect, it } from 'vitest';
import { DivisibleError, RetryableError, SignInRequiredError } from '../model/errors.js';
import { judge } from './judge.js';

const couch = '{"error":"made_up","reason":"timeout after 4000ms, patient-4013"}';
const rows = '[{"id":"a","ok":true,"rev":"1-x"}]';
/** Bodies that are not CouchDB's, whatever the status says. */
const foreign = {
  HTML: '<html><title>Please sign in to the guest network</title></html>',
  'an empty body': '',
  'JSON that is cut off': '{"error":"made_up","rea',
  'JSON of another shape': '{"code":404,"message":"nothing deployed here"}',
  'an error without a reason': '{"error":"made_up"}',
  'an error that is no text': '{"error":true,"reason":"made up"}',
  null: 'null',
  'a text': '"error"',
};
const every = Array.from({ length: 500 }, (_, at) => 100 + at);

function verdict(status: number, text: string, retryAfter?: string, isWrite = false): string {
  const answer = { status, text, header: (name: string) => (name === 'retry-after' ? (retryAfter ?? null) : null) };
  try {
    return judge(answer, (json) => (Array.isArray(json) ? 'done' : undefined), 0, isWrite);
  } catch (error) {
    if (error instanceof SignInRequiredError) return `auth ${error.code}`;
    if (error instanceof DivisibleError) return `divide ${error.code}`;
    if (error instanceof RetryableError) return `${error.class} ${error.code} ${String(error.notBeforeMs)}`;
    throw error;
  }
}

/** What these statuses mean by themselves, written down again: not read from the table. */
function byItself(status: number, floor: number): string | undefined {
  if (status === 401) return 'auth unauthorized';
  if (status === 407) return 'auth proxy-unauthorized';
  if (status === 413) return 'divide too_large';
  if (status === 429) return `throttled 429 ${String(floor)}`;
  return status === 503 && floor > 0 ? `throttled 503 ${String(floor)}` : undefined;
}

describe.each([
  [undefined, 0],
  ['7', 7000],
  ['0', 0],
  ['soon', 0],
])('every status from 100 to 599, with Retry-After %s', (retryAfter, floor) => {
  it('R7 R11 R12 R13 has one meaning with the body of CouchDB', () => {
    const expected = (status: number): string => {
      const own = byItself(status, floor);
      if (own !== undefined) return own;
      if (status < 400) return `network not-couchdb ${String(floor)}`;
      if (status === 403) return 'auth forbidden';
      if (status === 404) return `server database-missing ${String(floor)}`;
      if (status === 408 || status === 425 || status >= 500) return `server ${String(status)} ${String(floor)}`;
      if (status === 409) return `conflict 409 ${String(floor)}`;
      return 'divide unexpected';
    };
    for (const status of every) expect(verdict(status, couch, retryAfter), String(status)).toBe(expected(status));
  });

  it.each(Object.entries(foreign))('R7 is not CouchDB with %s, and may pass', (_name, text) => {
    for (const status of every) {
      const expected = byItself(status, floor) ?? `network not-couchdb ${String(floor)}`;
      expect(verdict(status, text, retryAfter), String(status)).toBe(expected);
      expect(verdict(status, text, retryAfter, true), String(status)).toBe(expected);
    }
  });

  it('R7 is the answer with 2xx in the shape that was asked for, and with no other', () => {
    for (const status of every) {
      const isSuccess = status >= 200 && status < 300;
      expect(verdict(status, rows, retryAfter) === 'done', String(status)).toBe(isSuccess);
    }
  });

  it('R4 R7 the rows of a bulk write count, but where a status acts by itself', () => {
    for (const status of every) {
      const isRedirect = status < 200 || (status >= 300 && status < 400);
      const other = byItself(status, floor) ?? (isRedirect ? `network not-couchdb ${String(floor)}` : undefined);
      expect(verdict(status, rows, retryAfter, true), String(status)).toBe(other ?? 'done');
    }
  });
});
