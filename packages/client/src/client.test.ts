import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineAction, defineDocumentAction } from './actions/define.js';
import { createClient } from './client.js';
import type { Client, ClientOptions, EnqueueRequest } from './model/client.js';
import { AfieldError, ClientClosedError, InvalidRequestError, RetryableError } from './model/errors.js';
import type { AnyAction, HandlerResult } from './model/handler.js';
import type { PouchConstructor, PouchLike } from './model/pouch.js';
import type { BulkOperationStatus } from './model/states.js';
import { ManualClock } from './retry/manual-clock.fixture.js';
import { memoryPouch } from './store/memory-pouch.fixture.js';

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to, times: ((doc['times'] as number | undefined) ?? 0) + 1 }),
});

const paint = (ids: readonly unknown[], to: string, more: Partial<EnqueueRequest> = {}): EnqueueRequest => ({
  target: 'local',
  actions: [{ action: 'set-colour', operations: ids.map((id) => ({ id, to })) }],
  ...more,
});

describe('the client', () => {
  let PouchDB: PouchConstructor;
  let clock: ManualClock;
  let clients: Client[];

  beforeEach(() => {
    PouchDB = memoryPouch();
    clock = new ManualClock();
    clients = [];
  });

  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    expect(clock.timers).toBe(0);
  });

  const open = (options: Partial<ClientOptions> = {}): Client => {
    const client = createClient({
      name: 'clinic',
      PouchDB,
      actions: [setColour],
      jitter: 0,
      ...options,
      environment: {
        clock,
        connectivity: { online: () => true, subscribe: () => () => undefined },
        ...options.environment,
      },
    });
    clients.push(client);
    return client;
  };
  const settled = (client: Client, id: string): Promise<BulkOperationStatus> =>
    reaches(client, id, ['done', 'done-with-failures', 'failed']);
  const reaches = async (client: Client, id: string, states: readonly string[]): Promise<BulkOperationStatus> => {
    const all = await firstValueFrom(
      client.bulkOperations$.pipe(filter((list) => list.some((one) => one.id === id && states.includes(one.state)))),
    );
    const found = all.find((one) => one.id === id);
    if (found === undefined) throw new Error('unreachable');
    return found;
  };
  const seed = async (client: Client, count: number): Promise<string[]> => {
    const ids = Array.from({ length: count }, (_, at) => `d${String(at).padStart(4, '0')}`);
    await client.documents.bulkDocs(ids.map((_id) => ({ _id, colour: 'red' })));
    return ids;
  };
  const read = async (documents: PouchLike, id: string): Promise<Record<string, unknown>> =>
    (await documents.get(id)) as Record<string, unknown>;

  it('applies a bulk operation in batches and lists what failed', async () => {
    const client = open();
    const ids = await seed(client, 250);
    const { bulkOperationId, total } = await client.enqueue(paint([...ids, 'nowhere', null], 'blue'));
    expect(total).toBe(252);
    expect(await settled(client, bulkOperationId)).toMatchObject({
      state: 'done-with-failures',
      cursor: 252,
      applied: 250,
      alreadyApplied: 0,
      failed: 2,
      attempts: 3,
      failedAttempts: 0,
    });
    const failures = await firstValueFrom(client.failures$.pipe(filter((list) => list.length === 2)));
    expect(failures).toMatchObject([
      {
        index: 250,
        id: 'nowhere',
        code: 'missing',
        action: 'set-colour',
        operation: { id: 'nowhere', content: { to: 'blue' } },
      },
      { index: 251, id: undefined, code: 'no_id' },
    ]);
    expect(await read(client.documents, 'd0249')).toMatchObject({ colour: 'blue', times: 1 });
  });

  it('O2 what was queued by a client that never started runs after it is opened again', async () => {
    const first = open({ autoStart: false });
    await seed(first, 3);
    const { bulkOperationId } = await first.enqueue(paint(['d0000', 'd0001'], 'blue'));
    const shown = await firstValueFrom(first.status$.pipe(filter(({ pending }) => pending === 2)));
    expect(shown).toMatchObject({ state: 'queued', pending: 2, leader: false });
    const storeId = await first.storeId;
    await first.close();
    const second = open();
    expect(await settled(second, bulkOperationId)).toMatchObject({ state: 'done', applied: 2 });
    expect(await second.storeId).toBe(storeId);
  });

  it('starts only once, however often it is asked', async () => {
    const client = open({ autoStart: false });
    await seed(client, 1);
    const { bulkOperationId } = await client.enqueue(paint(['d0000'], 'blue'));
    await Promise.all([client.start(), client.start()]);
    await client.start();
    expect(await settled(client, bulkOperationId)).toMatchObject({ attempts: 1 });
    expect(await read(client.documents, 'd0000')).toMatchObject({ times: 1 });
  });

  it('S9 a request with something wrong is refused whole and names the operation and the field', async () => {
    const client = open();
    const wrong = client.enqueue({
      target: 'local',
      actions: [
        {
          action: 'set-colour',
          operations: [
            { id: 'a', to: 'blue' },
            { id: 'b', to: 5 },
            { id: 'c', to: 'x', more: 1 },
          ],
        },
      ],
    });
    await expect(wrong).rejects.toBeInstanceOf(InvalidRequestError);
    await expect(wrong).rejects.toMatchObject({ issueCount: 2, issues: [{ index: 1, field: 'to' }, { index: 2 }] });
    await expect(client.enqueue({ target: 'local', actions: [] })).rejects.toBeInstanceOf(InvalidRequestError);
    await expect(client.enqueue(paint(['a'], 'x', { key: 'k'.repeat(257) }))).rejects.toBeInstanceOf(
      InvalidRequestError,
    );
    await expect(client.enqueue(paint(['a'], 'x', { target: 'server' }))).rejects.toMatchObject({
      issues: [{ field: 'target' }],
    });
    await expect(
      client.enqueue({ target: 'local', actions: [{ action: 'made-up', operations: [{ id: 'a' }] }] }),
    ).rejects.toThrow(/made-up/);
    await expect(client.enqueue(paint(['a'], 'x', { actions: undefined as never }))).rejects.toBeInstanceOf(
      InvalidRequestError,
    );
    const queue = new PouchDB('clinic-afield-queue');
    expect((await queue.allDocs({ startkey: 'h:', endkey: 'h:\uffff' })).rows).toEqual([]);
  });

  it('O2 what is queued is what was given, whatever the caller does with its list afterwards', async () => {
    const client = open();
    await seed(client, 2);
    const operations = [
      { id: 'd0000', to: 'blue' },
      { id: 'd0001', to: 'blue' },
    ];
    const queued = client.enqueue({ target: 'local', actions: [{ action: 'set-colour', operations }] });
    for (const operation of operations) operation.to = 'black';
    operations.length = 0;
    const { bulkOperationId } = await queued;
    expect(await settled(client, bulkOperationId)).toMatchObject({ state: 'done', total: 2, applied: 2 });
    expect(await read(client.documents, 'd0001')).toMatchObject({ colour: 'blue' });
  });

  it.each([
    [undefined, ''],
    [null, ''],
    [{ target: 'local', actions: [null] }, 'actions.0.action'],
    [{ target: 'local', actions: [{ action: 'set-colour', operations: 'x' }] }, 'actions.0.operations'],
    [{ target: 'local', actions: [{ action: 'set-colour', operations: [null] }] }, ''],
    [{ target: 'local', actoins: [] }, 'actoins'],
  ])('S9 %j is refused with the place that is wrong', async (request, field) => {
    const refused: unknown = await open()
      .enqueue(request as never)
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(InvalidRequestError);
    expect((refused as InvalidRequestError).issues[0]).toMatchObject({ field });
  });

  it('S9 says what a schema without texts knows: the kind, the keys, the action', async () => {
    await expect(
      open().enqueue({
        target: 'local',
        actions: [{ action: 'set-colour', operations: [{ id: 'a', to: 'x', tow: 1 }] }],
      }),
    ).rejects.toThrow(/operation 0: .*unrecognized keys.*tow.*set-colour/);
  });

  it('S9 a schema that throws is named with its operation', async () => {
    const throwing = { '~standard': { version: 1 as const, vendor: 'x', validate: () => JSON.parse('no') as never } };
    const client = open({ actions: [{ ...setColour, operation: throwing } as AnyAction] });
    await expect(client.enqueue(paint(['a'], 'blue'))).rejects.toThrow(/operation 0: its schema threw SyntaxError/);
  });

  it('R18 after the clock went back, short sessions come to the end of a wait', async () => {
    let calls = 0;
    const failing = defineAction({
      name: 'failing',
      operation: z.strictObject({}),
      run: () => {
        calls++;
        return Promise.reject(new RetryableError('not yet'));
      },
    });
    const session = async (run: (client: Client) => Promise<void>): Promise<void> => {
      const client = open({ actions: [failing as AnyAction], ramp: () => 10 * 60_000 });
      await run(client);
      await client.close();
    };
    const waits = (client: Client): Promise<unknown> =>
      firstValueFrom(client.bulkOperations$.pipe(filter(([one]) => one?.nextAttemptAt !== undefined)));
    await session(async (client) => {
      await client.enqueue({ target: 'local', actions: [{ action: 'failing', operations: [{ id: 'a' }] }] });
      await waits(client);
    });
    expect(calls).toBe(1);
    clock.jumpWall(-4 * 365 * 24 * 60 * 60_000);
    for (let count = 0; count < 2; count++) {
      await session(async (client) => {
        await waits(client);
        clock.advance(4 * 60_000);
      });
    }
    await session(async (client) => {
      await waits(client);
      clock.advance(4 * 60_000);
      await firstValueFrom(client.bulkOperations$.pipe(filter(([one]) => one?.failedAttempts === 2)));
    });
    expect(calls).toBe(2);
  });

  it('close answers for what is being queued, and nothing is opened after it', async () => {
    const client = open();
    const queued = client.enqueue(paint(['a'], 'blue')).then(
      () => 'queued',
      (error: unknown) => error,
    );
    await client.close();
    const outcome = await queued;
    const stored = await new PouchDB('clinic-afield-queue').allDocs({ startkey: 'h:', endkey: 'h:\uffff' });
    expect(outcome === 'queued').toBe(stored.rows.length === 1);
    await expect(client.storeId).rejects.toBeInstanceOf(ClientClosedError);
  });

  it('S9 content that JSON would change is refused, and a deep lineage is not', async () => {
    const any = defineAction({ name: 'any', operation: z.looseObject({}), run: () => Promise.resolve({}) });
    const client = open({ actions: [any as AnyAction] });
    const queued = (content: object): Promise<unknown> =>
      client.enqueue({ target: 'local', actions: [{ action: 'any', operations: [{ id: 'a', ...content }] }] });
    const circular: Record<string, unknown> = {};
    circular['self'] = { circular };
    for (const content of [{ at: new Date(0) }, { n: NaN }, { big: 1n }, { deep: [{ f: () => 1 }] }, { circular }]) {
      await expect(queued(content)).rejects.toBeInstanceOf(InvalidRequestError);
    }
    await expect(queued({ deep: [{ f: () => 1 }] })).rejects.toMatchObject({
      issues: [{ index: 0, field: 'deep.0.f' }],
    });
    let parent: object = { _id: 'top' };
    for (let level = 0; level < 3000; level++) parent = { _id: 'lv', parent };
    await expect(queued({ parent })).resolves.toMatchObject({ total: 1 });
  });

  it('S9 shows the first twenty issues and counts them all', async () => {
    const client = open();
    const operations = Array.from({ length: 50 }, () => ({ id: 'a', to: 1 }));
    const error: unknown = await client
      .enqueue({ target: 'local', actions: [{ action: 'set-colour', operations }] })
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ issueCount: 50 });
    expect((error as InvalidRequestError).issues).toHaveLength(20);
  });

  it('R5 a bug of a handler fails the bulk operation at its batch, keeps the error, and lets others go on', async () => {
    const broken = defineAction({
      name: 'broken',
      operation: z.strictObject({}),
      run: () => Promise.reject(new TypeError('Failed to fetch')),
    });
    const client = open({ actions: [setColour, broken as AnyAction] });
    await seed(client, 2);
    const first = await client.enqueue({
      target: 'local',
      actions: [
        { action: 'set-colour', operations: [{ id: 'd0000', to: 'blue' }] },
        { action: 'broken', operations: [{ id: 'd0001' }] },
      ],
    });
    const second = await client.enqueue(paint(['d0001'], 'blue'));
    expect(await settled(client, first.bulkOperationId)).toMatchObject({
      state: 'failed',
      cursor: 1,
      total: 2,
      failed: 0,
      lastError: { class: 'bug', code: 'TypeError' },
      bug: { name: 'TypeError', stack: expect.stringContaining('Failed to fetch') as string },
    });
    expect(await settled(client, second.bulkOperationId)).toMatchObject({ state: 'done' });
  });

  it('R2 a handler that says it may pass is tried at once, then on the ramp, and works in the end', async () => {
    const starts: number[] = [];
    const flaky = defineAction({
      name: 'flaky',
      operation: z.strictObject({}),
      run: () => {
        starts.push(clock.monotonic() / 1000);
        return starts.length < 5 ? Promise.reject(new RetryableError('not yet')) : Promise.resolve({});
      },
    });
    const client = open({ actions: [flaky as AnyAction] });
    const { bulkOperationId } = await client.enqueue({
      target: 'local',
      actions: [{ action: 'flaky', operations: [{ id: 'a' }] }],
    });
    for (const [place, seconds] of [0, 60, 120, 180].entries()) {
      await firstValueFrom(
        client.bulkOperations$.pipe(
          filter(([one]) => one?.state === 'waiting-retry' && one.failedAttempts === place + 1),
        ),
      );
      clock.advance(seconds * 1000 - 1);
      expect(starts).toHaveLength(place + 1);
      clock.advance(1);
    }
    const done = await settled(client, bulkOperationId);
    expect(done).toMatchObject({ state: 'done', attempts: 5, failedAttempts: 4, lastError: { class: 'server' } });
    expect(starts).toEqual([0, 0, 60, 180, 360]);
  });

  it('R17 bulk operations of one lane run one after another; others pass a waiting one', async () => {
    let passes = false;
    const order: string[] = [];
    const gated = defineAction({
      name: 'gated',
      operation: z.strictObject({ name: z.string(), waits: z.boolean() }),
      run: (batch) => {
        for (const { content } of batch) {
          if (content.waits && !passes) return Promise.reject(new RetryableError('not yet'));
          order.push(content.name);
        }
        return Promise.resolve({});
      },
    });
    const client = open({ actions: [gated as AnyAction] });
    const queued = (name: string, id: string, waits: boolean, lane?: string): Promise<{ bulkOperationId: string }> =>
      client.enqueue({
        target: 'local',
        ...(lane === undefined ? {} : { lane }),
        actions: [{ action: 'gated', operations: [{ id, name, waits }] }],
      });
    const one = await queued('one', 'a', true, 'morning');
    const two = await queued('two', 'b', false, 'morning');
    const same = await queued('same document', 'a', false);
    const free = await queued('free', 'c', false);
    await settled(client, free.bulkOperationId);
    expect(order).toEqual(['free']);
    passes = true;
    client.syncNow();
    clock.advance(0);
    for (const { bulkOperationId } of [one, two, same]) await settled(client, bulkOperationId);
    expect(order).toEqual(['free', 'one', 'two', 'same document']);
  });

  it('R10 two operations on one document go in two batches, in their order', async () => {
    const client = open();
    await seed(client, 1);
    const { bulkOperationId } = await client.enqueue({
      target: 'local',
      actions: [
        {
          action: 'set-colour',
          operations: [
            { id: 'd0000', to: 'blue' },
            { id: 'd0000', to: 'green' },
          ],
        },
      ],
    });
    expect(await settled(client, bulkOperationId)).toMatchObject({ applied: 2, attempts: 2 });
    expect(await read(client.documents, 'd0000')).toMatchObject({ colour: 'green', times: 2 });
  });

  it('V1 whoever subscribes late sees the newest state at once', async () => {
    const client = open();
    await seed(client, 1);
    const { bulkOperationId } = await client.enqueue(paint(['d0000'], 'blue'));
    await settled(client, bulkOperationId);
    const late = await firstValueFrom(client.bulkOperations$);
    expect(late).toMatchObject([{ id: bulkOperationId, state: 'done' }]);
    expect(await firstValueFrom(client.status$)).toMatchObject({ state: 'idle', pending: 0, failed: 0 });
  });

  it('takes sequence numbers by the write itself: two clients on one store never share one', async () => {
    const one = open({ autoStart: false });
    const two = open({ autoStart: false });
    const receipts = await Promise.all(
      Array.from({ length: 10 }, (_, at) => (at % 2 === 0 ? one : two).enqueue(paint(['x'], 'blue'))),
    );
    expect(new Set(receipts.map(({ sequence }) => sequence)).size).toBe(10);
  });

  it('what another tab has queued runs in the tab that leads', async () => {
    const leader = open();
    await seed(leader, 2);
    const { bulkOperationId } = await leader.enqueue(paint(['d0000'], 'blue'));
    await settled(leader, bulkOperationId);
    const other = open({ autoStart: false });
    const receipt = await other.enqueue(paint(['d0001'], 'blue'));
    expect(await settled(leader, receipt.bulkOperationId)).toMatchObject({ state: 'done', applied: 1 });
  });

  it('7 two runners at once do no harm: every document is changed once', async () => {
    const one = open();
    const ids = await seed(one, 500);
    const { bulkOperationId } = await one.enqueue(paint(ids, 'blue'));
    const two = open();
    const both = [settled(one, bulkOperationId), settled(two, bulkOperationId)];
    await Promise.race(both);
    // The one that lost the bulk operation looks again when its patience is over.
    clock.advance(120_000);
    await Promise.all(both);
    const { rows } = await one.documents.allDocs({ include_docs: true });
    expect(rows).toHaveLength(500);
    for (const row of rows) expect(row).toMatchObject({ doc: { colour: 'blue', times: 1 } });
  });

  it('7 a late runner takes back what it said of operations that another one has applied', async () => {
    const answers: ((result: HandlerResult) => void)[] = [];
    const slow = defineAction({
      name: 'slow',
      operation: z.strictObject({}),
      run: () => new Promise<HandlerResult>((resolve) => answers.push(resolve)),
    });
    const called = (times: number): Promise<unknown> => expect.poll(() => answers.length).toBe(times);
    const late = open({ actions: [slow as AnyAction] });
    const { bulkOperationId } = await late.enqueue({
      target: 'local',
      actions: [{ action: 'slow', operations: [{ id: 'a' }] }],
    });
    await called(1);
    const other = open({ actions: [slow as AnyAction] });
    await called(2);
    answers[1]?.({});
    await settled(other, bulkOperationId);
    answers[0]?.({ failed: [{ index: 0, code: 'no', reason: 'made up' }] });
    expect(await settled(late, bulkOperationId)).toMatchObject({ state: 'done', applied: 1, failed: 0 });
    const third = open({ actions: [slow as AnyAction], autoStart: false });
    expect(await firstValueFrom(third.failures$)).toEqual([]);
  });

  it('7 what a late runner said first, and took back, leaves no failed row behind for whoever reads it', async () => {
    const answers: ((result: HandlerResult) => void)[] = [];
    const slow = defineAction({
      name: 'slow',
      operation: z.strictObject({}),
      run: () => new Promise<HandlerResult>((resolve) => answers.push(resolve)),
    });
    const late = open({ actions: [slow as AnyAction] });
    const actions = [{ action: 'slow', operations: [{ id: 'a' }, { id: 'b' }] }];
    const { bulkOperationId } = await late.enqueue({ target: 'local', actions });
    await expect.poll(() => answers.length).toBe(1);
    const other = open({ actions: [slow as AnyAction] });
    await expect.poll(() => answers.length).toBe(2);
    answers[0]?.({ failed: [{ index: 0, code: 'no', reason: 'made up' }] });
    const queue = new PouchDB('clinic-afield-queue');
    const stored = async (prefix: string): Promise<object[]> => {
      const options = { startkey: prefix, endkey: `${prefix}\uffff`, include_docs: true };
      const { rows } = (await queue.allDocs(options)) as { rows: { doc: object }[] };
      return rows.map(({ doc }) => doc);
    };
    await expect
      .poll(async () => (await stored('b:')).map((doc) => JSON.parse((doc as { rows: string }).rows) as unknown))
      .toEqual([[{ s: 'open' }, { s: 'applied' }]]);
    await expect.poll(() => stored('f:')).toEqual([]);
    answers[1]?.({});
    expect(await settled(other, bulkOperationId)).toMatchObject({ state: 'done', applied: 2, failed: 0 });
  });

  it('close: ends what runs, and every later call is refused with a clear error', async () => {
    const client = open();
    const ids = await seed(client, 300);
    await client.enqueue(paint(ids, 'blue'));
    await client.close();
    await client.close();
    await expect(client.enqueue(paint(['a'], 'blue'))).rejects.toBeInstanceOf(ClientClosedError);
    expect(() => {
      client.syncNow();
    }).toThrow(ClientClosedError);
    const again = open();
    const [only] = await firstValueFrom(again.bulkOperations$.pipe(filter((list) => list.length === 1)));
    expect(await settled(again, only?.id ?? '')).toMatchObject({ state: 'done', total: 300, cursor: 300, failed: 0 });
    for (const row of (await again.documents.allDocs({ include_docs: true })).rows) {
      expect(row).toMatchObject({ doc: { colour: 'blue', times: 1 } });
    }
  });

  it.each([
    [{ name: '' }],
    [{ batchSize: 0 }],
    [{ batchSize: 101 }],
    [{ jitter: 2 }],
    [{ maxRequestBytes: 999 }],
    [{ maxRequestBytes: 1e6 + 0.5 }],
    [{ maxRequestBytes: NaN }],
    [{ server: 'not an address' }],
    [{ server: 'http://admin:secret@127.0.0.1:5984/db' }],
    [{ actions: [setColour, setColour] }],
    [{ actions: [{ name: 'x' }] }],
    [{ actions: [{ ...setColour, apply: undefined }] }],
    [{ actions: [{ ...setColour, classify: 'x' }] }],
    [{ actions: [{ ...setColour, classifyRow: {} }] }],
    [{ actions: undefined }],
    [{ PouchDB: undefined }],
    [{ auth: { credentials: 'x' } }],
    [{ servr: 'http://127.0.0.1/x' }],
  ])('a wrong option is refused at once: %j', (options) => {
    expect(() =>
      createClient({ name: 'clinic', PouchDB, actions: [setColour], autoStart: false, ...(options as object) }),
    ).toThrow(AfieldError);
  });
});
