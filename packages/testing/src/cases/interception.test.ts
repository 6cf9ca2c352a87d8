import { describe, expect, it } from 'vitest';
import { FaultBook } from './fault-book.js';
import { Interception, type Answer, type Outcome } from './interception.js';
import type { Database } from './database.js';
import type { JsonObject } from './json.js';
import type { Fault } from './schema.js';
import { seenRequest, Traffic } from './traffic.js';

interface Tried {
  readonly outcome: Outcome;
  /** Bodies that reached the server. */
  readonly forwarded: readonly JsonObject[];
  readonly edits: readonly JsonObject[];
  readonly traffic: Traffic;
}

const docs = [
  { _id: 'p1', _rev: '1-a' },
  { _id: 'p2', _rev: '1-b' },
  { _id: 'p3', _rev: '1-c' },
];

/** A server that stores all rows and answers them in the other order, behind one fault. */
async function write(
  when: object,
  todo: object,
  at: 'request' | 'row' = 'request',
  url = '/main/_bulk_docs',
  more: readonly object[] = [],
): Promise<Tried> {
  const forwarded: JsonObject[] = [];
  const edits: JsonObject[] = [];
  const database: Database = {
    winner: () => Promise.resolve({ rev: '1-a', deleted: false, doc: { _id: 'p1', _rev: '1-a', name: 'old' } }),
    revisions: () => Promise.resolve(new Set()),
    write: (doc) => Promise.resolve(void edits.push(doc)),
    attachment: () => Promise.resolve(undefined),
    feed: () => Promise.resolve([]),
    liveIds: () => Promise.resolve([]),
  };
  const traffic = new Traffic(() => true, true);
  const interception = new Interception({
    faults: new FaultBook([{ at, when, do: todo }, ...more] as Fault[], true, () => 0),
    traffic,
    wordOf: (name) => name,
    database: () => database,
    carriedOut: () => undefined,
    edited: () => undefined,
    now: () => Date.UTC(2026, 0, 1),
  });
  const text = JSON.stringify({ docs });
  const outcome = await interception.answer(seenRequest('POST', `${url}?x=1`, text), (body = text) => {
    const given = JSON.parse(body) as { docs: { _id: string }[] };
    forwarded.push(given);
    const rows = given.docs.map((doc) => ({ ok: true, id: doc._id, rev: '2-x' })).reverse();
    return Promise.resolve<Answer>({ status: 201, headers: { 'content-length': '9' }, body: JSON.stringify(rows) });
  });
  return { outcome, forwarded, edits, traffic };
}

const rowsIn = (outcome: Outcome): JsonObject[] =>
  'body' in outcome ? (JSON.parse(outcome.body) as JsonObject[]) : [];
const idsIn = (tried: Tried): unknown[] =>
  tried.forwarded.map((body) => (body['docs'] as { _id: string }[]).map((doc) => doc._id));

describe('a request fault', () => {
  it('answers in the place of the server, which does nothing', async () => {
    const tried = await write({ method: 'POST', path: '/_bulk_docs' }, { status: 503, body: { error: 'x' } });
    expect(tried.outcome).toMatchObject({ status: 503, body: '{"error":"x"}' });
    expect(tried.forwarded).toEqual([]);
  });

  it('lets the server work first, wholly or for some documents, and loses the answer', async () => {
    const whole = await write({}, { commit: true, network_error: 'reset' });
    expect(whole.outcome).toEqual({ networkError: 'reset' });
    expect(idsIn(whole)).toEqual([['p1', 'p2', 'p3']]);
    const part = await write({}, { commit_ids: ['p2'], status: 500, text: '' });
    expect(idsIn(part)).toEqual([['p2']]);
    expect(part.outcome).toMatchObject({ status: 500, body: '' });
  });

  it('changes the true answer: fewer rows, other rows, half of the bytes', async () => {
    expect(rowsIn((await write({}, { forward: true, keep_rows: 1 })).outcome).map((row) => row['id'])).toEqual(['p3']);
    const chosen = await write({}, { forward: true, answer_ids: ['p2', 'p1'] });
    expect(rowsIn(chosen.outcome).map((row) => row['id'])).toEqual(['p2', 'p1']);
    const [whole, cut] = [await write({}, { forward: true }), await write({}, { forward: true, cut_bytes_at: 0.5 })];
    const lengths = [whole, cut].map(({ outcome }) => ('body' in outcome ? outcome.body.length : 0));
    expect(lengths[1]).toBe(Math.floor((lengths[0] ?? 0) / 2));
    expect(cut.outcome).toMatchObject({ headers: {} });
  });

  it('lets the server work for some documents, and passes on its answer of these', async () => {
    const part = await write({}, { commit_ids: ['p3', 'p1'], forward: true });
    expect(idsIn(part)).toEqual([['p1', 'p3']]);
    expect(rowsIn(part.outcome).map((row) => row['id'])).toEqual(['p3', 'p1']);
  });

  it('finds a path as it was asked and as a person writes it', async () => {
    const user = '/_users/org.couchdb.user%3Abasil';
    for (const path of ['/_users/org.couchdb.user:basil', '/_users/org.couchdb.user%3Abasil']) {
      expect((await write({ path }, { status: 503, text: '' }, 'request', user)).outcome).toMatchObject({
        status: 503,
      });
    }
    const inUsers = { path: '/org.couchdb.user:basil', db: '_users' };
    expect((await write(inUsers, { status: 503, text: '' }, 'request', user)).outcome).toMatchObject({ status: 503 });
    const inMain = { path: inUsers.path };
    expect((await write(inMain, { status: 503, text: '' }, 'request', user)).outcome).toMatchObject({ status: 201 });
  });

  it('dates its answers on the clock of the harness, asked or not', async () => {
    const undated = await write({}, { status: 429, text: '', headers: { 'retry-after': '$now+120' } });
    expect(undated.outcome).toMatchObject({ headers: { date: 'Thu, 01 Jan 2026 00:00:00 GMT' } });
    const { outcome } = await write(
      {},
      { status: 429, text: '', headers: { date: '$now', 'retry-after': '$now+120' } },
    );
    expect(outcome).toMatchObject({
      headers: { date: 'Thu, 01 Jan 2026 00:00:00 GMT', 'retry-after': 'Thu, 01 Jan 2026 00:02:00 GMT' },
    });
  });

  it.each([
    [{ method: 'GET' }],
    [{ path: '/_all_docs' }],
    [{ rows_over: 3 }],
    [{ bytes_over: 10_000 }],
    [{ contains_id: 'p9' }],
    [{ db: 'results' }],
  ])('passes by what it does not concern (%j)', async (when) => {
    expect((await write(when, { status: 503, text: '' })).outcome).toMatchObject({ status: 201 });
  });

  it.each([
    [{ method: '*', path: '*' }],
    [{ rows_over: 2 }],
    [{ bytes_over: 20 }],
    [{ contains_id: 'p2' }],
    [{ db: 'main' }],
  ])('hits what it concerns (%j)', async (when) => {
    expect((await write(when, { status: 503, text: '' })).outcome).toMatchObject({ status: 503 });
  });

  it('changes headers and status of the true answer too', async () => {
    const { outcome } = await write({}, { forward: true, keep_rows: 1, status: 202, headers: { 'retry-after': '7' } });
    expect(outcome).toMatchObject({ status: 202, headers: { 'retry-after': '7' } });
  });

  it('answers with nothing where only some documents were stored and no answer is given', async () => {
    const tried = await write({}, { commit_ids: ['p2'] });
    expect(idsIn(tried)).toEqual([['p2']]);
    expect(tried.outcome).toMatchObject({ status: 200, body: '' });
  });

  it('hits and counts what belongs to no database only where it is named', async () => {
    const session = (path: string): Promise<Tried> =>
      write({ path }, { status: 503, text: '' }, 'request', '/_session/_bulk_docs');
    expect((await session('/_session/_bulk_docs')).outcome).toMatchObject({ status: 503 });
    expect((await session('*')).outcome).toMatchObject({ status: 201 });
    expect([...(await session('*')).traffic.requests.keys()]).toEqual(['POST /_session/_bulk_docs']);
  });

  it('concerns the main database unless it says otherwise', async () => {
    expect((await write({}, { status: 503, text: '' }, 'request', '/results/_bulk_docs')).outcome).toMatchObject({
      status: 201,
    });
    expect(
      (await write({ db: 'results' }, { status: 503, text: '' }, 'request', '/results/_bulk_docs')).outcome,
    ).toMatchObject({
      status: 503,
    });
  });

  it('lets another actor edit first', async () => {
    const tried = await write({}, { before: { _id: 'p1', $edit: { name: 'new' } } });
    expect(tried.edits).toEqual([{ _id: 'p1', _rev: '1-a', name: 'new' }]);
    expect(idsIn(tried)).toEqual([['p1', 'p2', 'p3']]);
    const gone = await write({}, { before: { _id: 'p1', $delete: true } });
    expect(gone.edits).toEqual([{ _id: 'p1', _rev: '1-a', _deleted: true }]);
  });
});

describe('a row fault', () => {
  it('refuses its rows and carries out the others', async () => {
    const tried = await write({ ids: ['p2'] }, { error: 'forbidden', reason: 'made up' }, 'row');
    expect(idsIn(tried)).toEqual([['p1', 'p3']]);
    expect(rowsIn(tried.outcome)).toEqual([
      { ok: true, id: 'p1', rev: '2-x' },
      { id: 'p2', error: 'forbidden', reason: 'made up' },
      { ok: true, id: 'p3', rev: '2-x' },
    ]);
    expect(tried.outcome).toMatchObject({ status: 201, headers: {} });
  });

  it('says that a row was accepted, and sets the status of the whole', async () => {
    const tried = await write({ ids: ['p1'] }, { status: 202, ok: true, accepted: true, commit: true }, 'row');
    expect(tried.outcome).toMatchObject({ status: 202 });
    expect(rowsIn(tried.outcome)[0]).toEqual({ ok: true, id: 'p1', rev: '2-x', accepted: true });
    expect(idsIn(tried)).toEqual([['p1', 'p2', 'p3']]);
  });

  it('stores a row all the same where it says so', async () => {
    const tried = await write({ ids: ['p2'] }, { error: 'timeout', commit: true }, 'row');
    expect(idsIn(tried)).toEqual([['p1', 'p2', 'p3']]);
    expect(rowsIn(tried.outcome)[1]).toMatchObject({ id: 'p2', error: 'timeout' });
  });

  it('refuses its rows also where the answer to the whole is lost or cut', async () => {
    const refusal = { at: 'row', when: { ids: ['p2'] }, do: { error: 'forbidden', reason: 'made up' } };
    const lost = await write({}, { commit: true, network_error: 'reset' }, 'request', '/main/_bulk_docs', [refusal]);
    expect(idsIn(lost)).toEqual([['p1', 'p3']]);
    const cut = await write({}, { forward: true, keep_rows: 2 }, 'request', '/main/_bulk_docs', [refusal]);
    expect(idsIn(cut)).toEqual([['p1', 'p3']]);
    expect(rowsIn(cut.outcome).map((row) => row['error'])).toEqual([undefined, 'forbidden']);
  });

  it('counts the request and its documents, refused or not', async () => {
    const { traffic } = await write({ ids: ['p1', 'p2'], nth: 1 }, { error: 'x' }, 'row');
    expect(traffic.requests.get('POST /_bulk_docs')).toBe(1);
    expect(traffic.rowAttempts).toEqual(
      new Map([
        ['p1', 1],
        ['p2', 1],
        ['p3', 1],
      ]),
    );
  });
});
