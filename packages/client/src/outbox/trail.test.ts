import { beforeEach, describe, expect, it } from 'vitest';
import type { Header, RowState } from '../queue/stored.js';
import { hashOf } from '../queue/subjects.js';
import { applied, failed, OutboxBed } from './outbox-bed.fixture.js';
import { Trail, type Mutation } from './trail.js';

describe('the trail of a document', () => {
  let bed: OutboxBed;
  let trail: Trail;
  beforeEach(() => {
    bed = new OutboxBed();
    trail = new Trail(bed.tab.queue);
  });
  const of = (index: number, id: string, documentId = id): Mutation => ({ index, id, documentId });
  const named = async (header: Header, ...mutations: readonly Mutation[]): Promise<[number, string][]> =>
    [...(await trail.previousOf(header, mutations))].sort();

  it('O8 leads to the latest earlier mutation that has an event, over failures and other targets', async () => {
    const first = await bed.tab.done(['a', 'b']);
    await bed.tab.outcome(await bed.tab.append(['b', 'a']), [applied, failed]);
    await bed.tab.done(['a'], 100, 'server');
    const last = await bed.tab.append(['a', 'b', 'c']);
    const second = bed.tab.queue.headers.get(2);
    expect(await named(last, of(0, 'a'), of(1, 'b'), of(2, 'c'))).toEqual([
      [0, `b:${first.key}:0`],
      [1, `b:${String(second?.key)}:0`],
    ]);
  });

  it('O8 leads to an earlier batch of the same bulk operation', async () => {
    const header = await bed.tab.outcome(await bed.tab.append(['a', 'b', 'a', 'a']), [applied, applied]);
    expect(await named(header, of(2, 'a'))).toEqual([[2, `b:${header.key}:0`]]);
  });

  it('O8 two documents with one hash are two', async () => {
    expect(hashOf('costarring')).toBe(hashOf('liquid'));
    await bed.tab.done(['costarring']);
    const last = await bed.tab.append(['liquid']);
    expect(await named(last, of(0, 'liquid'))).toEqual([]);
  });

  it('O8 an event of another document than its operation’s is not the one before', async () => {
    const user: RowState = { ...applied, e: ['deleted', 'user:a'] };
    await bed.tab.outcome(await bed.tab.append(['a']), [user]);
    const second = await bed.tab.append(['a', 'a']);
    expect(await named(second, of(0, 'a'))).toEqual([]);
    expect(await named(second, of(0, 'a', 'user:a'))).toHaveLength(1);
  });

  it('O8 documents that lie far apart in an earlier bulk operation cost the reads of their batches', async () => {
    await bed.tab.done(Array.from({ length: 2000 }, (_, at) => `d${String(at)}`));
    const last = await bed.tab.append(['d3', 'd1990']);
    await named(last, of(0, 'd3'));
    bed.reads.length = 0;
    expect(await named(last, of(0, 'd3'), of(1, 'd1990'))).toHaveLength(2);
    expect(bed.reads.flat().length).toBeLessThanOrEqual(6);
  });
});
