import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { simulateDay, type Day } from './day.js';
import { kindOf } from './day-kinds.js';
import { documentsTable, requestsTable } from './day-table.js';
import { days } from './days.js';
import { blockOf, columnOf, withBlock } from './markdown.js';

const hour: Day = {
  name: 'an hour',
  openMinutes: 60,
  connected: [[0, 60]],
  away: [],
  bulkOperationsAt: [10.5],
  operations: 3,
  failing: 1,
  changedByOthers: 2,
  pullEveryS: 600,
};

describe('the requests of one device', { timeout: 120_000 }, () => {
  it('S1 are those of its work: two documents, two events, a result with its failures, and what others changed', async () => {
    const { count, left, first } = await simulateDay(hour);
    expect(left).toEqual({ pending: 0, unconfirmed: 0, unreported: 0, unpublished: 0 });
    expect(count.documents).toMatchObject({
      records: { count: 2 },
      results: { count: 1 },
      failures: { count: 1 },
      events: { count: 2 },
      'device documents': { count: 1 },
    });
    expect(count.requests).toMatchObject({ 'push: documents': 1, session: 0, 'pull: documents': 2 });
    expect(Object.values(count.requests).reduce((sum, one) => sum + one, 0)).toBe(count.total);
    expect(count.unanswered).toBe(0);
    expect(first.requests['pull: documents']).toBe(5);
  });

  it('S2 go on through an outage until all is delivered', async () => {
    const away = await simulateDay({ ...hour, away: [[5, 30]] });
    expect(away.left).toMatchObject({ pending: 0, unconfirmed: 0, unreported: 0, unpublished: 0 });
    expect(away.count.unanswered).toBeGreaterThan(0);
    expect(away.back?.requests).toMatchObject({ 'push: documents': 1 });
    expect(away.back?.requests.events).toBeGreaterThan(0);
    expect(away.back?.unanswered).toBe(0);
  });

  it('are each of a known kind, or the count is refused', () => {
    expect(kindOf('PUT', 'http://memory.test/records/_local/afield-push-v1-s')).toBe('push: checkpoint');
    expect(kindOf('GET', 'http://memory.test/records/_local/x')).toBe('pull: checkpoint');
    expect(() => kindOf('GET', 'http://memory.test/records/_find')).toThrow(/no known kind: GET \/records\/_find/);
  });
});

describe('docs/cluster.md', () => {
  it('S1 has the requests and writes that the SDK makes on a day', async () => {
    const page = await readFile(fileURLToPath(new URL('../../../docs/cluster.md', import.meta.url)), 'utf8');
    const run = await simulateDay(days.field);
    const { name } = run.day;
    const again = 'The SDK makes other requests than the page says: `npm run simulate:cluster -- days` writes it anew.';
    expect(columnOf(blockOf(page, 'requests'), name), again).toEqual(columnOf(requestsTable([run]), name));
    expect(columnOf(blockOf(page, 'writes'), name), again).toEqual(columnOf(documentsTable([run]), name));
  }, 120_000);

  it('keeps what stands outside of its blocks', () => {
    const page = 'a\n<!-- x: written by `npm run simulate:cluster` -->\nold\n<!-- end of x -->\nb\n';
    const next = withBlock(page, 'x', 'new');
    expect(blockOf(next, 'x')).toBe('new');
    expect(next.replace(/\n\nnew\n\n/, '\nold\n')).toBe(page);
    expect(() => blockOf(page, 'y')).toThrow(RangeError);
  });
});
