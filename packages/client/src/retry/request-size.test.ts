import { describe, expect, it } from 'vitest';
import { bodyBytes, bodyOf, inRequests, RequestLimit, sendable, type Sendable } from './request-size.js';

const frame = { before: '{"docs":[', after: ']}' };
const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
const item = (id: string, content = ''): Sendable => sendable(id, JSON.stringify({ _id: id, content }));
/** Contents that are one, two, three and four bytes a sign. */
const contents = ['plain', 'Zażółć gęślą jaźń', 'नमस्ते दुनिया', '🌧️🏥', '\u0000"\\'];
const mixed = Array.from({ length: 200 }, (_, at) =>
  item(`d${String(at)}`, (contents[at % contents.length] ?? '').repeat(1 + (at % 7))),
);

describe('items cut into requests', () => {
  it.each([1, 150, 300, 1000, 5000, 1_000_000])(
    'R11 stay within %d bytes of UTF-8, but for one that is larger alone; nothing is lost',
    (bytes) => {
      const requests = [...inRequests(mixed, frame, { bytes })];
      for (const request of requests) {
        const body = bodyOf(frame, request);
        expect(bytesOf(body)).toBe(bodyBytes(frame, request));
        if (request.length > 1) expect(bytesOf(body)).toBeLessThanOrEqual(bytes);
        expect(JSON.parse(body)).toEqual({ docs: request.map(({ text }) => JSON.parse(text) as unknown) });
      }
      expect(requests.flat()).toEqual(mixed);
    },
  );

  it('R11 are as few as fit: one more item would be too many', () => {
    const bytes = 1000;
    const requests = [...inRequests(mixed, frame, { bytes })];
    requests.slice(0, -1).forEach((request, at) => {
      const next = requests[at + 1]?.[0];
      if (next !== undefined) expect(bodyBytes(frame, [...request, next])).toBeGreaterThan(bytes);
    });
    expect([...inRequests(mixed, frame, { bytes: 1_000_000 })]).toHaveLength(1);
  });

  it('R10 never hold one document twice', () => {
    const items = ['a', 'b', 'a', 'a', 'c', '__proto__', '__proto__'].map((id) => item(id));
    const requests = [...inRequests(items, frame, { bytes: 1_000_000 })].map((part) => part.map(({ _id }) => _id));
    expect(requests).toEqual([['a', 'b'], ['a'], ['a', 'c', '__proto__'], ['__proto__']]);
  });

  it('R11 follow the limit while they are sent', () => {
    const limit = { bytes: 1_000_000 };
    const requests = inRequests(
      Array.from({ length: 9 }, (_, at) => item(String(at))),
      frame,
      limit,
    );
    limit.bytes = 1;
    expect(requests.next().value).toHaveLength(1);
    limit.bytes = 1_000_000;
    expect(requests.next().value).toHaveLength(8);
  });

  it('R11 are none when there is nothing to send', () => {
    expect([...inRequests([], frame, { bytes: 1000 })]).toEqual([]);
  });
});

describe('the limit of requests', () => {
  it('R11 falls to half of what was refused, and never rises by a refusal', () => {
    const limit = new RequestLimit(1_000_000);
    limit.refused(900_000);
    expect(limit.bytes).toBe(450_000);
    limit.refused(2_000_000);
    expect(limit.bytes).toBe(450_000);
    limit.refused(1);
    expect(limit.bytes).toBe(1);
  });

  it('R11 grows back slowly, by requests that nearly fill it, up to the option and no further', () => {
    const limit = new RequestLimit(1_000_000);
    limit.refused(1_000_000);
    for (let at = 0; at < 1000; at++) limit.taken(1000);
    expect(limit.bytes).toBe(500_000);
    limit.taken(500_000);
    expect(limit.bytes).toBeGreaterThan(500_000);
    expect(limit.bytes).toBeLessThan(550_000);
    let steps = 0;
    for (; limit.bytes < 1_000_000 && steps < 1000; steps++) limit.taken(limit.bytes);
    expect(steps).toBeGreaterThan(10);
    limit.taken(5_000_000);
    expect(limit.bytes).toBe(1_000_000);
  });

  it('R11 grows from the smallest size too', () => {
    const limit = new RequestLimit(1000);
    limit.refused(1);
    for (let at = 0; at < 1000; at++) limit.taken(limit.bytes);
    expect(limit.bytes).toBe(1000);
  });
});
