import { createClient, type Client, type ClientOptions } from '@afield/client';
import { FakeDevice, MemoryServer } from '@afield/testing';
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
