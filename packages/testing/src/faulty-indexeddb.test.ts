import { unwrap, wrap, type IDBPDatabase, type IDBPTransaction } from 'idb';
import { describe, expect, it } from 'vitest';
import { FakeClock } from './fake-clock.js';
import { faultyIndexedDB, type FaultyIndexedDB, type IndexedDBRule } from './faulty-indexeddb.js';
import { InFlight } from './in-flight.js';
import { memoryIndexedDB } from './indexeddb/memory-indexeddb.js';
import { trackedIndexedDB } from './indexeddb/tracked.js';

const inFlight = new InFlight();
const abort = { name: 'AbortError', domException: true } as const;
const quota = { name: 'QuotaExceededError', domException: true } as const;

function faulty(...rules: IndexedDBRule[]): FaultyIndexedDB & { real: IDBFactory; clock: FakeClock } {
  const clock = new FakeClock(() => inFlight.rest());
  const real = trackedIndexedDB(memoryIndexedDB(), inFlight);
  return Object.assign(faultyIndexedDB(real, rules, { clock }), { real, clock });
}

function open(factory: IDBFactory, name = 'x-afield-index-by-name-v1'): Promise<IDBPDatabase> {
  const request = factory.open(name, 1);
  request.addEventListener('upgradeneeded', () => {
    for (const store of ['rows', 'meta']) request.result.createObjectStore(store);
    request.transaction?.objectStore('rows').createIndex('keys', '', { multiEntry: true });
  });
  return wrap(request) as Promise<IDBPDatabase>;
}

/** One batch: a row and the checkpoint in one transaction. */
async function write(db: IDBPDatabase, key: string): Promise<void> {
  const tx = db.transaction(['rows', 'meta'], 'readwrite');
  await Promise.all([tx.objectStore('rows').put([key], key), tx.objectStore('meta').put(key, 'point'), tx.done]);
}

/** What is stored, past all faults. */
async function stored(factory: IDBFactory): Promise<unknown> {
  const db = await open(factory);
  const found = [await db.getAllKeys('rows'), await db.get('meta', 'point')];
  db.close();
  return found;
}

const reason = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no error',
    (error: unknown) => error,
  );

describe('faultyIndexedDB', () => {
  it('without a rule is the IndexedDB that it wraps: cursors, indexes, and the end of a transaction', async () => {
    const { indexedDB, calls } = faulty();
    const db = await open(indexedDB);
    await write(db, 'a');
    await write(db, 'b');
    const found: unknown[] = [];
    for await (const { value } of db.transaction('rows').store.index('keys').iterate()) found.push(value);
    expect(found).toEqual([['a'], ['b']]);
    const changing = db.transaction('rows', 'readwrite');
    for await (const cursor of changing.store) await cursor.update([`new ${String(cursor.key)}`]);
    await changing.done;
    expect(await db.getAllFromIndex('rows', 'keys', 'new b')).toEqual([['new b']]);
    expect(calls.map(({ call }) => call)).toEqual(['open', 'write', 'write', 'read', 'write', 'read']);
    expect(calls[1]).toMatchObject({ database: 'x-afield-index-by-name-v1', stores: ['rows', 'meta'] });
  });

  it('throws at once, and later: then all requests succeed, and nothing is stored', async () => {
    const { indexedDB, real } = faulty(
      { when: { call: 'write', nth: 2 }, do: { type: 'reject', error: abort, when: 'at-once' } },
      { when: { call: 'write', nth: 3, database: '-v1' }, do: { type: 'reject', error: quota } },
    );
    const db = await open(indexedDB);
    await write(db, 'a');
    expect(() => db.transaction('rows', 'readwrite')).toThrow(DOMException);
    const tx = db.transaction(['rows', 'meta'], 'readwrite');
    const heard: unknown[] = [];
    const done = reason(tx.done);
    heard.push(await tx.objectStore('rows').put(['b'], 'b'));
    heard.push(await tx.objectStore('rows').get('b'));
    await Promise.all([tx.objectStore('rows').put(['c'], 'c'), tx.objectStore('meta').put('c', 'point')]);
    expect(heard).toEqual(['b', ['b']]);
    expect(await done).toMatchObject({ name: 'QuotaExceededError' });
    expect(await done).toBeInstanceOf(DOMException);
    expect(await stored(real)).toEqual([['a'], 'a']);
    await write(db, 'd');
    expect(await stored(real)).toEqual([['a', 'd'], 'd']);
  });

  it('aborts one that asks for nothing, and one that goes through a cursor, at their end', async () => {
    const { indexedDB, real } = faulty({
      when: { call: 'write', fromNth: 3 },
      do: { type: 'reject', error: { name: 'UnknownError', reason: 'made up' } },
    });
    const db = await open(indexedDB);
    await write(db, 'a');
    await write(db, 'b');
    expect(await reason(db.transaction('rows', 'readwrite').done)).toMatchObject({ reason: 'made up' });
    const tx = db.transaction('rows', 'readwrite');
    const done = reason(tx.done);
    const seen: unknown[] = [];
    for await (const cursor of tx.store) seen.push(await cursor.update(['other']));
    expect(seen).toEqual(['a', 'b']);
    expect(await done).toMatchObject({ name: 'UnknownError' });
    tx.commit();
    const check = await open(real);
    expect(await check.getAll('rows')).toEqual([['a'], ['b']]);
  });

  it('loses the answer after all was stored', async () => {
    const { indexedDB, real } = faulty({
      when: { call: 'write' },
      do: { type: 'reject', error: abort, when: 'after-commit' },
    });
    const db = await open(indexedDB);
    expect(await reason(write(db, 'a'))).toMatchObject({ name: 'AbortError' });
    expect(await stored(real)).toEqual([['a'], 'a']);
  });

  it('fails the requests of a read, also on an index', async () => {
    const { indexedDB } = faulty({
      when: { call: 'read', store: 'rows', times: 2 },
      do: { type: 'reject', error: { name: 'UnknownError', domException: true } },
    });
    const db = await open(indexedDB);
    await write(db, 'a');
    expect(await db.get('meta', 'point')).toBe('a');
    for (const read of [
      (tx: IDBPTransaction<unknown, ['rows']>) => tx.store.get('a'),
      (tx: IDBPTransaction<unknown, ['rows']>) => tx.store.index('keys').getAll('a'),
    ]) {
      const tx = db.transaction('rows');
      const done = reason(tx.done);
      expect(await reason(read(tx))).toMatchObject({ name: 'UnknownError' });
      expect(await done).toBeInstanceOf(DOMException);
    }
    expect(await db.getAllFromIndex('rows', 'keys', 'a')).toEqual([['a']]);
  });

  it('fails one put, and with it the whole transaction, unless that is prevented', async () => {
    const { indexedDB, real, calls } = faulty({
      when: { call: 'put', store: 'meta', times: 3 },
      do: { type: 'reject', error: quota },
    });
    const db = await open(indexedDB);
    expect(await reason(write(db, 'a'))).toMatchObject({ name: 'QuotaExceededError' });
    expect(await stored(real)).toEqual([[], undefined]);
    const raw = db.transaction(['rows', 'meta'], 'readwrite');
    const done = reason(raw.done);
    await raw.objectStore('rows').put(['b'], 'b');
    expect(await reason(raw.objectStore('meta').put('b', 'point'))).toMatchObject({ name: 'QuotaExceededError' });
    // idb has settled `done` with the first error that it heard of, which names no reason yet.
    expect(await done).toMatchObject({ name: 'AbortError' });
    const transaction = unwrap(db).transaction(['rows', 'meta'], 'readwrite');
    transaction.objectStore('rows').put(['c'], 'c');
    const request = transaction.objectStore('meta').put('c', 'point');
    const error = await new Promise((resolve) => {
      request.onerror = (event) => {
        event.preventDefault();
        resolve(request.error);
      };
    });
    expect(error).toMatchObject({ name: 'QuotaExceededError' });
    await new Promise((resolve) => (transaction.oncomplete = resolve));
    expect(await stored(real)).toEqual([['c'], undefined]);
    expect(calls.filter(({ call }) => call === 'put')).toHaveLength(3);
  });

  it('fails one put of a transaction that is told to commit before it has answered', async () => {
    const { indexedDB, real } = faulty({ when: { call: 'put', store: 'meta' }, do: { type: 'reject', error: quota } });
    const transaction = unwrap(await open(indexedDB)).transaction(['rows', 'meta'], 'readwrite');
    transaction.objectStore('rows').put(['a'], 'a');
    transaction.objectStore('meta').put('a', 'point');
    transaction.commit();
    await new Promise((resolve) => (transaction.onabort = resolve));
    expect(transaction.error).toMatchObject({ name: 'QuotaExceededError' });
    expect(await stored(real)).toEqual([[], undefined]);
  });

  it('refuses to open, at once or later, and makes no database then', async () => {
    const { indexedDB, real } = faulty(
      { when: { call: 'open', nth: 1 }, do: { type: 'reject', error: abort, when: 'at-once' } },
      { when: { call: 'open', nth: 2 }, do: { type: 'reject', error: { name: 'UnknownError', domException: true } } },
      { when: { call: 'open', nth: 3 }, do: { type: 'reject', error: abort, when: 'after-commit' } },
    );
    expect(() => indexedDB.open('x')).toThrow(DOMException);
    expect(await reason(open(indexedDB))).toMatchObject({ name: 'UnknownError' });
    expect(await real.databases()).toEqual([]);
    expect(await reason(open(indexedDB))).toMatchObject({ name: 'AbortError' });
    expect(await real.databases()).toHaveLength(1);
    expect(await stored(indexedDB)).toEqual([[], undefined]);
  });

  it('lets a connection die: what is under way ends, then it hears `close`, and nothing begins until it is opened anew', async () => {
    const { indexedDB, add } = faulty();
    const [db, other] = [await open(indexedDB), await open(indexedDB)];
    const elsewhere = await open(indexedDB, 'y-v1');
    const heard: string[] = [];
    db.addEventListener('close', () => heard.push('close'));
    other.onclose = () => heard.push('other');
    const end = add({ when: { call: 'write' }, do: { type: 'dies' } });
    await write(db, 'a');
    end();
    await inFlight.rest();
    expect(heard.sort()).toEqual(['close', 'other']);
    expect(await reason(write(db, 'b'))).toMatchObject({ name: 'InvalidStateError' });
    expect(await reason(other.get('rows', 'a'))).toMatchObject({ name: 'InvalidStateError' });
    await write(elsewhere, 'b');
    const again = await open(indexedDB);
    expect(await again.get('rows', 'a')).toEqual(['a']);
    add({ when: { call: 'write' }, do: { type: 'reject', error: abort, thenDead: true } });
    expect(await reason(write(again, 'b'))).toMatchObject({ name: 'AbortError' });
    expect(await reason(again.get('rows', 'a'))).toMatchObject({ name: 'InvalidStateError' });
  });

  it('hangs: nothing is stored, or later; others go on', async () => {
    const { indexedDB, real, clock } = faulty(
      { when: { call: 'write', nth: 1 }, do: { type: 'hang' } },
      { when: { call: 'write', nth: 2 }, do: { type: 'hang', commitAfterMs: 60_000 } },
      { when: { call: 'open', nth: 2 }, do: { type: 'hang' } },
    );
    const db = await open(indexedDB);
    let heard = 0;
    const hear = (): void => void (heard += 1);
    write(db, 'never').then(hear, hear);
    write(db, 'late').then(hear, hear);
    open(indexedDB, 'y').then(hear, hear);
    await inFlight.rest();
    expect(await stored(real)).toEqual([[], undefined]);
    await write(db, 'next');
    expect(await stored(real)).toEqual([['next'], 'next']);
    await clock.advance(60_000);
    await inFlight.rest();
    expect(await stored(real)).toEqual([['late', 'next'], 'late']);
    expect(heard).toBe(0);
    expect(await real.databases()).toHaveLength(1);
  });

  it('carries out late what asks within the transaction: it may ask for more, abort, or commit', async () => {
    const { indexedDB, real, clock } = faulty({
      when: { call: 'write', fromNth: 2 },
      do: { type: 'hang', commitAfterMs: 1000 },
    });
    const db = await open(indexedDB);
    await write(db, 'a');
    const late = unwrap(db).transaction(['rows', 'meta'], 'readwrite');
    const [rows, meta] = [late.objectStore('rows'), late.objectStore('meta')];
    const seen: unknown[] = [];
    rows.index('keys').getAllKeys('a').onsuccess = ({ target }) => seen.push((target as IDBRequest).result);
    rows.put(['b'], 'b');
    const point = meta.get('point');
    point.onsuccess = () => {
      seen.push(point.result);
      if (point.result === 'a') meta.put('b', 'point');
      else late.abort();
    };
    await inFlight.rest();
    expect(seen).toEqual([]);
    await clock.advance(1000);
    await inFlight.rest();
    expect(seen).toEqual([['a'], 'a']);
    expect(await stored(real)).toEqual([['a', 'b'], 'b']);
    const committing = unwrap(db).transaction('rows', 'readwrite');
    const c = committing.objectStore('rows').put(['c'], 'c');
    c.onsuccess = () => {
      committing.commit();
      seen.push('committed');
    };
    await clock.advance(1000);
    await inFlight.rest();
    expect(seen.at(-1)).toBe('committed');
    expect(await stored(real)).toEqual([['a', 'b', 'c'], 'b']);
  });

  it('aborts late what finds that it comes too late', async () => {
    const { indexedDB, real, clock } = faulty({
      when: { call: 'write', nth: 1 },
      do: { type: 'hang', commitAfterMs: 1000 },
    });
    const db = await open(indexedDB);
    const late = unwrap(db).transaction(['rows', 'meta'], 'readwrite');
    late.objectStore('rows').put(['b'], 'b');
    const point = late.objectStore('meta').get('point');
    point.onsuccess = () => {
      if (point.result !== undefined) late.abort();
    };
    await write(db, 'a');
    await clock.advance(1000);
    await inFlight.rest();
    expect(await stored(real)).toEqual([['a'], 'a']);
  });

  it('can be switched off, and its rules be taken away', async () => {
    const store = faulty({ when: { call: 'write' }, do: { type: 'reject', error: abort, when: 'at-once' } });
    const db = await open(store.indexedDB);
    store.enabled = false;
    await write(db, 'a');
    store.enabled = true;
    expect(await reason(write(db, 'b'))).toMatchObject({ name: 'AbortError' });
    store.clear();
    await write(db, 'c');
    expect(await stored(store.real)).toEqual([['a', 'c'], 'c']);
  });
});
