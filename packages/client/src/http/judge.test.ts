import { describe, expect, it } from 'vitest';
import { DivisibleError, RetryableError, SignInRequiredError } from '../model/errors.js';
import { judge } from './judge.js';
import { notBefore } from './retry-after.js';

const now = Date.UTC(2026, 1, 3, 4, 5, 6);
const couch = JSON.stringify({ error: 'made_up', reason: 'made up' });

function verdict(status: number, text: string, headers: Record<string, string> = {}): unknown {
  const answer = { status, text, header: (name: string) => headers[name] ?? null };
  try {
    return judge(answer, (json) => (Array.isArray(json) ? 'list' : undefined), now);
  } catch (error) {
    if (error instanceof SignInRequiredError) return `auth ${error.code}`;
    if (error instanceof DivisibleError) return `divide ${error.code}`;
    if (error instanceof RetryableError) return `${error.class} ${error.code}`;
    throw error;
  }
}

describe('an answer of the server', () => {
  it('gives the value of the shape that was asked for', () => {
    for (const status of [200, 201, 202]) expect(verdict(status, '[]')).toBe('list');
  });

  it.each([
    [200, '<html>portal</html>'],
    [200, ''],
    [200, '[{"ok":tr'],
    [200, '{"ok":true}'],
    [201, 'null'],
    [404, '{"code":404,"message":"nothing deployed here"}'],
    [403, '<html>blocked by policy</html>'],
    [511, '<html>portal</html>'],
    [502, '<html>bad gateway</html>'],
    [503, ''],
    [302, '<html>moved</html>'],
    [500, '{"error":"made up"}'],
  ])('R7 %d with the body %j is not CouchDB and may pass', (status, text) => {
    expect(verdict(status, text)).toBe('network not-couchdb');
  });

  it('R7 R11 R12 every status has one meaning', () => {
    const expected = (status: number): string => {
      if (status < 300 || (status >= 300 && status < 400)) return 'network not-couchdb';
      if (status === 401) return 'auth unauthorized';
      if (status === 403) return 'auth forbidden';
      if (status === 404) return 'server database-missing';
      if (status === 407) return 'auth proxy-unauthorized';
      if (status === 408 || status === 425 || status >= 500) return `server ${String(status)}`;
      if (status === 409) return 'conflict 409';
      if (status === 413) return 'divide too_large';
      if (status === 429) return 'throttled 429';
      return 'divide unexpected';
    };
    for (let status = 200; status < 600; status++)
      expect(verdict(status, couch), String(status)).toBe(expected(status));
  });

  it('R11 a 412 for a missing attachment stub has a code of its own', () => {
    const body = JSON.stringify({ error: 'missing_stub', reason: 'made up' });
    expect(verdict(412, body)).toBe('divide missing_stub');
    expect(verdict(400, body)).toBe('divide unexpected');
  });

  it.each([401, 407, 413, 429])('R7 %d acts by itself, whatever the body', (status) => {
    expect(verdict(status, '<html></html>')).toBe(verdict(status, couch));
  });

  it('R13 a 503 with Retry-After acts by itself', () => {
    expect(verdict(503, '<html></html>', { 'retry-after': '7' })).toBe('throttled 503');
  });

  it('R7 the words of a message change nothing', () => {
    for (const reason of ['timeout after 4000ms', 'patient-4013', 'conflict', 'unauthorized']) {
      expect(verdict(500, JSON.stringify({ error: 'made_up', reason }))).toBe('server 500');
    }
  });
});

describe('Retry-After', () => {
  const date = new Date(now).toUTCString();
  it.each([
    [null, null, 0],
    ['120', null, 120_000],
    ['0', null, 0],
    [' 7 ', null, 7000],
    ['999999', null, 3_600_000],
    ['-5', null, 0],
    ['soon', null, 0],
    [new Date(now + 120_000).toUTCString(), date, 120_000],
    [new Date(now - 120_000).toUTCString(), date, 0],
    [new Date(now + 86_400_000).toUTCString(), date, 3_600_000],
  ])('R13 %s (Date %s) means %d ms', (value, answered, expected) => {
    expect(notBefore(value, answered, 0)).toBe(expected);
  });

  it('R13 a date is judged by our clock only where the answer has none', () => {
    expect(notBefore(new Date(now + 60_000).toUTCString(), null, now)).toBe(60_000);
  });
});
