import { beforeEach, describe, expect, it } from 'vitest';
import { applied, failed, open, OutboxBed } from './outbox/outbox-bed.fixture.js';
import { DocumentHashes } from './queue/document-hashes.js';
import { removed } from './queue/stored-docs.js';
import type { RowState } from './queue/stored.js';
import { hashOf } from './queue/subjects.js';
import { Writers, type Writer } from './queue/writers.js';

describe('which operations of this device wrote on a document', () => {
  let bed: OutboxBed;
  let writers: Writers;
  beforeEach(() => {
    bed = new OutboxBed();
    writers = new Writers(bed.tab.queue);
  });
  const shown = (found: ReadonlyMap<string, readonly Writer[]>): Record<string, [string, number, ...string[]][]> =>
    Object.fromEntries(
      [...found].map(([id, all]) => [
        id,
        all.map(({ header, index, row }) => [header._id.slice(-1), index, ...(row.r === undefined ? [] : [row.r])]),
      ]),
    );
  const wrote = (r: string): RowState => ({ ...applied, r });
  const intent: RowState = { s: 'intent', b: '1-a' };

  it('S2 answers with them in the order of the queue, each with its revision', async () => {
    await bed.tab.outcome(await bed.tab.append(['a', 'b']), [wrote('2-a'), wrote('2-b')]);
    await bed.tab.outcome(await bed.tab.append(['c', 'a', 'a']), [wrote('2-c'), wrote('3-a'), wrote('4-a')]);
    await bed.tab.outcome(await bed.tab.append(['a']), [intent]);
    expect(shown(await writers.of(['a', 'c', 'never']))).toEqual({
      a: [
        ['1', 0, '2-a'],
        ['2', 1, '3-a'],
        ['2', 2, '4-a'],
        ['3', 0],
      ],
      c: [['2', 0, '2-c']],
    });
  });

  it('S2 leaves out what was never tried, what is of the other target, and what the caller does not want', async () => {
    await bed.tab.append(['a']);
    await bed.tab.outcome(await bed.tab.append(['a', 'b']), [failed, open]);
    await bed.tab.done(['a'], 100, 'server');
    expect(shown(await writers.of(['a', 'b']))).toEqual({ a: [['2', 0]] });
    expect(shown(await writers.of(['a', 'b'], ({ s }) => s === 'applied'))).toEqual({});
    expect(shown(await writers.of(['a'], undefined, 'server'))).toEqual({ a: [['3', 0, '1-a']] });
  });

  it('S2 sees what another tab has queued and run meanwhile', async () => {
    const other = bed.open();
    const known = await bed.tab.append(['a']);
    await other.queue.open('other', 0);
    await other.outcome(known, [wrote('2-a')]);
    await other.outcome(await other.append(['a']), [wrote('3-a')]);
    expect(shown(await writers.of(['a']))).toEqual({
      a: [
        ['1', 0, '2-a'],
        ['2', 0, '3-a'],
      ],
    });
  });

  it('S2 two documents with one hash are two', async () => {
    expect(hashOf('costarring')).toBe(hashOf('liquid'));
    await bed.tab.done(['costarring']);
    expect((await writers.of(['liquid'])).size).toBe(0);
  });

  it('S2 bulk operations that do not concern the document cost no read, however many they are', async () => {
    for (let at = 0; at < 300; at++) await bed.tab.done([`d${String(at)}`]);
    await bed.tab.done(Array.from({ length: 1000 }, (_, at) => `m${String(at)}`));
    bed.reads.length = 0;
    expect((await writers.of(['d7', 'd290'])).size).toBe(2);
    // Of each of the two: its operations for the hashes, its record, its operation. And the digest of the long one.
    expect(bed.reads.flat().length).toBeLessThanOrEqual(8);
    bed.reads.length = 0;
    expect((await writers.of(['m3', 'm990'])).size).toBe(2);
    expect(bed.reads.flat().length).toBeGreaterThan(10);
    bed.reads.length = 0;
    await writers.of(['m3', 'm990']);
    // The hashes are known now: two batches, two pages of operations.
    expect(bed.reads.flat().length).toBeLessThanOrEqual(4);
  });

  it('S2 subjects that cannot be made out any more are looked for everywhere', async () => {
    const long = await bed.tab.done(Array.from({ length: 300 }, (_, at) => `m${String(at)}`));
    const { subjects } = long;
    if (subjects === null || Array.isArray(subjects)) throw new Error('a digest was expected');
    const names = await bed.tab.queue.docs.names(subjects.digest, `${subjects.digest}\uffff`, 10);
    await bed.tab.queue.docs.write(names.map(({ id, rev }) => removed(id, rev)));
    expect((await writers.of(['m299'])).size).toBe(1);
  });

  it('S2 a bulk operation that another tab has removed is passed over; one that is damaged is an error', async () => {
    const first = await bed.tab.done(['a']);
    const second = await bed.tab.done(['a']);
    const pages = await bed.tab.queue.docs.names(first.payload, `${first.payload}\uffff`, 10);
    await bed.tab.queue.docs.write(pages.map(({ id, rev }) => removed(id, rev)));
    await expect(writers.of(['a'])).rejects.toMatchObject({ code: 'store_unreadable' });
    await bed.tab.queue.docs.write([removed(first._id, first._rev)]);
    expect((await writers.of(['a'])).get('a')?.map(({ header }) => header.id)).toEqual([second.id]);
  });

  it('S2 keeps no more hashes in memory than it may, and forgets what was not read for the longest time', async () => {
    const lists = ['a', 'b', 'c'].map((name) => Array.from({ length: 300 }, (_, at) => `${name}${String(at)}`));
    for (const ids of lists) await bed.tab.done(ids);
    const few = new Writers(bed.tab.queue, undefined, new DocumentHashes(bed.tab.queue.contents, 1500));
    const readsOf = async (id: string): Promise<number> => {
      bed.reads.length = 0;
      expect((await few.of([id])).size).toBe(1);
      return bed.reads.flat().length;
    };
    await readsOf('a1');
    const known = await readsOf('a1');
    await readsOf('b1');
    await readsOf('c1');
    expect(known).toBe(2);
    expect(await readsOf('a1')).toBeGreaterThan(known);
  });
});
