import { expect, test } from '@playwright/test';
import { move, type MoveReport } from './move.js';
import { changesBetween, wrongInMove, type Ends } from './wrong-in-move.js';

interface Row {
  readonly id: string;
  readonly doc: { readonly _rev: string; readonly [field: string]: unknown };
}

test.describe('a health centre is moved, planned offline, killed three times, the server down twice', () => {
  let report: MoveReport;
  test.beforeAll(async () => {
    report = await move({ contacts: 60, reports: 100, seed: 7, say: () => undefined });
  });

  test('then each lineage is right on device and server, and a second run changes nothing', () => {
    expect(report.wrong).toEqual([]);
    expect(report).toMatchObject({ kills: 3, outages: 2 });
    expect(report.ends[0].bulks).toMatchObject([{ state: 'done', total: 175, applied: 175 }]);
  });

  test('the check notices what is wrong', () => {
    const { village, ends } = report;
    const [first] = ends;
    const noticed = (change: Partial<Ends>): string[] => wrongInMove(village, { ...first, ...change });
    const rows = first.server as readonly Row[];
    const withDoc = (wanted: string, change: (doc: Row['doc']) => Row['doc']): readonly Row[] =>
      rows.map(({ id, doc }) => ({ id, doc: id === wanted ? change(doc) : doc }));
    const before = new Map(village.docs.map((doc) => [doc._id, doc]));
    const old = (id: string, field: string): readonly Row[] =>
      withDoc(id, (doc) => ({ ...doc, [field]: before.get(id)?.[field] }));
    const written = (id: string, rev: string): readonly Row[] => withDoc(id, (doc) => ({ ...doc, _rev: rev }));

    expect(noticed({})).toEqual([]);
    expect(noticed({ server: old('person-00001', 'parent') })).toHaveLength(1);
    expect(noticed({ device: old('report-00001', 'contact') })).toHaveLength(1);
    expect(noticed({ server: old('centre-1', 'parent') })).toContain('centre-1 is not below district-2');
    expect(noticed({ server: written('report-00001', '3-x') })).toContain('report-00001 was written 2 times, not 1');
    expect(noticed({ server: written('centre-2', '2-x') })).toContain('centre-2 was written 1 times, not 0');
    expect(noticed({ server: rows.slice(1) })).toContain(`${String(rows[0]?.id)} differs between device and server`);
    expect(noticed({ events: first.events.slice(1) })).not.toEqual([]);
    expect(noticed({ results: [] })).toHaveLength(1);
    expect(noticed({ failures: ['guard_mismatch'] })).toHaveLength(1);
    expect(noticed({ bulks: [] })).not.toEqual([]);
    expect(changesBetween(first, { ...first, device: written('person-00001', '3-x') })).toHaveLength(1);
  });
});
