import { describe, expect, it } from 'vitest';
import type { PouchLike, WriteAnswer } from '../model/pouch.js';
import { classifyRow } from '../retry/classify.js';
import { LocalDatabase } from './local-database.js';
import { stubServer } from '../http/stub-server.fixture.js';

/** Words of rows, with what each means: written down again, not read from the table. */
const words: readonly (readonly [word: string, meaning: string])[] = [
  ['conflict', 'conflict conflict'],
  ['unauthorized', 'auth unauthorized'],
  ['internal_server_error', 'passing internal_server_error'],
  ['timeout', 'passing timeout'],
  ['service_unavailable', 'passing service_unavailable'],
  ['unknown_error', 'passing unknown_error'],
  ['indexed_db_went_bad', 'passing indexed_db_went_bad'],
  ['InvalidStateError', 'passing InvalidStateError'],
  ['QuotaExceededError', 'passing QuotaExceededError'],
  ['forbidden', 'failed forbidden'],
  ['too_large', 'failed too_large'],
  ['document_too_large', 'failed too_large'],
  ['missing_stub', 'failed missing_stub'],
  ['doc_validation', 'failed invalid_doc'],
  ['illegal_docid', 'failed invalid_id'],
  ['bad_request', 'failed unexpected'],
  ['Conflict', 'failed unexpected'],
  ['timeout after 4000ms', 'failed unexpected'],
  ['patient-4013', 'failed unexpected'],
  ['constructor', 'failed unexpected'],
  ['', 'failed unexpected'],
];
/** Statuses of single rows: PouchDB invents them. */
const rowStatuses = [undefined, 200, 401, 403, 409, 412, 413, 500, 503];
const docs = ['a', 'b', 'c'].map((id) => ({ _id: id }));
const ok = (id: string): object => ({ id, ok: true, rev: '1-x' });
const forbiddenAnswer = { userCtx: { name: 'amber', roles: [] } };

const remote = async (rows: readonly unknown[], status?: number): Promise<WriteAnswer> =>
  stubServer((path) =>
    path === '/_bulk_docs' ? { json: rows, ...(status === undefined ? {} : { status }) } : { json: forbiddenAnswer },
  ).write(docs);
const local = (rows: unknown[]): Promise<WriteAnswer> =>
  new LocalDatabase(() => ({ bulkDocs: () => Promise.resolve(rows) }) as unknown as PouchLike).write(docs);

const meaningOf = (answer: WriteAnswer, id: string): string => {
  const row = answer.rows.find((one) => one.id === id);
  if (row === undefined) return 'nothing';
  if (row.ok) return 'ok';
  const { kind, code } = classifyRow(row.error);
  return `${kind} ${code}`;
};

describe.each(words)('a row `%s`', (word, meaning) => {
  it('R4 R7 means the same from CouchDB and from PouchDB, with any status and any message', async () => {
    for (const status of rowStatuses) {
      for (const message of ['made up', 'timeout after 4000ms', 'patient-4013', 'conflict']) {
        const fromPouch = { id: 'b', status, name: word, error: true, message, reason: message };
        const fromCouch = { id: 'b', status, error: word, name: 'conflict', reason: message };
        // Through PouchDB's http adapter: the word in both, the status is its own.
        const through = { id: 'b', status: 500, error: word, name: word, message };
        for (const row of [fromPouch, fromCouch, through]) {
          expect(meaningOf(await remote([ok('a'), row, ok('c')]), 'b')).toBe(meaning);
        }
        expect(meaningOf(await local([ok('a'), fromPouch, ok('c')]), 'b')).toBe(meaning);
      }
    }
  });
});

describe('rows of a bulk write', () => {
  it.each([200, 201, 202, 400, 417, 500, 503])('R4 R10 count under the status %d', async (status) => {
    const answer = await remote([ok('a'), { id: 'b', error: 'bad_request', reason: 'x' }, ok('c')], status);
    expect(['a', 'b', 'c'].map((id) => meaningOf(answer, id))).toEqual(['ok', 'failed unexpected', 'ok']);
    expect(answer.error).toBeUndefined();
  });

  it('R10 are matched by id: refused rows may come first, or last', async () => {
    for (const rows of [
      [{ id: 'c', error: 'conflict' }, ok('b'), ok('a')],
      [ok('b'), { id: 'c', error: 'conflict' }, ok('a')],
    ]) {
      const answer = await remote(rows);
      expect(['a', 'b', 'c'].map((id) => meaningOf(answer, id))).toEqual(['ok', 'ok', 'conflict conflict']);
    }
  });

  it('R7 `accepted` is a success of a cluster', async () => {
    const answer = await remote([{ ...ok('a'), accepted: true }, ok('b'), ok('c')], 202);
    expect(meaningOf(answer, 'a')).toBe('ok');
    expect(answer.error).toBeUndefined();
  });

  it.each([
    ['left out', [ok('a'), ok('c')]],
    ['without an id', [ok('a'), { ok: true, rev: '1-x' }, ok('c')]],
    ['without a word', [ok('a'), { id: 'b' }, ok('c')]],
    ['null', [ok('a'), { id: 'b', rev: null }, ok('c')]],
  ])('R7 a row that is %s was not done, and the others count', async (_name, rows) => {
    const answer = await remote(rows);
    expect(['a', 'b', 'c'].map((id) => meaningOf(answer, id))).toEqual(['ok', 'nothing', 'ok']);
    expect(answer.error).toMatchObject({ class: 'network', code: 'short-answer' });
  });

  it('R7 an error that is neither text nor has a name is the server’s own trouble', async () => {
    const answer = await remote([ok('a'), { id: 'b', error: 500 }, ok('c')]);
    expect(meaningOf(answer, 'b')).toBe('passing unknown_error');
    const withRevision = { id: 'b', error: true, rev: '1-x', ok: true };
    expect(meaningOf(await remote([ok('a'), withRevision, ok('c')]), 'b')).toBe('passing unknown_error');
  });

  it('R7 under a status that acts by itself no row counts', async () => {
    const rows = [ok('a'), ok('b'), ok('c')];
    expect((await remote(rows, 429)).rows).toEqual([]);
    expect((await remote(rows, 401)).rows).toEqual([]);
  });
});
