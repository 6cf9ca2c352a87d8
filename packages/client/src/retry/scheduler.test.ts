import { beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from './manual-clock.fixture.js';
import { Scheduler } from './scheduler.js';
import { beginWait, remaining, resumeWait, shortened, storedWait } from './wait.js';

const minute = 60_000;
const day = 24 * 60 * minute;

describe('the scheduler', () => {
  let clock: ManualClock;
  let scheduler: Scheduler;
  let ran: string[];
  const wait = (key: string, delayMs: number, notBeforeMs = 0, floorSpreadMs = 0): void => {
    scheduler.wait(key, beginWait(clock, { delayMs, notBeforeMs, floorSpreadMs }), () => ran.push(key));
  };

  beforeEach(() => {
    clock = new ManualClock();
    scheduler = new Scheduler(clock, () => 0);
    ran = [];
  });

  it('runs what is due, once, in one timer for all', () => {
    wait('a', 5 * minute);
    wait('b', minute);
    expect(clock.timers).toBe(1);
    clock.advance(minute - 1);
    expect(ran).toEqual([]);
    clock.advance(1);
    expect(ran).toEqual(['b']);
    clock.advance(4 * minute);
    expect(ran).toEqual(['b', 'a']);
    expect(clock.timers).toBe(0);
  });

  it('R18 is due when the monotonic clock shows it, although the wall clock went back two days', () => {
    wait('a', 2 * minute);
    clock.jumpWall(-2 * day);
    clock.advance(2 * minute);
    expect(ran).toEqual(['a']);
  });

  it('R18 is due when the wall clock shows it, although timers stood still', () => {
    wait('a', 5 * minute);
    clock.sleep(6 * minute);
    clock.advance(minute);
    expect(ran).toEqual(['a']);
  });

  it('R18 whichever clock shows more of the delay counts', () => {
    wait('a', 5 * minute);
    clock.sleep(20_000);
    expect(scheduler.dueAt('a')).toBe(clock.wall() + 5 * minute - 20_000);
    clock.advance(4 * minute);
    clock.jumpWall(-10 * minute);
    expect(scheduler.dueAt('a')).toBe(clock.wall() + minute);
  });

  it('R18 never shows a due time further ahead than the delay', () => {
    wait('a', 3 * minute);
    clock.jumpWall(-365 * day);
    expect(scheduler.dueAt('a')).toBe(clock.wall() + 3 * minute);
  });

  it('R14 an event makes everything due, once', () => {
    wait('a', 5 * minute);
    wait('b', 2 * minute);
    scheduler.wake();
    scheduler.wake();
    clock.advance(0);
    expect(ran.sort()).toEqual(['a', 'b']);
    clock.advance(10 * minute);
    expect(ran).toHaveLength(2);
  });

  it('R13 R14 an event never shortens what the server asked for', () => {
    wait('a', 2 * minute, 2 * minute);
    clock.advance(30_000);
    scheduler.wake();
    clock.advance(minute);
    expect(ran).toEqual([]);
    clock.advance(30_000);
    expect(ran).toEqual(['a']);
  });

  it('R13 R14 events during a floor do not bring it to its first moment; one after it starts at once', () => {
    scheduler = new Scheduler(clock, () => 999);
    const [floor, spread] = [10 * minute, minute];
    wait('a', floor + spread, floor, spread);
    wait('b', 60 * minute, floor, spread);
    for (let passed = 0; passed < 10; passed++) {
      scheduler.wake();
      clock.advance(minute);
    }
    clock.advance(spread - 1);
    expect(ran).toEqual([]);
    clock.advance(1);
    expect(ran).toEqual(['a', 'b']);
    wait('c', floor + spread, floor, spread);
    clock.advance(floor);
    scheduler.wake();
    clock.advance(1000);
    expect(ran).toEqual(['a', 'b', 'c']);
  });

  it('R2 R14 an event starts a retry within two seconds, spread over one', () => {
    scheduler = new Scheduler(clock, () => 999);
    wait('a', 5 * minute);
    scheduler.wake();
    expect(ran).toEqual([]);
    clock.advance(1000);
    expect(ran).toEqual(['a']);
  });

  it('R14 an event makes nothing later than it was', () => {
    scheduler = new Scheduler(clock, () => 999);
    wait('a', 100);
    scheduler.wake();
    clock.advance(100);
    expect(ran).toEqual(['a']);
  });

  it('R14 a timer that fires far too late wakes everything: the device slept', () => {
    wait('a', minute);
    wait('b', 300 * minute);
    clock.sleep(10 * minute);
    clock.advance(minute);
    expect(ran).toEqual(expect.arrayContaining(['a', 'b']));
  });

  it('R14 an event during an attempt makes the one after it due, but never before its floor', () => {
    const begunAt = scheduler.moment;
    scheduler.wake();
    scheduler.wait('a', beginWait(clock, 5 * minute), () => ran.push('a'), begunAt);
    scheduler.wait('b', beginWait(clock, { delayMs: 5 * minute, notBeforeMs: minute }), () => ran.push('b'), begunAt);
    scheduler.wait('c', beginWait(clock, 5 * minute), () => ran.push('c'), scheduler.moment);
    clock.advance(0);
    expect(ran).toEqual(['a']);
    clock.advance(minute);
    expect(ran).toEqual(['a', 'b']);
  });

  it('R14 events of one moment cause one attempt, although it began between them', () => {
    scheduler.wake();
    const begunAt = scheduler.moment;
    clock.advance(1500);
    scheduler.wake();
    scheduler.wait('a', beginWait(clock, 5 * minute), () => ran.push('a'), begunAt);
    clock.advance(minute);
    expect(ran).toEqual([]);
    clock.advance(minute);
    const later = scheduler.moment;
    scheduler.wake();
    scheduler.wait('b', beginWait(clock, 5 * minute), () => ran.push('b'), later);
    clock.advance(0);
    expect(ran).toContain('b');
  });

  it('leaves no timer when it is closed', () => {
    wait('a', minute);
    scheduler.close();
    wait('b', minute);
    expect(clock.timers).toBe(0);
  });
});

describe('a stored waiting time', () => {
  it('R18 after a restart is clamped to nothing … the whole delay', () => {
    const clock = new ManualClock();
    const stored = { delayMs: 3 * minute, setAt: clock.wall(), notBeforeMs: 0 };
    clock.jumpWall(minute);
    expect(remaining(clock, resumeWait(clock, stored))).toBe(2 * minute);
    clock.jumpWall(-10 * day);
    expect(remaining(clock, resumeWait(clock, stored))).toBe(3 * minute);
    clock.jumpWall(30 * day);
    expect(remaining(clock, resumeWait(clock, stored))).toBe(0);
  });

  it('R13 R18 keeps the spread of its floor through a restart, whatever the clock shows', () => {
    const clock = new ManualClock();
    const begun = beginWait(clock, { delayMs: 12 * minute, notBeforeMs: 10 * minute, floorSpreadMs: 2 * minute });
    const poked = (): number => remaining(clock, shortened(clock, resumeWait(clock, storedWait(begun)), 0));
    clock.jumpWall(4 * minute);
    expect(poked()).toBe(8 * minute);
    clock.jumpWall(-10 * day);
    expect(poked()).toBe(12 * minute);
    clock.jumpWall(10 * day + 7 * minute);
    expect(poked()).toBe(0);
  });
});
