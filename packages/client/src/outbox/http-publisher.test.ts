import { describe, expect, it } from 'vitest';
import { RetryableError } from '../model/errors.js';
import type { DocumentEvent, PublishAnswer } from '../model/event.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { eventJson } from './event-document.js';
import { httpPublisher, type HttpPublisherOptions } from './http-publisher.js';
import { idempotencyKey } from './idempotency-key.js';
import { standalonePublishContext } from './publish-context.js';
import { eventOf } from './sample-event.fixture.js';

const url = 'https://events.test/in';
const [a, b, c] = [eventOf('a', 1), eventOf('b', 1), eventOf('c', 1)];

interface Seen {
  readonly key: string | null;
  readonly authorization: string | null;
  readonly body: unknown;
}
type Given = number | 'reset' | Response;

/** Publishes to an endpoint that answers each event with what is given for it; default: 201. */
async function publishTo(
  given: readonly (readonly [DocumentEvent, Given])[],
  headers?: HttpPublisherOptions['headers'],
): Promise<{ answer: PublishAnswer; seen: Seen[] }> {
  const answers = new Map(given.map(([{ id }, answer]) => [idempotencyKey(id), answer]));
  const seen: Seen[] = [];
  const fetch: typeof globalThis.fetch = (_input, init) => {
    const sent = new Headers(init?.headers);
    const key = sent.get('idempotency-key');
    seen.push({ key, authorization: sent.get('authorization'), body: init?.body });
    const answer = answers.get(key ?? '') ?? 201;
    if (answer === 'reset') return Promise.reject(new TypeError('Failed to fetch'));
    if (answer instanceof Response) return Promise.resolve(answer);
    return Promise.resolve(new Response(answer === 204 ? null : '', { status: answer }));
  };
  const publisher = httpPublisher({ url, ...(headers === undefined ? {} : { headers }) });
  const context = standalonePublishContext({ fetch, clock: new ManualClock() });
  return { answer: await publisher.publish([a, b, c], context), seen };
}

describe('the HTTP publisher', () => {
  it('O6 posts each event with its id as the key, one after another', async () => {
    const { answer, seen } = await publishTo([[b, 204]], () => Promise.resolve({ authorization: 'Bearer t' }));
    expect(answer).toEqual({ accepted: [a.id, b.id, c.id], conflicts: [] });
    expect(seen).toEqual(
      [a, b, c].map((event) => ({
        key: idempotencyKey(event.id),
        authorization: 'Bearer t',
        body: eventJson(event),
      })),
    );
  });

  it('O6 a 422 is a conflict; the next events are sent', async () => {
    const { answer } = await publishTo([[b, 422]]);
    expect(answer).toEqual({ accepted: [a.id, c.id], conflicts: [{ id: b.id, stored: undefined }] });
  });

  it.each([
    [409, 'conflict'],
    [400, 'server'],
    [403, 'server'],
    [413, 'server'],
  ])('R7 a %i is for this event alone, and it is not accepted', async (status, errorClass) => {
    const { answer } = await publishTo([[b, status]]);
    expect(answer).toEqual({
      accepted: [a.id, c.id],
      conflicts: [],
      error: { class: errorClass, code: String(status) },
    });
  });

  it.each([
    ['a reset', 'reset', 'network', 'no-answer'],
    ['a 503', 503, 'server', '503'],
    ['a 429', 429, 'throttled', '429'],
    ['a 401', 401, 'auth', '401'],
    ['a redirect', 302, 'network', '302'],
    ['a page', new Response('<!DOCTYPE html><p>Sign in', { status: 200 }), 'network', 'page'],
    ['HTML', new Response('ok', { status: 200, headers: { 'content-type': 'text/html' } }), 'network', 'page'],
  ] as const)('R7 %s ends the call, and what was accepted before is not lost', async (_what, given, ...error) => {
    const { answer, seen } = await publishTo([[b, given]]);
    expect(answer.accepted).toEqual([a.id]);
    expect(answer.error).toMatchObject({ class: error[0], code: error[1] });
    expect(seen).toHaveLength(2);
  });

  it('R13 a floor of the server is in the answer', async () => {
    const busy = new Response('', { status: 429, headers: { 'retry-after': '7' } });
    const { answer } = await publishTo([[b, busy]]);
    expect(answer.error).toEqual({ class: 'throttled', code: '429', notBeforeMs: 7000 });
  });

  it('R7 where nothing was accepted the error itself is thrown', async () => {
    await expect(publishTo([[a, 'reset']])).rejects.toBeInstanceOf(RetryableError);
  });

  it.each([
    ['an app that has none', () => Promise.reject(new Error('no token for top-secret'))],
    ['a header that cannot be sent', { authorization: 'top-secret\n' + 'x' }],
    ['a name that cannot be sent', { 'top-secret ': 'x' }],
  ])('S7 %s: tried again, and no error tells the value', async (_what, headers) => {
    const error: unknown = await publishTo([], headers).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ class: 'auth', code: 'headers' });
    expect(error).not.toHaveProperty('cause');
    expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain('top-secret');
  });
});

it('R7 a redirect that a browser does not follow may pass, and is no answer', async () => {
  const opaque = Object.assign(new Response(''), {});
  Object.defineProperty(opaque, 'status', { value: 0 });
  const context = standalonePublishContext({ fetch: () => Promise.resolve(opaque), clock: new ManualClock() });
  await expect(context.fetch(url)).rejects.toMatchObject({ class: 'network', code: 'not-couchdb' });
});

describe('the key of an event', () => {
  it('S8 is text that a header can hold, and tells all ids apart', () => {
    const ids = [
      'a',
      'A',
      'a b',
      'a%20b',
      'é',
      'e\u0301',
      '😀',
      '\ud83d',
      '\ude00',
      '%uD83D',
      'a"b',
      'a\\b',
      'a\nb',
      '',
    ];
    const keys = ids.map(idempotencyKey);
    expect(new Set(keys).size).toBe(ids.length);
    for (const key of keys) expect(key).toMatch(/^"[\w.!~*'()%-]*"$/);
  });

  it('S8 is read back by decoding it', () => {
    const id = 's1:o:a/b %2F 日本 😀 "q"';
    expect(decodeURIComponent(idempotencyKey(id).slice(1, -1))).toBe(id);
  });
});
