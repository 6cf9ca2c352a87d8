import { afterEach, describe, expect, it } from 'vitest';
import { LookupBed } from './lookup-bed.fixture.js';

let bed = new LookupBed();
afterEach(async () => {
  await bed.close();
  bed = new LookupBed();
});

const transient = (name: string): Error => new DOMException('made to fail', name);

describe('building', () => {
  it('smoke', async () => {
    await bed.fill(250, (n) => ({ colour: n % 2 === 0 ? 'red' : 'blue' }));
    const index = bed.open();
    await bed.until(index.build());
    const { rows, behind } = await bed.until(index.query('red'));
    expect(rows.length).toBe(125);
    expect(behind).toBe(false);
    expect(bed.pages.map(({ rows }) => rows)).toEqual([100, 100, 50]);
    await bed.fill(1, () => ({ colour: 'red' }), 'x');
    expect((await bed.until(index.query('red'))).rows.length).toBe(126);
    await bed.edit('d0002', { _deleted: true });
    expect((await bed.until(index.query({ prefix: 're' }, { include_docs: true }))).rows.length).toBe(125);
  });
  for (const at of ['once', 'later', 'after-commit'] as const) {
    it(`transient ${at}`, async () => {
      await bed.fill(250, () => ({ colour: 'red' }));
      bed.writeFault = (nth) => (nth === 3 ? { at, error: transient('AbortError') } : undefined);
      const index = bed.open();
      await bed.until(index.build());
      expect((await bed.until(index.query('red'))).rows.length).toBe(250);
      expect(bed.warnings).toEqual([expect.stringContaining('retrying pass 1/10')]);
    });
  }
});
