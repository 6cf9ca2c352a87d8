import {
  createClient,
  defineAction,
  RetryableError,
  type AnyAction,
  type BulkOperationStatus,
  type Client,
  type ClientOptions,
} from '@afield/client';
import { setParent } from '@afield/contacts';
import { FakeClock, FakeConnectivity, InFlight, MemoryServer, MemoryStore } from '@afield/testing';
import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

const password = 'made up for this test';

describe('a client that waits', () => {
  let clock: FakeClock;
  let connectivity: FakeConnectivity;
  let server: MemoryServer;
  /** When requests were made, in seconds on the monotonic clock, and whether the server is there. */
  let requests: number[];
  let isDown: boolean;
  /** What the server answers to a request instead of the truth. */
  let refusal: ((url: string) => Response | undefined) | undefined;
  /** The next request gets this instead of an answer. */
  let hanging: Promise<never> | undefined;
  let hangs: () => void;
  let clients: Client[];

  beforeEach(() => {
    const inFlight = new InFlight();
    clock = new FakeClock(() => inFlight.rest());
    connectivity = new FakeConnectivity();
    server = new MemoryServer({ users: { amina: password } });
    server.create('clinic');
    requests = [];
    isDown = false;
    refusal = undefined;
    hanging = undefined;
    hangs = () => undefined;
    clients = [];
  });

  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    expect(clock.pendingTimers).toBe(0);
    expect(connectivity.listeners).toBe(0);
    expect(server.unknown).toEqual([]);
  });

  const open = (options: Partial<ClientOptions> = {}, { jitter }: { jitter?: number } = { jitter: 0 }): Client => {
    const client = createClient({
      name: 'clinic',
      PouchDB: new MemoryStore().constructorFor(),
      actions: [],
      server: server.urlOf('clinic'),
      auth: { credentials: () => Promise.resolve({ type: 'basic', username: 'amina', password }) },
      replication: false,
      ...(jitter === undefined ? {} : { jitter }),
      ...options,
      environment: {
        clock,
        connectivity,
        random: () => 0.5,
        fetch: (input, init) => {
          requests.push(clock.monotonic() / second);
          const next = hanging;
          hanging = undefined;
          if (next !== undefined) {
            hangs();
            return next;
          }
          if (isDown) return Promise.reject(new TypeError('Failed to fetch'));
          const answer = refusal?.(String(input));
          return answer === undefined ? server.fetch(input, init) : Promise.resolve(answer);
        },
      },
    });
    clients.push(client);
    return client;
  };

  /** The next request is not answered until `fail` is called. */
  const hangNext = (): { readonly begun: Promise<void>; readonly fail: () => void } => {
    let fail = (): void => undefined;
    hanging = new Promise((_, reject) => {
      fail = () => {
        reject(new TypeError('Failed to fetch'));
      };
    });
    const begun = new Promise<void>((resolve) => (hangs = resolve));
    return { begun, fail };
  };
  const only = async (client: Client): Promise<BulkOperationStatus> => {
    const [status] = await firstValueFrom(client.bulkOperations$);
    if (status === undefined) throw new Error('nothing is queued');
    return status;
  };
  const enqueueDelete = (client: Client): Promise<unknown> =>
    client.enqueue({ target: 'server', actions: [{ action: 'delete', operations: [{ id: 'a' }] }] });

  it('R1 R2 a server that is down for eight hours is tried on the ramp until it is back, and nothing is given up', async () => {
    const client = open();
    isDown = true;
    await enqueueDelete(client);
    await clock.advance(8 * hour);
    expect(await only(client)).toMatchObject({ state: 'waiting-retry', failed: 0, lastError: { class: 'network' } });
    expect(requests.slice(0, 9)).toEqual([0, 0, 60, 180, 360, 600, 900, 1200, 1500]);
    expect(requests).toHaveLength(6 + (8 * hour - 600 * second) / (5 * minute));
    isDown = false;
    await clock.advance(5 * minute);
    expect(await only(client)).toMatchObject({ state: 'done', alreadyApplied: 1, failed: 0 });
  });

  it('R2 the ramp starts anew after a batch that succeeds', async () => {
    const starts: [operations: number, at: number][] = [];
    const flaky = defineAction({
      name: 'flaky',
      operation: z.strictObject({}),
      run: (batch) => {
        starts.push([batch.length, clock.monotonic() / second]);
        return [1, 2, 3, 5, 6].includes(starts.length)
          ? Promise.reject(new RetryableError('not yet'))
          : Promise.resolve({});
      },
    });
    const client = open({ actions: [flaky as AnyAction] });
    const operations = Array.from({ length: 103 }, (_, at) => ({ id: `d${String(at)}` }));
    await client.enqueue({ target: 'local', actions: [{ action: 'flaky', operations }] });
    await clock.advance(hour);
    const [first, rest] = [100, 3];
    expect(starts).toEqual([
      ...[0, 0, 60, 180].map((at) => [first, at]),
      // The first retry of the second batch comes at once again, then a minute later.
      ...[180, 180, 240].map((at) => [rest, at]),
    ]);
    expect(await only(client)).toMatchObject({ state: 'done', applied: 103 });
  });

  it('R2 a client has jitter unless it is switched off, and the ramp can be replaced', async () => {
    isDown = true;
    const usual = open({}, {});
    await enqueueDelete(usual);
    await clock.advance(20 * minute);
    // Each wait is half of 20 % longer: the random number of this test is 0.5.
    expect(requests).toEqual([0, 0, 66, 198, 396, 660, 990]);
    await usual.close();
    requests = [];
    const own = open({ ramp: (failures) => failures * 10 * second });
    await enqueueDelete(own);
    await clock.advance(minute);
    const [first = 0] = requests;
    expect(requests.map((at) => at - first)).toEqual([0, 10, 30, 60]);
  });

  it('R9 what failed for good in an attempt that must run again is recorded once, with its content', async () => {
    const database = server.create('clinic');
    database.write([{ _id: 'a', parent: { _id: 'old' } }], true);
    const client = open({ actions: [setParent] });
    refusal = (url) => (url.endsWith('/_bulk_docs') ? new Response('', { status: 500 }) : undefined);
    const operations = ['nowhere', 'a'].map((id) => ({ id, parent: { _id: 'new' } }));
    await client.enqueue({ target: 'server', actions: [{ action: 'set-parent', operations }] });
    await clock.advance(11 * minute);
    const failure = { index: 0, id: 'nowhere', code: 'missing', operation: { id: 'nowhere' } };
    expect(await client.listFailures()).toMatchObject([failure]);
    refusal = undefined;
    await clock.advance(5 * minute);
    expect(await only(client)).toMatchObject({ state: 'done-with-failures', applied: 1, failed: 1, failedAttempts: 6 });
    expect(await client.listFailures()).toMatchObject([failure]);
    expect(database.read('a')).toMatchObject({ parent: { _id: 'new' } });
  });

  it('R12 while it waits for credentials it tries nothing and counts nothing, and goes on when they come', async () => {
    let fresh: string | undefined = undefined as string | undefined;
    const asked: string[] = [];
    const client = open({
      auth: {
        credentials: (why) => {
          asked.push(why);
          const given = why === 'refused' ? fresh : (fresh ?? 'wrong');
          if (given === undefined) return Promise.reject(new Error('no one is there to sign in'));
          return Promise.resolve({ type: 'basic', username: 'amina', password: given });
        },
      },
    });
    await enqueueDelete(client);
    await clock.advance(hour);
    expect(await only(client)).toMatchObject({
      state: 'waiting-auth',
      attempts: 0,
      attempt: 0,
      lastError: { class: 'auth' },
    });
    expect(requests).toEqual([0]);
    fresh = password;
    client.signedIn();
    await clock.advance(2 * second);
    expect(await only(client)).toMatchObject({ state: 'done', attempts: 1, failed: 0 });
    expect(asked.slice(0, 2)).toEqual(['first', 'refused']);
  });

  it('R14 events that come at the same moment start what waits within two seconds, once', async () => {
    const client = open();
    isDown = true;
    await enqueueDelete(client);
    await clock.advance(11 * minute);
    const before = requests.length;
    connectivity.notify();
    connectivity.set(true);
    client.syncNow();
    client.signedIn();
    await clock.advance(2 * second);
    expect(requests).toHaveLength(before + 1);
  });

  it('R14 an event during an attempt is for the one after it: what began before the event proves nothing', async () => {
    const client = open();
    isDown = true;
    await enqueueDelete(client);
    await clock.advance(11 * minute);
    const { begun, fail } = hangNext();
    const before = requests.length;
    await clock.advance(5 * minute);
    await begun;
    client.syncNow();
    isDown = false;
    fail();
    await clock.advance(2 * second);
    expect(requests.length).toBeGreaterThan(before + 1);
    expect(await only(client)).toMatchObject({ state: 'done', failed: 0 });
  });

  it('R14 that the network is back starts what waits, whoever says it', async () => {
    const client = open();
    isDown = true;
    await enqueueDelete(client);
    await clock.advance(11 * minute);
    for (const event of [() => connectivity.notify(), () => client.syncNow(), () => client.signedIn()]) {
      const before = requests.length;
      event();
      await clock.advance(2 * second);
      expect(requests).toHaveLength(before + 1);
    }
  });

  it('R13 R14 no event is faster than the server allows', async () => {
    const client = open();
    refusal = () => new Response('', { status: 503, headers: { 'retry-after': '600' } });
    await enqueueDelete(client);
    await clock.advance(minute);
    refusal = undefined;
    for (let count = 0; count < 8; count++) {
      client.syncNow();
      client.signedIn();
      connectivity.notify();
      await clock.advance(minute);
    }
    expect(requests).toEqual([0]);
    await clock.advance(minute);
    expect(requests[1]).toBe(600);
    expect(await only(client)).toMatchObject({ state: 'done' });
  });

  it('R14 while the browser says offline nothing goes out but a probe every five minutes, which can find it wrong', async () => {
    connectivity.set(false);
    isDown = true;
    const client = open();
    await enqueueDelete(client);
    await clock.advance(19.5 * minute);
    expect(requests).toEqual([300, 600, 900]);
    expect(await only(client)).toMatchObject({ state: 'waiting-network' });
    isDown = false;
    await clock.advance(5 * minute);
    expect(await only(client)).toMatchObject({ state: 'done' });
  });
});
