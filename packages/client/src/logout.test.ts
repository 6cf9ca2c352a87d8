import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineIndex } from './lookup/define.js';
import type { Client, ClientOptions } from './model/client.js';
import { ClientClosedError, StoreLeftError, UnsyncedWorkError } from './model/errors.js';
import type { PouchConstructor, PouchLike } from './model/pouch.js';
import { handAction, paint, setColour, TestBed } from './test-bed.fixture.js';

const queueName = 'clinic-afield-queue';
const noServer = { fetch: (): Promise<never> => Promise.reject(new TypeError('Failed to fetch')) };
const byColour = defineIndex({ name: 'by-colour', version: 3, keys: (doc) => doc['colour'] as string | undefined });

describe('taking leave of a store', () => {
  let bed: TestBed;
  let factory: IDBFactory;

  beforeEach(() => {
    bed = new TestBed();
    factory = new IDBFactory();
  });
  afterEach(async () => {
    await bed.rest();
    await bed.close();
  });

  const open = (options: Partial<ClientOptions> = {}): Client =>
    bed.open({
      indexes: [byColour],
      ...options,
      environment: { ...noServer, indexedDB: factory, ...options.environment },
    });
  const docs = async (name: string): Promise<string[]> => {
    const { rows } = (await new bed.PouchDB(name).allDocs({})) as { rows: { id: string }[] };
    return rows.map(({ id }) => id);
  };
  /** Notes that the store is being removed. */
  const notes = async (): Promise<object[]> => {
    const { rows } = (await new bed.PouchDB(queueName).allDocs({ include_docs: true })) as { rows: { doc: object }[] };
    return rows.flatMap(({ doc }) => ('wipe' in doc ? doc : []));
  };
  /** Databases, indexes and notes that are there. */
  const left = async (): Promise<unknown[]> => [
    ...(await docs('clinic')),
    ...(await docs(queueName)),
    ...(await factory.databases()).map(({ name }) => name),
    ...bed.presence.notes.keys(),
  ];
  /** Ends what waits for other tabs. */
  const settled = async <Value>(call: Promise<Value>, stepMs = 100): Promise<Value> => {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    call.then(over, over);
    await bed.until(() => isOver, stepMs);
    return call;
  };
  const worked = async (client: Client): Promise<void> => {
    await bed.seed(client, 3);
    const { bulkOperationId } = await client.enqueue(paint(['d0000', 'd0001'], 'blue'));
    await bed.settled(client, bulkOperationId);
    await firstValueFrom(client.index('by-colour').state$.pipe(filter(({ state }) => state === 'ready')));
  };
  const refusal = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => 'no error',
      (error: unknown) => error,
    );

  it('S7 leaves nothing behind when all is done, offline too, and the client is closed', async () => {
    const client = open({
      user: 'amber',
      environment: { connectivity: { online: () => false, subscribe: () => () => undefined } },
    });
    await worked(client);
    expect(await left()).toContain('clinic-afield-index-by-colour-v3');
    await settled(client.logout());
    expect(await left()).toEqual([]);
    await expect(client.enqueue(paint(['a'], 'red'))).rejects.toBeInstanceOf(ClientClosedError);
    await expect(client.logout()).rejects.toBeInstanceOf(ClientClosedError);

    const next = open({ user: 'birch' });
    expect(await bed.list(next)).toEqual([]);
  });

  it('S7 a new store of the same name has another name at the server', async () => {
    const client = open();
    const before = await client.storeId;
    await settled(client.logout());
    expect(await open().storeId).not.toBe(before);
  });

  it('S7 refuses while work is pending, and the client goes on as if nothing had been', async () => {
    const { action, calls } = handAction('work');
    const client = open({ actions: [setColour, action] });
    const { bulkOperationId } = await client.enqueue({
      target: 'local',
      actions: [{ action: 'work', operations: [{ id: 'a' }, { id: 'b' }] }],
    });
    await bed.until(() => calls.length === 1);
    const error = await refusal(settled(client.logout()));
    expect(error).toBeInstanceOf(UnsyncedWorkError);
    expect(error).toMatchObject({ code: 'unsynced_work', counts: { pending: 2, failed: 0 } });
    calls[0]?.answer({});
    await bed.settled(client, bulkOperationId);
    await settled(client.logout());
    expect(await left()).toEqual([]);
  });

  it('S7 refuses while something is failed, in quarantine, unconfirmed or unreported, and says how much', async () => {
    const failed = open({ results: 'http://couch.test/results', server: 'http://couch.test/records' });
    await bed.seed(failed, 2);
    const { bulkOperationId } = await failed.enqueue(paint(['d0000', 'missing'], 'blue', { key: 'one' }));
    await bed.settled(failed, bulkOperationId);
    await failed.enqueue(paint(['d0000'], 'green', { key: 'one' })).catch(() => undefined);
    const error = await refusal(settled(failed.logout(), 0));
    expect(error).toBeInstanceOf(UnsyncedWorkError);
    const { counts } = error as UnsyncedWorkError;
    expect(counts).toMatchObject({ pending: 0, failed: 1, quarantined: 1, unreported: 1 });
    expect(counts.unconfirmed).toBeGreaterThan(0);
    expect(await notes()).toEqual([]);
    // Forced, all of it goes.
    await settled(failed.logout({ force: true }));
    expect(await left()).toEqual([]);
  });

  it('S7 refuses while an event is unpublished', async () => {
    const client = open({ publishers: [{ name: 'out', publish: () => Promise.reject(new Error('no')) }] });
    await bed.seed(client, 1);
    const { bulkOperationId } = await client.enqueue(paint(['d0000'], 'blue'));
    await bed.settled(client, bulkOperationId);
    expect(await refusal(settled(client.logout()))).toMatchObject({ counts: { unpublished: 1 } });
  });

  it('S7 a misspelt option is not taken for no option', async () => {
    const client = open();
    await expect(client.logout({ Force: true } as never)).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(client.logout({ force: 'yes' } as never)).rejects.toMatchObject({ code: 'invalid_option' });
  });

  it('S7 takes nothing more in while it takes leave', async () => {
    const client = open();
    await client.storeId;
    const leaving = client.logout();
    await expect(client.enqueue(paint(['a'], 'red'))).rejects.toBeInstanceOf(StoreLeftError);
    await expect(client.logout()).rejects.toMatchObject({ code: 'logging_out' });
    await settled(leaving);
  });

  it('S7 closes the other tabs too', async () => {
    bed.PouchDB = ofTabs(bed.PouchDB);
    const other = open();
    await worked(other);
    const client = open();
    await client.storeId;
    await bed.rest();
    await settled(client.logout());
    await expect(other.enqueue(paint(['a'], 'red'))).rejects.toBeInstanceOf(ClientClosedError);
    expect(await left()).toEqual([]);
  });

  it('S7 another tab that has not heard of it yet is refused what it would queue, and loses nothing in silence', async () => {
    bed.PouchDB = ofTabs(bed.PouchDB);
    const other = open({ autoStart: false });
    await other.storeId;
    const client = open({ autoStart: false });
    await client.storeId;
    const channels = bed.channels?.get('afield:clinic:leave') ?? new Set();
    let queued: Promise<unknown> | undefined;
    // While the word is on its way, the other one queues something.
    const hears =
      (hear: (message?: unknown) => void) =>
      (message?: unknown): void => {
        queued ??= refusal(other.enqueue(paint(['a'], 'red')));
        void queued.then(() => {
          hear(message);
        });
      };
    bed.channels?.set('afield:clinic:leave', new Set([...channels].map(hears)));
    await settled(client.logout(), 1);
    expect(await queued).toBeInstanceOf(StoreLeftError);
    expect(await left()).toEqual([]);
  });

  it('S7 a document that is edited at the last moment is not lost: the logout is refused', async () => {
    bed.PouchDB = ofTabs(bed.PouchDB);
    const client = open({ autoStart: false, server: 'http://couch.test/records' });
    await client.storeId;
    let edited: Promise<unknown> | undefined;
    bed.channels?.set(
      'afield:clinic:leave',
      new Set([() => (edited ??= new bed.PouchDB('clinic').put({ _id: 'a', colour: 'red' }))]),
    );
    expect(await refusal(settled(client.logout(), 1))).toMatchObject({ counts: { pending: 0, unconfirmed: 1 } });
    await edited;
    expect(await notes()).toEqual([]);
    expect(await docs('clinic')).toEqual(['a']);
    expect((await client.enqueue(paint(['a'], 'blue'))).total).toBe(1);
  });

  it('S7 what is queued between the count and the note is not lost: it is counted again', async () => {
    bed.PouchDB = ofTabs(bed.PouchDB);
    const other = open({ autoStart: false });
    await other.storeId;
    const late = new Set<Promise<unknown>>();
    const { PouchDB } = bed;
    bed.PouchDB = writesAfter(PouchDB, async (written) => {
      if (!('wipe' in (written[0] ?? {})) || late.size > 0) return;
      late.add(other.enqueue(paint(['a'], 'red')));
      await Promise.all(late);
    });
    const client = open({ autoStart: false });
    expect(await refusal(settled(client.logout()))).toMatchObject({ counts: { pending: 1 } });
    expect(late.size).toBe(1);
    expect(await notes()).toEqual([]);
    // Nobody was told to leave.
    expect((await other.enqueue(paint(['b'], 'red'))).total).toBe(1);
  });

  it('S7 what a tab queues that slept through the logout is refused, and never lost in silence', async () => {
    bed.PouchDB = ofTabs(bed.PouchDB);
    const asleep = open({ autoStart: false });
    await asleep.storeId;
    bed.channels = null;
    const { PouchDB } = bed;
    bed.PouchDB = destroysWhen(PouchDB, () => new Promise(() => undefined));
    const client = open({ autoStart: false });
    expect(await refusal(settled(client.logout(), 1000))).toMatchObject({ code: 'wipe_unfinished' });
    await expect(asleep.enqueue(paint(['a'], 'red'))).rejects.toBeInstanceOf(StoreLeftError);
  });

  it('S7 after a logout that was refused everything goes on, in order', async () => {
    const client = open({ autoStart: false });
    await client.enqueue(paint(['a'], 'red'));
    await refusal(settled(client.logout()));
    const { sequence } = await client.enqueue(paint(['b'], 'red'));
    await client.close();
    const again = open();
    expect((await bed.list(again)).map((one) => one.sequence)).toEqual([1, sequence]);
    await bed.until(async () => (await bed.list(again)).every(({ state }) => state === 'done-with-failures'));
  });

  it('S7 a tab that hears nothing is not waited for; it finds the note, and keeps away', async () => {
    bed.PouchDB = ofTabs(bed.PouchDB);
    const held = destroysWhen(bed.PouchDB, () => new Promise(() => undefined));
    const other = open();
    await other.storeId;
    await bed.rest();
    bed.channels = null; // news get lost from here on
    bed.PouchDB = held;
    const client = open({ autoStart: false });
    expect(await refusal(settled(client.logout(), 1000))).toMatchObject({ code: 'wipe_unfinished' });
    expect(await notes()).toHaveLength(1);
    // The look that comes every minute.
    await bed.until(async () => (await refusal(other.storeId)) instanceof ClientClosedError, 10_000);
  });

  it.each([1, 2])(
    'S7 what was cut off at database %i is finished when the store is opened next, before anything is shown',
    async (at) => {
      const client = open({ user: 'amber' });
      await worked(client);
      await client.enqueue(paint(['d0000'], 'green', { key: 'pending' }));
      await client.close();
      let destroyed = 0;
      const { PouchDB } = bed;
      bed.PouchDB = destroysWhen(PouchDB, () =>
        ++destroyed === at ? Promise.reject(new Error('killed')) : Promise.resolve(),
      );
      const again = open({ user: 'amber', autoStart: false });
      expect(await refusal(settled(again.logout({ force: true })))).toMatchObject({ code: 'wipe_unfinished' });
      expect(await notes()).toHaveLength(1);
      bed.PouchDB = PouchDB;
      const next = open({ user: 'birch' });
      await next.storeId;
      expect(await bed.list(next)).toEqual([]);
      expect(await docs('clinic')).toEqual([]);
      expect(await notes()).toEqual([]);
    },
  );

  it('S7 what was exported before a forced logout goes on in the next store of the same person', async () => {
    const { action, calls } = handAction('work');
    const work = { target: 'local', actions: [{ action: 'work', operations: [{ id: 'a' }, { id: 'b' }] }] } as const;
    const client = open({ user: 'amber', actions: [setColour, action] });
    const { bulkOperationId } = await client.enqueue(work);
    await bed.until(() => calls.length === 1);
    const file = await client.exportPending();
    calls[0]?.fail(new Error('never done'));
    await bed.settled(client, bulkOperationId);
    await settled(client.logout({ force: true }));
    expect(await left()).toEqual([]);

    const stranger = open({ user: 'birch', name: 'clinic-2', documents: 'others', actions: [setColour, action] });
    expect(await refusal(stranger.importPending(file))).toMatchObject({ code: 'other_user' });
    const next = open({ user: 'amber', actions: [setColour, action] });
    await next.importPending(file);
    await bed.until(() => calls.length === 2);
    calls[1]?.answer({});
    await bed.until(async () => (await bed.list(next)).every(({ state }) => state === 'done'));
    expect(calls[1]?.ids).toEqual(['a', 'b']);
    await settled(next.logout());
  });

  it('S7 another store of this device stays', async () => {
    const neighbour = open({ name: 'clinic-2', documents: 'others' });
    await neighbour.documents.bulkDocs([{ _id: 'kept' }]);
    await firstValueFrom(neighbour.index('by-colour').state$.pipe(filter(({ state }) => state === 'ready')));
    const client = open();
    await worked(client);
    await settled(client.logout());
    expect(await docs('others')).toEqual(['kept']);
    expect((await factory.databases()).map(({ name }) => name)).toEqual(['clinic-2-afield-index-by-colour-v3']);
  });

  it('S7 an engine that does not list its databases: the indexes are found by their definitions', async () => {
    const client = open();
    await worked(client);
    const { databases } = factory;
    (factory as { databases: unknown }).databases = undefined;
    await settled(client.logout());
    factory.databases = databases;
    expect(await left()).toEqual([]);
  });
});

/** Tabs of a browser have connections of their own: one that closes takes nothing from the others. */
function ofTabs(PouchDB: PouchConstructor): PouchConstructor {
  return changed(PouchDB, (pouch) => {
    pouch.close = () => Promise.resolve();
  });
}

/** A PouchDB whose databases ask before they write. */
function writesAfter(PouchDB: PouchConstructor, ask: (docs: readonly object[]) => Promise<void>): PouchConstructor {
  return changed(PouchDB, (pouch) => {
    const bulkDocs = pouch.bulkDocs.bind(pouch);
    pouch.bulkDocs = async (docs, options) => {
      await ask(docs);
      return bulkDocs(docs, options);
    };
  });
}

/** A PouchDB whose databases ask before they are destroyed. */
function destroysWhen(PouchDB: PouchConstructor, ask: () => Promise<void>): PouchConstructor {
  return changed(PouchDB, (pouch) => {
    const destroy = pouch.destroy.bind(pouch);
    pouch.destroy = async () => {
      await ask();
      return destroy();
    };
  });
}

function changed(PouchDB: PouchConstructor, change: (pouch: PouchLike) => void): PouchConstructor {
  return new Proxy(PouchDB, {
    construct: (target, args: [string, object?]) => {
      const pouch: PouchLike = new target(...args);
      change(pouch);
      return pouch;
    },
  });
}
