import { describe, expect, it } from 'vitest';
import { DivisibleError, RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { WriteAnswer } from '../model/pouch.js';
import { readDividing, writeDividing } from './divide.js';

const docs = (count: number): Doc[] => Array.from({ length: count }, (_, at) => ({ _id: `d${String(at)}` }));
const ok = (part: readonly Doc[]): WriteAnswer => ({
  rows: part.map(({ _id }) => ({ id: _id, ok: true, rev: '1-x' })),
});

describe('a write that is refused as a whole', () => {
  it('R11 is halved until it fits', async () => {
    const sizes: number[] = [];
    const answer = await writeDividing(docs(40), (part) => {
      sizes.push(part.length);
      return part.length > 10 ? Promise.reject(new DivisibleError('too_large', 413)) : Promise.resolve(ok(part));
    });
    expect(sizes).toEqual([40, 20, 10, 10, 20, 10, 10]);
    expect(answer.rows).toHaveLength(40);
    expect(answer.error).toBeUndefined();
  });

  it('R11 a row that is refused alone is the one, the rest goes on', async () => {
    const answer = await writeDividing(docs(9), (part) =>
      part.some(({ _id }) => _id === 'd5')
        ? Promise.reject(new DivisibleError('too_large', 413))
        : Promise.resolve(ok(part)),
    );
    expect(answer.rows.filter((row) => !row.ok)).toMatchObject([{ id: 'd5', error: 'too_large' }]);
    expect(answer.rows).toHaveLength(9);
  });

  it('R8 keeps what was answered before an error', async () => {
    let calls = 0;
    const answer = await writeDividing(docs(4), (part) => {
      calls++;
      if (calls === 1) return Promise.reject(new DivisibleError('too_large', 413));
      if (calls === 2) return Promise.resolve(ok(part));
      return Promise.reject(new RetryableError('gone', { class: 'network' }));
    });
    expect(answer.rows.map(({ id }) => id)).toEqual(['d0', 'd1']);
    expect(answer.error).toBeInstanceOf(RetryableError);
  });
});

it('R11 a read by keys is halved too', async () => {
  const found = await readDividing(['a', 'b', 'c'], (ids) =>
    ids.includes('b')
      ? Promise.reject(new DivisibleError('unexpected', 400))
      : Promise.resolve(ids.map((id) => ({ id, rev: undefined, deleted: false, doc: undefined }))),
  );
  expect(found.get('b')).toBeInstanceOf(DivisibleError);
  expect(found.get('a')).toMatchObject({ id: 'a' });
  expect(found.size).toBe(3);
});
