import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ClientClosedError } from '../model/errors.js';
import type { IndexDefinition, IndexKey } from '../model/lookup.js';
import type { KeptIndex } from './kept-index.js';
import { byColour, LookupBed } from './lookup-bed.fixture.js';

let bed: LookupBed;
beforeEach(async () => {
  bed = new LookupBed();
  await bed.fill(250, (n) => ({ colour: n % 2 === 0 ? 'red' : 'blue' }));
});
afterEach(() => bed.close());

const idsOf = async (index: KeptIndex, key: IndexKey): Promise<string[]> =>
  (await bed.until(index.query(key))).rows.map(({ id }) => id);
async function built(definition: IndexDefinition = byColour): Promise<KeptIndex> {
  const index = bed.open(definition);
  await bed.until(index.build());
  return index;
}

describe('after the backfill', () => {
  it('B7 a query sees every write made before it: new, changed and deleted documents', async () => {
    const index = await built();
    await bed.fill(1, () => ({ colour: 'red' }), 'new');
    await bed.edit('d0001', { colour: 'red' });
    await bed.edit('d0002', { _deleted: true });
    await bed.edit('d0004', { colour: undefined });
    const red = await idsOf(index, 'red');
    expect(red).toEqual(expect.arrayContaining(['new0001', 'd0001']));
    expect(red).not.toContain('d0002');
    expect(red).not.toContain('d0004');
    expect(await idsOf(index, 'blue')).not.toContain('d0001');
  });

  it('B7 follows the feed without being asked, deletions included', async () => {
    const index = bed.open();
    index.follow();
    await bed.reaches(index, 'ready');
    await bed.edit('d0002', { _deleted: true });
    await bed.fill(1, () => ({ colour: 'red' }), 'new');
    await bed.until(bed.storedUpTo(252));
    expect(await bed.storedIds()).toContain('new0001');
    expect(await bed.storedIds()).not.toContain('d0002');
  });

  it('B7 a document that comes back after its deletion is found again', async () => {
    const index = await built();
    await bed.edit('d0001', { _deleted: true });
    expect(await idsOf(index, 'blue')).not.toContain('d0001');
    await bed.pouch.bulkDocs([{ _id: 'd0001', colour: 'blue' }]);
    expect(await idsOf(index, 'blue')).toContain('d0001');
  });

  it('B7 changes while it is built: deletions and edits of rows that are done already, and of rows that are not', async () => {
    const index = bed.open();
    bed.afterWrite = async (nth) => {
      if (nth !== 2) return;
      await bed.edit('d0001', { _deleted: true });
      await bed.edit('d0003', { colour: 'red' });
      await bed.edit('d0005', { colour: undefined });
      await bed.edit('d0201', { _deleted: true });
      await bed.edit('d0203', { colour: 'red' });
    };
    await bed.until(index.build());
    await bed.until(bed.looked());
    const [red, blue] = [await idsOf(index, 'red'), await idsOf(index, 'blue')];
    expect(red).toEqual(expect.arrayContaining(['d0003', 'd0203']));
    for (const gone of ['d0001', 'd0003', 'd0005', 'd0201', 'd0203']) expect(blue).not.toContain(gone);
    expect(red.length + blue.length).toBe(247);
  });

  it('B7 a failure while it follows that may pass: tried again, and queries wait for it', async () => {
    const index = await built();
    await bed.fill(150, () => ({ colour: 'red' }), 'more');
    let nth = 0;
    bed.writeFault = () => ((nth += 1) === 1 ? { at: 'later', error: new DOMException('x', 'AbortError') } : undefined);
    const red = await idsOf(index, 'red');
    expect(red).toHaveLength(275);
    expect(red).toContain('more0001');
    expect(bed.warnings).toHaveLength(1);
  });

  it('B7 a failure for good while it follows parks it: no query is answered from what it has', async () => {
    const index = await built();
    await bed.fill(150, () => ({ colour: 'red' }), 'more');
    let nth = 0;
    bed.writeFault = () => ((nth += 1) === 1 ? { at: 'later', error: new DOMException('x', 'DataError') } : undefined);
    await expect(bed.until(index.query('red'))).rejects.toMatchObject({ state: 'parked', reason: 'DataError' });
    expect(await bed.reaches(index, 'parked')).toMatchObject({ resumePoint: 250 });
    await bed.until(index.resume());
    expect(await idsOf(index, 'red')).toHaveLength(275);
  });

  it('B7 design documents and local documents are no rows', async () => {
    await bed.pouch.bulkDocs([{ _id: '_design/x', colour: 'red', views: {} }]);
    await bed.pouch.put({ _id: '_local/x', colour: 'red' });
    expect(await idsOf(await built(), 'red')).toHaveLength(125);
  });

  it('B7 a conflict that loses changes nothing, and does not make the index late for ever', async () => {
    const index = await built();
    const doc = (await bed.pouch.get('d0001')) as { _rev: string };
    await bed.edit('d0001', { colour: 'red' });
    await bed.pouch.bulkDocs(
      [{ _id: 'd0001', _rev: '2-0', colour: 'green', _revisions: { start: 2, ids: ['0', doc._rev.slice(2)] } }],
      { new_edits: false },
    );
    expect(await idsOf(index, 'red')).toContain('d0001');
    expect(await idsOf(index, 'green')).toEqual([]);
  });
});

describe('a function keys that is wrong', () => {
  const wrongFor = (wrong: unknown, onError?: 'park' | 'skip'): IndexDefinition => ({
    name: 'picky',
    version: 1,
    ...(onError === undefined ? {} : { onError }),
    keys: (doc) => {
      if (doc['bad'] !== true) return doc['colour'] as string;
      if (wrong instanceof Error) throw wrong;
      return wrong as string;
    },
  });

  for (const [what, wrong] of [
    ['throws', new RangeError('secret content')],
    ['answers with an object', { a: 1 }],
    ['answers with a promise', Promise.resolve(['x'])],
    ['answers with NaN', NaN],
    ['answers with a list with a hole', ['a', undefined]],
    ['answers with a key with a hole', [Object.assign(['a'], { 2: 'b' })]],
    ['answers with a boolean', [true]],
    ['answers with a list in a list in a list', [[['a']]]],
  ] as const) {
    it(`B7 ${what}: the index parks with the document's id; all before it is stored, the early row too`, async () => {
      await bed.edit('d0150', { bad: true });
      await bed.fill(150, () => ({ colour: 'red' }), 'later');
      const index = bed.open(wrongFor(wrong));
      await expect(bed.until(index.build())).rejects.toMatchObject({ state: 'parked', reason: 'keys' });
      expect(await bed.reaches(index, 'parked')).toMatchObject({ id: 'd0150', resumePoint: 250, rows: 249 });
      expect(await bed.storedIds('picky')).toContain('d0001');
      expect(bed.warnings.join()).not.toContain('secret content');
      expect(bed.warnings.join()).toContain('d0150');
      // When the document is mended it goes on.
      await bed.edit('d0150', { bad: false });
      await bed.until(index.resume());
      expect(await idsOf(index, 'red')).toHaveLength(275);
    });
  }

  it('B7 with onError skip the document is left out and listed, and the rest is there', async () => {
    await bed.edit('d0150', { bad: true });
    await bed.edit('d0151', { bad: true });
    const index = await built(wrongFor(new RangeError('x'), 'skip'));
    expect(await bed.reaches(index, 'ready')).toMatchObject({ skipped: 2 });
    expect(await bed.until(index.skipped())).toEqual([
      { id: 'd0150', reason: 'RangeError' },
      { id: 'd0151', reason: 'RangeError' },
    ]);
    expect(await idsOf(index, 'red')).toHaveLength(124);
    // It comes back when it is mended, and goes from the list when it is deleted.
    await bed.edit('d0150', { bad: false });
    await bed.edit('d0151', { _deleted: true });
    expect(await idsOf(index, 'red')).toContain('d0150');
    expect(await bed.until(index.skipped())).toEqual([]);
  });

  it('B7 a document that was indexed and then cannot be is not found by its old keys', async () => {
    const index = await built(wrongFor(new RangeError('x'), 'skip'));
    await bed.edit('d0002', { bad: true });
    expect(await idsOf(index, 'red')).not.toContain('d0002');
    expect(await bed.until(index.skipped())).toEqual([{ id: 'd0002', reason: 'RangeError' }]);
  });

  it('B7 parks while it follows, too', async () => {
    const index = await built(wrongFor(new RangeError('x')));
    await bed.edit('d0002', { bad: true });
    await expect(bed.until(index.query('red'))).rejects.toMatchObject({ state: 'parked', reason: 'keys' });
    expect(await bed.reaches(index, 'parked')).toMatchObject({ id: 'd0002' });
  });
});

describe('a query that cannot see all writes in time', () => {
  it('B7 says so: it is refused, or answers with `behind` where the caller allows it', async () => {
    const index = await built();
    await bed.fill(1, () => ({ colour: 'red' }), 'new');
    bed.writeFault = () => ({ at: 'never', error: new Error('x') });
    const refused = index.query('red').catch((error: unknown) => error);
    await bed.until(bed.wroteTimes(bed.writes + 1));
    bed.clock.advance(2000);
    expect(await bed.until(refused)).toMatchObject({ code: 'index_not_ready', state: 'behind' });
    const allowed = index.query('red', { stale: 'allow', waitMs: 500 });
    await bed.until(bed.timerWithin(500));
    bed.clock.advance(500);
    const answer = await bed.until(allowed);
    expect(answer.behind).toBe(true);
    expect(answer.rows).toHaveLength(125);
  });

  it('B7 waits two seconds by default, not longer', async () => {
    const index = await built();
    await bed.fill(1, () => ({ colour: 'red' }), 'new');
    bed.writeFault = () => ({ at: 'never', error: new Error('x') });
    let isOver = false;
    const refused = index.query('red').catch(() => (isOver = true));
    await bed.until(bed.wroteTimes(bed.writes + 1));
    bed.clock.advance(1999);
    await bed.rest();
    expect(isOver).toBe(false);
    bed.clock.advance(1);
    await bed.until(refused);
    expect(isOver).toBe(true);
  });
});

describe('several tabs, versions and ends', () => {
  it('B3 two tabs without locks that build at once end with the same rows, each once', async () => {
    bed.locks = { request: (_name, _signal, whileHeld) => whileHeld() };
    const [here, there] = [bed.open(), bed.open()];
    await bed.until(Promise.all([here.build(), there.build()]));
    expect(await idsOf(here, 'red')).toHaveLength(125);
    expect(await idsOf(there, 'blue')).toHaveLength(125);
    expect(await bed.stored()).toEqual({ seq: 250, rows: 250 });
  });

  it('B3 a tab that was slow with an old page stores nothing of it over what another has stored since', async () => {
    bed.locks = { request: (_name, _signal, whileHeld) => whileHeld() };
    const [slow, quick] = [bed.open(), bed.open()];
    let [readOn, storeOld] = [(): void => undefined, (): void => undefined];
    const old = new Promise<void>((resolve) => (storeOld = resolve));
    const next = new Promise<void>((resolve) => (readOn = resolve));
    // The slow one has read rows 1 to 100. The other stores rows 1 to 300 before it, and 301 to 400 after it.
    const never = new Promise<void>(() => undefined);
    bed.pageHeld = (nth) => (nth === 1 ? old : nth === 5 ? next : nth === 6 ? never : undefined);
    void slow.build().catch(() => undefined);
    await bed.until(bed.readTimes(1));
    await bed.edit('d0001', { colour: 'red' });
    await bed.fill(150, () => ({ colour: 'green' }), 'more');
    const quickly = quick.build();
    await bed.until(bed.readTimes(5));
    const before = bed.writes;
    storeOld();
    await bed.until(bed.wroteTimes(before + 1));
    await bed.until(bed.readTimes(6));
    readOn();
    await bed.until(quickly);
    expect(await idsOf(quick, 'red')).toContain('d0001');
    expect(await idsOf(quick, 'blue')).not.toContain('d0001');
  });

  it('B8 two tabs with locks: one builds, the other reads nothing', async () => {
    const [here, there] = [bed.open(), bed.open()];
    await bed.until(Promise.all([here.build(), there.build()]));
    expect(bed.pages.reduce((sum, { rows }) => sum + rows, 0)).toBe(250);
  });

  it('S6 a tab that holds the lock and does nothing is not waited for', async () => {
    bed.held.add('clinic-afield-index-by-colour-v1');
    const index = bed.open();
    const done = index.build();
    await bed.rest();
    bed.clock.advance(5000);
    await bed.until(done);
    expect(await idsOf(index, 'red')).toHaveLength(125);
  });

  it('B3 a new version is built beside the old one, which answers until it is complete, and is removed then', async () => {
    const old = bed.openTab();
    await bed.until(old.index.build());
    const next = bed.open({ ...byColour, version: 2, keys: (doc) => `v2 ${String(doc['colour'])}` });
    let asked: Promise<string[]> | undefined;
    next.state$.subscribe((state) => {
      if (state.state === 'building' && state.rows === 100) asked ??= idsOf(old.index, 'red');
    });
    await bed.until(next.build());
    expect(await asked).toHaveLength(125);
    expect(await idsOf(next, 'v2 red')).toHaveLength(125);
    await bed.until(bed.databasesAre(['clinic-afield-index-by-colour-v2']));
    await expect(bed.until(old.index.query('red'))).rejects.toMatchObject({ state: 'parked', reason: 'removed' });
  });

  it('B3 a new version that stops in the middle leaves the old one whole', async () => {
    const old = bed.open();
    await bed.until(old.build());
    const next = bed.open({
      ...byColour,
      version: 2,
      keys: () => {
        throw new Error('x');
      },
    });
    await expect(bed.until(next.build())).rejects.toMatchObject({ state: 'parked' });
    expect(await idsOf(old, 'red')).toHaveLength(125);
  });

  it('B7 a closed index answers nothing, and its calls reject', async () => {
    const { index, end } = bed.openTab();
    await bed.until(index.build());
    await end();
    await expect(index.query('red')).rejects.toBeInstanceOf(ClientClosedError);
    await expect(index.build()).rejects.toBeInstanceOf(ClientClosedError);
    expect(bed.clock.timers).toBe(0);
  });

  it('B7 closing in the middle of a build ends it, without a timer left', async () => {
    const { index, end } = bed.openTab();
    bed.writeFault = (nth) => (nth === 3 ? { at: 'never', error: new Error('x') } : undefined);
    const build = index.build().catch((error: unknown) => error);
    await bed.until(bed.wroteTimes(3));
    await end();
    expect(await build).toBeInstanceOf(ClientClosedError);
    expect(bed.clock.timers).toBe(0);
  });

  it('B3 a database that was set back is indexed anew', async () => {
    const index = await built();
    bed.sequenceShown = 10;
    await bed.until(index.build());
    bed.sequenceShown = undefined;
    await bed.until(index.build()); // what comes after the end that it was told
    expect(await bed.stored()).toEqual({ seq: 250, rows: 250 });
    expect(bed.pages.filter(({ since }) => since === 0)).toHaveLength(2);
  });
});
