import { createClient, type Client, type ClientOptions, type EnqueueRequest, type Target } from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { FakeConnectivity, MemoryPouch, MemoryServer } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

/** A server with one empty database. */
interface Place {
  readonly options: Partial<ClientOptions>;
  read(id: string): Promise<Record<string, unknown>>;
}

let stores = 0;
let server: ServerUnderTest;
let databases: TemporaryDatabases;
const clients: Client[] = [];

beforeAll(async () => {
  server = await serverUnderTest();
  databases = temporaryDatabases(server.url, server.admin);
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
});
afterAll(async () => {
  await databases.dispose();
  await server.close();
});

const inMemory = (): Promise<Place> => {
  const memory = new MemoryServer();
  const records = memory.create('records');
  return Promise.resolve({
    options: { server: memory.urlOf('records'), environment: { fetch: memory.fetch } },
    read: (id) => Promise.resolve({ ...records.read(id) }),
  });
};
const underTest = async (): Promise<Place> => {
  const { url } = await databases.create('records');
  const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
  return {
    options: { server: url, auth: { credentials: () => Promise.resolve({ type: 'basic', ...server.admin }) } },
    read: async (id) =>
      (await (await fetch(`${url}/${id}`, { headers: { authorization } })).json()) as Record<string, unknown>,
  };
};

/** A device of its own; `connectivity` says whether it has a network. */
const open = (place: Place, connectivity = new FakeConnectivity()): Client => {
  const client = createClient({
    name: `create-${String(stores++)}`,
    PouchDB: MemoryPouch,
    actions: [],
    ramp: () => 1000,
    jitter: 0,
    ...place.options,
    environment: { ...place.options.environment, connectivity },
  });
  clients.push(client);
  return client;
};
/** Runs it to its end; answers with the outcomes as they are counted. */
const run = async (client: Client, request: EnqueueRequest): Promise<object> => {
  const { bulkOperationId } = await client.enqueue(request);
  return outcomeOf(client, bulkOperationId);
};
const outcomeOf = async (client: Client, bulkOperationId: string | undefined): Promise<object> => {
  const list = await firstValueFrom(
    client.bulkOperations$.pipe(
      filter((all) => all.some(({ id, state }) => id === bulkOperationId && state.startsWith('done'))),
    ),
  );
  const { applied, alreadyApplied, failed } = list.find(({ id }) => id === bulkOperationId) ?? {};
  return { applied, alreadyApplied, failed };
};
const creating = (target: Target, doc: Record<string, unknown>): EnqueueRequest => ({
  target,
  actions: [{ action: 'create', operations: [{ id: 'p1', doc }] }],
});
const person = { type: 'person', name: 'Person 1' };

describe.each([
  ['in memory', inMemory],
  ['that speaks HTTP', underTest],
])('documents are created and updated, with a server %s', (_what, place) => {
  it.each([
    ['the same', person],
    ['the same in another key order', { name: 'Person 1', type: 'person' }],
  ])(
    'O5 two devices without network create %s document: both are done, and the server has it',
    async (_how, second) => {
      const there = await place();
      const networks = [new FakeConnectivity(), new FakeConnectivity()];
      for (const network of networks) network.set(false);
      const devices = networks.map((network) => open(there, network));
      for (const [at, device] of devices.entries()) {
        const outcome = await run(device, creating('local', at === 0 ? person : second));
        expect(outcome).toEqual({ applied: 1, alreadyApplied: 0, failed: 0 });
      }
      // One after the other: the second finds the document of the first at the server.
      for (const [at, device] of devices.entries()) {
        networks[at]?.set(true);
        await firstValueFrom(device.status$.pipe(filter(({ push }) => push.state === 'idle' && push.attempts > 0)));
        expect(await there.read('p1')).toMatchObject(person);
      }
      for (const device of devices) expect(await device.listFailures()).toEqual([]);
      expect(await there.read('p1')).toMatchObject(person);
    },
  );

  it('O5 at the server: created, created already, another one is refused, and replaced when a person says so', async () => {
    const there = await place();
    const [one, two] = [open(there), open(there)];
    expect(await run(one, creating('server', person))).toEqual({ applied: 1, alreadyApplied: 0, failed: 0 });
    expect(await run(two, creating('server', { name: 'Person 1', type: 'person' }))).toEqual({
      applied: 0,
      alreadyApplied: 1,
      failed: 0,
    });
    const other = { type: 'person', name: 'Person 2' };
    expect(await run(two, creating('server', other))).toEqual({ applied: 0, alreadyApplied: 0, failed: 1 });
    expect(await two.listFailures()).toMatchObject([
      {
        id: 'p1',
        code: 'conflicting_content',
        mayHaveBeenApplied: false,
        operation: { id: 'p1', content: { doc: other } },
      },
    ]);
    const found = await there.read('p1');
    expect(found).toMatchObject(person);
    const [failure] = await two.listFailures();
    const edited = { id: 'p1', doc: other, replaces: String(found['_rev']) };
    const { bulkOperations } = await two.editAndRetry(failure?.failureId ?? '', edited);
    expect(await outcomeOf(two, bulkOperations[0]?.bulkOperationId)).toEqual({
      applied: 1,
      alreadyApplied: 0,
      failed: 0,
    });
    expect(await there.read('p1')).toMatchObject(other);
  });

  it.each(['local', 'server'] as const)(
    'O5 R6 deleted, created anew, updated under a guard; what is missing stays so, target %s',
    async (target) => {
      const there = await place();
      const client = open({ ...there, options: { ...there.options, replication: false } });
      await run(client, creating(target, { old: true }));
      await run(client, { target, actions: [{ action: 'delete', operations: [{ id: 'p1' }] }] });
      expect(await run(client, creating(target, person))).toEqual({ applied: 1, alreadyApplied: 0, failed: 0 });
      const operations = [
        { id: 'p1', patch: { name: null, phone: { home: '1' } }, expected: { name: 'Person 1', phone: null } },
        { id: 'p1', patch: { phone: { home: '1' } }, expected: { name: 'Person 1' } },
        { id: 'p1', patch: { phone: { home: '2' } }, expected: { name: 'Person 1' } },
        { id: 'p2', patch: { phone: null } },
      ];
      const outcome = await run(client, { target, actions: [{ action: 'update', operations }] });
      expect(outcome).toEqual({ applied: 1, alreadyApplied: 1, failed: 2 });
      const failures = await client.listFailures();
      expect(failures.map(({ id, code }) => [id, code])).toEqual([
        ['p1', 'guard_mismatch'],
        ['p2', 'missing'],
      ]);
      const doc = target === 'server' ? await there.read('p1') : await client.documents.get('p1');
      const { _rev: rev, ...fields } = doc as Record<string, unknown>;
      expect(fields).toEqual({ _id: 'p1', type: 'person', phone: { home: '1' } });
      expect(String(rev)).toMatch(/^4-/);
    },
  );

  it('S9 a request is refused whole when it names what it must not: the place and the field are said', async () => {
    const client = open(await place());
    const refused = (action: string, more: object): Promise<unknown> =>
      client
        .enqueue({ target: 'local', actions: [{ action, operations: [{ id: 'p0', ...more }] }] })
        .catch((error: unknown) => error);
    expect(await refused('update', { patch: { _rev: '1-a' } })).toMatchObject({
      issues: [{ index: 0, field: 'patch._rev', message: 'cannot be set: it is the database’s own (update)' }],
    });
    expect(await refused('create', { doc: { a: JSON.parse('{"__proto__":1}') as unknown } })).toMatchObject({
      issues: [{ index: 0, field: 'doc.a.__proto__' }],
    });
    expect(await refused('create', JSON.parse('{"doc":{},"__proto__":{"a":1}}') as object)).toMatchObject({
      issues: [{ index: 0 }],
    });
    expect(await firstValueFrom(client.bulkOperations$)).toEqual([]);
  });
});
