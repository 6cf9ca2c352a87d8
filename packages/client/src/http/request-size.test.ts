import { beforeEach, describe, expect, it } from 'vitest';
import type { Doc } from '../model/json.js';
import type { ServerDatabase } from './server-database.js';
import { stubServer } from './stub-server.fixture.js';

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;
const docs = (count: number, name = ''): Doc[] =>
  Array.from({ length: count }, (_, at) => ({ _id: `${name}${String(at)}`, note: 'ż'.repeat(200) }));
const tooLarge = { status: 413, json: '<html>413</html>' };

describe('the size of requests', () => {
  let asked: { path: string; text: string; refused: boolean }[];
  /** The most that the server takes. */
  let most: number;
  beforeEach(() => {
    asked = [];
    most = Infinity;
  });

  const server = (maxRequestBytes?: number): ServerDatabase =>
    stubServer((path, text) => {
      const refused = bytesOf(text) > most;
      asked.push({ path, text, refused });
      return refused ? tooLarge : { json: taken(text) };
    }, maxRequestBytes);
  const taken = (text: string): unknown => {
    const body = JSON.parse(text) as { docs?: { _id?: string; id?: string }[]; keys?: string[] };
    if (body.keys !== undefined) return { rows: body.keys.map((key) => ({ key, error: 'not_found' })) };
    if (body.docs === undefined)
      return Object.fromEntries(Object.entries(body).map(([id, revs]) => [id, { missing: revs }]));
    if (body.docs[0]?.id !== undefined) return { results: body.docs.map(({ id }) => ({ id, docs: [{}] })) };
    return body.docs.map(({ _id }) => ({ id: _id, ok: true, rev: '1-x' }));
  };
  const sizes = (): number[] => asked.map(({ text }) => bytesOf(text));

  it('R11 is kept under the limit in bytes before the server says so, whatever the alphabet', async () => {
    const answer = await server(10_000).write(docs(100));
    expect(answer.error).toBeUndefined();
    expect(answer.rows).toHaveLength(100);
    expect(asked.length).toBeGreaterThanOrEqual(4);
    for (const size of sizes()) expect(size).toBeLessThanOrEqual(10_000);
  });

  it('R11 is one megabyte by default', async () => {
    const large = docs(3).map((doc) => ({ ...doc, note: 'ż'.repeat(300_000) }));
    await server().write(large);
    expect(asked).toHaveLength(3);
    asked = [];
    await server().write(docs(100));
    expect(asked).toHaveLength(1);
  });

  it('R11 a document that is larger than the limit is still tried alone', async () => {
    const [first, second, third] = docs(3);
    const answer = await server(1000).write([first, { ...second, note: 'x'.repeat(5000) }, third] as Doc[]);
    expect(answer.rows.map((row) => row.ok)).toEqual([true, true, true]);
    expect(sizes().filter((size) => size > 1000)).toHaveLength(1);
  });

  it('R11 a 413 lowers it: the next batch does not meet 413 again, and the rest of this one neither', async () => {
    const db = server(100_000);
    most = 20_000;
    await db.write(docs(500));
    // The first request and its halves: once 100 000, twice 50 000, four times 25 000 bytes.
    expect(asked.filter(({ refused }) => refused)).toHaveLength(7);
    expect(asked.length).toBeGreaterThan(15);
    expect(asked.slice(15).filter(({ refused }) => refused)).toEqual([]);
    asked = [];
    const answer = await db.write(docs(100, 'next'));
    expect(answer.rows).toHaveLength(100);
    expect(asked.filter(({ refused }) => refused)).toEqual([]);
  });

  it('R11 grows back to the option when the server takes more again', async () => {
    const db = server(100_000);
    most = 20_000;
    await db.write(docs(100));
    most = Infinity;
    for (let at = 0; at < 40; at++) await db.write(docs(250, String(at)));
    asked = [];
    await db.write(docs(400, 'last'));
    expect(Math.max(...sizes())).toBeGreaterThan(90_000);
    expect(Math.max(...sizes())).toBeLessThanOrEqual(100_000);
  });

  it('R11 one document that is refused alone says nothing about the size of requests', async () => {
    const sent: number[] = [];
    const db = stubServer((_path, text) => {
      sent.push((JSON.parse(text) as { docs: Doc[] }).docs.length);
      return text.includes('"_id":"7"') ? tooLarge : { json: taken(text) };
    });
    const answer = await db.write(docs(100));
    expect(answer.rows.filter((row) => !row.ok)).toMatchObject([{ id: '7', error: 'too_large' }]);
    sent.length = 0;
    await db.write(docs(100, 'next'));
    expect(sent).toEqual([100]);
  });

  it('R8 R11 when a later request fails, what was answered before is kept, once', async () => {
    let left = 2;
    const db = stubServer((_path, text) => (left-- > 0 ? { json: taken(text) } : 'reset'), 10_000);
    const answer = await db.write(docs(100));
    expect(answer.error).toMatchObject({ class: 'network' });
    const ids = answer.rows.map(({ id }) => id);
    expect(ids.length).toBeGreaterThan(20);
    expect(ids).toEqual(docs(ids.length).map(({ _id }) => _id));
  });

  it('R10 two writes of one document never go into one request', async () => {
    const [doc] = docs(1);
    await server().write([doc, doc] as Doc[]);
    expect(asked).toHaveLength(2);
  });

  it('R11 reads by keys, reads of revisions and the question for what is missing are bounded too', async () => {
    const db = server(2000);
    const ids = Array.from({ length: 100 }, (_, at) => `ż${String(at)}`.padEnd(80, '-'));
    expect(await db.read(ids)).toHaveLength(100);
    const missing = await db.missing(new Map(ids.map((id) => [id, ['1-x']])));
    await db.readRevisions(ids.flatMap((id) => [1, 2].map((generation) => ({ id, rev: `${String(generation)}-x` }))));
    expect(Math.max(...sizes())).toBeLessThanOrEqual(2000);
    expect(new Set(asked.map(({ path }) => path.split('?')[0]))).toEqual(
      new Set(['/_all_docs', '/_revs_diff', '/_bulk_get']),
    );
    expect(asked.length).toBeLessThan(60);
    expect(missing).toEqual(new Map(ids.map((id) => [id, ['1-x']])));
  });
});
