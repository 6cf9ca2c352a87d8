import { describe, expect, it } from 'vitest';
import { simulateFleet, type FleetOptions } from './fleet.js';
import { simulateLargeFleet, type LargeFleetOptions } from './large-fleet.js';
import { Timeline } from './timeline.js';

/** Both ways for the same fleet. */
async function both(
  options: FleetOptions,
): Promise<{ clients: Record<string, unknown>; computed: Record<string, unknown> }> {
  const { clients, outageMinutes, watchedMinutes, ...same } = options;
  const { perSecond, deliveredAt } = await simulateFleet(options);
  const times = deliveredAt.filter((at) => at !== undefined);
  const run = simulateLargeFleet({
    ...same,
    devices: clients,
    outageS: outageMinutes * 60,
    watchedS: watchedMinutes * 60,
  });
  return {
    clients: { perSecond: [...perSecond], delivered: times.length, lastAt: Math.max(...times) },
    computed: { perSecond: [...run.perSecond], delivered: run.delivered, lastAt: run.lastAt },
  };
}

describe('a large fleet, computed without its clients', () => {
  it('R2 makes in each second the requests that a thousand whole clients make', async () => {
    const { clients, computed } = await both({
      clients: 1000,
      jitter: 0.2,
      outageMinutes: 30,
      watchedMinutes: 42,
      seed: 1,
    });
    expect(computed).toEqual(clients);
    expect(computed['delivered']).toBe(1000);
  }, 120_000);

  const few = { clients: 60, outageMinutes: 10, watchedMinutes: 30, seed: 3 };
  it.each<[string, FleetOptions]>([
    ['without jitter', { ...few, jitter: 0 }],
    ['at a server that answers four requests a second', { ...few, jitter: 0.2, ratePerSecond: 4 }],
    ['at such a server without jitter', { ...few, jitter: 0, ratePerSecond: 4 }],
    ['behind a proxy with a Retry-After of 100 s', { ...few, jitter: 0.2, ratePerSecond: 4, retryAfterS: 100 }],
    ['behind a proxy with a Retry-After of 600 s', { ...few, jitter: 0.2, ratePerSecond: 4, retryAfterS: 600 }],
  ])('R13 does so %s', async (_, options) => {
    const { clients, computed } = await both(options);
    expect(computed).toEqual(clients);
  });

  it('R2 spreads a hundred thousand devices, and delivers all of them at a server of a bounded rate', () => {
    const options: LargeFleetOptions = {
      devices: 100_000,
      jitter: 0.2,
      outageS: 1800,
      watchedS: 4 * 3600,
      ratePerSecond: 1000,
      seed: 1,
    };
    const run = simulateLargeFleet(options);
    expect(run.delivered).toBe(100_000);
    expect(run.deliveredPerSecond.reduce((sum, count) => sum + count, 0)).toBe(100_000);
    expect(Math.max(...run.deliveredPerSecond)).toBe(500);
    expect(Math.max(...run.perSecond.slice(1, 1800))).toBeLessThan(100_000 / 10);
    const exact = simulateLargeFleet({ ...options, jitter: 0 });
    expect(exact.delivered).toBeLessThan(100_000);
    expect(Math.max(...exact.perSecond.slice(1, 1800))).toBe(100_000);
  });

  it('R13 spreads a fleet that all got the same Retry-After, however long', () => {
    const options: LargeFleetOptions = {
      devices: 100_000,
      jitter: 0.2,
      outageS: 60,
      watchedS: 2 * 3600,
      retryAfterS: 900,
      seed: 1,
    };
    const run = simulateLargeFleet(options);
    // Two requests each, within a fifth of the floor, after it.
    expect(run.perSecond.slice(1, 900).every((count) => count === 0)).toBe(true);
    expect(run.perSecond.slice(900, 1081).reduce((sum, count) => sum + count, 0)).toBe(200_000);
    expect(Math.max(...run.perSecond.slice(1))).toBeLessThan(2000);
    const exact = simulateLargeFleet({ ...options, jitter: 0 });
    expect(Math.max(...exact.perSecond.slice(1))).toBe(200_000);
  });
});

describe('a timeline', () => {
  it('gives what is due in a second in the order of moments, then of coming, and forgets what is too late', () => {
    const timeline = new Timeline(5, 3);
    [1700, 1200, 1700, 1000, 3000].forEach((ms, device) => {
      timeline.add(device, ms);
    });
    const taken: number[][] = [];
    for (let at = 0; at < 3; at++) timeline.take(at, (device, ms) => taken.push([device, ms]));
    expect(taken).toEqual([
      [3, 1000],
      [1, 1200],
      [0, 1700],
      [2, 1700],
    ]);
    expect(() => {
      timeline.add(0, 2999);
    }).toThrow(RangeError);
  });
});
