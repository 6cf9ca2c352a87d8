import type { PouchConstructor, PouchLike } from '@afield/client';
import { describe, expect, it } from 'vitest';
import { MemoryPouch } from './cases/memory-pouch.js';
import { FakeClock } from './fake-clock.js';
import { faultyStore, type FaultyStore, type StoreRule } from './faulty-store.js';

let stores = 0;

function open(...rules: StoreRule[]): { store: FaultyStore; db: PouchLike; name: string } {
  const store = faultyStore(MemoryPouch, rules);
  const name = `faulty-${String(stores++)}`;
  return { store, db: new store.PouchDB(name, { adapter: 'memory' }), name };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const idsIn = async (name: string): Promise<unknown[]> => {
  const { rows } = await new MemoryPouch(name, { adapter: 'memory' }).allDocs({});
  return rows.map((row) => (row as { id: string }).id);
};

describe('faultyStore', () => {
  it('rejects with a DOMException, and the write was not done', async () => {
    const { db, name } = open({
      when: { call: 'write', nth: 1 },
      do: { type: 'reject', error: { name: 'AbortError', domException: true } },
    });
    const error: unknown = await db.bulkDocs([{ _id: 'a' }]).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DOMException);
    expect(error).toMatchObject({ name: 'AbortError' });
    await db.bulkDocs([{ _id: 'b' }]);
    expect(await idsIn(name)).toEqual(['b']);
  });

  it('rejects with the fields of PouchDB, and no others', async () => {
    const { db } = open({
      when: { call: 'allDocs' },
      do: { type: 'reject', error: { name: 'indexed_db_went_bad', reason: 'InvalidStateError' } },
    });
    const error: unknown = await db.allDocs({}).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name: 'indexed_db_went_bad', reason: 'InvalidStateError' });
    expect(error).not.toHaveProperty('status');
    expect(await db.bulkGet({ docs: [{ id: 'x' }] })).toMatchObject({ results: [{ id: 'x' }] });
  });

  it('loses the answer after the write was done', async () => {
    const { db, name } = open({ do: { type: 'reject', error: { name: 'UnknownError' }, commit: true } });
    await expect(db.bulkDocs([{ _id: 'a' }])).rejects.toMatchObject({ name: 'UnknownError' });
    expect(await idsIn(name)).toEqual(['a']);
  });

  it('hangs; the write is done later, or never', async () => {
    const clock = new FakeClock(turn);
    const store = faultyStore(
      MemoryPouch,
      [
        { when: { nth: 1 }, do: { type: 'hang' } },
        { when: { nth: 2 }, do: { type: 'hang', commitAfterMs: 60_000 } },
      ],
      { clock },
    );
    const name = `faulty-${String(stores++)}`;
    const db = new store.PouchDB(name, { adapter: 'memory' });
    let settled = 0;
    const count = (): void => void (settled += 1);
    db.bulkDocs([{ _id: 'never' }]).then(count, count);
    db.bulkDocs([{ _id: 'late' }]).then(count, count);
    await turn();
    expect(await idsIn(name)).toEqual([]);
    await clock.advance(60_000);
    await expect.poll(() => idsIn(name)).toEqual(['late']);
    expect(settled).toBe(0);
  });

  it('lets a handle die until it is closed: at this call, or after it', async () => {
    const { db, store, name } = open({
      when: { call: 'write', nth: 2 },
      do: { type: 'reject', error: { name: 'UnknownError' }, thenDead: { name: 'InvalidStateError' } },
    });
    await db.put({ _id: 'a' });
    await expect(db.put({ _id: 'b' })).rejects.toMatchObject({ name: 'UnknownError' });
    await expect(db.get('a')).rejects.toMatchObject({ name: 'InvalidStateError' });
    await db.close();
    const again = new store.PouchDB(name, { adapter: 'memory' });
    expect(await again.get('a')).toMatchObject({ _id: 'a' });
    store.add({ do: { type: 'dies' } });
    await again.put({ _id: 'c' });
    await expect(again.get('c')).rejects.toBeInstanceOf(DOMException);
  });

  it('is full for writes, works for reads, and has room again when told', async () => {
    const { db, store } = open();
    await db.put({ _id: 'a' });
    const freeSpace = store.add({ do: { type: 'full' } });
    await expect(db.bulkDocs([{ _id: 'b' }])).rejects.toMatchObject({
      name: 'indexed_db_went_bad',
      status: 500,
      reason: 'QuotaExceededError',
    });
    expect(await db.get('a')).toMatchObject({ _id: 'a' });
    freeSpace();
    await db.put({ _id: 'b' });
    expect(store.calls.filter(({ fault }) => fault === 'full')).toHaveLength(2);
  });

  it('refuses single rows in their places, as PouchDB does, and writes the others', async () => {
    const { db, name } = open({ when: { id: 'b' }, do: { type: 'refuse-rows', ids: ['b'], error: 'conflict' } });
    const rows = await db.bulkDocs([{ _id: 'a' }, { _id: 'b' }, { _id: 'c' }]);
    expect(rows).toMatchObject([
      { ok: true, id: 'a' },
      { id: 'b', error: true, name: 'conflict', status: 409 },
      { ok: true, id: 'c' },
    ]);
    expect(await idsIn(name)).toEqual(['a', 'c']);
    const { db: other, name: otherName } = open({
      do: { type: 'refuse-rows', ids: ['a'], error: 'unknown_error', commit: true },
    });
    expect(await other.bulkDocs([{ _id: 'a' }])).toMatchObject([{ id: 'a', error: true, name: 'unknown_error' }]);
    expect(await idsIn(otherName)).toEqual(['a']);
  });

  it('acts on the database and the document that it is about, and on changes that end', async () => {
    const { db, store } = open(
      { when: { database: '-afield-queue' }, do: { type: 'reject', error: { name: 'Queue' } } },
      { when: { call: 'changes' }, do: { type: 'reject', error: { name: 'Changes' } } },
      { when: { call: 'read', id: 'x' }, do: { type: 'reject', error: { name: 'OnlyX' } } },
    );
    await db.put({ _id: 'a' });
    await expect(db.bulkGet({ docs: [{ id: 'x' }] })).rejects.toMatchObject({ name: 'OnlyX' });
    expect(await db.get('a')).toMatchObject({ _id: 'a' });
    await expect(Promise.resolve(db.changes({ since: 0 }))).rejects.toMatchObject({ name: 'Changes' });
    const queue = new store.PouchDB('x-afield-queue', { adapter: 'memory' });
    await expect(queue.info()).rejects.toMatchObject({ name: 'Queue' });
    store.enabled = false;
    expect(await Promise.resolve(db.changes({ since: 0 }))).toMatchObject({ results: [{ id: 'a' }] });
  });

  it('meets the calls of whoever hears of a change in the middle of a write, too', async () => {
    const listeners: (() => void)[] = [];
    // PouchDB may tell of a change at once, or later: this one does it at once.
    class Pouch {
      put = async (): Promise<void> => Promise.resolve(listeners.forEach((listener) => listener()));
      get = async (): Promise<string> => Promise.resolve('not met');
      changes = (): unknown => ({ on: (_event: string, listener: () => void) => listeners.push(listener) });
    }
    const store = faultyStore(Pouch as unknown as PouchConstructor, [
      { when: { call: 'get' }, do: { type: 'reject', error: { name: 'Met' } } },
    ]);
    const db = new store.PouchDB('one');
    const heard = new Promise<unknown>((resolve) => {
      db.changes({ live: true }).on('change', () => void db.get('a').then(resolve, resolve));
    });
    await db.put({ _id: 'a' });
    expect(await heard).toMatchObject({ name: 'Met' });
  });
});
