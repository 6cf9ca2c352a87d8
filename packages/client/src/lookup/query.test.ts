import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { IndexDefinition, IndexQuery, IndexQueryOptions } from '../model/lookup.js';
import { defineIndex } from './define.js';
import type { KeptIndex } from './kept-index.js';
import { LookupBed } from './lookup-bed.fixture.js';

const byWord: IndexDefinition = defineIndex({ name: 'by-word', version: 1, keys: (doc) => doc['words'] as string[] });

let bed: LookupBed;
let index: KeptIndex;
beforeEach(async () => {
  bed = new LookupBed();
  const words: Record<string, unknown> = {
    a: ['ash', 'ashes', 'birch'],
    b: ['ash'],
    c: ['birch', 'birch'],
    d: 'cedar',
    e: [1, 2, 30],
    f: [
      ['place', 'p1'],
      ['place', 'p1', 'x'],
      ['place', 'p2'],
    ],
    g: ['as\uffff', 'as\uffff\uffffz', 'at'],
    h: [],
    i: [
      ['place', 'p1'],
      ['place', 'p1'],
    ],
    constructor: ['toString', '__proto__'],
  };
  await bed.pouch.bulkDocs(Object.entries(words).map(([_id, list]) => ({ _id, words: list })));
  index = bed.open(byWord);
  await bed.until(index.build());
});
afterEach(async () => {
  vi.restoreAllMocks();
  await bed.close();
});

const ask = async (query: IndexQuery, options?: IndexQueryOptions): Promise<unknown[]> =>
  (await bed.until(index.query(query, options))).rows.map(({ id, key }) => [id, key]);

describe('queries', () => {
  it('B5 by one key: a text, a number, a list', async () => {
    expect(await ask('ash')).toEqual([
      ['a', 'ash'],
      ['b', 'ash'],
    ]);
    expect(await ask('cedar')).toEqual([['d', 'cedar']]);
    expect(await ask(30)).toEqual([['e', 30]]);
    expect(await ask(['place', 'p1'])).toEqual([
      ['f', ['place', 'p1']],
      ['i', ['place', 'p1']],
    ]);
    expect(await ask('nobody')).toEqual([]);
    expect(await ask('__proto__')).toEqual([['constructor', '__proto__']]);
  });

  it('B5 by several keys, in the order of the keys, each once', async () => {
    expect(await ask({ keys: ['cedar', 'ash', 'ash', 2] })).toEqual([
      ['e', 2],
      ['a', 'ash'],
      ['b', 'ash'],
      ['d', 'cedar'],
    ]);
    expect(await ask({ keys: [] })).toEqual([]);
  });

  it('B5 by a range: the bounds belong to it unless it says otherwise', async () => {
    expect(await ask({ from: 'ash', to: 'birch' })).toEqual([
      ['a', 'ash'],
      ['b', 'ash'],
      ['a', 'ashes'],
      ['g', 'as\uffff'],
      ['g', 'as\uffff\uffffz'],
      ['g', 'at'],
      ['a', 'birch'],
      ['c', 'birch'],
    ]);
    expect(await ask({ from: 'ash', to: 'ashes', afterFrom: true })).toEqual([['a', 'ashes']]);
    expect(await ask({ from: 'ash', to: 'ashes', beforeTo: true })).toEqual([
      ['a', 'ash'],
      ['b', 'ash'],
    ]);
    expect(await ask({ from: 2, to: 30 })).toEqual([
      ['e', 2],
      ['e', 30],
    ]);
    expect(await ask({ from: 'cedar', to: 'ash' })).toEqual([]);
    expect(await ask({ from: 'ash', to: 'ash', beforeTo: true })).toEqual([]);
    expect((await ask({ to: 2 })).length).toBe(2);
    expect((await ask({})).length).toBe(18);
  });

  it('B5 by what a text begins with, whatever comes after it', async () => {
    expect(await ask({ prefix: 'as' })).toEqual([
      ['a', 'ash'],
      ['b', 'ash'],
      ['a', 'ashes'],
      ['g', 'as\uffff'],
      ['g', 'as\uffff\uffffz'],
    ]);
    expect(await ask({ prefix: 'as\uffff' })).toEqual([
      ['g', 'as\uffff'],
      ['g', 'as\uffff\uffffz'],
    ]);
    expect(await ask({ prefix: '' })).toHaveLength(11);
  });

  it('B5 by what a list begins with', async () => {
    expect(await ask({ prefix: ['place', 'p1'] })).toEqual([
      ['f', ['place', 'p1']],
      ['i', ['place', 'p1']],
      ['f', ['place', 'p1', 'x']],
    ]);
    expect(await ask({ prefix: ['place'] })).toHaveLength(4);
    expect(await ask({ prefix: [] })).toHaveLength(4);
  });

  it('B5 at most so many rows', async () => {
    expect(await ask('ash', { limit: 1 })).toEqual([['a', 'ash']]);
    expect(await ask({ keys: ['ash', 'birch'] }, { limit: 3 })).toEqual([
      ['a', 'ash'],
      ['b', 'ash'],
      ['a', 'birch'],
    ]);
  });

  it('B5 a document with very many keys is found by each, and its list is not read once for each', async () => {
    const many = Array.from({ length: 1000 }, (_, n) => `k${String(n).padStart(4, '0')}`);
    await bed.edit('a', { words: many });
    await bed.edit('b', { words: ['k0500', 'k0500x'] });
    await bed.until(index.build());
    const listsForEachKey = vi.spyOn(IDBIndex.prototype, 'getAll');
    const rows = await ask({ prefix: 'k' });
    expect(listsForEachKey).not.toHaveBeenCalled();
    expect(rows).toEqual([
      ...many.slice(0, 501).map((key) => ['a', key]),
      ['b', 'k0500'],
      ['b', 'k0500x'],
      ...many.slice(501).map((key) => ['a', key]),
    ]);
    expect(await ask({ prefix: 'k05' }, { limit: 3 })).toEqual([
      ['a', 'k0500'],
      ['b', 'k0500'],
      ['b', 'k0500x'],
    ]);
  });

  it('B5 a limit that is larger than IndexedDB takes is no limit', async () => {
    expect((await ask({}, { limit: 2 ** 33 })).length).toBe(18);
  });

  for (const waitMs of [Infinity, 2 ** 31]) {
    it(`B7 waits for ${String(waitMs)} ms as long as a timer can: one of a longer time would end at once`, async () => {
      await bed.edit('a', { words: ['birch'] });
      const { setTimer } = bed.clock;
      const timers: number[] = [];
      bed.clock.setTimer = (run, delayMs) => {
        timers.push(delayMs);
        return setTimer.call(bed.clock, run, delayMs);
      };
      expect(await ask('ash', { waitMs })).toEqual([['b', 'ash']]);
      expect(Math.max(...timers)).toBe(2 ** 31 - 1);
    });
  }

  it('B5 with the documents as they are now', async () => {
    const { rows } = await bed.until(index.query('ash', { include_docs: true }));
    expect(rows.map(({ doc }) => doc?.['words'])).toEqual([['ash', 'ashes', 'birch'], ['ash']]);
    expect((await bed.until(index.query('ash'))).rows[0]).toEqual({ id: 'a', key: 'ash' });
  });

  for (const [what, query, field] of [
    ['null', null, 'query'],
    ['undefined', undefined, 'query'],
    ['a boolean', true, 'query'],
    ['a Date', new Date(0), 'query'],
    ['a Map', new Map([['from', 'a']]), 'query'],
    ['NaN', NaN, 'query'],
    ['a list with an object', ['a', {}], 'query'],
    ['a list with a hole', Object.assign(['a'], { 2: 'b' }), 'query'],
    ['a bound with a hole', { from: Object.assign(['a'], { 2: 'b' }) }, 'from'],
    ['a prefix with a hole', { prefix: Object.assign(['a'], { 2: 'b' }) }, 'prefix'],
    ['an unknown field', { form: 'a' }, 'form'],
    ['a bound that is no key', { from: {} }, 'from'],
    ['a bound that is undefined', { to: undefined }, 'to'],
    ['keys and a range', { keys: ['a'], from: 'b' }, 'from'],
    ['keys that are no list', { keys: 'a' }, 'keys'],
    ['a bad key among keys', { keys: ['a', null] }, 'keys.1'],
    ['a prefix that is a number', { prefix: 5 }, 'prefix'],
    ['a flag that is no flag', { from: 'a', afterFrom: 1 }, 'afterFrom'],
  ] as const) {
    it(`S9 ${what} is refused, and the error names what is wrong`, async () => {
      await expect(index.query(query as unknown as IndexQuery)).rejects.toMatchObject({
        code: 'invalid_request',
        issues: [{ field }],
      });
    });
  }

  for (const [options, field] of [
    [{ limit: 0 }, 'limit'],
    [{ limit: 1.5 }, 'limit'],
    [{ includeDocs: true }, 'includeDocs'],
    [{ include_docs: 1 }, 'include_docs'],
    [{ waitMs: -1 }, 'waitMs'],
    [{ waitMs: null }, 'waitMs'],
    [{ stale: 'ok' }, 'stale'],
  ] as const) {
    it(`S9 the option ${JSON.stringify(options)} is refused, and the error names it`, async () => {
      await expect(index.query('a', options as unknown as IndexQueryOptions)).rejects.toMatchObject({
        issues: [{ field }],
      });
    });
  }
});
