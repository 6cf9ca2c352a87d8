import { beforeEach, describe, expect, it } from 'vitest';
import type { Credentials } from '../model/client.js';
import { RetryableError } from '../model/errors.js';
import { ManualClock } from '../retry/manual-clock.fixture.js';
import { Requests } from './requests.js';
import { ServerDatabase } from './server-database.js';
import { Session } from './session.js';

/** Answers that a server or a proxy might give, one after another: faults that no real server gives on demand. */
type Given = { status?: number; json?: unknown; text?: string } | 'reset';

describe('a database on a server', () => {
  let asked: { method: string; url: string; body: unknown }[];
  let answers: Given[];
  let session: Session;
  let credentials: Credentials;

  beforeEach(() => {
    asked = [];
    answers = [];
    credentials = { type: 'basic', username: 'amber', password: 'pw' };
  });

  const database = (url = 'http://couch.test/prefix/records'): ServerDatabase => {
    const clock = new ManualClock();
    session = new Session(
      // Whoever is asked again does not answer: the refusal stays to be seen.
      { credentials: (why) => (why === 'first' ? Promise.resolve(credentials) : new Promise(() => undefined)) },
      clock,
      () => undefined,
      () => undefined,
    );
    const requests = new Requests({
      fetch: (input, init) => {
        asked.push({
          method: init?.method ?? 'GET',
          url: String(input as string),
          body: typeof init?.body === 'string' ? (JSON.parse(init.body) as unknown) : undefined,
        });
        const next = answers.shift();
        if (next === undefined || next === 'reset') return Promise.reject(new TypeError('Failed to fetch'));
        return Promise.resolve(new Response(next.text ?? JSON.stringify(next.json), { status: next.status ?? 200 }));
      },
      session,
      clock,
      timeoutMs: 60_000,
      closed: new AbortController().signal,
      server: url,
    });
    return new ServerDatabase(url, requests);
  };
  const refused = {
    json: [
      { id: 'a', ok: true, rev: '2-x' },
      { id: 'b', error: 'forbidden', reason: 'made up' },
    ],
  };
  const docs = [{ _id: 'a' }, { _id: 'b' }];

  it('R12 a row `forbidden` is permanent when the server knows us: one question for the batch', async () => {
    answers = [refused, { json: { ok: true, userCtx: { name: 'amber', roles: [] } } }];
    const { rows, error } = await database().write(docs);
    expect(rows).toMatchObject([
      { id: 'a', ok: true },
      { id: 'b', error: 'forbidden' },
    ]);
    expect(error).toBeUndefined();
    expect(asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST http://couch.test/prefix/records/_bulk_docs',
      'GET http://couch.test/prefix/_session',
    ]);
  });

  it.each([null, 'basil'])('R12 a row `forbidden` for another user (%s) waits for credentials', async (name) => {
    answers = [refused, { json: { ok: true, userCtx: { name, roles: [] } } }];
    const { rows } = await database().write(docs);
    expect(rows).toMatchObject([
      { id: 'a', ok: true },
      { id: 'b', error: 'unauthorized' },
    ]);
    expect(session.isRefused).toBe(true);
  });

  it('R12 without an answer to that question the row is tried again, and the others count', async () => {
    answers = [refused, 'reset'];
    const { rows, error } = await database().write(docs);
    expect(rows.map(({ id }) => id)).toEqual(['a']);
    expect(error).toBeInstanceOf(RetryableError);
  });

  it('R12 with a token the user is the one whom the server named first', async () => {
    credentials = { type: 'bearer', token: 'made-up' };
    const db = database();
    answers = [refused, { json: { userCtx: { name: 'clove' } } }];
    expect((await db.write(docs)).rows).toMatchObject([{}, { error: 'forbidden' }]);
    answers = [refused, { json: { userCtx: { name: 'dill' } } }];
    expect((await db.write(docs)).rows).toMatchObject([{}, { error: 'unauthorized' }]);
  });

  it('R12 asks nothing when no row is forbidden', async () => {
    answers = [
      {
        json: [
          { id: 'a', ok: true, rev: '2-x' },
          { id: 'b', error: 'conflict' },
        ],
      },
    ];
    await database().write(docs);
    expect(asked).toHaveLength(1);
  });

  it('R7 fewer rows than were asked for: those that are there count, the others are tried again', async () => {
    answers = [{ json: [{ id: 'b', ok: true, rev: '2-x' }] }];
    const { rows, error } = await database().write(docs);
    expect(rows).toEqual([{ id: 'b', ok: true, rev: '2-x' }]);
    expect(error).toMatchObject({ class: 'network', code: 'short-answer' });
  });

  it('R7 reads what CouchDB and what PouchDB write in a row', async () => {
    answers = [
      {
        json: [
          { id: 'a', error: true, name: 'conflict', status: 500, message: 'made up' },
          { id: 'b', error: 'doc_validation', reason: 'made up', status: 500 },
        ],
      },
    ];
    const { rows } = await database().write(docs);
    expect(rows).toMatchObject([{ error: 'conflict' }, { error: 'doc_validation', reason: 'made up' }]);
  });

  it('R7 a read that leaves a document out is not an answer that it is missing', async () => {
    answers = [{ json: { rows: [{ key: 'a', error: 'not_found' }] } }];
    await expect(database().read(['a', 'b'])).rejects.toMatchObject({ class: 'network' });
    answers = [
      {
        json: {
          rows: [
            { key: 'b', id: 'b', value: { rev: '1-x' }, doc: { _id: 'b', _rev: '1-x' } },
            { key: 'a', error: 'not_found' },
          ],
        },
      },
    ];
    const rows = await database().read(['a', 'b']);
    expect(rows).toMatchObject([
      { id: 'a', rev: undefined, doc: undefined },
      { id: 'b', rev: '1-x', doc: { _id: 'b' } },
    ]);
  });

  const nowhere = '"afield:no-such-document":{"missing":["1-00000000000000000000000000000000"]}';

  it.each(['{}', '{"ok":true}', '[]', '{"a":{}}'])('8 %s is no answer to what is missing', async (text) => {
    answers = [{ text }];
    await expect(database().missing(new Map([['a', ['1-x']]]))).rejects.toMatchObject({ code: 'not-couchdb' });
  });

  it.each([
    { key: 'a', id: 'a', value: { rev: '1-x' } },
    { key: 'a', id: 'a', value: { rev: '1-x' }, doc: null },
    { key: 'a', id: 'a', value: { rev: '1-x' }, doc: { _id: 'other', _rev: '1-x' } },
    { key: 'a', id: 'a', value: { rev: '1-x' }, doc: { _id: 'a', _rev: '2-y' } },
  ])('R7 a live row without its own document is no missing document: %j', async (row) => {
    answers = [{ json: { rows: [row] } }];
    await expect(database().read(['a'])).rejects.toMatchObject({ class: 'network', code: 'short-answer' });
  });

  it('8 a row of a write that says neither `ok` nor a revision says nothing', async () => {
    answers = [{ json: [{ id: 'a' }, { id: 'b', rev: '2-x' }] }];
    const { rows, error } = await database().write(docs);
    expect(rows.map(({ id }) => id)).toEqual(['b']);
    expect(error).toMatchObject({ code: 'short-answer' });
  });

  it('S8 ids are data, never part of an address, and `__proto__` is one of them', async () => {
    answers = [{ text: `{"__proto__":{"missing":["1-x"]},${nowhere}}` }];
    const missing = await database().missing(
      new Map([
        ['__proto__', ['1-x']],
        ['a/b?c#d', ['1-y']],
      ]),
    );
    expect([...missing]).toEqual([['__proto__', ['1-x']]]);
    expect(Object.entries(asked[0]?.body as object)).toEqual([
      ['__proto__', ['1-x']],
      ['a/b?c#d', ['1-y']],
      ['afield:no-such-document', ['1-00000000000000000000000000000000']],
    ]);
    expect(({} as Record<string, unknown>)['missing']).toBeUndefined();
  });

  const row = (id: string): object => ({ key: id, value: { rev: '1-x' }, doc: { _id: id, _rev: '1-x' } });
  const rows = (from: number, to: number): object[] =>
    Array.from({ length: to - from }, (_, at) => row(`d${String(from + at)}`));

  it('reads a range page by page, and asks for ids as they are', async () => {
    answers = [{ json: { rows: rows(1000, 2001) } }, { json: { rows: rows(2000, 2002) } }];
    const found = await database().range('d/&#', 'd\uffff');
    expect(found.map(({ _id }) => _id)).toEqual(rows(1000, 2002).map((one) => (one as { key: string }).key));
    const [first, second] = asked.map(({ url }) => new URL(url).searchParams);
    expect(Object.fromEntries(first ?? [])).toMatchObject({ startkey: '"d/&#"', endkey: '"d\uffff"', limit: '1001' });
    expect(second?.get('startkey')).toBe('"d2000"');
  });

  it.each([
    ['rows without their documents', { rows: [{ key: 'd1', value: { rev: '1-x' } }] }],
    ['another document', { rows: [{ ...row('d1'), doc: { _id: 'd2', _rev: '1-x' } }] }],
    ['a page that leads to itself', { rows: [...rows(1000, 2000), row('d')] }],
    ['no rows', { ok: true }],
  ])('R7 a range with %s is not taken for an answer', async (_, json) => {
    answers = [{ json }];
    await expect(database().range('d', 'e')).rejects.toMatchObject({ code: 'not-couchdb' });
  });
});
