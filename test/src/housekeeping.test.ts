import { createClient, type Client, type ClientOptions, type EnqueueRequest, type Locks } from '@afield/client';
import { FakeDevice, MemoryServer, type FakeProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const day = 86_400_000;

describe('what is over on the device, and not at the server yet', () => {
  let device: FakeDevice;
  let server: MemoryServer;
  let client: Client;
  let isDown: boolean;
  beforeEach(() => {
    server = new MemoryServer();
    server.create('records');
    server.create('results');
    isDown = false;
    device = new FakeDevice({
      fetch: (input, init) =>
        isDown ? Promise.reject(new TypeError('the server is down')) : server.fetch(input, init),
    });
  });
  afterEach(async () => {
    await device.until(client.close());
    await device.dispose();
  });

  const open = (options: Partial<ClientOptions>): Client => {
    const { PouchDB, environment } = device.process();
    return createClient({
      name: 'records',
      PouchDB,
      environment,
      actions: [],
      server: server.urlOf('records'),
      rememberDays: 1,
      jitter: 0,
      ...options,
    });
  };
  const shown = async (): Promise<number> => (await firstValueFrom(client.bulkOperations$)).length;
  /** A day passes, and housekeeping looks. */
  const aDay = async (): Promise<void> => {
    device.clock.freezeTimers(day);
    await device.clock.advance(61_000);
  };
  const create = async (id: string): Promise<void> => {
    const request = { target: 'local', actions: [{ action: 'create', operations: [{ id, doc: {} }] }] } as const;
    const { bulkOperationId } = await client.enqueue(request);
    await device.until(
      firstValueFrom(
        client.bulkOperations$.pipe(
          filter((all) => all.some((one) => one.id === bulkOperationId && one.state === 'done')),
        ),
      ),
    );
  };

  it.each<[string, Partial<ClientOptions>]>([
    ['its documents are confirmed', {}],
    ['its result is delivered', { replication: false, results: 'http://memory.test/results' }],
  ])('O4 is remembered until %s, and so long after that', async (_what, options) => {
    isDown = true;
    client = open(options);
    await create('a');
    await create('b');
    for (let passed = 0; passed < 5; passed++) await aDay();
    expect(await shown()).toBe(2);
    isDown = false;
    client.syncNow();
    await device.clock.advance(61_000);
    // Found settled at the next look; a day after that it goes.
    await aDay();
    expect(await shown()).toBe(2);
    await aDay();
    await aDay();
    expect(await shown()).toBe(1);
    expect(server.unknown).toEqual([]);
  });

  it('S2 what was confirmed once stays so, while later edits of the app wait for the network', async () => {
    client = open({ rememberDays: 2 });
    await create('a');
    await create('b');
    await device.clock.advance(61_000);
    await aDay();
    isDown = true;
    await client.documents.put({ _id: 'of-the-app' });
    for (let passed = 0; passed < 3; passed++) await aDay();
    expect(await shown()).toBe(1);
  });
});

describe('content that no header names', () => {
  let device: FakeDevice;
  beforeEach(() => {
    device = new FakeDevice();
  });
  afterEach(() => device.dispose());

  const open = ({ PouchDB, environment }: FakeProcess): Client =>
    createClient({ name: 'records', PouchDB, environment, actions: [], jitter: 0 });
  const create = (id: string): EnqueueRequest => ({
    target: 'local',
    actions: [{ action: 'create', operations: [{ id, doc: {} }] }],
  });
  const contents = async (): Promise<number> => {
    const { rows } = await device.database('records-afield-queue').allDocs({});
    return rows.filter((row) => /^[dpq]:/.test((row as { id: string }).id)).length;
  };
  const days = async (count: number): Promise<void> => {
    for (let passed = 0; passed < count; passed++) {
      device.clock.freezeTimers(day);
      await device.clock.advance(61_000);
    }
  };
  /** A tab whose enqueue does not come to its header, until it is let go on. */
  const stuckTab = async (): Promise<{ process: FakeProcess; goOn: () => void; queued: Promise<unknown> }> => {
    let goOn = (): void => undefined;
    const isLetGo = new Promise<void>((resolve) => (goOn = resolve));
    const process = device.process({
      call: async ({ ids }, run) => {
        if (ids.some((id) => id.startsWith('h:'))) await isLetGo;
        return run();
      },
    });
    const { PouchDB, environment } = process;
    const client = createClient({ name: 'records', PouchDB, environment, actions: [], autoStart: false });
    const queued = client.enqueue(create('late'));
    await device.clock.advance(0);
    return { process, goOn, queued };
  };

  it('O2 is removed when its tab has been gone for a day, and stays while the tab lives', async () => {
    const client = open(device.process());
    await device.until(client.enqueue(create('a')));
    await device.clock.advance(0);
    const dead = await stuckTab();
    const alive = await stuckTab();
    dead.process.kill();
    expect(await contents()).toBe(3);
    await days(1);
    expect(await contents()).toBe(3);
    await days(3);
    expect(await contents()).toBe(2);
    alive.goOn();
    await device.until(alive.queued);
    await device.until(
      firstValueFrom(
        client.bulkOperations$.pipe(filter((all) => all.length === 2 && all.every(({ state }) => state === 'done'))),
      ),
    );
    // What was named in the end stays, whatever becomes of the tab.
    alive.process.kill();
    await days(3);
    expect(await contents()).toBe(2);
    await device.until(client.close());
  });

  it('O2 stays in an engine without locks', async () => {
    const process = device.process();
    const everyone: Locks = { request: (_name, _signal, whileHeld) => whileHeld() };
    const client = createClient({
      name: 'records',
      PouchDB: process.PouchDB,
      environment: { ...process.environment, locks: everyone },
      actions: [],
      jitter: 0,
    });
    await device.until(client.enqueue(create('a')));
    const dead = await stuckTab();
    dead.process.kill();
    await days(4);
    expect(await contents()).toBe(2);
    await device.until(client.close());
  });
});
