import { describe, expect, it } from 'vitest';
import type { Header } from '../queue/stored.js';
import { Held } from './held.js';
import { looksAt } from './looks.js';
import { applied, failed, open, nameOf, OutboxBed } from './outbox-bed.fixture.js';
import { afterLook, nothingTaken, withLate, type Progress } from './progress.js';
import { Round, type RoundParts } from './round.js';

const storeId = 's';

/** A cancelled header when it is known what its last write has done. */
function settled(header: Header): Header {
  const rest = { ...header };
  delete rest.unsettled;
  return rest;
}

describe('a round through the outbox', () => {
  const bedOf = (): OutboxBed => new OutboxBed();
  const roundOf = ({ tab }: OutboxBed, more: Partial<RoundParts> = {}): Round =>
    new Round({ queue: tab.queue, events: tab.events, storeId, held: new Held(), looksAgain: false, ...more });
  /** Takes the next page, all of it but what waits. */
  const step = async (
    bed: OutboxBed,
    round: Round,
    progress: Progress,
    waits: (name: string) => boolean = () => false,
  ): Promise<{ names: string[]; progress: Progress } | undefined> => {
    const page = await round.next(progress);
    if (page === undefined) return undefined;
    const isHeld = new Set(page.held);
    const looks = looksAt(
      page.places,
      (place) => isHeld.has(place) || (place.event !== undefined && waits(nameOf(place.event))),
    );
    round.wait(page.events.filter((event) => waits(nameOf(event))));
    return { names: page.events.map(nameOf), progress: afterLook(progress, looks, bed.tab.queue.headers.all()) };
  };
  const all = async (
    bed: OutboxBed,
    round: Round,
    progress: Progress,
  ): Promise<{ pages: string[][]; progress: Progress }> => {
    const pages: string[][] = [];
    let now = progress;
    for (let one = await step(bed, round, now); one !== undefined; one = await step(bed, round, now)) {
      pages.push(one.names);
      now = one.progress;
    }
    return { pages, progress: now };
  };

  it('O7 S2 an event that came late in what is over is sent, and nothing else', async () => {
    const bed = bedOf();
    await bed.tab.done(['a', 'b', 'c']);
    await bed.tab.done(['b']);
    const late = withLate({ upTo: 2, open: [] }, [{ sequence: 1, index: 1 }], bed.tab.queue.headers.all());
    expect(await all(bed, roundOf(bed, { looksAgain: true }), late)).toEqual({
      pages: [['b@1:1']],
      progress: { upTo: 2, open: [] },
    });
  });

  it('O8 what comes to be durable in an earlier bulk operation meanwhile comes before all later ones', async () => {
    const bed = bedOf();
    const first = await bed.tab.outcome(await bed.tab.append(['a', 'x']), [applied]);
    const second = await bed.tab.append(['x']);
    const round = roundOf(bed);
    const page = await step(bed, round, nothingTaken);
    expect(page?.names).toEqual(['a@1:0']);
    // While that page is under way, both come to their end.
    await bed.tab.outcome(first, [applied]);
    await bed.tab.outcome(second, [applied]);
    const { pages } = await all(bed, round, page?.progress ?? nothingTaken);
    expect(pages).toEqual([['x@1:1'], ['x@2:0']]);
  });

  it('O8 a page ends before a second event of a document, and no event is passed over', async () => {
    const bed = bedOf();
    await bed.tab.done(['a', 'b']);
    await bed.tab.done(['c', 'a', 'd']);
    const { pages, progress } = await all(bed, roundOf(bed), nothingTaken);
    expect(pages).toEqual([
      ['a@1:0', 'b@1:1', 'c@2:0'],
      ['a@2:1', 'd@2:2'],
    ]);
    expect(progress).toEqual({ upTo: 2, open: [] });
  });

  it('O8 a page that ends before a document waits for the event that it has, also where that is a new one', async () => {
    const bed = bedOf();
    await bed.tab.done(['a']);
    await bed.tab.done(['a']);
    const held = new Held();
    const waiting = afterLook(
      nothingTaken,
      [{ sequence: 1, indexes: [0], taken: 0, waiting: [0], open: [] }],
      bed.tab.queue.headers.all(),
    );
    const { pages } = await all(bed, roundOf(bed, { held, looksAgain: true }), waiting);
    expect(pages).toEqual([['a@1:0'], ['a@2:0']]);
  });

  it('O8 what failed has no event, and a bulk operation of failures alone is passed over', async () => {
    const bed = bedOf();
    const ids = Array.from({ length: 250 }, (_, at) => `f${String(at)}`);
    let header = await bed.tab.append(ids);
    while (header.cursor < header.total) {
      header = await bed.tab.outcome(
        header,
        ids.slice(header.cursor, header.cursor + 100).map(() => failed),
      );
    }
    await bed.tab.outcome(await bed.tab.append(['a', 'b']), [failed, applied]);
    const { pages, progress } = await all(bed, roundOf(bed), nothingTaken);
    expect(pages).toEqual([['b@2:1']]);
    expect(progress).toEqual({ upTo: 2, open: [] });
  });

  it('O8 the events of a batch that waits are taken, and that of its open operation when it has its outcome', async () => {
    const bed = bedOf();
    const header = await bed.tab.outcome(await bed.tab.append(['a', 'b', 'c']), [
      applied,
      { s: 'intent', a: 1 },
      applied,
    ]);
    const half = await all(bed, roundOf(bed), nothingTaken);
    expect(half.pages).toEqual([['a@1:0', 'c@1:2']]);
    expect(half.progress.open).toEqual([{ s: 1, n: 3, d: 2, w: [], o: [[1, 2]] }]);
    await bed.tab.outcome(header, [applied, applied, applied]);
    const { pages, progress } = await all(bed, roundOf(bed), half.progress);
    expect(pages).toEqual([['b@1:1']]);
    expect(progress).toEqual({ upTo: 1, open: [] });
  });

  it('R17 O8 later events of a document wait while a cancelled write to it is not clear', async () => {
    const bed = bedOf();
    const unsettled = { applied: 0, alreadyApplied: 0, failed: 0, events: 0 };
    const header = await bed.tab.outcome(await bed.tab.append(['x', 'y']), [{ s: 'intent', a: 1 }, open], {
      state: 'cancelled',
      unsettled,
    });
    await bed.tab.done(['a', 'x']);
    const held = await all(bed, roundOf(bed), nothingTaken);
    expect(held.pages).toEqual([['a@2:0']]);
    const again = await all(bed, roundOf(bed, { looksAgain: true }), held.progress);
    expect(again.pages).toEqual([[]]);
    await bed.tab.outcome(settled(header), [applied, open], { state: 'cancelled', cursor: 0 });
    expect((await all(bed, roundOf(bed, { looksAgain: true }), again.progress)).pages).toEqual([['x@1:0'], ['x@2:1']]);
  });

  it('O8 what waits is looked at once in a round, and what is found waiting in it is not sent again', async () => {
    const bed = bedOf();
    await bed.tab.done(['a', 'b', 'c']);
    const round = roundOf(bed, { looksAgain: true });
    const isB = (name: string): boolean => name.startsWith('b@');
    const first = await step(bed, round, nothingTaken, isB);
    expect(first?.names).toEqual(['a@1:0', 'b@1:1', 'c@1:2']);
    expect(await step(bed, round, first?.progress ?? nothingTaken)).toBeUndefined();
  });

  it('O8 a few events that wait far apart cost the reads of their batches, not of all between', async () => {
    const bed = bedOf();
    await bed.tab.done(Array.from({ length: 3000 }, (_, at) => `d${String(at)}`));
    const open = [
      {
        s: 1,
        n: 3000,
        d: 2998,
        w: [
          [5, 6],
          [2995, 2996],
        ] as [number, number][],
        o: [],
      },
    ];
    bed.reads.length = 0;
    const page = await roundOf(bed, { looksAgain: true }).next({ upTo: 0, open });
    expect(page?.events.map(nameOf)).toEqual(['d5@1:5', 'd2995@1:2995']);
    expect(bed.reads.flat().length).toBeLessThanOrEqual(6);
  });
});
