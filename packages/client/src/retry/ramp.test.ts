import { describe, expect, it } from 'vitest';
import { RetryPolicy } from './policy.js';
import { rampOfR2, withJitter } from './ramp.js';

describe('the ramp', () => {
  it('R2 attempts start 0, 0, 60, 180, 360, 600, 900, 1200, 1500 seconds after the first one', () => {
    const starts = [0];
    for (let failures = 1; failures <= 8; failures++) {
      starts.push((starts[failures - 1] ?? 0) + rampOfR2(failures) / 1000);
    }
    expect(starts).toEqual([0, 0, 60, 180, 360, 600, 900, 1200, 1500]);
  });

  it('R1 R2 stays at five minutes for ever: there is no last try', () => {
    expect(rampOfR2(1_000_000)).toBe(300_000);
  });

  it('R2 jitter is added after the cap, up to its share', () => {
    expect(withJitter(300_000, 0.2, 0)).toBe(300_000);
    expect(withJitter(300_000, 0.2, 0.999999)).toBeGreaterThan(359_900);
    expect(withJitter(300_000, 0, 0.9)).toBe(300_000);
  });

  it.each([-5, 0, NaN, Infinity, -Infinity])(
    'R2 a ramp of the app that says %d makes no loop without delay',
    (value) => {
      const policy = new RetryPolicy(
        () => value,
        0,
        () => 0,
      );
      for (const failures of [2, 3, 50]) {
        const { delayMs } = policy.delay(failures, 0);
        expect(delayMs).toBeGreaterThanOrEqual(1000);
        expect(delayMs).toBeLessThanOrEqual(300_000);
      }
    },
  );

  it('R2 a ramp of the app that throws is replaced by the ramp', () => {
    const policy = new RetryPolicy(
      () => {
        throw new Error('made up');
      },
      0,
      () => 0,
    );
    expect(policy.delay(3, 0).delayMs).toBe(120_000);
  });

  it('R2 R14 a retry that an event causes is spread over one second, and not at all without jitter', () => {
    const spread = (jitter: number, random: number): number => new RetryPolicy(rampOfR2, jitter, () => random).spread();
    expect(spread(0.2, 0)).toBe(0);
    expect(spread(0.2, 0.5)).toBe(500);
    expect(spread(0.2, 0.999999)).toBe(1000);
    expect(spread(0, 0.5)).toBe(0);
  });

  it('R13 is never before what the server asked for', () => {
    const policy = new RetryPolicy(rampOfR2, 0, () => 0);
    expect(policy.delay(1, 120_000)).toEqual({ delayMs: 120_000, notBeforeMs: 120_000, floorSpreadMs: 0 });
    expect(policy.delay(6, 120_000).delayMs).toBe(300_000);
  });

  it('R13 R2 with jitter a floor is spread like the ramp: never before it, and on top of the hour', () => {
    const delay = (failures: number, floor: number, random: number): object =>
      new RetryPolicy(rampOfR2, 0.2, () => random).delay(failures, floor);
    expect(delay(1, 900_000, 0)).toEqual({ delayMs: 900_000, notBeforeMs: 900_000, floorSpreadMs: 0 });
    expect(delay(1, 900_000, 0.5)).toEqual({ delayMs: 990_000, notBeforeMs: 900_000, floorSpreadMs: 90_000 });
    expect(delay(1, 3_600_000, 1)).toEqual({ delayMs: 4_320_000, notBeforeMs: 3_600_000, floorSpreadMs: 720_000 });
    // Where the ramp is the longer one, its jitter spreads already; an event still may not bring all to the floor.
    expect(delay(6, 60_000, 0.5)).toEqual({ delayMs: 330_000, notBeforeMs: 60_000, floorSpreadMs: 6000 });
  });
});
