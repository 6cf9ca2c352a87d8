import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { IndexNotReadyError } from '../model/errors.js';
import type { IndexState } from '../model/lookup.js';
import { defineIndex } from './define.js';
import type { KeptIndex } from './kept-index.js';
import { LookupBed } from './lookup-bed.fixture.js';

/** More than two batches: the last one is not full. */
const count = 250;
const passing = ['AbortError', 'InvalidStateError', 'TransactionInactiveError', 'TimeoutError', 'UnknownError'];

let bed: LookupBed;
beforeEach(async () => {
  bed = new LookupBed();
  await bed.fill(count, (n) => ({ colour: n % 2 === 0 ? 'red' : 'blue', size: n }));
});
afterEach(() => bed.close());

const domError = (name: string): Error => new DOMException('made to fail', name);
const wentBad = (reason: string): Error =>
  Object.assign(new Error('bad'), { name: 'indexed_db_went_bad', status: 500, reason });
const idsOf = async (index: KeptIndex, key: string): Promise<string[]> =>
  (await bed.until(index.query(key))).rows.map(({ id }) => id);
const allRows = async (index: KeptIndex): Promise<number> => (await bed.until(index.query({ prefix: '' }))).rows.length;
const rowsRead = (): number => bed.pages.reduce((sum, { rows }) => sum + rows, 0);
const parkedBy = async (index: KeptIndex): Promise<unknown> =>
  bed.until(
    index.build().then(
      () => 'ready',
      (error: unknown) => error,
    ),
  );

describe('an error that may pass', () => {
  for (const name of passing) {
    for (const at of ['once', 'later', 'after-commit'] as const) {
      it(`B1 ${name} of a write (${at}) in the first batch: the pass goes on from the resume point, the first row is there`, async () => {
        bed.writeFault = (nth) => (nth === 1 ? { at, error: domError(name) } : undefined);
        const index = bed.open();
        await bed.until(index.build());
        expect(await allRows(index)).toBe(count);
        expect(await idsOf(index, 'blue')).toContain('d0001');
        expect(bed.warnings).toEqual([`Index "by-colour": ${name}; retrying pass 1/10.`]);
      });
    }

    it(`B1 ${name} as the reason of indexed_db_went_bad, of a read of the changes: the early row is there`, async () => {
      bed.changesFault = (nth) => (nth === 1 ? wentBad(name) : undefined);
      const index = bed.open();
      await bed.until(index.build());
      expect(await allRows(index)).toBe(count);
      expect(await idsOf(index, 'blue')).toContain('d0001');
      expect(bed.warnings).toHaveLength(1);
    });
  }

  it('B1 rests longer each time, never more than a second, and holds no lock and no transaction meanwhile', async () => {
    const failed: number[] = [];
    bed.writeFault = (nth) => {
      if (nth < 2 || failed.length === 10) return undefined;
      failed.push(bed.clock.monotonic());
      return { at: failed.length % 2 === 0 ? 'once' : 'later', error: domError('AbortError') };
    };
    const held: number[] = [];
    const { setTimer } = bed.clock;
    bed.clock.setTimer = (run, delayMs) => {
      // The rests between the passes; other timers bound single calls.
      if (delayMs > 0 && delayMs <= 1000) held.push(bed.held.size + bed.openTransactions);
      return setTimer.call(bed.clock, run, delayMs);
    };
    const index = bed.open();
    await bed.until(index.build());
    const rests = failed.slice(1).map((at, place) => at - (failed[place] ?? 0));
    expect(rests).toEqual([50, 100, 200, 400, 800, 1000, 1000, 1000, 1000]);
    expect(held.length).toBeGreaterThanOrEqual(10);
    expect(new Set(held)).toEqual(new Set([0]));
    expect(await allRows(index)).toBe(count);
  });

  it('B1 gives one warning line for each retry, and counts anew after progress', async () => {
    // Each of the three batches fails eight times: 24 failures in all, never more than eight in a row.
    let inRow = 0;
    bed.writeFault = () => {
      inRow = inRow === 8 ? 0 : inRow + 1;
      return inRow === 0 ? undefined : { at: 'later', error: domError('UnknownError') };
    };
    const index = bed.open();
    await bed.until(index.build());
    bed.writeFault = undefined;
    expect(await allRows(index)).toBe(count);
    const once = Array.from(
      { length: 8 },
      (_, at) => `Index "by-colour": UnknownError; retrying pass ${String(at + 1)}/10.`,
    );
    expect(bed.warnings).toEqual([...once, ...once, ...once]);
  });

  it('B1 a connection that has died is opened anew', async () => {
    const index = bed.open();
    bed.writeFault = (nth) => (nth === 1 ? { at: 'dies', error: domError('InvalidStateError') } : undefined);
    await bed.until(index.build());
    expect(await allRows(index)).toBe(count);
    expect(bed.opens).toBe(2);
  });

  it('B1 a connection that has died is opened anew once, however many ask', async () => {
    const index = bed.open();
    await bed.until(index.build());
    const opens = bed.opens;
    let isDead = false;
    bed.readFault = () => {
      const fault = isDead ? undefined : ({ at: 'dies', error: domError('InvalidStateError') } as const);
      isDead = true;
      return fault;
    };
    const answers = await bed.until(Promise.all(Array.from({ length: 20 }, () => index.query('blue'))));
    expect(new Set(answers.map(({ rows }) => rows.length))).toEqual(new Set([count / 2]));
    expect(bed.opens - opens).toBe(1);
  });

  it('B1 a call that never settles counts as TimeoutError after a minute', async () => {
    bed.writeFault = (nth) => (nth === 1 ? { at: 'never', error: domError('AbortError') } : undefined);
    const index = bed.open();
    const built = index.build();
    await bed.until(bed.wroteTimes(1));
    bed.clock.advance(60_000);
    await bed.until(built);
    expect(bed.warnings).toEqual(['Index "by-colour": TimeoutError; retrying pass 1/10.']);
    expect(await allRows(index)).toBe(count);
  });
});

describe('an error that does not pass', () => {
  it('B2 parks after exactly 11 attempts without progress, and keeps reason and resume point', async () => {
    let attempts = 0;
    bed.writeFault = (nth) => {
      if (nth < 2) return undefined;
      attempts += 1;
      return { at: 'later', error: domError('AbortError') };
    };
    const index = bed.open();
    expect(await parkedBy(index)).toMatchObject({ code: 'index_not_ready', state: 'parked', reason: 'AbortError' });
    // The twelfth write is that of the reason.
    expect(attempts).toBe(12);
    expect(bed.pages.filter(({ since }) => since === 100)).toHaveLength(11);
    expect(bed.warnings.filter((line) => line.includes('retrying pass'))).toHaveLength(10);
    expect(await bed.reaches(index, 'parked')).toEqual({
      state: 'parked',
      reason: 'AbortError',
      id: undefined,
      resumePoint: 100,
      rows: 100,
      skipped: 0,
    });
  });

  for (const [name, error] of [
    ['QuotaExceededError', domError('QuotaExceededError')],
    ['DataError', domError('DataError')],
    ['Error', new Error('nobody knows this one')],
    ['QuotaExceededError', wentBad('QuotaExceededError')],
  ] as const) {
    for (const at of ['once', 'later'] as const) {
      it(`B2 ${error.name}/${name} (${at}) parks at once, without a retry; what was stored before stays`, async () => {
        bed.writeFault = (nth) => (nth === 2 ? { at, error } : undefined);
        const index = bed.open();
        expect(await parkedBy(index)).toBeInstanceOf(IndexNotReadyError);
        expect(bed.warnings.filter((line) => line.includes('retrying'))).toEqual([]);
        expect(await bed.reaches(index, 'parked')).toMatchObject({ reason: name, resumePoint: 100, rows: 100 });
      });
    }
  }

  it('B2 one that does not pass among some that do: the retry ends with it', async () => {
    bed.writeFault = (nth) => {
      if (nth === 2 || nth === 3) return { at: 'later', error: domError('AbortError') };
      return nth === 4 ? { at: 'later', error: domError('ConstraintError') } : undefined;
    };
    const index = bed.open();
    expect(await parkedBy(index)).toMatchObject({ reason: 'ConstraintError' });
    expect(bed.warnings.filter((line) => line.includes('retrying'))).toHaveLength(2);
  });

  it('B2 queries are refused while it is parked, and while it is built: never answered from a part', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'later', error: domError('DataError') } : undefined);
    const index = bed.open();
    await expect(bed.until(index.query('blue'))).rejects.toMatchObject({ code: 'index_not_ready', state: 'idle' });
    const asked: unknown[] = [];
    const states = index.state$.subscribe(({ state, ...more }) => {
      if (state !== 'building' || !('rows' in more) || more.rows !== 100) return;
      index.query('blue').then(
        (answer) => asked.push(answer),
        (error: unknown) => asked.push(error),
      );
    });
    await parkedBy(index);
    states.unsubscribe();
    expect(asked).toEqual([expect.objectContaining({ code: 'index_not_ready' })]);
    await expect(bed.until(index.query('blue'))).rejects.toMatchObject({ state: 'parked', reason: 'DataError' });
    await expect(bed.until(index.query('blue', { stale: 'allow' }))).rejects.toMatchObject({ state: 'parked' });
  });

  it('B2 resume() tries again, from the resume point', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'later', error: domError('DataError') } : undefined);
    const index = bed.open();
    await parkedBy(index);
    bed.pages.length = 0;
    await bed.until(index.resume());
    expect(bed.pages.map(({ since }) => since)).toEqual([100, 200]);
    expect(await allRows(index)).toBe(count);
    expect(await bed.reaches(index, 'ready')).toEqual({ state: 'ready', rows: count, skipped: 0 });
  });

  it('B2 a restart tries again, from the resume point', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'later', error: domError('DataError') } : undefined);
    const first = bed.openTab();
    await parkedBy(first.index);
    await first.end();
    bed.pages.length = 0;
    const index = bed.open();
    index.follow();
    await bed.reaches(index, 'ready');
    expect(bed.pages.map(({ since }) => since)).toEqual([100, 200]);
    expect(await idsOf(index, 'blue')).toContain('d0001');
    expect(await allRows(index)).toBe(count);
  });

  it('B2 resume() resolves when it is ready, also where a query came while the store still said parked', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'later', error: domError('DataError') } : undefined);
    const first = bed.openTab();
    await parkedBy(first.index);
    await first.end();
    let read: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (read = resolve));
    const nextPage = bed.pages.length + 1;
    bed.pageHeld = (nth) => (nth === nextPage ? held : undefined);
    const index = bed.open();
    const resumed = index.resume();
    await bed.until(bed.readTimes(nextPage));
    await expect(bed.until(index.query('blue'))).rejects.toMatchObject({ state: 'parked' });
    read();
    await bed.until(resumed);
    expect(await bed.reaches(index, 'ready')).toMatchObject({ rows: count });
  });

  it('B2 another tab shows that it is parked and why, and refuses; when one resumes, both answer', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'later', error: domError('DataError') } : undefined);
    const [here, there] = [bed.open(), bed.open()];
    const shown: IndexState[] = [];
    there.state$.subscribe((state) => shown.push(state));
    await parkedBy(here);
    expect(await bed.reaches(there, 'parked')).toMatchObject({ reason: 'DataError', resumePoint: 100 });
    await expect(bed.until(there.query('blue'))).rejects.toMatchObject({ state: 'parked', reason: 'DataError' });
    await bed.until(there.resume());
    await bed.reaches(here, 'ready');
    expect(await allRows(here)).toBe(count);
    expect(shown.map(({ state }) => state)).toContain('building');
  });

  it('B2 a tab that did not hear of it shows that it is parked as soon as it has asked', async () => {
    const [here, there] = [bed.open(), bed.open()];
    await bed.until(Promise.all([here.build(), there.build()]));
    bed.news = false;
    await bed.fill(1, () => ({ colour: 'red' }), 'x');
    let nth = 0;
    bed.writeFault = () => ((nth += 1) === 1 ? { at: 'later', error: domError('DataError') } : undefined);
    await parkedBy(here);
    expect(there.isReady).toBe(true);
    await expect(bed.until(there.query('red'))).rejects.toMatchObject({ state: 'parked' });
    expect(there.isReady).toBe(false);
  });

  it('B6 a reason that cannot be stored parks all the same, and nothing goes unhandled', async () => {
    bed.writeFault = (nth) =>
      nth >= 2 ? { at: nth % 2 === 0 ? 'once' : 'later', error: domError('QuotaExceededError') } : undefined;
    const index = bed.open();
    expect(await parkedBy(index)).toMatchObject({ reason: 'QuotaExceededError' });
    await expect(bed.until(index.query('blue'))).rejects.toMatchObject({ state: 'parked' });
    bed.writeFault = undefined;
    await bed.until(index.resume());
    expect(await allRows(index)).toBe(count);
  });
});

describe('the resume point', () => {
  it('B3 never lies past a row that is not stored: looked at after each write of a pass with failures', async () => {
    // Each batch fails once before it is stored.
    bed.writeFault = (nth) => (nth % 2 === 1 ? { at: 'later', error: domError('AbortError') } : undefined);
    const index = bed.open();
    const points: { seq: number; rows: number }[] = [];
    bed.afterWrite = async () => {
      points.push(await bed.stored());
    };
    await bed.until(index.build());
    await bed.until(bed.looked());
    expect(points.map(({ seq }) => seq)).toEqual([100, 200, 250]);
    for (const { seq, rows } of points) expect(rows).toBe(seq);
    expect(await idsOf(index, 'blue')).toContain('d0001');
  });

  it('B3 the park path: all rows before the point are stored, the early one too', async () => {
    bed.writeFault = (nth) => (nth === 3 ? { at: 'later', error: domError('DataError') } : undefined);
    await parkedBy(bed.open());
    expect(await bed.stored()).toEqual({ seq: 200, rows: 200 });
  });

  it('B3 a failed checkpoint undoes its rows, and its rows undo it: both are one write', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'checkpoint', error: domError('AbortError') } : undefined);
    const index = bed.open();
    bed.afterWrite = async () => {
      const { seq, rows } = await bed.stored();
      expect(rows).toBe(seq);
    };
    await bed.until(index.build());
    await bed.until(bed.looked());
    expect(await allRows(index)).toBe(count);
    expect(await idsOf(index, 'blue')).toContain('d0101');
  });

  it('B6 a checkpoint that fails for good ends in the park path', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'checkpoint', error: domError('DataError') } : undefined);
    const index = bed.open();
    expect(await parkedBy(index)).toMatchObject({ reason: 'DataError' });
    expect(await bed.stored()).toEqual({ seq: 100, rows: 100 });
    await bed.until(index.resume());
    expect(await allRows(index)).toBe(count);
  });

  it('B3 an interruption: a tab that ends in the middle of a batch leaves the point before it', async () => {
    const first = bed.openTab();
    bed.writeFault = (nth) => {
      if (nth === 2) void first.end();
      return nth === 2 ? { at: 'later', error: domError('AbortError') } : undefined;
    };
    await bed.until(first.index.build().catch(() => undefined));
    expect(await bed.stored()).toEqual({ seq: 100, rows: 100 });
    bed.pages.length = 0;
    const index = bed.open();
    await bed.until(index.build());
    expect(bed.pages.map(({ since }) => since)).toEqual([100, 200]);
    expect(await idsOf(index, 'blue')).toContain('d0101');
  });

  it('B3 is bound to the database: one that was made anew is indexed from the start, and old rows are gone', async () => {
    const first = bed.openTab();
    await bed.until(first.index.build());
    await first.end();
    await bed.remake();
    // More changes than before: by its sequence alone it could be the same database.
    await bed.fill(300, () => ({ colour: 'green' }), 'n');
    const index = bed.open();
    // Before it has been looked at, nothing is answered from the rows of the other database.
    await expect(bed.until(index.query('blue'))).rejects.toMatchObject({ code: 'index_not_ready' });
    await bed.until(index.build());
    expect(await idsOf(index, 'blue')).toEqual([]);
    expect(await idsOf(index, 'green')).toHaveLength(300);
    expect(await idsOf(index, 'green')).toContain('n0001');
  });

  it('B4 a resumed pass reads only from its resume point: the rows are counted', async () => {
    const first = bed.openTab();
    bed.writeFault = (nth) => (nth === 3 ? { at: 'later', error: domError('DataError') } : undefined);
    await parkedBy(first.index);
    await first.end();
    expect(rowsRead()).toBe(250);
    bed.pages.length = 0;
    await bed.until(bed.open().build());
    expect(rowsRead()).toBe(50);
  });

  it('B4 a retry reads its own batch again, and nothing before it', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'later', error: domError('AbortError') } : undefined);
    await bed.until(bed.open().build());
    expect(bed.pages.map(({ since, rows }) => [since, rows])).toEqual([
      [0, 100],
      [100, 100],
      [100, 100],
      [200, 50],
    ]);
  });

  it('B4 an index that is complete reads nothing again at a restart', async () => {
    const first = bed.openTab();
    await bed.until(first.index.build());
    await first.end();
    bed.pages.length = 0;
    const index = bed.open();
    await bed.until(index.build());
    expect(rowsRead()).toBe(0);
    expect(await allRows(index)).toBe(count);
  });

  it('B5 running rows again changes nothing: the answer lost after the commit', async () => {
    bed.writeFault = (nth) => (nth === 2 ? { at: 'after-commit', error: domError('AbortError') } : undefined);
    const index = bed.open();
    await bed.until(index.build());
    expect(await allRows(index)).toBe(count);
    expect(await bed.stored()).toEqual({ seq: count, rows: count });
  });

  it('B5 a pass from the start clears old rows first, and once: also when it fails and runs again', async () => {
    const index = bed.open();
    await bed.until(index.build());
    let clears = 0;
    bed.cleared = () => (clears += 1);
    let nth = 0;
    bed.writeFault = () => ((nth += 1) === 3 || nth === 5 ? { at: 'later', error: domError('AbortError') } : undefined);
    bed.pages.length = 0;
    await bed.until(index.rebuild());
    expect(clears).toBe(1);
    expect(bed.pages.map(({ since }) => since)).toEqual([0, 100, 100, 200, 200]);
    expect(await allRows(index)).toBe(count);
  });

  it('B5 a rebuild whose clearing fails clears again: no old row survives', async () => {
    const index = bed.open(defineIndex({ name: 'sizes', version: 1, keys: (doc) => doc['size'] as number }));
    await bed.until(index.build());
    let nth = 0;
    bed.writeFault = () => ((nth += 1) === 1 ? { at: 'later', error: domError('AbortError') } : undefined);
    await bed.until(index.rebuild());
    expect((await bed.until(index.query({ from: 0 }))).rows).toHaveLength(count);
  });

  it('B5 several keys of one document are written together', async () => {
    const tags = defineIndex({
      name: 'tags',
      version: 1,
      keys: (doc) => [String(doc['colour']), `size ${String(doc['size'])}`, 'all'],
    });
    bed.writeFault = (nth) => (nth === 1 ? { at: 'later', error: domError('AbortError') } : undefined);
    const index = bed.open(tags);
    await bed.until(index.build());
    for (const key of ['blue', 'size 1', 'all']) expect(await idsOf(index, key)).toContain('d0001');
    expect(await idsOf(index, 'all')).toHaveLength(count);
    expect((await bed.until(index.query({ prefix: 'size ' }))).rows).toHaveLength(count);
  });
});

describe('a build that takes long', () => {
  it('B8 tells rows done, all rows and the rate; and stores after each batch', async () => {
    const index = bed.open();
    const shown: IndexState[] = [];
    index.state$.subscribe((state) => shown.push(state));
    bed.afterWrite = () => {
      bed.clock.advance(100);
      return Promise.resolve();
    };
    await bed.until(index.build());
    const building = shown.filter((state) => state.state === 'building');
    expect(building.map(({ rows }) => rows)).toEqual(expect.arrayContaining([0, 100, 200]));
    expect(building.at(-1)).toMatchObject({ total: count, rows: 200 });
    expect(building.at(-1)?.rowsPerSecond).toBeGreaterThan(0);
    expect(shown.at(-1)).toEqual({ state: 'ready', rows: count, skipped: 0 });
  });

  it('B8 gives the page a turn after each batch', async () => {
    let turns = 0;
    bed.breathed = () => (turns += 1);
    await bed.until(bed.open().build());
    expect(turns).toBeGreaterThanOrEqual(2);
  });

  it('B8 shows its progress in another tab', async () => {
    const [here, there] = [bed.open(), bed.open()];
    const shown: IndexState[] = [];
    there.state$.subscribe((state) => shown.push(state));
    await bed.until(here.build());
    await bed.reaches(there, 'ready');
    expect(shown.some(({ state }) => state === 'building')).toBe(true);
    bed.pages.length = 0;
    expect(await allRows(there)).toBe(count);
    expect(rowsRead()).toBe(0);
  });

  it('B8 smaller batches lose less', async () => {
    await bed.until(bed.open(defineIndex({ name: 'small', version: 1, keys: () => 'x', batchSize: 7 })).build());
    expect(Math.max(...bed.pages.map(({ rows }) => rows))).toBe(7);
  });
});
