import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClientClosedError } from '../model/errors.js';
import type { IndexState } from '../model/lookup.js';
import { LocalDatabase } from '../store/local-database.js';
import type { KeptIndex } from './kept-index.js';
import { byColour, LookupBed } from './lookup-bed.fixture.js';

let bed: LookupBed;
beforeEach(async () => {
  bed = new LookupBed();
  await bed.fill(250, (n) => ({ colour: n % 2 === 0 ? 'red' : 'blue' }));
});
afterEach(() => bed.close());

const domError = (name: string): Error => new DOMException('made to fail', name);
const idsOf = async (index: KeptIndex, key: string): Promise<string[]> =>
  (await bed.until(index.query(key))).rows.map(({ id }) => id);
const refusalOf = (call: Promise<unknown>): Promise<unknown> =>
  bed.until(
    call.then(
      () => 'not refused',
      (error: unknown) => error,
    ),
  );
function shownBy(index: KeptIndex): { state: IndexState['state'] } {
  const shown: { state: IndexState['state'] } = { state: 'idle' };
  index.state$.subscribe(({ state }) => (shown.state = state));
  return shown;
}
function hand(): { readonly held: Promise<void>; readonly letGo: () => void } {
  let letGo = (): void => undefined;
  const held = new Promise<void>((resolve) => (letGo = resolve));
  return { held, letGo };
}

describe('a store that is removed while it is built', () => {
  for (const [when, page] of [
    ['a page is read', 2],
    ['its last page is read', 3],
  ] as const) {
    it(`B2 parks with the reason removed (${when}), and is not made again`, async () => {
      const { held, letGo } = hand();
      bed.pageHeld = (nth) => (nth === page ? held : undefined);
      const old = bed.open();
      const shown = shownBy(old);
      const built = refusalOf(old.build());
      await bed.until(bed.readTimes(page));
      await bed.until(bed.open({ ...byColour, version: 2 }).build());
      await bed.until(bed.databasesAre(['clinic-afield-index-by-colour-v2']));
      letGo();
      expect(await built).toMatchObject({ state: 'parked', reason: 'removed' });
      expect(shown.state).toBe('parked');
      expect(bed.warnings).toEqual([]);
      await bed.until(bed.databasesAre(['clinic-afield-index-by-colour-v2']));
    });
  }

  it('B2 a write that comes to its end all the same does not show it as built', async () => {
    const old = bed.open();
    const shown = shownBy(old);
    // The last batch is on its way when the other version asks for the removal.
    let removal: IDBOpenDBRequest | undefined;
    bed.writeFault = (nth) => {
      if (nth === 3) removal = bed.factory.deleteDatabase('clinic-afield-index-by-colour-v1');
      return undefined;
    };
    expect(await refusalOf(old.build())).toMatchObject({ state: 'parked', reason: 'removed' });
    expect(removal).toBeDefined();
    expect(shown.state).toBe('parked');
  });

  it('B2 a query in the tab that had it open is refused, and does not make it again', async () => {
    const old = bed.open();
    await bed.until(old.build());
    await bed.until(bed.open({ ...byColour, version: 2 }).build());
    await bed.until(bed.databasesAre(['clinic-afield-index-by-colour-v2']));
    expect(await refusalOf(old.query('red'))).toMatchObject({ state: 'parked', reason: 'removed' });
    await bed.until(bed.databasesAre(['clinic-afield-index-by-colour-v2']));
    await bed.rest();
    expect(await bed.factory.databases()).toHaveLength(1);
  });

  it('B6 an older version that cannot be removed is left, and nothing goes unhandled', async () => {
    const old = bed.openTab();
    await bed.until(old.index.build());
    await old.end();
    let asked = 0;
    bed.factory.deleteDatabase = () => {
      asked += 1;
      throw domError('SecurityError');
    };
    await bed.until(bed.open({ ...byColour, version: 2 }).build());
    while (asked === 0) await bed.turn();
    await bed.rest();
    expect((await bed.factory.databases()).map(({ name }) => name)).toContain('clinic-afield-index-by-colour-v1');
  });
});

describe('a tab among others', () => {
  it('S6 a query after a write does not wait for a tab that holds the lock and does nothing', async () => {
    const index = bed.open();
    bed.held.add('clinic-afield-index-by-colour-v1');
    const built = index.build();
    await bed.rest();
    bed.clock.advance(5000);
    await bed.until(built);
    for (const id of ['d0001', 'd0003']) {
      await bed.edit(id, { colour: 'red' });
      expect(await idsOf(index, 'red')).toContain(id);
    }
  });

  it('S6 a tab shows what is stored, not what it was told, as soon as it has looked', async () => {
    const [here, there] = [bed.open(), bed.open()];
    await bed.until(Promise.all([here.build(), there.build()]));
    const shown = shownBy(there);
    // This tab can neither clear the rows nor write why it could not.
    bed.writeFault = () => ({ at: 'once', error: domError('QuotaExceededError') });
    expect(await refusalOf(here.rebuild())).toMatchObject({ state: 'parked' });
    bed.writeFault = undefined;
    await bed.rest();
    expect(shown.state).toBe('parked');
    expect(await idsOf(there, 'red')).toHaveLength(125);
    expect(shown.state).toBe('ready');
  });

  it('S6 a lock that is free again is waited for as before', async () => {
    const lock = 'clinic-afield-index-by-colour-v1';
    const index = bed.open();
    bed.held.add(lock);
    const built = index.build();
    await bed.rest();
    bed.clock.advance(5000);
    await bed.until(built);
    bed.held.delete(lock);
    await bed.until(index.build());
    bed.held.add(lock);
    let isOver = false;
    const again = index.build().then(() => (isOver = true));
    await bed.rest();
    bed.clock.advance(4999);
    await bed.rest();
    expect(isOver).toBe(false);
    bed.clock.advance(1);
    await bed.until(again);
  });

  it('R15 one that stops while another has gone on answers again as soon as it has looked', async () => {
    bed.locks = { request: (_name, _signal, whileHeld) => whileHeld() };
    bed.news = false;
    const [here, there] = [bed.open(), bed.open()];
    const { held, letGo } = hand();
    bed.pageHeld = (nth) => (nth === 1 ? held : undefined);
    const other = there.build();
    await bed.until(bed.readTimes(1));
    // The first write fails for good. The other writes between what this tab reads then and the reason that it writes.
    let hasFailed = false;
    bed.writeFault = () => {
      if (hasFailed) return undefined;
      hasFailed = true;
      return { at: 'once', error: domError('DataError') };
    };
    bed.readFault = () => {
      if (hasFailed) letGo();
      return undefined;
    };
    expect(await refusalOf(here.build())).toMatchObject({ state: 'parked', reason: 'DataError' });
    await bed.until(other);
    expect(await idsOf(there, 'red')).toHaveLength(125);
    expect(await idsOf(here, 'red')).toHaveLength(125);
  });

  it('B5 a rebuild that another tab overtakes before it has cleared begins from the start all the same', async () => {
    bed.locks = { request: (_name, _signal, whileHeld) => whileHeld() };
    const [here, there] = [bed.open(), bed.open()];
    await bed.until(Promise.all([here.build(), there.build()]));
    await bed.edit('d0001', { colour: 'red' });
    bed.pages.length = 0;
    const { held, letGo } = hand();
    bed.pageHeld = (nth) => (nth === 1 ? held : undefined);
    const other = there.build();
    await bed.until(bed.readTimes(1));
    // The other writes between what this tab reads first and its clearing.
    const extent = vi.spyOn(LocalDatabase.prototype, 'extent').mockImplementationOnce(async () => {
      letGo();
      await other;
      return { live: 250, sequence: 251 };
    });
    let clears = 0;
    bed.cleared = () => (clears += 1);
    await bed.until(here.rebuild());
    extent.mockRestore();
    expect(clears).toBe(2);
    expect(bed.pages.map(({ since }) => since)).toEqual([250, 0, 101, 201]);
    expect(await idsOf(here, 'red')).toHaveLength(126);
  });

  it('B1 one that is closed by whoever hears of a retry does not rest', async () => {
    const { index, end } = bed.openTab();
    let ended: Promise<void> | undefined;
    bed.warnings.push = () => {
      ended ??= end();
      return 1;
    };
    bed.writeFault = () => ({ at: 'later', error: domError('AbortError') });
    expect(await refusalOf(index.build())).toBeInstanceOf(ClientClosedError);
    await bed.until(ended ?? Promise.reject(new Error('nobody was warned')));
    expect(bed.clock.timers).toBe(0);
  });
});
