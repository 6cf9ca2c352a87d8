import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineAction, defineDocumentAction } from './actions/define.js';
import { definePlan } from './actions/plan.js';
import type { Client, ClientOptions } from './model/client.js';
import { InvalidRequestError, RetryableError } from './model/errors.js';
import type { AnyAction, HandlerContext, OperationOf } from './model/handler.js';
import { paint, setColour, TestBed } from './test-bed.fixture.js';

const server = 'https://couch.example/under/a%20path/clinic';

describe('an action that runs at the server whatever the target', () => {
  let bed: TestBed;
  let online: boolean;
  let urls: string[];
  /** What the handler does; ids of each call are kept in `calls`. */
  let run: (context: HandlerContext, ids: readonly string[]) => Promise<unknown>;
  let calls: string[][];

  beforeEach(() => {
    bed = new TestBed();
    online = true;
    urls = [];
    calls = [];
    run = (context, ids) => context.db.read(ids);
  });
  afterEach(() => bed.close());

  const handler = (name: string, more: { runsAt?: 'server' }): AnyAction =>
    defineAction({
      name,
      operation: z.strictObject({}),
      ...more,
      run: async (batch: readonly OperationOf<unknown>[], context) => {
        const ids = batch.map(({ id }) => id);
        calls.push(ids);
        await run(context, ids);
        return {};
      },
    }) as AnyAction;
  const open = (options: Partial<ClientOptions> = {}): Client =>
    bed.open({
      server,
      replication: false,
      actions: [setColour, handler('there', { runsAt: 'server' }), handler('anywhere', {})],
      ...options,
      environment: {
        connectivity: { online: () => online, subscribe: () => () => undefined },
        fetch: (url, init) => {
          const address = String(url instanceof Request ? url.url : url);
          if (address === 'https://couch.example/under/a%20path/_session')
            return Promise.resolve(Response.json({ userCtx: { name: null } }));
          urls.push(address);
          const { keys } = JSON.parse(String(init?.body)) as { keys: string[] };
          const rows = keys.map((key) => ({ key, error: 'not_found' }));
          return Promise.resolve(Response.json({ rows }));
        },
      },
    });
  const request = (target: 'local' | 'server', action: string, ...ids: string[]) => ({
    target,
    actions: [{ action, operations: ids.map((id) => ({ id })) }],
  });

  it('R6 works on the documents of the server for the target local', async () => {
    const client = open();
    const { bulkOperationId } = await client.enqueue(request('local', 'there', 'a', 'b'));
    expect((await bed.settled(client, bulkOperationId)).state).toBe('done');
    expect(calls).toEqual([['a', 'b']]);
    expect(urls).toEqual([`${server}/_all_docs?conflicts=true&include_docs=true`]);
  });

  it('R14 waits for the network and holds back no local work meanwhile; without sign-in it waits for that', async () => {
    online = false;
    const client = open();
    const { bulkOperationId } = await client.enqueue(request('local', 'there', 'a'));
    await bed.reaches(client, bulkOperationId, ['waiting-network']);
    await bed.seed(client, 1);
    const local = await client.enqueue(paint(['d0000'], 'blue'));
    expect((await bed.settled(client, local.bulkOperationId)).state).toBe('done');
    expect(calls).toEqual([]);
    online = true;
    client.syncNow();
    expect((await bed.settled(client, bulkOperationId)).state).toBe('done');

    const stranger = open({ name: 'other', auth: { credentials: () => Promise.reject(new Error('none')) } });
    const waiting = await stranger.enqueue(request('local', 'there', 'a'));
    await bed.reaches(stranger, waiting.bulkOperationId, ['waiting-auth']);
    expect(calls).toEqual([['a']]);
  });

  it('R17 each part of a bulk operation runs at its place, in their order', async () => {
    online = false;
    const client = open();
    await bed.seed(client, 2);
    const { bulkOperationId } = await client.enqueue({
      target: 'local',
      actions: [
        { action: 'set-colour', operations: [{ id: 'd0000', to: 'blue' }] },
        { action: 'there', operations: [{ id: 'd0000' }] },
        { action: 'set-colour', operations: [{ id: 'd0001', to: 'green' }] },
      ],
    });
    const waiting = await bed.reaches(client, bulkOperationId, ['waiting-network']);
    expect(waiting).toMatchObject({ cursor: 1, total: 3, attempts: 1 });
    expect(await bed.colours(client)).toEqual(['blue', 'red']);
    online = true;
    client.syncNow();
    expect(await bed.settled(client, bulkOperationId)).toMatchObject({ state: 'done', attempts: 3 });
    expect(await bed.colours(client)).toEqual(['blue', 'green']);
    expect(urls).toEqual([`${server}/_all_docs?conflicts=true&include_docs=true`]);
  });

  it('R17 what a plan has made runs at its place too, in the order of that', async () => {
    const visit = definePlan({
      name: 'visit',
      request: z.strictObject({ id: z.string() }),
      subjects: ({ id }) => [id],
      plan: ({ id }) => Promise.resolve([{ action: 'there', operations: [{ id }] }]),
    });
    let answer = (): void => undefined;
    run = () => new Promise<void>((resolve) => (answer = resolve));
    const client = open({ plans: [visit] });
    await client.enqueue(request('server', 'anywhere', 'a'));
    await bed.until(() => calls.length === 1);
    const { bulkOperationId } = await client.enqueue({ target: 'local', plan: 'visit', request: { id: 'a' } });
    await bed.becomes(client, bulkOperationId, ({ total, state }) => total === 1 && state === 'running');
    const later = await client.enqueue(request('server', 'anywhere', 'a', 'x'));
    run = () => Promise.resolve();
    expect(calls).toEqual([['a']]);
    answer();
    await bed.settled(client, later.bulkOperationId);
    expect(calls).toEqual([['a'], ['a'], ['a', 'x']]);

    const lonely = bed.open({ name: 'other', actions: [handler('there', { runsAt: 'server' })], plans: [visit] });
    const failed = await lonely.enqueue({ target: 'local', plan: 'visit', request: { id: 'a' } });
    expect(await bed.settled(lonely, failed.bulkOperationId)).toMatchObject({
      state: 'failed',
      bug: { name: 'InvalidRequestError' },
    });
  });

  it('R17 keeps the order with work for the target server on the same document', async () => {
    let isReady = false;
    run = () => (isReady ? Promise.resolve() : Promise.reject(new RetryableError('not yet')));
    const client = open();
    const first = await client.enqueue(request('local', 'there', 'a'));
    await bed.reaches(client, first.bulkOperationId, ['waiting-retry']);
    run = (_context, ids) => (isReady || ids[0] !== 'a' ? Promise.resolve() : Promise.reject(new RetryableError('no')));
    const second = await client.enqueue(request('server', 'anywhere', 'a', 'x'));
    const third = await client.enqueue(request('server', 'anywhere', 'b'));
    await bed.settled(client, third.bulkOperationId);
    expect(calls.at(-1)).toEqual(['b']);
    expect((await bed.now(client, second.bulkOperationId)).state).toBe('queued');
    isReady = true;
    client.syncNow();
    await bed.until(async () => (await bed.now(client, second.bulkOperationId)).state === 'done', 1000);
    expect(calls.slice(-2)).toEqual([['a'], ['a', 'x']]);
  });

  it('R17 what waited for work at the server begins at its own place when that has ended', async () => {
    let answer = (): void => undefined;
    run = () => new Promise<void>((resolve) => (answer = resolve));
    const client = open();
    await bed.seed(client, 1);
    await client.enqueue(request('server', 'anywhere', 'd0000'));
    await bed.until(() => calls.length === 1);
    const { bulkOperationId } = await client.enqueue({
      target: 'local',
      actions: [
        { action: 'set-colour', operations: [{ id: 'd0000', to: 'blue' }] },
        { action: 'there', operations: [{ id: 'd0000' }] },
      ],
    });
    run = () => Promise.resolve();
    expect((await bed.now(client, bulkOperationId)).state).toBe('queued');
    answer();
    expect((await bed.settled(client, bulkOperationId)).state).toBe('done');
  });

  it('R16 an operation that ran when the page was stopped runs alone, at its place', async () => {
    run = () => new Promise(() => undefined);
    let enqueued: string | undefined;
    for (let stop = 0; stop < 5; stop++) {
      const mortal = bed.openMortal(optionsOf());
      enqueued ??= (await mortal.client.enqueue(request('local', 'there', 'a', 'b'))).bulkOperationId;
      await bed.until(() => calls.length > stop, 60_000);
      mortal.kill();
    }
    run = () => Promise.resolve();
    const client = open();
    await bed.until(async () => (await bed.now(client, enqueued ?? '')).state === 'done', 60_000);
    expect(calls.slice(-2)).toEqual([['a'], ['b']]);
  });

  it('S9 is refused when it is queued by a client without a server, and nothing is stored', async () => {
    const client = bed.open({ actions: [setColour, handler('there', { runsAt: 'server' })] });
    const refused = client.enqueue({
      target: 'local',
      actions: [
        { action: 'set-colour', operations: [{ id: 'a', to: 'blue' }] },
        { action: 'there', operations: [{ id: 'a' }] },
      ],
    });
    await expect(refused).rejects.toThrow(InvalidRequestError);
    await expect(refused).rejects.toMatchObject({ issues: [{ index: -1, field: 'actions.1.action' }] });
    expect(await bed.list(client)).toEqual([]);
  });

  it('waits when it was queued by a client that had one', async () => {
    online = false;
    const first = open();
    const { bulkOperationId } = await first.enqueue(request('local', 'there', 'a'));
    await first.close();
    const second = bed.open({ actions: [setColour, handler('there', { runsAt: 'server' })] });
    await bed.reaches(second, bulkOperationId, ['waiting-handler']);
  });

  it('is given the other databases of the server, each under its encoded name', async () => {
    run = async ({ server: { documents, database } }, ids) => {
      await documents.read(ids);
      await database('_users').read(ids);
      await database('a/b+c').read(ids);
    };
    const client = open({ server: `${server}/` });
    const { bulkOperationId } = await client.enqueue(request('local', 'there', 'a'));
    expect((await bed.settled(client, bulkOperationId)).state).toBe('done');
    const base = 'https://couch.example/under/a%20path';
    expect(urls).toEqual(
      ['clinic', '_users', 'a%2Fb%2Bc'].map((name) => `${base}/${name}/_all_docs?conflicts=true&include_docs=true`),
    );
  });

  it.each(['..', '', 'Clinic', 'a?b'])(
    'R5 a name that no database can have is a bug of the action: %j',
    async (name) => {
      run = (context) => context.server.database(name).read(['a']);
      const client = open();
      const { bulkOperationId } = await client.enqueue(request('local', 'there', 'a'));
      expect(await bed.settled(client, bulkOperationId)).toMatchObject({ state: 'failed', bug: { name: 'TypeError' } });
      expect(urls).toEqual([]);
    },
  );

  it('R5 so is a look at the server by another action of a client that has none', async () => {
    run = ({ server: { documents } }, ids) => documents.read(ids);
    const client = bed.open({ actions: [handler('anywhere', {})] });
    const { bulkOperationId } = await client.enqueue(request('local', 'anywhere', 'a'));
    expect(await bed.settled(client, bulkOperationId)).toMatchObject({
      state: 'failed',
      lastError: { class: 'bug' },
      bug: { name: 'AfieldError' },
    });
  });

  it('tells the time of the client', async () => {
    const times: number[] = [];
    run = (context) => Promise.resolve(times.push(context.now()));
    const client = open();
    const { bulkOperationId } = await client.enqueue(request('local', 'there', 'a'));
    await bed.settled(client, bulkOperationId);
    expect(times).toEqual([bed.clock.wall()]);
  });

  it('`runsAt` can be nothing else, and no action on documents has it', () => {
    const odd = { ...handler('odd', {}), runsAt: 'local' } as unknown as AnyAction;
    expect(() => open({ actions: [odd] })).toThrow(/runsAt/);
    const document = { ...defineDocumentAction(setColour), runsAt: 'server' } as AnyAction;
    expect(() => open({ actions: [document] })).toThrow(/runsAt/);
  });

  const optionsOf = (): Partial<ClientOptions> => ({
    server,
    replication: false,
    actions: [setColour, handler('there', { runsAt: 'server' })],
  });
});
