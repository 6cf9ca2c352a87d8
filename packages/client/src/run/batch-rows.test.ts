import { describe, expect, it } from 'vitest';
import { DivisibleError, RetryableError, SignInRequiredError } from '../model/errors.js';
import type { DocumentStore, WriteRow } from '../model/pouch.js';
import { judgeWrite, readRows } from './batch-rows.js';

const docs = ['a', 'b', 'c'].map((_id) => ({ _id }));
const refused = (id: string, error: string): WriteRow => ({ id, ok: false, error, reason: `because of ${error}` });
const written = (id: string): WriteRow => ({ id, ok: true, rev: '1-x' });

describe('rows for actions that handle a batch as a whole', () => {
  it('R10 are matched by id: written, or failed for good, whatever their order', () => {
    const judged = judgeWrite(docs, { rows: [refused('c', 'forbidden'), written('b'), refused('a', 'too_large')] });
    expect([...judged.written]).toEqual(['b']);
    expect([...judged.failed]).toEqual([
      ['c', { code: 'forbidden', reason: 'because of forbidden' }],
      ['a', { code: 'too_large', reason: 'because of too_large' }],
    ]);
    expect(judged.error).toBeUndefined();
  });

  it('R7 a conflict, or a trouble of the server, is tried again, and no failure', () => {
    const judged = judgeWrite(docs, { rows: [refused('a', 'conflict'), refused('b', 'forbidden'), written('c')] });
    expect([[...judged.failed.keys()], [...judged.written]]).toEqual([['b'], ['c']]);
    expect(judged.error).toBeInstanceOf(RetryableError);
    expect(judged.error).toMatchObject({ class: 'conflict', code: 'conflict' });
    expect(judgeWrite(docs, { rows: [refused('a', 'timeout')] }).error).toMatchObject({ code: 'timeout' });
  });

  it('R12 signing in comes before everything else', () => {
    const rows = [refused('a', 'conflict'), refused('b', 'unauthorized')];
    expect(judgeWrite(docs, { rows, error: new RetryableError('cut off') }).error).toBeInstanceOf(SignInRequiredError);
  });

  it('what ended the write is its error; rows that no one asked for say nothing', () => {
    const error = new RetryableError('cut off');
    expect(judgeWrite(docs, { rows: [written('a'), refused('x', 'conflict')], error })).toMatchObject({
      written: new Set(['a']),
      error,
    });
    const ofOthers = judgeWrite(docs, { rows: [refused('x', 'unauthorized'), written('x')] });
    expect(ofOthers).toMatchObject({ written: new Set(), failed: new Map() });
    expect(ofOthers.error).toMatchObject({ class: 'network', code: 'short-answer' });
  });

  it('R9 what is neither written nor refused for good is named, to run again', () => {
    const rows = [refused('a', 'conflict'), refused('b', 'forbidden')];
    expect(judgeWrite(docs, { rows, error: new RetryableError('cut off') }).again).toEqual(new Set(['a', 'c']));
    expect(judgeWrite(docs, { rows: [...rows, written('c')] }).again).toEqual(new Set(['a']));
    const judged = judgeWrite(docs, { rows: [written('a'), refused('b', 'forbidden'), written('c')] });
    expect([judged.again.size, judged.error]).toEqual([0, undefined]);
  });

  it('R11 a read that is refused is halved, down to the one id that is refused', async () => {
    const asked: (readonly string[])[] = [];
    const store = {
      read: (ids: readonly string[]) => {
        asked.push(ids);
        if (ids.includes('c')) return Promise.reject(new DivisibleError('unexpected', 400));
        return Promise.resolve(ids.map((id) => ({ id, rev: undefined, deleted: false, doc: undefined })));
      },
    } as unknown as DocumentStore;
    const { rows, failed } = await readRows(store, ['a', 'b', 'c', 'd']);
    expect([[...rows.keys()].sort(), [...failed.keys()]]).toEqual([['a', 'b', 'd'], ['c']]);
    expect(failed.get('c')).toMatchObject({ code: 'unexpected' });
    expect((await readRows(store, [])).rows.size).toBe(0);
    expect(asked).toEqual([['a', 'b', 'c', 'd'], ['a', 'b'], ['c', 'd'], ['c'], ['d']]);
  });
});
