import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ClientClosedError } from '../model/errors.js';
import { LocalDatabase } from '../store/local-database.js';
import { AnnouncedState } from './announced-state.js';
import { Connection } from './connection.js';
import type { KeptIndex } from './kept-index.js';
import { LookupBed } from './lookup-bed.fixture.js';

let bed: LookupBed;
beforeEach(async () => {
  bed = new LookupBed();
  await bed.fill(250, (n) => ({ colour: n % 2 === 0 ? 'red' : 'blue' }));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await bed.close();
});

const never = (): Promise<never> => new Promise(() => undefined);
async function built(): Promise<KeptIndex> {
  const index = bed.open();
  await bed.until(index.build());
  bed.pages.length = 0;
  return index;
}
/** As many documents are written as a pass reads, each time that it reads: it never comes to the end of the feed. */
function writeWithoutPause(): void {
  const most = 20;
  bed.pageHeld = (nth) =>
    nth < most ? bed.fill(100, () => ({ colour: 'green' }), `w${String(nth)}-`) : Promise.resolve();
}

describe('documents that are written without a pause', () => {
  it('B8 a build ends with what was there when it began', async () => {
    writeWithoutPause();
    const index = bed.open();
    await bed.until(index.build());
    expect(bed.pages.map(({ since }) => since)).toEqual([0, 100, 200]);
    expect(await bed.reaches(index, 'ready')).toMatchObject({ rows: 300 });
  });

  it('B7 a query ends with what was there when it began', async () => {
    const index = await built();
    await bed.edit('d0001', { colour: 'red' });
    writeWithoutPause();
    expect((await bed.until(index.query('red'))).rows).toHaveLength(126);
    expect(bed.pages).toHaveLength(1);
  });
});

describe('a call that is not answered', () => {
  it('B2 a query with documents ends when their database has not answered in time', async () => {
    const index = await built();
    const read = vi.spyOn(LocalDatabase.prototype, 'read').mockImplementation(never);
    const refused = index.query('red', { include_docs: true }).catch((error: unknown) => error);
    while (read.mock.calls.length === 0) await bed.turn();
    bed.clock.advance(60_000);
    expect(await bed.until(refused)).toMatchObject({ code: 'TimeoutError' });
  });

  it('B2 a query with documents ends with the client', async () => {
    const { index, end } = bed.openTab();
    await bed.until(index.build());
    const read = vi.spyOn(LocalDatabase.prototype, 'read').mockImplementation(never);
    const refused = index.query('red', { include_docs: true }).catch((error: unknown) => error);
    while (read.mock.calls.length === 0) await bed.turn();
    await end();
    expect(await refused).toBeInstanceOf(ClientClosedError);
    expect(bed.clock.timers).toBe(0);
  });

  it('B6 what is asked of a closed connection ends at once', async () => {
    const { clock, factory: indexedDB } = bed;
    const connection = new Connection({ indexedDB, database: 'x', clock, timeoutMs: 60_000, removed: () => undefined });
    connection.close();
    await expect(connection.within(never())).rejects.toBeInstanceOf(ClientClosedError);
    await expect(connection.within(Promise.reject(new Error('late')))).rejects.toBeInstanceOf(ClientClosedError);
    expect(clock.timers).toBe(0);
  });

  it('B6 whoever looks at the state of a closed index opens no channel', () => {
    const channel = vi.fn(() => ({ announce: () => undefined, close: () => undefined }));
    const state = new AnnouncedState({ channel, clock: bed.clock, changed: () => undefined, heard: () => undefined });
    state.close();
    state.listen();
    expect(channel).not.toHaveBeenCalled();
  });
});

describe('a database that was set back', () => {
  it('B3 answers no query with rows that it does not have any more, and is indexed anew', async () => {
    const index = await built();
    bed.sequenceShown = 10;
    await expect(bed.until(index.query('red'))).rejects.toMatchObject({ code: 'index_not_ready', state: 'building' });
    await bed.until(bed.readTimes(1));
    expect(bed.pages[0]?.since).toBe(0);
    bed.sequenceShown = undefined;
    await bed.reaches(index, 'ready');
    expect((await bed.until(index.query('red'))).rows).toHaveLength(125);
  });

  it('B7 a write between the look at the database and the rows is none', async () => {
    const index = await built();
    await bed.edit('d0001', { colour: 'red' });
    await bed.until(index.build());
    const extent = vi.spyOn(LocalDatabase.prototype, 'extent').mockResolvedValueOnce({ live: 250, sequence: 250 });
    expect((await bed.until(index.query('red'))).rows).toHaveLength(126);
    expect(extent).toHaveBeenCalledTimes(2);
  });
});
