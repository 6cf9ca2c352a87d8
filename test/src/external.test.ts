import {
  couchdbPublisher,
  createClient,
  type Client,
  type ClientOptions,
  type ClientStatus,
  type DeniedDocument,
  type SeenBySync,
} from '@afield/client';
import { FakeDevice, MemoryPouch, MemoryServer, Refusal } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const day = 86_400_000;

describe('an app that replicates itself', () => {
  let device: FakeDevice;
  let server: MemoryServer;
  let client: Client;
  /** Requests to the database of documents, the app's own among them. */
  let asked: string[];
  beforeEach(() => {
    asked = [];
    server = new MemoryServer({
      onRequest: ({ method, path, database }) => {
        if (database === 'records') asked.push(`${method} ${path.slice('/records'.length)}`);
      },
    });
    server.create('records');
    server.create('events');
    device = new FakeDevice({ fetch: server.fetch });
  });
  afterEach(async () => {
    await device.until(client.close());
    await device.dispose();
  });

  const open = (options: Partial<ClientOptions> = {}): Client => {
    const { PouchDB, environment } = device.process();
    return createClient({
      name: 'records',
      PouchDB,
      environment,
      actions: [],
      server: server.urlOf('records'),
      publishers: [couchdbPublisher({ url: server.urlOf('events') })],
      auth: { credentials: () => Promise.resolve({ type: 'basic', username: 'ann', password: 'x' }) },
      replication: 'external',
      jitter: 0,
      ...options,
    });
  };
  const status = (is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
    device.until(firstValueFrom(client.status$.pipe(filter(is))));
  const create = async (...ids: readonly string[]): Promise<void> => {
    const operations = ids.map((id) => ({ id, doc: { colour: id } }));
    await client.enqueue({ target: 'local', actions: [{ action: 'create', operations }] });
    await status(({ pending }) => pending === 0);
  };
  /** The app's own push, as PouchDB does it. */
  const pushOfTheApp = async (): Promise<void> => {
    const remote = new MemoryPouch(server.urlOf('records'), { adapter: 'http', skip_setup: true, fetch: server.fetch });
    await device.until(
      Promise.resolve(MemoryPouch.replicate(device.database('records'), remote, { retry: false })) as Promise<unknown>,
    );
  };
  const events = (): readonly string[] => server.create('events').ids();

  it('S2 is sent nothing and given nothing by the client, which asks only what the server has', async () => {
    server.create('records').write([{ _id: 'of-another' }]);
    client = open();
    await create('a', 'b');
    client.syncNow();
    await device.clock.advance(600_000);
    expect(new Set(asked)).toEqual(new Set(['POST /_revs_diff']));
    expect(server.create('records').ids()).toEqual(['of-another']);
    await expect(client.documents.get('of-another')).rejects.toMatchObject({ status: 404 });
    expect(await firstValueFrom(client.status$)).toMatchObject({
      push: { state: 'waiting-retry', lastError: { class: 'server', code: 'not-there-yet' } },
      pull: { state: 'off' },
    });
  });

  it('S2 O8 tells of a document when the server has what the app has brought there', async () => {
    client = open();
    await create('a', 'b');
    await device.clock.advance(600_000);
    expect(events()).toEqual([]);
    await pushOfTheApp();
    await status(({ push, unpublished }) => push.state === 'idle' && unpublished === 0);
    expect(events()).toHaveLength(2);
    expect(await firstValueFrom(client.status$)).toMatchObject({ push: { transferred: 2 } });
  });

  /** The database of the server is made anew, with what a backup has. */
  const restore = (ids: readonly string[]): void => {
    const before = server.create('records');
    const docs = ids.flatMap((id) => before.read(id, undefined, { revs: true }) ?? []);
    server.databases.delete('records');
    server.create('records').write(docs, false);
  };

  it.each([
    ['made anew', []],
    ['restored from a backup that lies behind', ['a']],
  ] as const)(
    'S2 a database that was %s: nothing counts as there that is not, and the app is told',
    async (_how, has) => {
      server.create('results');
      client = open({ results: server.urlOf('results') });
      await create('a', 'b');
      await pushOfTheApp();
      await status(({ push, unconfirmed }) => push.state === 'idle' && unconfirmed === 0);
      expect(await device.until(client.drained())).toMatchObject({ asOf: 1 });
      restore(has);
      let isDrained = false;
      const drained = client.drained().then(() => (isDrained = true));
      const told = await status(({ push }) => push.lastError?.code === 'set-back' && push.state === 'waiting-retry');
      expect(told.unconfirmed).toBeGreaterThan(0);
      expect(isDrained).toBe(false);
      await pushOfTheApp();
      await device.until(drained);
      expect(server.create('records').ids()).toEqual(['a', 'b']);
      // It is over: what comes later is not there yet, and nothing else.
      await create('c');
      await status(({ push }) => push.state === 'waiting-retry' && push.lastError?.code === 'not-there-yet');
    },
  );

  it('S2 a database that was made anew is noticed at the next start, and within five minutes while the app is open', async () => {
    client = open();
    await create('a');
    await pushOfTheApp();
    await status(({ push, unconfirmed }) => push.state === 'idle' && unconfirmed === 0);
    await device.clock.advance(60_000);
    restore([]);
    await device.clock.advance(300_000);
    expect(await firstValueFrom(client.status$)).toMatchObject({ push: { lastError: { code: 'set-back' } } });
    await pushOfTheApp();
    await status(({ push, unconfirmed }) => push.state === 'idle' && unconfirmed === 0);
    await device.until(client.close());
    restore([]);
    client = open();
    await status(({ push }) => push.lastError?.code === 'set-back' && push.state === 'waiting-retry');
  });

  it('S2 a word of the app that all is pushed is asked again, also when all counted as there', async () => {
    client = open();
    await create('a');
    await pushOfTheApp();
    await status(({ push, unconfirmed }) => push.state === 'idle' && unconfirmed === 0);
    restore([]);
    await device.until(client.sync.report({ pushedUpTo: 1 }));
    expect(
      await device.until(
        firstValueFrom(client.status$.pipe(filter(({ push }) => push.state === 'waiting-retry'))),
        1000,
      ),
    ).toMatchObject({
      push: { lastError: { code: 'set-back' } },
    });
  });

  it('S2 O4 remembers what the server does not have yet, and forgets it a day after it has', async () => {
    client = open({ rememberDays: 1, publishers: [] });
    const shown = async (): Promise<number> => (await firstValueFrom(client.bulkOperations$)).length;
    const aDay = async (): Promise<void> => {
      device.clock.freezeTimers(day);
      await device.clock.advance(61_000);
    };
    await create('a');
    await create('b');
    for (let passed = 0; passed < 5; passed++) await aDay();
    expect(await shown()).toBe(2);
    await pushOfTheApp();
    await status(({ push }) => push.state === 'idle');
    for (let passed = 0; passed < 3; passed++) await aDay();
    expect(await shown()).toBe(1);
  });

  it('S2 does not wait for a document that is known as refused, and sends it again on a person’s word', async () => {
    const records = server.create('records');
    records.validate = ({ colour }) => (colour === 'b' ? new Refusal(403, 'forbidden', 'no b here') : undefined);
    // Refused while the client still replicated: the failure is stored.
    client = open({ replication: 'managed' });
    await create('a', 'b');
    await status(({ failed, push }) => failed === 1 && push.state === 'idle');
    await device.until(client.close());
    client = open();
    await status(({ push, failed }) => push.state === 'idle' && push.attempts > 0 && failed === 1);
    records.validate = undefined;
    const { sentAgain } = await client.retryFailed({ id: 'b' });
    expect(sentAgain).toBe(1);
    await status(({ failed, push }) => failed === 0 && push.state === 'idle');
    const { _rev: rev } = (await client.documents.get('b')) as { _rev: string };
    expect(records.tree('b')?.winner?.rev).toBe(rev);
  });

  describe('what the app tells of its own replication', () => {
    const noB = ({ colour }: { colour?: unknown }): Refusal | undefined =>
      colour === 'b' ? new Refusal(403, 'forbidden', 'no b here') : undefined;
    /** The app's own push, connected as the README says. */
    const reportingPush = async (): Promise<void> => {
      const remote = new MemoryPouch(server.urlOf('records'), {
        adapter: 'http',
        skip_setup: true,
        fetch: server.fetch,
      });
      const reports: Promise<void>[] = [];
      const push = MemoryPouch.replicate(device.database('records'), remote, { retry: false });
      push.on('denied', (doc: DeniedDocument) => reports.push(client.sync.report({ denied: [doc] })));
      const { last_seq: last } = (await device.until(Promise.resolve(push))) as { last_seq: number };
      reports.push(client.sync.report({ pushedUpTo: last }));
      await device.until(Promise.all(reports));
    };
    const failed = (count: number): Promise<ClientStatus> =>
      status((now) => now.failed === count && now.push.state === 'idle' && now.push.attempts > 0);

    it('S2 a document that was denied becomes a failed operation, and all else is confirmed at once', async () => {
      server.create('records').validate = noB;
      client = open();
      await create('a', 'b');
      await reportingPush();
      await failed(1);
      expect(await client.listFailures()).toMatchObject([
        { id: 'b', index: 1, code: 'forbidden', reason: 'no b here', operation: { content: { doc: { colour: 'b' } } } },
      ]);
      expect(await firstValueFrom(client.bulkOperations$)).toMatchObject([{ state: 'done-with-failures', failed: 1 }]);
      await status(({ unpublished }) => unpublished === 1);
      expect(events()).toHaveLength(1);
      // Afterwards it is like any other refusal.
      server.create('records').validate = undefined;
      client.signedIn();
      await failed(0);
      await status(({ unpublished }) => unpublished === 0);
    });

    it('S2 what was told before, is not so, or not so any more, changes nothing', async () => {
      const records = server.create('records');
      records.validate = noB;
      client = open();
      await create('a', 'b');
      await reportingPush();
      await failed(1);
      const before = await client.listFailures();
      const { _rev: rev } = (await client.documents.get('b')) as { _rev: string };
      await client.sync.report({ denied: [{ id: 'b', rev }, { id: 'b' }, { id: 'b', rev: '1-never' }] });
      await client.sync.report({
        denied: [{ id: 'a' }, { id: 'nowhere' }],
        conflict: [{ id: 'a' }, { id: 'nowhere' }],
      });
      await client.sync.report({ denied: [{ id: 'a', error: 'timeout' }], pushedUpTo: 1 });
      await client.sync.report({});
      await device.clock.advance(600_000);
      await failed(1);
      const after = await client.listFailures();
      expect(after.map(({ failureId, key }) => [failureId, key])).toEqual(
        before.map(({ failureId, key }) => [failureId, key]),
      );
    });

    it('S2 a report is durable: it is judged when the server answers, also by the next run', async () => {
      server.create('records').validate = noB;
      client = open();
      await create('b');
      device.connectivity.set(false);
      await client.sync.report({ denied: [{ id: 'b', error: 'forbidden', reason: 'no b here' }] });
      await device.until(client.close());
      device.connectivity.set(true);
      client = open();
      await failed(1);
      expect(await client.listFailures()).toMatchObject([{ id: 'b', reason: 'no b here' }]);
    });

    it('S2 S9 what is no report is refused, and says what is wrong', async () => {
      client = open();
      const wrong = (seen: unknown): Promise<unknown> =>
        client.sync.report(seen as SeenBySync).catch((error: unknown) => error);
      expect(await wrong({ denied: [{ id: 'a' }, { rev: '1-a' }] })).toMatchObject({
        code: 'invalid_request',
        issues: [{ index: 1, field: 'denied.1.id' }],
      });
      expect(await wrong({ deniedDocs: [] })).toMatchObject({ issues: [{ field: 'seen' }] });
      expect(await wrong({ pushedUpTo: -1 })).toMatchObject({ issues: [{ field: 'pushedUpTo' }] });
      expect(await wrong(undefined)).toMatchObject({ issues: [{ field: 'seen' }] });
      await device.until(client.close());
      client = open({ replication: 'managed' });
      expect(await wrong({ denied: [{ id: 'a' }] })).toMatchObject({ code: 'not_external' });
    });

    it('S2 a refused document goes back to the server’s version, which the app’s push leaves alive there', async () => {
      const records = server.create('records');
      client = open();
      await create('a');
      await pushOfTheApp();
      await status(({ push }) => push.state === 'idle' && push.attempts > 0);
      records.validate = noB;
      const operations = [{ id: 'a', patch: { colour: 'b' } }];
      await client.enqueue({ target: 'local', actions: [{ action: 'update', operations }] });
      await status(({ pending }) => pending === 0);
      await reportingPush();
      await failed(1);
      expect(await device.until(client.revert({}))).toBe(1);
      expect(await client.documents.get('a')).toMatchObject({ colour: 'a' });
      await reportingPush();
      await failed(0);
      expect(records.tree('a')?.winner?.deleted).toBe(false);
      expect(await client.listFailures()).toEqual([]);
    });
  });

  it('S2 with `off` asks nothing at all', async () => {
    client = open({ replication: 'off', publishers: [] });
    await create('a');
    client.syncNow();
    await device.clock.advance(600_000);
    expect(asked).toEqual([]);
    expect(await firstValueFrom(client.status$)).toMatchObject({ push: { state: 'off' }, pull: { state: 'off' } });
  });
});
