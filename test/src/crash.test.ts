import { describe, expect, it } from 'vitest';
import { breaks } from './crash/breaks.js';
import { campaign } from './crash/campaign.js';
import { lineOf, violationsOf } from './crash/report.js';
import { scenarios } from './crash/scenarios/all.js';

/*
 * A part of `npm run test:crash`, so that `npm test` stays short: about thirty deaths of each scenario, and a few pairs.
 *
 * Moving the cursor before the outcomes, leaving out the intent or the fence, or publishing before the outcomes are stored
 * makes it red: the last tests here prove it, and `npm run test:crash -- --break NAME` shows it.
 */
const chosen = scenarios.flatMap((scenario) =>
  (scenario.targets ?? (['local', 'server'] as const)).map(
    (target) => [`${scenario.lines} ${scenario.name}`, target, scenario] as const,
  ),
);

describe('the process ends wherever it waits for something, and starts again', () => {
  it.each(chosen)(
    '%s, target %s: all invariants hold',
    async (_title, target, scenario) => {
      const report = await campaign(scenario, target, { about: scenario.name === 'enqueue' ? 16 : 30 });
      expect(violationsOf(report), lineOf(report)).toEqual([]);
      expect(report.points).toBeGreaterThan(30);
      expect(report.runs).toBeGreaterThan(10);
    },
    120_000,
  );

  it.each(
    chosen.filter(([, , { name }]) =>
      ['conflict', 'duplicate', 'publish', 'move', 'cancel', 'take-over'].includes(name),
    ),
  )(
    '%s, target %s: all invariants hold when it ends once more while it recovers',
    async (_title, target, scenario) => {
      const report = await campaign(scenario, target, { about: 6, pairs: 24, seed: 1 });
      expect(violationsOf(report), lineOf(report)).toEqual([]);
      expect(report.pairs.run).toBe(24);
    },
    120_000,
  );
});

describe('the harness notices', () => {
  it.each(Object.entries(breaks))(
    '%s',
    async (_name, { breaking, scenario: name, violates }) => {
      const scenario = scenarios.find((one) => one.name === name);
      if (scenario === undefined) throw new Error(`There is no scenario ${name}.`);
      const report = await campaign(scenario, 'local', { breaking, about: 100 });
      const violated = new Set(
        report.violated.flatMap(({ violations }) => violations.map(({ invariant }) => invariant)),
      );
      expect([...violated]).toEqual(expect.arrayContaining([...violates]));
    },
    120_000,
  );
});
