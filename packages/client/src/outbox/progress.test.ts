import { beforeEach, describe, expect, it } from 'vitest';
import type { Header } from '../queue/stored.js';
import { applied, open, OutboxBed, type Tab } from './outbox-bed.fixture.js';
import { afterLook, nothingTaken, readableEnd, untaken, type Entry } from './progress.js';

describe('the progress of a publisher', () => {
  let tab: Tab;
  beforeEach(() => {
    ({ tab } = new OutboxBed());
  });
  const entry = (more: Partial<Entry>): Entry => ({ s: 1, n: 0, d: 0, w: [], o: [], ...more });

  it('V1 counts what waits, also where as many of a batch under way are taken that its header does not count yet', async () => {
    const first = await tab.outcome(await tab.append(['a', 'b', 'c', 'd']), [applied, applied]);
    await tab.outcome(first, [applied, open]);
    const headers = tab.queue.headers.all();
    expect(headers[0]?.events).toBe(2);
    const progress = { upTo: 0, open: [entry({ n: 4, d: 2, w: [[1, 2]], o: [[3, 4]] })] };
    expect(untaken(progress, headers)).toBe(1);
  });

  it('V1 counts all events of what was not looked at yet, and none of what is over', async () => {
    await tab.done(['a', 'b']);
    await tab.done(['c']);
    expect(untaken(nothingTaken, tab.queue.headers.all())).toBe(3);
    expect(untaken({ upTo: 1, open: [] }, tab.queue.headers.all())).toBe(1);
  });

  it('O7 a bulk operation that is over is forgotten when all earlier ones are over too', async () => {
    await tab.append(['a']);
    await tab.done(['b']);
    const look = { sequence: 2, indexes: [0], taken: 1, waiting: [], open: [] };
    const behind = afterLook(nothingTaken, [look], tab.queue.headers.all());
    expect(behind).toEqual({ upTo: 0, open: [entry({ s: 2, n: 1, d: 1 })] });
    await tab.outcome(tab.queue.headers.get(1) as Header, [applied]);
    const done = afterLook(behind, [{ ...look, sequence: 1 }], tab.queue.headers.all());
    expect(done).toEqual({ upTo: 2, open: [] });
  });

  it.each([
    [{ state: 'running' }, 1],
    [{ state: 'queued', lease: null }, 1],
    [{ state: 'waiting-network', lease: null }, 1],
    [{ state: 'waiting-auth', attempts: 0 }, 3],
    [{ state: 'waiting-retry' }, 3],
    [{ state: 'paused', attempts: 0 }, 3],
    [{ state: 'cancelled', unsettled: { applied: 0, alreadyApplied: 0, failed: 0 } }, 3],
    [{ state: 'failed' }, 3],
  ] as const)('O8 operations of %o may have outcomes up to %i', async (more, end) => {
    const header = await tab.append(['a', 'b', 'c']);
    expect(readableEnd({ ...header, cursor: 1, attempts: 1, lease: 'l', ...more })).toBe(end);
  });
});
