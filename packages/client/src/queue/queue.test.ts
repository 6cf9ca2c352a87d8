import { describe, expect, it } from 'vitest';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import { newHeader } from './new-header.js';
import { Queue } from './queue.js';
import { removed } from './stored-docs.js';
import type { Header } from './stored.js';

/** Two queues on one store, and the headers that each reads. */
class Tab extends LocalDatabase {
  count = 0;
  override async range(from: string, to: string): ReturnType<LocalDatabase['range']> {
    const docs = await super.range(from, to);
    this.count += docs.length;
    return docs;
  }
}

describe('the numbers of bulk operations', () => {
  const PouchDB = memoryPouch();
  let stores = 0;
  const tabs = (count: number): { db: Tab; queue: Queue }[] => {
    const name = `store${String(stores++)}`;
    return Array.from({ length: count }, () => {
      const db = new Tab(() => new PouchDB(name));
      return { db, queue: new Queue(db) };
    });
  };
  let ids = 0;
  const append = (queue: Queue): Promise<Header> => {
    const id = `b${String(ids++)}`;
    const given = { id, key: id, lane: null, parts: [], payload: `p:t:${id}:`, queuedAt: 0 };
    return queue.append(newHeader({ ...given, target: 'local' }, []), []);
  };
  const remove = async (queue: Queue, headers: readonly Header[]): Promise<void> => {
    await queue.docs.write(headers.map(({ _id, _rev }) => removed(_id, _rev)));
  };

  it('R17 gaps that housekeeping leaves are not read again and again, and what is new is found behind them', async () => {
    const [one, other] = tabs(2);
    if (one === undefined || other === undefined) throw new Error('two tabs');
    const headers: Header[] = [];
    for (let made = 0; made < 6; made++) headers.push(await append(one.queue));
    await remove(one.queue, headers.slice(1, 4));
    await other.queue.open('s', 0);
    other.db.count = 0;
    expect(await other.queue.headers.loadNew()).toBe(false);
    expect(other.db.count).toBe(0);
    await append(one.queue);
    expect(await other.queue.headers.loadNew()).toBe(true);
    expect(other.db.count).toBe(1);
    expect(other.queue.headers.all().map(({ _id }) => Number(_id.slice(2)))).toEqual([1, 5, 6, 7]);
  });

  it('R17 a number whose header was removed is not taken again, whoever believes it free', async () => {
    const [one, late] = tabs(2);
    if (one === undefined || late === undefined) throw new Error('two tabs');
    await late.queue.open('s', 0);
    const headers: Header[] = [];
    for (let made = 0; made < 4; made++) headers.push(await append(one.queue));
    await remove(one.queue, headers.slice(0, 3));
    expect((await append(late.queue))._id).toBe('h:000000000005');
    expect((await append(late.queue))._id).toBe('h:000000000006');
    const stored = await one.queue.docs.revisions(headers.map(({ _id }) => _id));
    expect([...stored.values()].map((rev) => rev !== undefined)).toEqual([false, false, false, true]);
  });
});
