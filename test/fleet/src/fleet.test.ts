import { beforeAll, describe, expect, it } from 'vitest';
import { broken, figuresOf, minutesOf } from './figures.js';
import { simulateFleet, type FleetRun } from './fleet.js';

describe('a hundred clients that meet an outage in the same second', () => {
  const options = { clients: 100, outageMinutes: 30, watchedMinutes: 42, seed: 1 };
  let exact: FleetRun;
  let spread: FleetRun;

  beforeAll(async () => {
    exact = await simulateFleet({ ...options, jitter: 0 });
    spread = await simulateFleet({ ...options, jitter: 0.2 });
  });

  it('R2 without jitter all of them try in the same seconds of the ramp', () => {
    const busy = exact.perSecond.flatMap((count, second) => (count === 0 ? [] : [[second, count]]));
    const tries = [60, 180, 360, 600, 900, 1200, 1500].map((second) => [second, 100]);
    expect(busy).toEqual([[0, 200], ...tries, [1800, 200]]);
  });

  it('R2 with jitter no second has more than a third of the requests, while the server is away and after', () => {
    const [withJitter, without] = [figuresOf(spread), figuresOf(exact)];
    expect(without).toMatchObject({ peakAway: 100, peakBack: 200 });
    expect(withJitter.peakAway).toBeLessThanOrEqual(without.peakAway / 3);
    expect(withJitter.peakBack).toBeLessThanOrEqual(without.peakBack / 3);
  });

  it('R2 the first try and the retry at once meet in the first second, with and without jitter', () => {
    expect([figuresOf(spread).firstSecond, figuresOf(exact).firstSecond]).toEqual([200, 200]);
  });

  it('R2 everything is delivered within two steps of the ramp after the outage, and jitter costs no request', () => {
    for (const run of [spread, exact]) {
      const { delivered, lastDeliveredAfter, total } = figuresOf(run);
      expect(delivered).toBe(100);
      expect(lastDeliveredAfter).toBeLessThanOrEqual(2 * 300 * (1 + run.options.jitter));
      expect(total).toBe(100 * (2 + 7 + 2));
    }
    expect(broken(spread, exact)).toEqual([]);
  });

  it('says what does not hold, and counts minutes', () => {
    expect(broken(exact, exact)).toEqual([
      expect.stringMatching(/while the server is away is 100 .* more than a third of 100/),
      expect.stringMatching(/after the server is back is 200 .* more than a third of 200/),
    ]);
    const late = { ...spread, deliveredAt: [...spread.deliveredAt.slice(1), undefined] };
    expect(broken(late, exact)).toEqual([expect.stringMatching(/not all was delivered 720 s .* 99 of 100/)]);
    const slow = { ...spread, deliveredAt: [...spread.deliveredAt.slice(1), 1800 + 721] };
    expect(broken(slow, exact)).toEqual([expect.stringMatching(/the last after 721 s/)]);
    expect(minutesOf(exact).slice(0, 3)).toEqual([
      { minute: 0, total: 200, peak: 200 },
      { minute: 1, total: 100, peak: 100 },
      { minute: 2, total: 0, peak: 0 },
    ]);
  });
});
