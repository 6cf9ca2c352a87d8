import { describe, expect, it, vi } from 'vitest';
import { RetryableError } from '../model/errors.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { classifyError } from '../retry/classify.js';
import { stubRequests } from './stub-server.fixture.js';

/** What browsers throw when there is no answer. */
const thrown: readonly (readonly [name: string, error: unknown, code: string])[] = [
  ['Chromium', new TypeError('Failed to fetch'), 'no-answer'],
  ['Firefox', new TypeError('NetworkError when attempting to fetch resource.'), 'no-answer'],
  ['Safari', new TypeError('Load failed'), 'no-answer'],
  ['Node', new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } }), 'no-answer'],
  ['an abort', new DOMException('timeout after 4000ms', 'AbortError'), 'no-answer'],
  ['a timeout', new DOMException('patient-4013', 'TimeoutError'), 'timeout'],
  ['a text', 'timeout', 'no-answer'],
  ['nothing', undefined, 'no-answer'],
];
const url = 'http://couch.test/records';

describe.each(thrown)('what fetch throws: %s', (_name, error, code) => {
  const requests = stubRequests(() => Promise.reject(error as Error));

  it('R7 our requests and `context.fetch` mark it: it may pass', async () => {
    for (const call of [
      () => requests.json({ method: 'GET', url, shape: (json) => json }),
      () => requests.handlerFetch('https://elsewhere.test/'),
      () => requests.pouchFetch(url),
    ]) {
      const marked: unknown = await call().catch((reason: unknown) => reason);
      expect(marked).toBeInstanceOf(RetryableError);
      expect(classifyError(marked)).toEqual({ kind: 'passing', summary: { class: 'network', code }, notBeforeMs: 0 });
    }
  });

  it('R5 thrown by a handler itself it is a bug', () => {
    expect(classifyError(error).kind).toBe('bug');
  });
});

it('R7 a request without an answer is given up by our own timer, whatever fetch then says', async () => {
  const clock = new ManualClock();
  const requests = stubRequests(
    (_input, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => {
          reject(new TypeError('Failed to fetch'));
        });
      }),
    clock,
  );
  const answer = requests.handlerFetch('https://elsewhere.test/').catch((error: unknown) => error);
  await vi.waitFor(() => {
    expect(clock.timers).toBe(1);
  });
  clock.advance(60_000);
  expect(await answer).toMatchObject({ class: 'network', code: 'timeout' });
});

it('R7 R13 `context.fetch` throws for a status that may pass, whatever the body, and leaves the others to the handler', async () => {
  for (let status = 200; status < 600; status++) {
    const body = status === 204 || status === 205 || status === 304 ? null : '<html>made up</html>';
    const headers = { 'retry-after': '7' };
    const requests = stubRequests(() => Promise.resolve(new Response(body, { status, headers })));
    const got: unknown = await requests
      .handlerFetch('https://elsewhere.test/')
      .then((answer) => answer.status)
      .catch((error: unknown) => error);
    const mayPass = status === 408 || status === 425 || status === 429 || status >= 500;
    if (!mayPass) expect(got).toBe(status);
    else {
      const isThrottled = status === 429 || status === 503;
      expect(got).toMatchObject({
        class: isThrottled ? 'throttled' : 'server',
        code: String(status),
        notBeforeMs: 7000,
      });
    }
  }
});

it('`context.fetch` takes a Request as well: its method, headers and body arrive', async () => {
  const seen: unknown[] = [];
  const requests = stubRequests(async (input, init) => {
    seen.push(String(input), init?.method, new Headers(init?.headers).get('x-one'));
    seen.push(await new Response(init?.body).text());
    return new Response('{}');
  });
  const request = new Request('https://elsewhere.test/a', {
    method: 'PUT',
    headers: { 'x-one': '1' },
    body: '{"a":1}',
  });
  await requests.handlerFetch(request);
  expect(seen).toEqual(['https://elsewhere.test/a', 'PUT', '1', '{"a":1}']);
});

it('R5 a request that cannot be made is a bug of the handler, and nothing is sent', async () => {
  const requests = stubRequests(() => Promise.reject(new Error('nothing may be sent')));
  const error: unknown = await requests
    .handlerFetch('https://elsewhere.test/', { method: 'GET', body: 'text' })
    .catch((reason: unknown) => reason);
  expect(classifyError(error)).toMatchObject({ kind: 'bug', summary: { code: 'TypeError' } });
});
