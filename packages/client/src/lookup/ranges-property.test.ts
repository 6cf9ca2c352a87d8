import 'fake-indexeddb/auto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { IndexKey, IndexKeys, IndexPrefix, IndexQuery, IndexRange } from '../model/lookup.js';
import { defineIndex } from './define.js';
import { LookupBed } from './lookup-bed.fixture.js';

const compare = (a: IndexKey, b: IndexKey): number => indexedDB.cmp(a, b);
const texts = ['', 'a', 'aa', 'b', 'a\uffff', '\uffff', '\ud83d', '\ud83d\ude00', '__proto__', 'constructor'];
const part = fc.constantFrom<(string | number)[]>(...texts, 0, -0, -1, 0.5, Infinity, -Infinity);
const parts = fc.array(part, { maxLength: 3 });
const key: fc.Arbitrary<IndexKey> = fc.oneof(part, parts);
const query: fc.Arbitrary<IndexQuery> = fc.oneof(
  key,
  fc.record({ keys: fc.array(key, { maxLength: 4 }) }),
  fc.record({ prefix: fc.oneof(fc.constantFrom(...texts), parts) }),
  fc.record({ from: key, to: key, afterFrom: fc.boolean(), beforeTo: fc.boolean() }, { requiredKeys: [] }),
);
const documents = fc.dictionary(
  fc.constantFrom('a', 'b', 'B', 'constructor', 'toString', '\ud800', 'x\udc00'),
  fc.array(key, { maxLength: 30 }),
  { maxKeys: 5 },
);

describe('any query', () => {
  it('B5 answers with the same rows, in the same order, as a look at each key of each document', async () => {
    await fc.assert(
      fc.asyncProperty(
        documents,
        fc.array(fc.tuple(query, fc.option(fc.integer({ min: 1, max: 5 }))), { minLength: 5, maxLength: 10 }),
        async (keysOf, asked) => {
          const bed = new LookupBed();
          try {
            await bed.pouch.bulkDocs(Object.keys(keysOf).map((_id) => ({ _id })));
            const index = bed.open(defineIndex({ name: 'any', version: 1, keys: ({ _id }) => keysOf[_id] }));
            await bed.until(index.build());
            for (const [one, limit] of asked) {
              const { rows } = await bed.until(index.query(one, limit === null ? {} : { limit }));
              expect(rows.map(shown)).toEqual(
                expected(keysOf, one)
                  .slice(0, limit ?? undefined)
                  .map(shown),
              );
            }
          } finally {
            await bed.close();
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});

interface Row {
  readonly id: string;
  readonly key: IndexKey;
}

function expected(keysOf: Readonly<Record<string, readonly IndexKey[]>>, asked: IndexQuery): readonly Row[] {
  const rows = Object.entries(keysOf).flatMap(([id, keys]) =>
    keys
      .filter((one, at) => fits(asked, one) && !keys.slice(0, at).some((earlier) => compare(earlier, one) === 0))
      .map((one): Row => ({ id, key: one })),
  );
  return rows.sort((a, b) => compare(a.key, b.key) || compare(a.id, b.id));
}

function fits(asked: IndexQuery, one: IndexKey): boolean {
  if (typeof asked !== 'object' || Array.isArray(asked)) return compare(asked as IndexKey, one) === 0;
  if ('keys' in asked) return (asked as IndexKeys).keys.some((each) => compare(each, one) === 0);
  if ('prefix' in asked) return begins(one, (asked as IndexPrefix).prefix);
  const { from, to, afterFrom = false, beforeTo = false } = asked as IndexRange;
  const [low, high] = [from === undefined ? 1 : compare(one, from), to === undefined ? -1 : compare(one, to)];
  return (low > 0 || (low === 0 && !afterFrom)) && (high < 0 || (high === 0 && !beforeTo));
}

function begins(one: IndexKey, prefix: IndexPrefix['prefix']): boolean {
  if (typeof prefix === 'string') return typeof one === 'string' && one.startsWith(prefix);
  if (!Array.isArray(one) || one.length < prefix.length) return false;
  return compare((one as (string | number)[]).slice(0, prefix.length), prefix) === 0;
}

/** As text: -0 is the same key as 0. */
function shown({ id, key: found }: Row): string {
  return JSON.stringify([id, found], (_name, value: unknown) =>
    typeof value === 'number' ? `n${String(value)}` : value,
  );
}
