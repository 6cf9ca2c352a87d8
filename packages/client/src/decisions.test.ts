import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Client } from './model/client.js';
import { InvalidRequestError } from './model/errors.js';
import type { PouchConstructor } from './model/pouch.js';
import { handAction, paint, setColour, TestBed } from './test-bed.fixture.js';

/** Two decisions at once, decisions that were cut off, and what a caller changes after its call. */
describe('decisions that meet each other', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(() => bed.close());

  const handed = (ids: readonly string[]): Parameters<Client['enqueue']>[0] => ({
    target: 'local',
    actions: [{ action: 'by-hand', operations: ids.map((id) => ({ id })) }],
  });
  const failing = async (client: Client, ids: readonly string[]): Promise<string> => {
    const { bulkOperationId } = await client.enqueue(paint(ids, 'blue'));
    await bed.settled(client, bulkOperationId);
    return bulkOperationId;
  };

  /** A store of a process that ends as soon as it has written a document whose id begins so. */
  const ending = (prefix: string): { PouchDB: PouchConstructor; hasEnded: () => boolean } => {
    let hasEnded = false;
    class Ending extends (bed.PouchDB as unknown as new (name: string) => Record<string, unknown>) {
      constructor(name: string) {
        super(name);
        const bulkDocs = (this['bulkDocs'] as (docs: { _id: string }[]) => Promise<unknown>).bind(this);
        this['bulkDocs'] = (docs: { _id: string }[]) => {
          if (hasEnded) return new Promise(() => undefined);
          hasEnded = docs.some(({ _id }) => _id.startsWith(prefix));
          return bulkDocs(docs);
        };
      }
    }
    return { PouchDB: Ending as never, hasEnded: () => hasEnded };
  };

  it('R19 two tabs that retry the same failures at the same moment: they run once', async () => {
    const leader = bed.open();
    const id = await failing(leader, ['x', 'y']);
    const other = bed.open({ autoStart: false });
    await other.listFailures();
    await Promise.all([leader.retryFailed(), other.retryFailed()]);
    await bed.until(async () => (await bed.list(leader)).filter(({ attempts }) => attempts > 0).length === 2);
    await bed.rest();
    expect((await leader.listFailures()).map((one) => one.id)).toEqual(['x', 'y']);
    expect((await bed.list(leader)).map(({ state }) => state).sort()).toEqual([
      'cancelled',
      'done',
      'done-with-failures',
    ]);
    expect(await bed.now(leader, id)).toMatchObject({ failed: 0, resolved: 2 });
  });

  it('R19 what another tab has discarded is not retried, also when no news of it came', async () => {
    bed.channels = null;
    const leader = bed.open();
    const id = await failing(leader, ['x', 'y']);
    await leader.listFailures();
    const other = bed.open({ autoStart: false });
    expect(await other.discard({ id: 'x' })).toBe(1);
    const { queued, bulkOperations } = await leader.retryFailed();
    expect(queued).toBe(1);
    await bed.settled(leader, bulkOperations[0]?.bulkOperationId ?? '');
    await bed.becomes(leader, id, ({ resolved }) => resolved === 2);
    expect(await leader.listFailures({ resolved: true })).toMatchObject([
      { id: 'x', resolution: { how: 'discarded' } },
      { id: 'y', resolution: { how: 'retried' } },
    ]);
  });

  it('R19 a retry that was cut off before its marks is not queued a second time', async () => {
    const first = bed.open();
    await failing(first, ['x']);
    await first.close();
    const { PouchDB, hasEnded } = ending('h:');
    const dying = bed.open({ PouchDB, autoStart: false });
    void dying.retryFailed();
    await bed.until(hasEnded);
    bed.forget(dying);
    const client = bed.open({ autoStart: false });
    expect(await client.retryFailed()).toMatchObject({ queued: 0, bulkOperations: [] });
    expect(await bed.list(client)).toHaveLength(2);
    expect(await client.listFailures()).toEqual([]);
  });

  it('R19 R5 a rest that was queued anew, and cut off before that was marked, is not queued a second time', async () => {
    const { action, calls } = handAction('by-hand');
    const first = bed.open({ actions: [action] });
    const { bulkOperationId: id } = await first.enqueue(handed(['a', 'b']));
    await bed.until(() => calls.length === 1);
    calls[0]?.fail(new TypeError('x is not a function'));
    await bed.settled(first, id);
    await first.close();
    const { PouchDB, hasEnded } = ending('h:000000000002');
    const dying = bed.open({ actions: [action], PouchDB, autoStart: false });
    void dying.retryRest(id);
    await bed.until(hasEnded);
    bed.forget(dying);
    const client = bed.open({ actions: [action], autoStart: false });
    await expect(client.retryRest(id)).rejects.toMatchObject({ code: 'already_retried' });
    expect(await bed.list(client)).toHaveLength(2);
  });

  it('R19 R5 two tabs that retry the same rest at the same moment: it runs once', async () => {
    const { action, calls } = handAction('by-hand');
    const leader = bed.open({ actions: [action] });
    const { bulkOperationId: id } = await leader.enqueue(handed(['a']));
    await bed.until(() => calls.length === 1);
    calls[0]?.fail(new TypeError('x is not a function'));
    await bed.settled(leader, id);
    const other = bed.open({ actions: [action], autoStart: false });
    await bed.list(other);
    const both = await Promise.allSettled([leader.retryRest(id), other.retryRest(id)]);
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    await bed.until(() => calls.length === 2);
    calls[1]?.answer({});
    await bed.rest();
    expect(calls).toHaveLength(2);
  });

  it('R19 the rest of a cancelled one is not retried while its last attempt is under way', async () => {
    const { action, calls } = handAction('by-hand');
    const client = bed.open({ actions: [action], batchSize: 1 });
    const { bulkOperationId: id } = await client.enqueue(handed(['a', 'b']));
    await bed.until(() => calls.length === 1);
    await client.cancel(id);
    await expect(client.retryRest(id)).rejects.toMatchObject({ code: 'not_settled' });
    calls[0]?.answer({});
    await bed.becomes(client, id, ({ applied }) => applied === 1);
    expect(await client.retryRest(id)).toMatchObject({ total: 1 });
    await bed.until(() => calls.length === 2);
    expect(calls[1]?.ids).toEqual(['b']);
    calls[1]?.answer({});
  });

  it('R19 what the caller changes after its call changes nothing', async () => {
    const client = bed.open();
    await failing(client, ['x', 'y', 'z']);
    const filter: { id?: string } = { id: 'x' };
    const retried = client.retryFailed(filter);
    delete filter.id;
    expect((await retried).queued).toBe(1);
    const some: { id?: string } = { id: 'y' };
    const discarded = client.discard(some);
    delete some.id;
    expect(await discarded).toBe(1);
    const [failure] = await client.listFailures({ id: 'z' });
    const operation = { id: 'w', to: 'green' };
    const edited = client.editAndRetry(failure?.failureId ?? '', operation);
    operation.id = 'x';
    const { bulkOperations } = await edited;
    await bed.settled(client, bulkOperations[0]?.bulkOperationId ?? '');
    expect(await client.listFailures({ id: 'w' })).toHaveLength(1);
  });

  it('R19 R18 a rate whose rest could not be stored is refused, and the store can be opened again', async () => {
    const client = bed.open();
    await failing(client, ['x', 'y']);
    for (const ratePerSecond of [1e-320, 1e-9, Infinity, NaN, -1]) {
      await expect(client.retryFailed({}, { ratePerSecond })).rejects.toBeInstanceOf(InvalidRequestError);
    }
    expect(await client.retryFailed({}, { ratePerSecond: 1 / 86_400 })).toMatchObject({ queued: 2 });
    await bed.until(async () => (await bed.list(client)).some(({ nextAttemptAt }) => nextAttemptAt !== undefined));
    await client.close();
    const again = bed.open();
    expect(await bed.list(again)).toHaveLength(2);
  });

  it('R19 the rest of one that had a rate keeps it', async () => {
    const client = bed.open();
    await failing(client, ['x', 'y']);
    const { bulkOperations } = await client.retryFailed({}, { ratePerSecond: 0.5 });
    const id = bulkOperations[0]?.bulkOperationId ?? '';
    await bed.becomes(client, id, ({ cursor }) => cursor === 1);
    await client.cancel(id);
    const rest = await client.retryRest(id);
    expect(await bed.settled(client, rest.bulkOperationId)).toMatchObject({ ratePerSecond: 0.5, failed: 1 });
  });

  it('R19 many failures are marked in many writes, and each counts once', async () => {
    const most: number[] = [];
    class Counting extends (bed.PouchDB as unknown as new (name: string) => Record<string, unknown>) {
      constructor(name: string) {
        super(name);
        const bulkDocs = (this['bulkDocs'] as (docs: { _id: string }[]) => Promise<unknown>).bind(this);
        this['bulkDocs'] = (docs: { _id: string }[]) => {
          most.push(docs.filter(({ _id }) => _id.startsWith('f:')).length);
          return bulkDocs(docs);
        };
      }
    }
    const client = bed.open({ PouchDB: Counting as never });
    const id = await failing(
      client,
      Array.from({ length: 1100 }, (_, at) => `gone${String(at)}`),
    );
    expect(await client.discard({})).toBe(1100);
    expect(Math.max(...most)).toBe(500);
    expect(await bed.now(client, id)).toMatchObject({ state: 'done', failed: 0, resolved: 1100 });
  });

  it('R19 whoever queues a retry and whoever runs it mark its failures once, so that no death leaves a wrong count', async () => {
    const counts: number[] = [];
    class Watched extends (bed.PouchDB as unknown as new (name: string) => Record<string, unknown>) {
      constructor(name: string) {
        super(name);
        const bulkDocs = (this['bulkDocs'] as (docs: { _id: string; resolved?: number }[]) => Promise<unknown>).bind(
          this,
        );
        this['bulkDocs'] = async (docs: { _id: string; resolved?: number }[]) => {
          for (const { _id, resolved } of docs) if (_id === 'hr:000000000001') counts.push(resolved ?? 0);
          // The runner finds the retry before its failures are marked.
          if (docs.some(({ _id, resolved }) => _id.startsWith('hr:') && resolved === 2)) {
            client.syncNow();
            await bed.rest();
          }
          return bulkDocs(docs);
        };
      }
    }
    const client = bed.open({ PouchDB: Watched as never });
    await failing(client, ['x', 'y']);
    const { bulkOperations } = await client.retryFailed();
    await bed.settled(client, bulkOperations[0]?.bulkOperationId ?? '');
    expect(counts).toEqual([2]);
  });

  it('R19 failures that are read anew stay known meanwhile', async () => {
    const first = bed.open();
    await failing(first, ['x']);
    await first.close();
    // The tab that begins to lead reads them while a person decides.
    const client = bed.open();
    expect(await client.retryFailed()).toMatchObject({ queued: 1 });
    await bed.until(async () => (await client.listFailures()).length === 1);
  });

  describe('R16', () => {
    const raw = (): { get(id: string): Promise<Record<string, unknown>>; bulkDocs(docs: object[]): Promise<unknown> } =>
      new bed.PouchDB('clinic-afield-queue') as never;

    it('R16 a store that fails while a tab begins to lead is no stop of the process', async () => {
      const first = bed.open();
      await failing(first, ['gone']);
      await first.close();
      let isBroken = true;
      class Failing extends (bed.PouchDB as unknown as new (name: string) => Record<string, unknown>) {
        constructor(name: string) {
          super(name);
          const allDocs = (this['allDocs'] as (options: { startkey?: string }) => Promise<unknown>).bind(this);
          this['allDocs'] = (options: { startkey?: string }) =>
            isBroken && options.startkey === 'f:'
              ? Promise.reject(new DOMException('', 'UnknownError'))
              : allDocs(options);
        }
      }
      const { action, calls } = handAction('by-hand');
      const queued = bed.open({ actions: [action], autoStart: false });
      await queued.enqueue(handed(['a']));
      await queued.close();
      const client = bed.open({
        actions: [action, setColour],
        PouchDB: Failing as never,
        appVersion: '2',
        environment: { warn: () => undefined },
      });
      await bed.until(() => calls.length === 1);
      await bed.rest();
      isBroken = false;
      bed.clock.advance(1_000_000);
      await bed.rest();
      expect(await raw().get('h:000000000002')).not.toHaveProperty('stops');
      expect(calls).toHaveLength(1);
      calls[0]?.answer({});
      await bed.until(async () => (await bed.list(client))[1]?.state === 'done');
    });

    it('R16 an operation that has its outcome is not taken for the one that stopped the process', async () => {
      const { action, calls } = handAction('by-hand');
      const first = bed.open({ actions: [action], autoStart: false });
      await first.enqueue(handed(['a', 'b']));
      await first.close();
      // The process has ended five times after `a` had come through alone, before the next one was named.
      const header = await raw().get('h:000000000001');
      const rows = JSON.stringify([{ s: 'applied', k: 4 }, { s: 'open' }]);
      await raw().bulkDocs([
        { ...header, state: 'running', lease: 'before', stops: 9, alone: 0, attempt: 1, attempts: 9 },
        { _id: 'b:000000000001:000000000000', v: 1, from: 0, count: 2, lease: 'before', at: 0, rows },
      ]);
      bed.presence.note('afield:clinic:run', 'before visible');
      const client = bed.open({ actions: [action] });
      await bed.until(() => calls.length === 1, 30_000);
      expect(calls[0]?.ids).toEqual(['b']);
      calls[0]?.answer({});
      await bed.until(async () => (await bed.list(client))[0]?.state === 'done');
      expect(await client.listFailures()).toEqual([]);
    });
  });
});
