import { wrap, type IDBPDatabase } from 'idb';
import { afterEach, describe, expect, it } from 'vitest';
import { crashPoints } from './crash-points.js';
import { FakeDevice } from './fake-device.js';
import type { FakeProcess } from './fake-process.js';
import { memoryIndexedDB } from './indexeddb/memory-indexeddb.js';

let device: FakeDevice;

function open(factory: IDBFactory | undefined, version = 1): Promise<IDBPDatabase> {
  if (factory === undefined) throw new Error('no IndexedDB');
  const request = factory.open('rows-v1', version);
  request.addEventListener('upgradeneeded', (event) => {
    if (event.oldVersion === 0) request.result.createObjectStore('rows');
  });
  return wrap(request) as Promise<IDBPDatabase>;
}
const opened = ({ environment }: Pick<FakeProcess, 'environment'>, version?: number): Promise<IDBPDatabase> =>
  open(environment.indexedDB, version);
async function stored(): Promise<unknown> {
  const db = await open(device.indexedDB);
  const keys = await db.getAllKeys('rows');
  db.close();
  return keys;
}

describe('the IndexedDB of a FakeDevice', () => {
  afterEach(() => device.dispose());

  it('is one for all its tabs, another for each device, and empty after `dispose`', async () => {
    device = new FakeDevice();
    const [first, second] = [device.process(), device.process()];
    await (await opened(first)).put('rows', 1, 'a');
    expect(await (await opened(second)).getAllKeys('rows')).toEqual(['a']);
    const other = new FakeDevice();
    expect(await other.indexedDB.databases()).toEqual([]);
    const kept = memoryIndexedDB();
    const third = new FakeDevice({ indexedDB: kept });
    await (await opened(third.process())).put('rows', 1, 'a');
    expect(await kept.databases()).toHaveLength(1);
    await third.dispose();
    expect(await kept.databases()).toEqual([]);
  });

  it('is waited for: time does not go on while a transaction is under way', async () => {
    device = new FakeDevice();
    const { environment } = device.process();
    const seen: string[] = [];
    environment.clock.setTimer(() => seen.push('a minute'), 60_000);
    const many = async (): Promise<void> => {
      const db = await open(environment.indexedDB);
      for (let n = 0; n < 50; n += 1) await db.put('rows', n, n);
      seen.push('stored');
    };
    const work = many();
    await device.clock.advance(60_000);
    expect(seen).toEqual(['stored', 'a minute']);
    await device.until(work);
  });

  it('does not wait for an opening that an open connection blocks', async () => {
    device = new FakeDevice();
    const [old, young] = [device.process(), device.process()];
    const db = await opened(old);
    const seen: string[] = [];
    void opened(young, 2).then(() => seen.push('opened'));
    await device.inFlight.rest();
    expect(seen).toEqual([]);
    db.close();
    await expect.poll(() => seen).toEqual(['opened']);
  });

  it('loses what a killed process had not committed, tells it nothing, and lets others go on', async () => {
    device = new FakeDevice();
    const process = device.process();
    const db = await opened(process);
    await db.put('rows', 1, 'a');
    const heard: unknown[] = [];
    const hear = (what: unknown): void => void heard.push(what);
    const tx = db.transaction('rows', 'readwrite');
    tx.done.then(hear, hear);
    void tx.store.put(1, 'b').then(() => {
      void tx.store.put(2, 'c').then(hear, hear);
      process.kill();
    });
    const reading = db.transaction('rows');
    reading.done.then(hear, hear);
    reading.store.get('a').then(hear, hear);
    opened(process).then(hear, hear);
    await open(device.indexedDB).then(async (other) => {
      await other.put('rows', 3, 'd');
      other.close();
    });
    await device.inFlight.rest();
    expect(await stored()).toEqual(['a', 'd']);
    expect(heard).toEqual([]);
    // Its connections are closed: another version can be opened.
    (await opened(device.process(), 2)).close();
  });

  it('makes no database for a process that is killed while it opens one', async () => {
    device = new FakeDevice();
    const process = device.process();
    const request = process.environment.indexedDB?.open('rows-v1', 1);
    request?.addEventListener('upgradeneeded', () => {
      request.result.createObjectStore('rows');
      process.kill();
    });
    await device.inFlight.rest();
    expect(await device.indexedDB.databases()).toEqual([]);
    const second = device.process();
    void opened(second);
    second.kill();
    await device.inFlight.rest();
    expect(await device.indexedDB.databases()).toEqual([]);
  });

  it('holds back what a frozen process would hear; what it began is done', async () => {
    device = new FakeDevice();
    const process = device.process();
    const db = await opened(process);
    const seen: string[] = [];
    void db.put('rows', 1, 'a').then(() => seen.push('put'));
    void db.get('rows', 'a').then(() => seen.push('got'));
    void opened(process).then(() => seen.push('opened'));
    process.freeze();
    await device.clock.advance(60_000);
    expect(await stored()).toEqual(['a']);
    expect(seen).toEqual([]);
    process.thaw();
    await device.inFlight.rest();
    expect(seen.sort()).toEqual(['got', 'opened', 'put']);
  });

  it('has faults, of one process as of all', async () => {
    device = new FakeDevice();
    device.indexStore.add({
      when: { call: 'write', nth: 1 },
      do: { type: 'hang', commitAfterMs: 60_000 },
    });
    const db = await opened(device.process());
    void db.put('rows', 1, 'a');
    await device.clock.advance(30_000);
    expect(await stored()).toEqual([]);
    await device.clock.advance(30_000);
    expect(await stored()).toEqual(['a']);
    expect(device.indexStore.calls).toMatchObject([
      { call: 'open', fault: undefined },
      { call: 'write', database: 'rows-v1', stores: ['rows'], fault: 'hang' },
    ]);
  });

  it('is one of the places where crash points kill: before a transaction nothing is stored, after it all is', async () => {
    device = new FakeDevice();
    const after: string[] = [];
    const report = await crashPoints(
      async (process) => {
        const db = await opened(process);
        await db.put('rows', 1, 'a');
        const tx = db.transaction('rows', 'readwrite');
        await Promise.all([tx.store.put(2, 'b'), tx.store.put(3, 'c'), tx.done]);
      },
      {
        check: async (process, { call, when, what }) => {
          const db = await opened(process);
          after.push(`${when} ${String(call)} ${what}: ${(await db.getAllKeys('rows')).join()}`);
        },
      },
    );
    expect(report.calls).toBe(3);
    expect(after).toEqual([
      'end 0 : a,b,c',
      'before 1 open rows-v1: ',
      'after 1 open rows-v1: ',
      'before 2 write rows-v1: ',
      'after 2 write rows-v1: a',
      'before 3 write rows-v1: a',
      'after 3 write rows-v1: a,b,c',
    ]);
  });
});
