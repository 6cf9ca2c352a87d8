import { beforeEach, describe, expect, it } from 'vitest';
import { RetryableError, StoreTooNewError } from '../model/errors.js';
import type { PouchLike } from '../model/pouch.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import { eventDocument } from './event-document.js';
import { OutOfOrderFeed } from './out-of-order-feed.fixture.js';
import { readEvents, type EventsRead, type ReadEventsOptions } from './read-events.js';
import { eventOf } from './sample-event.fixture.js';

const docOf = (documentId: string, number: number, fields = {}) => eventDocument(eventOf(documentId, number, fields));
const idsOf = ({ events }: EventsRead): string[] => events.map(({ id }) => id.slice('s1:o:'.length));
const minute = 60_000;

describe('readEvents on a feed that promises no order', () => {
  let feed: OutOfOrderFeed;
  let now: number;
  let since: string | undefined;
  /** The next call of a reader that keeps `since`. */
  const next = async (options: ReadEventsOptions = {}): Promise<EventsRead> => {
    const read = await readEvents(feed, { since, now: () => now, ...options });
    since = read.since;
    return read;
  };
  beforeEach(() => {
    feed = new OutOfOrderFeed();
    now = Date.UTC(2026, 0, 1);
    since = undefined;
  });

  it('O8 gives the events of a document in the order of its mutations', async () => {
    feed.add(docOf('p', 3), docOf('q', 1), docOf('p', 1), docOf('p', 2));
    expect(idsOf(await next())).toEqual(['p/1', 'q/1', 'p/2', 'p/3']);
  });

  it('O8 orders by sequence and index where the previous event is not known', async () => {
    feed.add(
      docOf('p', 3, { previous: null }),
      docOf('p', 2, { index: 1, id: 's1:o:p/2b', previous: null }),
      docOf('p', 2, { previous: null }),
    );
    expect(idsOf(await next())).toEqual(['p/2', 'p/2b', 'p/3']);
  });

  it('O8 takes a previous event that comes later in the feed before, and not a second time', async () => {
    feed.add(docOf('p', 3), docOf('q', 1), docOf('p', 2), docOf('r', 1), docOf('p', 1), docOf('p', 4));
    const calls: string[][] = [];
    for (let more = true; more;) {
      const read = await next({ limit: 1 });
      calls.push(idsOf(read));
      ({ more } = read);
    }
    expect(calls).toEqual([['p/1', 'p/2', 'p/3'], ['q/1'], [], ['r/1'], [], ['p/4'], []]);
  });

  it('O8 a previous event of an earlier call is not waited for, however long ago it was', async () => {
    feed.add(docOf('p', 1));
    await next();
    for (let number = 0; number < 700; number++) feed.add(docOf(`q${String(number)}`, 1));
    while ((await next({ limit: 100 })).more);
    expect((JSON.parse(since ?? '') as { seen: unknown[] }).seen).toHaveLength(500);
    feed.add(docOf('p', 2));
    expect(await next()).toMatchObject({ held: 0, gaps: [], events: [{ id: 's1:o:p/2' }] });
  });

  it('O8 holds an event back whose previous one is on its way, with all later ones of its document', async () => {
    feed.add(docOf('p', 2), docOf('p', 3), docOf('q', 1));
    const first = await next();
    expect(idsOf(first)).toEqual(['q/1']);
    expect(first.held).toBe(2);
    feed.add(docOf('p', 4), docOf('q', 2));
    expect(idsOf(await next())).toEqual(['q/2']);
    feed.add(docOf('p', 1));
    const last = await next();
    expect(idsOf(last)).toEqual(['p/1', 'p/2', 'p/3', 'p/4']);
    expect(last).toMatchObject({ held: 0, gaps: [] });
  });

  it('R15 does not hold it back for ever, and says so', async () => {
    feed.add(docOf('p', 2), docOf('p', 3));
    expect(idsOf(await next())).toEqual([]);
    now += 10 * minute - 1;
    expect(idsOf(await next())).toEqual([]);
    now += 1;
    const read = await next();
    expect(idsOf(read)).toEqual(['p/2', 'p/3']);
    expect(read.gaps).toEqual([{ id: 's1:o:p/2', previous: 's1:o:p/1' }]);
    expect(idsOf(await next())).toEqual([]);
  });

  it('R18 a clock that jumps back makes no one wait longer than the patience', async () => {
    feed.add(docOf('p', 2));
    await next();
    now -= 365 * 24 * 60 * minute;
    expect(idsOf(await next())).toEqual([]);
    now += 10 * minute;
    expect(idsOf(await next())).toEqual(['p/2']);
  });

  it('O8 a previous event that was deleted by housekeeping is not waited for', async () => {
    feed.add(docOf('p', 1));
    feed.remove('s1:o:p/1');
    feed.add(docOf('p', 2));
    const read = await next();
    expect(idsOf(read)).toEqual(['p/2']);
    expect(read.gaps).toEqual([{ id: 's1:o:p/2', previous: 's1:o:p/1' }]);
  });

  it('O6 an event that comes again is not given again', async () => {
    feed.add(docOf('p', 1), docOf('p', 2));
    await next();
    feed.add(docOf('p', 1), { ...docOf('p', 2), touched: true }, docOf('p', 3));
    expect(idsOf(await next())).toEqual(['p/3']);
  });

  it('O8 holds a bounded number back, and its text stays bounded', async () => {
    for (let number = 0; number < 700; number++) feed.add(docOf(`p${String(number)}`, 2));
    let events = 0;
    for (let more = true; more;) {
      const read = await next({ limit: 100 });
      ({ more } = read);
      events += read.events.length;
      expect(read.held).toBeLessThanOrEqual(500);
      expect(read.since.length).toBeLessThan(100_000);
    }
    expect(events).toBe(200);
  });

  it('O8 two stores are two orders', async () => {
    feed.add(docOf('p', 2, { previous: null }), docOf('p', 1, { store: 's2', id: 's2:o:p/1' }));
    expect((await next()).events.map(({ store }) => store)).toEqual(['s1', 's2']);
  });

  it('S9 passes over what is no event, and names what is damaged; its successor is not waited for', async () => {
    feed.add({ _id: '_design/x' }, { _id: 'note', text: 'x' }, { ...docOf('p', 1), sequence: 'one' }, docOf('p', 2));
    const read = await next();
    expect(idsOf(read)).toEqual(['p/2']);
    expect(read.unreadable).toEqual(['s1:o:p/1']);
    expect(read.held).toBe(0);
  });

  it('S10 refuses an event of a newer Afield, and loses nothing by it', async () => {
    feed.add(docOf('p', 1), { ...docOf('p', 2), v: 2 });
    await expect(next()).rejects.toBeInstanceOf(StoreTooNewError);
    expect(since).toBeUndefined();
  });

  it('asks for nothing more when every previous event is in the page', async () => {
    feed.add(docOf('p', 1), docOf('p', 2), docOf('q', 1));
    await next();
    expect(feed.asked).toEqual(['changes']);
  });

  it.each(['', 'x', '{}', '{"v":2,"seq":1,"held":[],"seen":[]}'])('S9 refuses %j for `since`', async (text) => {
    await expect(readEvents(feed, { since: text })).rejects.toMatchObject({ code: 'invalid_since' });
  });

  it.each([0, 1001, 1.5])('S9 refuses the limit %d', async (limit) => {
    await expect(readEvents(feed, { limit })).rejects.toMatchObject({ code: 'invalid_option' });
  });

  it('R7 an answer that is not CouchDB’s is no end of the feed', async () => {
    const portal = { changes: () => Promise.resolve('<html>'), allDocs: () => Promise.resolve({ rows: [] }) };
    await expect(readEvents(portal)).rejects.toBeInstanceOf(RetryableError);
    feed.add(docOf('p', 2));
    const silent = {
      changes: feed.changes.bind(feed),
      allDocs: () => Promise.resolve({ rows: [{ key: 's1:o:p/1' }] }),
    };
    await expect(readEvents(silent)).rejects.toBeInstanceOf(RetryableError);
  });
});

describe('readEvents on a PouchDB', () => {
  it('O8 reads a database in pages, deletions and other documents among the events', async () => {
    const database: PouchLike = new (memoryPouch())('events');
    const numbers = Array.from({ length: 120 }, (_nothing, number) => number);
    await database.bulkDocs(numbers.map((number) => docOf(`p${String(number % 40)}`, 1 + Math.floor(number / 40))));
    const { _rev } = (await database.get('s1:o:p7/1')) as { _rev: string };
    await database.bulkDocs([{ _id: 's1:o:p7/1', _rev, _deleted: true }, { _id: 'note' }]);
    const found: string[] = [];
    let since: string | undefined;
    for (let more = true; more;) {
      const read = await readEvents(database, { since, limit: 7 });
      found.push(...idsOf(read));
      ({ since, more } = read);
    }
    expect(new Set(found).size).toBe(found.length);
    expect(found).toHaveLength(119);
    for (const number of numbers.slice(0, 40)) {
      const own = found.filter((id) => id.startsWith(`p${String(number)}/`));
      expect(own).toEqual([...own].sort());
    }
    await database.bulkDocs([docOf('p3', 4)]);
    expect(idsOf(await readEvents(database, { since }))).toEqual(['p3/4']);
    expect(idsOf(await readEvents(database, { since }))).toEqual(['p3/4']);
    await database.destroy();
  });
});
