import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Client } from './model/client.js';
import { InvalidRequestError, RetryableError } from './model/errors.js';
import { handAction, paint, setColour, TestBed } from './test-bed.fixture.js';

describe('control by a person', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(() => bed.close());

  const hand = (): ReturnType<typeof handAction> => handAction('by-hand');
  const handed = (ids: readonly string[], more = {}): Parameters<Client['enqueue']>[0] => ({
    target: 'local',
    actions: [{ action: 'by-hand', operations: ids.map((id) => ({ id })) }],
    ...more,
  });

  it('R19 a paused bulk operation tries nothing until it is resumed, and is paused after a restart too', async () => {
    const { action, calls } = hand();
    const first = bed.open({ actions: [action], autoStart: false });
    const { bulkOperationId: id } = await first.enqueue(handed(['a']));
    await first.pause(id);
    expect(await bed.now(first, id)).toMatchObject({ state: 'paused' });
    await first.close();

    const client = bed.open({ actions: [action] });
    const other = await client.enqueue(handed(['b']));
    await bed.until(() => calls.length === 1);
    calls[0]?.answer({});
    await bed.settled(client, other.bulkOperationId);
    bed.clock.advance(3_600_000);
    client.syncNow();
    await bed.rest();
    expect(await bed.now(client, id)).toMatchObject({ state: 'paused', attempts: 0, nextAttemptAt: undefined });
    expect(calls).toHaveLength(1);

    await client.resume(id);
    await bed.until(() => calls.length === 2);
    calls[1]?.answer({});
    expect(await bed.settled(client, id)).toMatchObject({ state: 'done', applied: 1, attempts: 1 });
  });

  it('R19 R17 a paused one holds back later ones of its subject and lane, a cancelled one lets them go', async () => {
    const client = bed.open({ autoStart: false });
    await bed.seed(client, 3);
    const paused = await client.enqueue(paint(['d0000'], 'green', { lane: 'x' }));
    await client.pause(paused.bulkOperationId);
    await client.start();
    const sameSubject = await client.enqueue(paint(['d0000'], 'black'));
    const sameLane = await client.enqueue(paint(['d0001'], 'black', { lane: 'x' }));
    const free = await client.enqueue(paint(['d0002'], 'black'));
    await bed.settled(client, free.bulkOperationId);
    expect(await bed.colours(client)).toEqual(['red', 'red', 'black']);
    await client.cancel(paused.bulkOperationId);
    await bed.settled(client, sameSubject.bulkOperationId);
    await bed.settled(client, sameLane.bulkOperationId);
    expect(await bed.colours(client)).toEqual(['black', 'black', 'black']);
    expect(await bed.now(client, paused.bulkOperationId)).toMatchObject({ state: 'cancelled', applied: 0, cursor: 0 });
  });

  it('R19 a pause in the middle of an attempt keeps what the attempt has done, and does not count it', async () => {
    const { action, calls } = hand();
    const client = bed.open({ actions: [action], batchSize: 2 });
    const { bulkOperationId: id } = await client.enqueue(handed(['a', 'b', 'c']));
    await bed.until(() => calls.length === 1);
    await client.pause(id);
    expect(await bed.now(client, id)).toMatchObject({ state: 'paused', attempt: 0, cursor: 0 });
    calls[0]?.answer({ failed: [{ index: 1, code: 'no', reason: 'not this one' }] });
    expect(await bed.becomes(client, id, ({ cursor }) => cursor === 2)).toMatchObject({
      state: 'paused',
      applied: 1,
      failed: 1,
      attempts: 0,
    });
    expect(await client.listFailures()).toMatchObject([{ id: 'b', code: 'no' }]);
    await client.resume(id);
    await bed.until(() => calls.length === 2);
    expect(calls[1]?.ids).toEqual(['c']);
    calls[1]?.answer({});
    expect(await bed.settled(client, id)).toMatchObject({ state: 'done-with-failures', applied: 2, failed: 1 });
  });

  it('R19 a cancel in the middle of an attempt keeps what the attempt has done, and tries nothing more', async () => {
    const { action, calls } = hand();
    const client = bed.open({ actions: [action], batchSize: 2 });
    const { bulkOperationId: id } = await client.enqueue(handed(['a', 'b', 'c']));
    await bed.until(() => calls.length === 1);
    await client.cancel(id);
    calls[0]?.answer({ alreadyApplied: [0] });
    expect(await bed.becomes(client, id, ({ cursor }) => cursor === 2)).toMatchObject({
      state: 'cancelled',
      applied: 1,
      alreadyApplied: 1,
    });
    bed.clock.advance(600_000);
    await client.enqueue(handed(['z']));
    await bed.until(() => calls.length === 2);
    expect(calls[1]?.ids).toEqual(['z']);
    calls[1]?.answer({});
  });

  it('R19 a cancel while it waits keeps what was done of its batch', async () => {
    const client = bed.open();
    const ids = await bed.seed(client, 2);
    const bulkDocs = client.documents.bulkDocs.bind(client.documents);
    const refused = { id: 'd0001', error: true, name: 'timeout', status: 500, message: 'made up' };
    Object.assign(client.documents, {
      bulkDocs: async (docs: readonly { _id: string }[]) => {
        const others = docs.filter(({ _id }) => _id !== refused.id);
        return [...(others.length > 0 ? await bulkDocs(others) : []), refused];
      },
    });
    const { bulkOperationId: id } = await client.enqueue(paint(ids, 'blue'));
    await bed.reaches(client, id, ['waiting-retry']);
    await client.cancel(id);
    expect(await bed.now(client, id)).toMatchObject({ state: 'cancelled', applied: 1, failed: 0 });
    Object.assign(client.documents, { bulkDocs });
    bed.clock.advance(3_600_000);
    await bed.rest();
    expect(await bed.colours(client)).toEqual(['blue', 'red']);
  });

  it('R19 a pause before the write: nothing is written', async () => {
    const client = bed.open();
    await bed.seed(client, 1);
    const writes: unknown[] = [];
    const bulkDocs = client.documents.bulkDocs.bind(client.documents);
    const allDocs = client.documents.allDocs.bind(client.documents);
    let id = '';
    Object.assign(client.documents, {
      bulkDocs: (...args: Parameters<typeof bulkDocs>) => {
        writes.push(args);
        return bulkDocs(...args);
      },
      allDocs: async (...args: Parameters<typeof allDocs>) => {
        const rows = await allDocs(...args);
        await client.pause(id);
        return rows;
      },
    });
    const stopped = bed.open({ autoStart: false });
    id = (await stopped.enqueue(paint(['d0000'], 'blue'))).bulkOperationId;
    expect(await bed.reaches(client, id, ['paused'])).toMatchObject({ cursor: 0, attempt: 0 });
    Object.assign(client.documents, { bulkDocs, allDocs });
    expect(writes).toHaveLength(0);
    await client.resume(id);
    expect(await bed.settled(client, id)).toMatchObject({ state: 'done', applied: 1 });
  });

  it('R19 another tab pauses what this one runs, and what waits for a time', async () => {
    const { action, calls } = hand();
    const leader = bed.open({ actions: [action] });
    const { bulkOperationId: id } = await leader.enqueue(handed(['a']));
    await bed.until(() => calls.length === 1);
    calls[0]?.fail(new RetryableError('not yet'));
    await bed.reaches(leader, id, ['waiting-retry']);
    bed.clock.advance(0);
    await bed.until(() => calls.length === 2);
    calls[1]?.fail(new RetryableError('not yet'));
    await bed.becomes(leader, id, ({ failedAttempts }) => failedAttempts === 2);
    const other = bed.open({ actions: [action], autoStart: false });
    await other.pause(id);
    expect(await bed.reaches(leader, id, ['paused'])).toMatchObject({ nextAttemptAt: undefined });
    bed.clock.advance(3_600_000);
    await bed.rest();
    expect(calls).toHaveLength(2);
    await other.resume(id);
    await bed.until(() => calls.length === 3);
    calls[2]?.answer({});
    await bed.settled(leader, id);
  });

  it('R19 R13 a resume makes it due at once, but not before what the server asked for', async () => {
    const { action, calls } = hand();
    const client = bed.open({ actions: [action] });
    const { bulkOperationId: id } = await client.enqueue(handed(['a']));
    await bed.until(() => calls.length === 1);
    calls[0]?.fail(new RetryableError('later', { notBeforeMs: 90_000 }));
    await bed.reaches(client, id, ['waiting-retry']);
    await client.pause(id);
    bed.clock.advance(30_000);
    await client.resume(id);
    await bed.rest();
    bed.clock.advance(59_000);
    await bed.rest();
    expect(calls).toHaveLength(1);
    bed.clock.advance(1000);
    await bed.until(() => calls.length === 2);
    calls[1]?.answer({});
    await bed.settled(client, id);
  });

  it('R19 what is at its end or unknown cannot be paused, resumed or cancelled, and says so', async () => {
    const client = bed.open();
    const { bulkOperationId: id } = await client.enqueue(paint(['nowhere'], 'blue'));
    await bed.settled(client, id);
    for (const call of ['pause', 'resume', 'cancel'] as const) {
      await expect(client[call](id)).rejects.toMatchObject({ code: 'already_ended' });
      await expect(client[call]('nobody')).rejects.toMatchObject({ code: 'unknown_bulk_operation' });
    }
  });

  describe('of failures', () => {
    it('R19 a failed operation is retried as a new one with a derived key, and the old one says so', async () => {
      const client = bed.open();
      const [id = ''] = await bed.seed(client, 1);
      const receipt = await client.enqueue({
        ...paint(['gone', 'gone2'], 'blue'),
        key: 'move-7',
      });
      await bed.settled(client, receipt.bulkOperationId);
      await client.documents.bulkDocs([{ _id: 'gone', colour: 'red' }]);
      const retried = await client.retryFailed({ id: 'gone' });
      expect(retried).toMatchObject({ queued: 1, sentAgain: 0, bulkOperations: [{ sequence: 2, total: 1 }] });
      const newId = retried.bulkOperations[0]?.bulkOperationId ?? '';
      expect(await bed.settled(client, newId)).toMatchObject({ state: 'done', applied: 1 });
      expect(await bed.now(client, receipt.bulkOperationId)).toMatchObject({
        state: 'done-with-failures',
        failed: 1,
        resolved: 1,
      });
      expect(await firstValueFrom(client.failures$)).toMatchObject([{ id: 'gone2' }]);
      expect(await client.listFailures({ resolved: true })).toMatchObject([
        {
          id: 'gone',
          operation: { id: 'gone', content: { to: 'blue' } },
          resolution: { how: 'retried', bulkOperationId: newId, index: 0 },
        },
      ]);
      expect(await bed.colours(client)).toEqual(['red', 'blue']);
      expect(id).toBe('d0000');
      // And once more: the key of the second try is derived again.
      const again = await client.retryFailed({});
      await bed.settled(client, again.bulkOperations[0]?.bulkOperationId ?? '');
      expect(await client.listFailures()).toMatchObject([{ id: 'gone2', key: 'move-7:1~1' }]);
      const third = await client.retryFailed();
      await bed.settled(client, third.bulkOperations[0]?.bulkOperationId ?? '');
      expect(await client.listFailures()).toMatchObject([{ id: 'gone2', key: 'move-7:1~2' }]);
      expect(await bed.now(client, receipt.bulkOperationId)).toMatchObject({ state: 'done', failed: 0, resolved: 2 });
    });

    it('R19 filters choose by document, code, action, bulk operation, name and time; a misspelt one is refused', async () => {
      const client = bed.open();
      await client.documents.bulkDocs([{ _id: 'ice', frozen: true }]);
      const one = await client.enqueue(paint(['ice', 'x', null], 'blue'));
      await bed.settled(client, one.bulkOperationId);
      bed.clock.advance(5000);
      const two = await client.enqueue(paint(['y'], 'blue'));
      await bed.settled(client, two.bulkOperationId);
      const ids = async (filter: Parameters<Client['listFailures']>[0]): Promise<unknown[]> =>
        (await client.listFailures(filter)).map(({ id }) => id);
      expect(await ids({})).toEqual(['ice', 'x', undefined, 'y']);
      expect(await ids({ code: 'frozen' })).toEqual(['ice']);
      expect(await ids({ code: ['missing', 'no_id'] })).toEqual(['x', undefined, 'y']);
      expect(await ids({ bulkOperationId: two.bulkOperationId })).toEqual(['y']);
      expect(await ids({ action: 'delete' })).toEqual([]);
      expect(await ids({ id: ['x', 'y'], before: bed.clock.wall() })).toEqual(['x']);
      expect(await ids({ since: bed.clock.wall() })).toEqual(['y']);
      const [first] = await client.listFailures({});
      expect(await ids({ failureId: first?.failureId ?? '' })).toEqual(['ice']);
      const misspelt = { cod: 'missing' } as Parameters<Client['retryFailed']>[0];
      await expect(client.retryFailed(misspelt)).rejects.toBeInstanceOf(InvalidRequestError);
      await expect(client.discard(misspelt ?? {})).rejects.toThrow('cod');
      // What is there but undefined would mean all.
      await expect(client.discard({ failureId: undefined } as never)).rejects.toThrow('filter.failureId');
      await expect(client.retryFailed({}, { rate: 5 } as never)).rejects.toThrow('rate');
      await expect(client.editAndRetry('x', { id: 'x' }, { rate: 5 } as never)).rejects.toThrow('rate');
      await expect(client.listFailures({ resolved: 'yes' } as never)).rejects.toThrow('filter.resolved');
      await expect(client.retryFailed({}, { ratePerSecond: 0 })).rejects.toBeInstanceOf(InvalidRequestError);
      expect(await client.listFailures()).toHaveLength(4);
    });

    it('R19 a failure is edited and retried: the old content is kept, a wrong edit is refused whole', async () => {
      const client = bed.open();
      await bed.seed(client, 1);
      const { bulkOperationId } = await client.enqueue(paint(['d000'], 'blue'));
      await bed.settled(client, bulkOperationId);
      const [failure] = await client.listFailures();
      const failureId = failure?.failureId ?? '';
      await expect(client.editAndRetry(failureId, { id: 'd0000', too: 'blue' })).rejects.toMatchObject({
        issues: [{ index: 0 }, { index: 0 }],
      });
      await expect(client.editAndRetry('f:nobody', { id: 'd0000', to: 'x' })).rejects.toMatchObject({
        code: 'unknown_failure',
      });
      expect(await client.listFailures()).toHaveLength(1);
      const { bulkOperations } = await client.editAndRetry(failureId, { id: 'd0000', to: 'green' });
      await bed.settled(client, bulkOperations[0]?.bulkOperationId ?? '');
      expect(await bed.colours(client)).toEqual(['green']);
      expect(await client.listFailures({ resolved: true })).toMatchObject([
        { id: 'd000', operation: { id: 'd000', content: { to: 'blue' } }, resolution: { how: 'retried' } },
      ]);
      await expect(client.editAndRetry(failureId, { id: 'd0000', to: 'x' })).rejects.toMatchObject({
        code: 'unknown_failure',
      });
    });

    it('R19 discarded failures are no longer open, and are kept', async () => {
      const client = bed.open();
      const { bulkOperationId } = await client.enqueue(paint(['x', 'y'], 'blue'));
      await bed.settled(client, bulkOperationId);
      expect(await client.discard({ id: 'x' })).toBe(1);
      expect(await firstValueFrom(client.failures$)).toMatchObject([{ id: 'y' }]);
      expect(await client.discard({})).toBe(1);
      expect(await client.discard({})).toBe(0);
      expect(await bed.now(client, bulkOperationId)).toMatchObject({ state: 'done', failed: 0, resolved: 2 });
      await client.close();
      const again = bed.open();
      expect(await again.listFailures()).toEqual([]);
      expect(await again.listFailures({ resolved: true })).toMatchObject([
        { id: 'x', resolution: { how: 'discarded' } },
        { id: 'y', resolution: { how: 'discarded' } },
      ]);
      expect((await again.retryFailed()).queued).toBe(0);
    });

    it('R19 a tab that does not lead can look at what was resolved whenever failures change, and it is told once', async () => {
      const leader = bed.open();
      const { bulkOperationId } = await leader.enqueue(paint(['x', 'y'], 'blue'));
      await bed.settled(leader, bulkOperationId);
      const other = bed.open({ autoStart: false });
      const seen: number[] = [];
      const subscription = other.failures$.subscribe((failures) => {
        seen.push(failures.length);
        if (seen.length > 50) return;
        // Two lists of a screen: their readings overlap.
        void other.listFailures({ resolved: true });
        void other.listFailures({ code: 'missing' });
      });
      await bed.until(() => seen.length === 1);
      for (let call = 0; call < 5; call++) await other.listFailures();
      expect(seen).toEqual([2]);
      await leader.discard({ id: 'x' });
      await other.listFailures();
      await bed.until(() => seen.length === 2);
      for (let call = 0; call < 5; call++) await other.listFailures();
      expect(seen).toEqual([2, 1]);
      subscription.unsubscribe();
    });

    it('R19 at a stated rate: so many a second, whatever event comes, and over a restart', async () => {
      const { action, calls } = hand();
      const client = bed.open({ actions: [action] });
      const { bulkOperationId } = await client.enqueue(handed(['a', 'b', 'c', 'd', 'e']));
      await bed.until(() => calls.length === 1);
      calls[0]?.answer({ failed: [0, 1, 2, 3, 4].map((index) => ({ index, code: 'no', reason: 'no' })) });
      await bed.settled(client, bulkOperationId);
      const { bulkOperations } = await client.retryFailed({}, { ratePerSecond: 2 });
      const id = bulkOperations[0]?.bulkOperationId ?? '';
      await bed.until(() => calls.length === 2);
      expect(calls[1]?.ids).toEqual(['a', 'b']);
      calls[1]?.answer({});
      expect(await bed.becomes(client, id, ({ cursor }) => cursor === 2)).toMatchObject({
        state: 'queued',
        ratePerSecond: 2,
        nextAttemptAt: bed.clock.wall() + 1000,
      });
      client.syncNow();
      bed.clock.advance(999);
      await client.close();
      expect(calls).toHaveLength(2);
      const next = bed.open({ actions: [action] });
      await bed.becomes(next, id, ({ nextAttemptAt }) => nextAttemptAt !== undefined);
      bed.clock.advance(1);
      await bed.until(() => calls.length === 3);
      expect(calls[2]?.ids).toEqual(['c', 'd']);
      calls[2]?.answer({});
      await bed.becomes(next, id, ({ cursor }) => cursor === 4);
      bed.clock.advance(1000);
      await bed.until(() => calls.length === 4);
      calls[3]?.answer({});
      expect(await bed.settled(next, id)).toMatchObject({ state: 'done', applied: 5 });
    });

    it('R19 a retry whose failures were not marked yet marks them before it runs', async () => {
      const first = bed.open({ autoStart: false });
      const starter = bed.open();
      const { bulkOperationId } = await starter.enqueue(paint(['x'], 'blue'));
      await bed.settled(starter, bulkOperationId);
      await starter.close();
      // The process ends right after the new bulk operation is durable: the mark is never written.
      const PouchDB = bed.PouchDB;
      let ends = false;
      class Ending extends (PouchDB as unknown as new (name: string) => Record<string, unknown>) {
        constructor(name: string) {
          super(name);
          const bulkDocs = (this['bulkDocs'] as (docs: { _id: string }[]) => Promise<unknown>).bind(this);
          this['bulkDocs'] = (docs: { _id: string }[]) => {
            if (ends) return new Promise(() => undefined);
            if (docs.some(({ _id }) => _id.startsWith('h:'))) ends = true;
            return bulkDocs(docs);
          };
        }
      }
      const dying = bed.open({ PouchDB: Ending as never, autoStart: false });
      void dying.retryFailed({});
      await expect.poll(() => ends).toBe(true);
      bed.forget(dying);
      await first.close();

      const client = bed.open();
      const all = await firstValueFrom(client.bulkOperations$);
      await expect.poll(async () => (await firstValueFrom(client.bulkOperations$)).length).toBe(2);
      expect(all.length).toBeLessThanOrEqual(2);
      const retry = (await firstValueFrom(client.bulkOperations$)).find(({ sequence }) => sequence === 2);
      await bed.settled(client, retry?.id ?? '');
      expect(await client.listFailures({ resolved: true })).toMatchObject([
        { key: expect.not.stringContaining('~') as string, resolution: { how: 'retried', bulkOperationId: retry?.id } },
      ]);
      expect(await client.listFailures()).toMatchObject([{ key: expect.stringContaining('~1') as string }]);
      expect(await bed.now(client, bulkOperationId)).toMatchObject({ failed: 0, resolved: 1 });
    });

    it('R19 what is decided in another tab is known here at once: discarded, retried, given up', async () => {
      const { action, calls } = hand();
      const leader = bed.open({ actions: [action, setColour] });
      const { bulkOperationId } = await leader.enqueue(paint(['x', 'y'], 'blue'));
      await bed.settled(leader, bulkOperationId);
      const broken = await leader.enqueue(handed(['a']));
      await bed.until(() => calls.length === 1);
      calls[0]?.fail(new TypeError('a bug'));
      await bed.settled(leader, broken.bulkOperationId);
      const [first] = await leader.listFailures({ id: 'x' });

      const other = bed.open({ actions: [action, setColour], autoStart: false });
      expect(await other.discard({ id: 'x' })).toBe(1);
      await bed.becomes(leader, bulkOperationId, ({ resolved }) => resolved === 1);
      expect(await firstValueFrom(leader.failures$)).toMatchObject([{ id: 'y' }]);
      await expect(leader.editAndRetry(first?.failureId ?? '', { id: 'x', to: 'red' })).rejects.toMatchObject({
        code: 'unknown_failure',
      });
      await other.cancel(broken.bulkOperationId);
      await bed.reaches(leader, broken.bulkOperationId, ['cancelled']);
      const retried = await other.retryFailed({ id: 'y' });
      await bed.settled(leader, retried.bulkOperations[0]?.bulkOperationId ?? '');
      expect(await bed.now(leader, bulkOperationId)).toMatchObject({ failed: 0, resolved: 2 });
    });

    it('R19 two retries of one failure at the same moment queue it once', async () => {
      const client = bed.open();
      const { bulkOperationId } = await client.enqueue(paint(['x'], 'blue'));
      await bed.settled(client, bulkOperationId);
      const both = await Promise.all([client.retryFailed(), client.retryFailed()]);
      expect(both.map(({ queued }) => queued)).toEqual([1, 0]);
      // The second one came after the first: it made nothing that would have to be withdrawn.
      expect(await bed.list(client)).toHaveLength(2);
    });
  });

  it('R5 R19 what a bug left undone is stored as not done, and a later version of the app runs it', async () => {
    const { action, calls } = hand();
    const client = bed.open({ actions: [action, setColour], batchSize: 2, appVersion: '1' });
    await bed.seed(client, 1);
    const { bulkOperationId: id } = await client.enqueue({
      target: 'local',
      actions: [
        { action: 'by-hand', operations: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] },
        { action: 'set-colour', operations: [{ id: 'd0000', to: 'blue' }] },
      ],
    });
    await bed.until(() => calls.length === 1);
    calls[0]?.answer({});
    await bed.until(() => calls.length === 2);
    calls[1]?.fail(new TypeError('x is not a function'));
    expect(await bed.settled(client, id)).toMatchObject({
      state: 'failed',
      cursor: 2,
      total: 4,
      continuedBy: undefined,
    });
    expect(await client.listNotDone(id)).toMatchObject([
      { index: 2, id: 'c', action: 'by-hand' },
      { index: 3, id: 'd0000', action: 'set-colour', operation: { id: 'd0000', content: { to: 'blue' } } },
    ]);
    await client.close();

    const later = bed.open({ actions: [action, setColour], appVersion: '2' });
    const receipt = await later.retryRest(id);
    expect(receipt).toMatchObject({ total: 2, sequence: 2 });
    await bed.until(() => calls.length === 3);
    expect(calls[2]?.ids).toEqual(['c']);
    calls[2]?.answer({});
    expect(await bed.settled(later, receipt.bulkOperationId)).toMatchObject({ state: 'done', applied: 2 });
    expect(await bed.colours(later)).toEqual(['blue']);
    expect(await bed.now(later, id)).toMatchObject({ state: 'failed', continuedBy: receipt.bulkOperationId });
    await expect(later.retryRest(id)).rejects.toMatchObject({ code: 'already_retried' });
    await expect(later.retryRest(receipt.bulkOperationId)).rejects.toMatchObject({ code: 'not_stopped' });
  });
});
