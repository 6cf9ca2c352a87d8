import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Doc } from '../model/json.js';
import { defineIndex } from './define.js';
import { LookupBed } from './lookup-bed.fixture.js';

/** What happens to a database and its index, in a random order. */
type Step =
  | { readonly do: 'write'; readonly ids: readonly number[]; readonly colour: number }
  | { readonly do: 'delete'; readonly id: number }
  | { readonly do: 'query' | 'build' | 'rebuild' | 'end' | 'open' | 'follow' | 'remake'; readonly tab: number }
  | {
      readonly do: 'fail';
      readonly times: number;
      readonly at: 'once' | 'later' | 'after-commit' | 'checkpoint' | 'dies';
    }
  | { readonly do: 'cut'; readonly tab: number; readonly afterWrites: number };

const colours = ['red', 'green', 'blue', undefined];
const tab = fc.nat({ max: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('write' as const),
      ids: fc.array(fc.nat({ max: 60 }), { minLength: 1, maxLength: 25 }),
      colour: fc.nat({ max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('delete' as const), id: fc.nat({ max: 60 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('query' as const), tab }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('build', 'rebuild', 'end', 'open', 'follow' as const), tab }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('fail' as const),
      times: fc.integer({ min: 1, max: 12 }),
      at: fc.constantFrom('once', 'later', 'after-commit', 'checkpoint', 'dies' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('cut' as const), tab, afterWrites: fc.integer({ min: 1, max: 6 }) }),
  },
);

const definition = defineIndex({
  name: 'by-colour',
  version: 1,
  batchSize: 5,
  keys: (doc) => (doc['colour'] === undefined ? [] : [doc['colour'] as string, `also ${String(doc['colour'])}`]),
});

describe('any history', () => {
  it('B3 B5 B7 B8 whatever fails, ends and starts again: an answer is the whole truth, and the end is as if nothing had been', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 25 }), fc.boolean(), async (steps, hasLocks) => {
        const bed = new LookupBed();
        await bed.pouch.info(); // PouchDB's memory adapter gives two names to a database that two open at once
        if (!hasLocks) bed.locks = { request: (_name, _signal, whileHeld) => whileHeld() };
        try {
          await historyHolds(bed, steps);
        } finally {
          bed.writeFault = undefined;
          await bed.close();
        }
      }),
      { numRuns: 100 },
    );
  });
});

async function historyHolds(bed: LookupBed, steps: readonly Step[]): Promise<void> {
  const tabs = [0, 1, 2].map(() => bed.openTab(definition));
  const tabOf = (at: number): (typeof tabs)[number] => tabs[at] as (typeof tabs)[number];
  const building: Promise<unknown>[] = [];
  const passed = (work: Promise<unknown>): void => void building.push(work.catch(() => undefined));
  for (const one of steps) {
    switch (one.do) {
      case 'write':
        await write(bed, one.ids, colours[one.colour]);
        break;
      case 'delete':
        if (await bed.pouch.get(`d${String(one.id)}`).catch(() => undefined))
          await bed.edit(`d${String(one.id)}`, { _deleted: true });
        break;
      case 'query':
        await answerIsTrue(bed, tabOf(one.tab).index, false);
        break;
      case 'build':
        passed(tabOf(one.tab).index.build());
        break;
      case 'rebuild':
        passed(tabOf(one.tab).index.rebuild());
        break;
      case 'follow':
        tabOf(one.tab).index.follow();
        break;
      case 'end':
        await bed.until(tabOf(one.tab).end());
        tabs[one.tab] = bed.openTab(definition);
        break;
      case 'open':
        await bed.until(
          tabOf(one.tab)
            .index.build()
            .catch(() => undefined),
        );
        break;
      case 'fail': {
        let left = one.times;
        bed.writeFault = () => {
          left -= 1;
          return left < 0
            ? undefined
            : { at: one.at, error: new DOMException('made to fail', left % 4 === 3 ? 'DataError' : 'AbortError') };
        };
        break;
      }
      case 'cut': {
        // The tab ends in the middle of what it writes.
        const ending = tabOf(one.tab);
        tabs[one.tab] = bed.openTab(definition);
        const end = bed.writes + one.afterWrites;
        const work = ending.index.build().catch(() => undefined);
        let isOver = false;
        void work.then(() => (isOver = true));
        await bed.until(
          (async () => {
            while (bed.writes < end && !isOver) await bed.turn();
          })(),
        );
        await bed.until(ending.end());
        break;
      }
    }
  }
  bed.writeFault = undefined;
  await bed.until(Promise.all(building));
  for (const { index } of tabs) {
    await bed.until(index.build());
  }
  for (const { index } of tabs) await answerIsTrue(bed, index, true);
}

async function write(bed: LookupBed, ids: readonly number[], colour: string | undefined): Promise<void> {
  const names = [...new Set(ids)].map((id) => `d${String(id)}`);
  const { rows } = (await bed.pouch.allDocs({ keys: names })) as {
    rows: { key: string; value?: { rev: string; deleted?: boolean } }[];
  };
  await bed.pouch.bulkDocs(
    rows.map(({ key, value }) => ({
      _id: key,
      ...(value === undefined || value.deleted === true ? {} : { _rev: value.rev }),
      colour,
    })),
  );
}

/** An answer, if there is one, is what the documents say; `must`: there is one. */
async function answerIsTrue(
  bed: LookupBed,
  index: LookupBed['open'] extends (...args: never[]) => infer I ? I : never,
  must: boolean,
): Promise<void> {
  const answer = await bed.until(index.query({ prefix: '' }).catch((error: unknown) => error));
  if (!(typeof answer === 'object' && answer !== null && 'rows' in answer)) {
    if (must) throw answer;
    expect(answer).toMatchObject({ code: 'index_not_ready' });
    return;
  }
  const { rows } = (await bed.pouch.allDocs({ include_docs: true })) as { rows: { doc: Doc }[] };
  const expected = rows
    .flatMap(({ doc }) =>
      doc['colour'] === undefined
        ? []
        : [`${String(doc['colour'])} ${doc._id}`, `also ${String(doc['colour'])} ${doc._id}`],
    )
    .sort();
  expect(
    (answer as { rows: { key: unknown; id: string }[] }).rows.map(({ key, id }) => `${String(key)} ${id}`).sort(),
  ).toEqual(expected);
}
