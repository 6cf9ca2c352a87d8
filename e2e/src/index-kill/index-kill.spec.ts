import { expect, test } from '@playwright/test';
import { indexKill, type IndexKillReport } from './index-kill.js';
import { wrongInBuilds, type Builds } from './wrong-in-builds.js';

test.describe('B4 B8 a browser is killed while it builds an index', () => {
  let report: IndexKillReport;
  test.beforeAll(async () => {
    report = await indexKill({ documents: 2000, kills: 1, seed: 8, say: () => undefined });
  });

  test('then the index is the same as an undisturbed one, and at most one batch was read again', () => {
    expect(report.wrong).toEqual([]);
    expect(report.builds.lives).toHaveLength(2);
    expect(report.builds.lives[0]?.length).toBeLessThan(2000);
  });

  test('the check notices what is wrong', () => {
    const { builds } = report;
    const noticed = (change: Partial<Builds>): string[] => wrongInBuilds({ ...builds, ...change });
    const { killed, undisturbed } = builds.rows;
    const all = builds.undisturbed;

    expect(noticed({ lives: [all, all.slice(0, 100)] })).toEqual([]);
    expect(noticed({ lives: [all, all.slice(0, 101)] })).toEqual([
      'life 2 has read 101 rows again',
      '2101 rows were read, more than 2100',
    ]);
    expect(noticed({ lives: [[...all, ...all], []] })).toEqual(['4000 rows were read, more than 2100']);
    expect(noticed({ lives: [all.slice(0, 900), all.slice(901)] })).toEqual(['1999 of 2000 rows were read']);
    expect(noticed({ undisturbed: all.slice(1) })).toHaveLength(1);
    expect(noticed({ rows: { killed: killed.slice(0, -1), undisturbed } })).toHaveLength(1);
    expect(noticed({ rows: { killed: killed.slice(1), undisturbed } })).toHaveLength(1);
    expect(noticed({ rows: { killed: killed.slice(1), undisturbed: killed.slice(1) } })).toHaveLength(1);
  });
});
