import { describe, expect, it } from 'vitest';
import { countedBetween, isForgettable, isSettled, type Standing } from './forgettable.js';
import { newHeader } from './new-header.js';
import type { Header } from './stored.js';

const header = (more: Partial<Header>): Header => ({
  ...newHeader({ id: 'b', key: 'k', target: 'local', lane: null, parts: [], payload: 'p:t:b:', queuedAt: 0 }, []),
  _id: 'h:000000000001',
  subjects: [],
  state: 'done',
  ...more,
});
const nothing: Standing = {
  openFailures: 0,
  isReported: true,
  isPublished: true,
  isConfirmed: true,
  inQuarantine: false,
};

describe('what may be forgotten', () => {
  it.each<[string, Partial<Header>, Partial<Standing>, boolean]>([
    ['is done', {}, {}, true],
    ['is done with failures that someone has resolved', { state: 'done-with-failures', failed: 1 }, {}, true],
    ['is cancelled', { state: 'cancelled' }, {}, true],
    [
      'is cancelled, and it is not known what its last attempt did',
      { state: 'cancelled', unsettled: { applied: 0, alreadyApplied: 0, failed: 0 } },
      {},
      false,
    ],
    ['is running', { state: 'running' }, {}, false],
    ['is paused', { state: 'paused' }, {}, false],
    ['waits', { state: 'waiting-auth' }, {}, false],
    ['has failed', { state: 'failed' }, {}, false],
    ['has failed, and its rest was queued anew', { state: 'failed', continuedBy: 'c' }, {}, true],
    ['has an open failure', {}, { openFailures: 1 }, false],
    ['has a result that the server does not have', {}, { isReported: false }, false],
    ['has an event that waits', {}, { isPublished: false }, false],
    ['has a revision that the server does not have', {}, { isConfirmed: false }, false],
    ['has a conflict in quarantine', {}, { inQuarantine: true }, false],
  ])('O4 a bulk operation that %s', (_what, given, standing, expected) => {
    expect(isSettled(header(given), { ...nothing, ...standing })).toBe(expected);
  });

  it('O4 goes when it has been remembered long enough, never the last one, never before those that took it over', () => {
    const age = { settledMs: 10, rememberMs: 10, isLast: false, isTakenOver: false };
    expect(isForgettable(age)).toBe(true);
    expect(isForgettable({ ...age, settledMs: 9 })).toBe(false);
    expect(isForgettable({ ...age, settledMs: undefined })).toBe(false);
    expect(isForgettable({ ...age, isLast: true })).toBe(false);
    expect(isForgettable({ ...age, isTakenOver: true })).toBe(false);
  });

  it('R18 counts what the monotonic clock shows, and of the wall clock a day at most', () => {
    const day = 86_400_000;
    expect(countedBetween(5, 5)).toBe(5);
    expect(countedBetween(3600 * day, 5)).toBe(day);
    expect(countedBetween(-3600 * day, 5)).toBe(5);
    expect(countedBetween(7, 0)).toBe(7);
    expect(countedBetween(0, 3 * day)).toBe(3 * day);
  });
});
