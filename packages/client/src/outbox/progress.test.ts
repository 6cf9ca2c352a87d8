import { beforeEach, describe, expect, it } from 'vitest';
import type { PublishContext } from '../model/event.js';
import { storedVersion, transferId, type Header, type StoredTransfer } from '../queue/stored.js';
import { applied, open, OutboxBed, type Tab } from './outbox-bed.fixture.js';
import { PlaceMark } from './place-mark.js';
import { afterLook, nothingTaken, readableEnd, untaken, withLate, type Entry } from './progress.js';
import { takenBy } from './taken.js';

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

  describe('when an operation has an event again that was passed over', () => {
    const over = async (): Promise<readonly Header[]> => {
      await tab.done(['a', 'b']);
      await tab.done(['c']);
      await tab.done(['d', 'e']);
      return tab.queue.headers.all();
    };

    it('O7 S2 lists its bulk operation once more, and no other, until the event is taken', async () => {
      const headers = await over();
      const late = withLate({ upTo: 3, open: [] }, [{ sequence: 1, index: 1 }], headers);
      expect(late).toEqual({ upTo: 3, open: [entry({ s: 1, n: 2, d: 2, w: [[1, 2]] })] });
      expect(untaken(late, headers)).toBe(1);
      expect(withLate(late, [{ sequence: 1, index: 1 }], headers)).toEqual(late);
      const other = { sequence: 1, indexes: [1], taken: 0, waiting: [1], open: [] };
      expect(afterLook(late, [other], headers)).toEqual(late);
      expect(afterLook(late, [{ ...other, taken: 1, waiting: [] }], headers)).toEqual({ upTo: 3, open: [] });
    });

    it('O7 S2 changes nothing of what will be looked at anyway, or is not there any more', async () => {
      const headers = await over();
      const progress = { upTo: 1, open: [entry({ s: 3, n: 1, d: 1 })] };
      const late = [
        { sequence: 2, index: 0 },
        { sequence: 3, index: 1 },
        { sequence: 9, index: 0 },
      ];
      expect(withLate(progress, late, headers)).toEqual(progress);
    });

    it('O7 S2 counts as not taken: it is not forgotten before', async () => {
      const headers = await over();
      const data = JSON.stringify(withLate({ upTo: 3, open: [] }, [{ sequence: 1, index: 0 }], headers));
      const state = { attempt: 0, attempts: 0, failedAttempts: 0, transferred: 0, wait: null, lastError: null };
      const stored: StoredTransfer = { _id: transferId('publish:place'), v: storedVersion, ...state, data };
      await tab.queue.docs.write([stored]);
      const isTaken = await takenBy(tab.queue.docs, ['place']);
      expect(headers.map(isTaken)).toEqual([false, true, true]);
    });

    it('O7 S2 stays listed when the place was made anew, and has forgotten all that came later', async () => {
      const headers = await over();
      const late = withLate({ upTo: 3, open: [], mark: 'old' }, [{ sequence: 1, index: 0 }], headers);
      const marks = { read: () => Promise.resolve('{"id":"m","upTo":2}'), leave: () => Promise.resolve(true) };
      const publisher = { name: 'place', publish: () => Promise.resolve({ accepted: [] }), marks };
      const mark = new PlaceMark({ publisher, storeId: 's', newId: () => 'n', context: () => ({}) as PublishContext });
      expect(await mark.look(late)).toMatchObject({ upTo: 2, open: late.open });
    });
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
