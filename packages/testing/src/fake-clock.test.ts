import { describe, expect, it } from 'vitest';
import { FakeClock } from './fake-clock.js';
import { InFlight } from './in-flight.js';

describe('FakeClock', () => {
  it('goes from timer to timer, and waits after each until the world is at rest', async () => {
    const inFlight = new InFlight();
    const clock = new FakeClock(() => inFlight.rest());
    const seen: string[] = [];
    const again = (name: string, left: number): void => {
      seen.push(`${name} ${String(clock.monotonic())}`);
      if (left === 0) return;
      void inFlight
        .track(async () => {
          for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        })
        .then(() => clock.setTimer(() => again(name, left - 1), 1000));
    };
    clock.setTimer(() => again('a', 2), 1000);
    clock.setTimer(() => seen.push(`b ${String(clock.monotonic())}`), 2500);
    await clock.advance(3000);
    expect(seen).toEqual(['a 1000', 'a 2000', 'b 2500', 'a 3000']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('keeps wall and monotonic clock apart', async () => {
    const clock = new FakeClock(() => Promise.resolve(), 1_000_000);
    let fired = 0;
    clock.setTimer(() => (fired += 1), 5000);
    clock.jumpWall(-900_000);
    expect([clock.wall(), clock.monotonic(), clock.elapsed]).toEqual([100_000, 0, 0]);
    clock.freezeTimers(60_000);
    expect([clock.wall(), clock.monotonic(), clock.elapsed, fired]).toEqual([160_000, 0, 60_000, 0]);
    expect(clock.nextTimerAt).toBe(5000);
    await clock.advance(5000);
    expect([clock.wall(), clock.monotonic(), fired]).toEqual([165_000, 5000, 1]);
  });

  it('sets the wall clock forward and back by years, and no timer notices', async () => {
    const clock = new FakeClock(() => Promise.resolve(), 1_000_000);
    let fired = 0;
    clock.setTimer(() => (fired += 1), 5000);
    const years = 3 * 365 * 86_400_000;
    clock.jumpWall(years);
    await clock.advance(0);
    expect([clock.wall(), clock.monotonic(), fired]).toEqual([1_000_000 + years, 0, 0]);
    clock.jumpWall(-2 * years);
    await clock.advance(5000);
    expect([clock.wall(), clock.monotonic(), clock.elapsed, fired]).toEqual([1_005_000 - years, 5000, 5000, 1]);
  });

  it('lets a frozen tab wake late: both clocks go on, the timers that were due fire afterwards, in their order', async () => {
    const clock = new FakeClock(() => Promise.resolve(), 0);
    const seen: string[] = [];
    clock.setTimer(() => seen.push(`second ${String(clock.monotonic())}`), 2000);
    clock.setTimer(() => seen.push(`first ${String(clock.monotonic())}`), 1000);
    clock.setTimer(() => seen.push(`later ${String(clock.monotonic())}`), 700_000);
    clock.freezeTab(600_000);
    expect([clock.wall(), clock.monotonic(), clock.elapsed, seen.length]).toEqual([600_000, 600_000, 600_000, 0]);
    await clock.advance(0);
    expect(seen).toEqual(['first 600000', 'second 600000']);
    await clock.advance(100_000);
    expect(seen.at(-1)).toBe('later 700000');
  });

  it('refuses to let time pass backwards', async () => {
    const clock = new FakeClock(() => Promise.resolve());
    await expect(clock.advance(-1)).rejects.toThrow(RangeError);
    expect(() => {
      clock.freezeTimers(-1);
    }).toThrow(RangeError);
    expect(() => {
      clock.freezeTab(-1);
    }).toThrow(RangeError);
  });

  it('forgets a cleared timer', async () => {
    const clock = new FakeClock(() => Promise.resolve());
    const timer = clock.setTimer(() => expect.unreachable(), 10);
    clock.clearTimer(timer);
    await clock.advance(100);
    expect(clock.nextTimerAt).toBeUndefined();
  });
});
