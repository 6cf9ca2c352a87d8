import { beforeAll, describe, expect, it } from 'vitest';
import { RetryableError } from '../model/errors.js';
import type { DocumentEvent } from '../model/event.js';
import { OutboxBed, TestPlace } from '../outbox/outbox-bed.fixture.js';
import { transferDoc } from '../queue/stored.js';
import { publicationOf, published } from './publication-bed.fixture.js';
import type { Publication } from './publication.js';

const bulkOperations = 10;
/** `AFIELD_EVENTS=100000` for the full number: it takes minutes, and nothing that is asserted grows with it. */
const { process } = globalThis as { process?: { env: Readonly<Record<string, string | undefined>> } };
const all = Number(process?.env['AFIELD_EVENTS'] ?? '10000');
const each = all / bulkOperations;
const timeoutMs = 60_000 + 6 * all;
/** A page of a hundred, and a read of a hundred of which some may not fit into it. */
const mostHeld = 200;

/** Counts what it is sent and keeps none of it. */
class CountingPlace extends TestPlace {
  sentCount = 0;
  callCount = 0;

  override async publish(events: readonly DocumentEvent[]): ReturnType<TestPlace['publish']> {
    this.callCount++;
    this.sentCount += events.length;
    return this.answer(events);
  }
}

describe(`${String(all)} events that are not published`, () => {
  let bed: OutboxBed;
  let held: number;
  let most: number;
  beforeAll(async () => {
    bed = new OutboxBed();
    for (let bulk = 0; bulk < bulkOperations; bulk++) {
      await bed.tab.done(Array.from({ length: each }, (_, at) => `d${String(bulk)}-${String(at)}`));
    }
  }, timeoutMs);

  const watched = (place: TestPlace): Publication => {
    held = 0;
    most = 0;
    const { events } = bed.tab;
    const at = events.at.bind(events);
    const publication = publicationOf(bed.tab, place, {
      events: Object.assign(Object.create(events) as typeof events, {
        at: async (...asked: Parameters<typeof at>) => {
          const places = await at(...asked);
          held += places.filter(({ event }) => event !== undefined).length;
          most = Math.max(most, held);
          return places;
        },
      }),
      // Asked before each page: what was read for the last one is not needed any more.
      refresh: () => {
        held = 0;
        return Promise.resolve();
      },
    });
    return publication;
  };
  const documentsRead = (): number => bed.reads.reduce((sum, ids) => sum + ids.length, 0);

  it('O7 while the place is down, an attempt holds and reads one page', async () => {
    const place = new CountingPlace('down');
    place.answer = () => {
      throw new RetryableError('down', { class: 'network', code: 'x' });
    };
    const publication = watched(place);
    bed.reads.length = 0;
    await published(publication);
    expect(publication.status().unpublished).toBe(all);
    expect(most).toBeLessThanOrEqual(mostHeld);
    expect(documentsRead()).toBeLessThan(10);
    for (let poke = 0; poke < 100; poke++) await published(publication);
    expect(documentsRead()).toBeLessThan(10);
  });

  it(
    'O7 when it is back, all are published a page at a time, with reads in proportion',
    async () => {
      const place = new CountingPlace('up');
      const publication = watched(place);
      bed.reads.length = 0;
      await published(publication);
      expect(publication.status().unpublished).toBe(0);
      expect([place.sentCount, place.callCount]).toEqual([all, all / 100]);
      expect(most).toBeLessThanOrEqual(mostHeld);
      // Of each hundred one payload and one or two records.
      expect(documentsRead()).toBeLessThan((4 * all) / 100);
    },
    timeoutMs,
  );

  it(
    'O8 where it takes none, each is asked about once in a round, and they are remembered as ranges',
    async () => {
      const place = new CountingPlace('none');
      place.refuse(() => true);
      const publication = watched(place);
      bed.reads.length = 0;
      await published(publication);
      expect(publication.status().unpublished).toBe(all);
      expect([place.sentCount, place.callCount]).toEqual([all, all / 100]);
      expect(most).toBeLessThanOrEqual(mostHeld);
      expect(documentsRead()).toBeLessThan((4 * all) / 100);
      const progress = await bed.tab.queue.docs.readRange('ht:publish:none', transferDoc);
      expect(JSON.stringify(progress).length).toBeLessThan(2000);
      place.refuse(() => false);
      bed.clock.advance(0);
      await published(publication);
      expect(publication.status()).toMatchObject({ state: 'idle', unpublished: 0 });
      expect(place.sentCount).toBe(2 * all);
    },
    timeoutMs,
  );
});
