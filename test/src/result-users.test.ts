import { createClient, type Client, type ClientOptions } from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ResultsBed } from './results-bed.js';

interface Person {
  readonly username: string;
  readonly password: string;
}

let stores = 0;

/** The store learns from the server whose it is: what it sends says so, from the first document on. */
describe('results of a store that does not know its user yet', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  let person: Person;
  let urls: { records: string; results: string };
  let clients: Client[];

  beforeAll(async () => {
    server = await serverUnderTest();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    databases = temporaryDatabases(server.url, server.admin);
    person = await databases.createUser({ label: 'amber' });
    const members = { names: [person.username], roles: [] };
    const security = { admins: { names: [], roles: ['_admin'] }, members };
    const records = await databases.create('records', { security });
    urls = { records: records.url, results: (await databases.create('results', { security })).url };
    clients = [];
    await server.proxy.reset();
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.proxy.reset();
    await databases.dispose();
  });

  /** How the person is signed in: with a cookie that the browser sends, or with a name and a password. */
  const signIns = {
    basic: () =>
      Promise.resolve({ auth: { credentials: () => Promise.resolve({ type: 'basic', ...person } as const) } }),
    cookie: async () => {
      const body = JSON.stringify({ name: person.username, password: person.password });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${server.directUrl}/_session`, { method: 'POST', body, headers });
      const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
      const withCookie: typeof fetch = (input, init = {}) => {
        const sent = new Headers(init.headers);
        if (init.credentials === 'include') sent.set('cookie', cookie);
        return fetch(input, { ...init, headers: sent });
      };
      return {
        auth: { credentials: () => Promise.resolve({ type: 'cookie' } as const) },
        environment: { fetch: withCookie },
      };
    },
  } satisfies Record<string, () => Promise<Partial<ClientOptions>>>;

  const sent = async (): Promise<Record<string, unknown>[]> => {
    const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
    const url = `${urls.results.replace(server.url, server.directUrl)}/_all_docs?include_docs=true`;
    const { rows } = (await (await fetch(url, { headers: { authorization } })).json()) as {
      rows: { doc: Record<string, unknown> }[];
    };
    return rows.map(({ doc }) => doc);
  };
  const sessionRequests = (): number =>
    Object.entries(server.proxy.requestCounts())
      .filter(([line]) => line.includes('/_session'))
      .reduce((sum, [, count]) => sum + count, 0);

  it.each([
    ['basic', 'off'],
    ['basic', 'managed'],
    ['cookie', 'off'],
    ['cookie', 'managed'],
  ] as const)(
    'S1 S7 the first result carries the user (%s, replication %s), with one question who that is',
    async (how, replication) => {
      const client = createClient({
        name: `result-users-${String(stores++)}`,
        PouchDB: MemoryPouch,
        actions: [],
        server: urls.records,
        results: urls.results,
        replication,
        ramp: () => 1000,
        jitter: 0,
        ...(await signIns[how]()),
      });
      clients.push(client);
      await client.enqueue({
        target: 'local',
        actions: [{ action: 'update', operations: [{ id: 'nowhere', patch: {} }] }],
      });
      await firstValueFrom(client.status$.pipe(filter(({ failed, unreported }) => failed === 1 && unreported === 0)));
      await firstValueFrom(client.status$.pipe(filter(({ results }) => results.state === 'idle')));
      const docs = await sent();
      expect(docs.map(({ type }) => type).sort()).toEqual(['afield-device', 'afield-failures', 'afield-result']);
      for (const doc of docs) expect(doc).toMatchObject({ user: person.username });
      expect(docs.find(({ type }) => type === 'afield-result')?.['_rev']).toMatch(/^1-/);
      expect(sessionRequests()).toBe(1);
    },
  );
});

describe('results that were sent before anyone knew whose they are', () => {
  let bed: ResultsBed;
  beforeEach(() => {
    bed = new ResultsBed();
  });
  afterEach(() => bed.dispose());

  const users = (): unknown[] => [...bed.resultDocs(), ...bed.failureDocs()].map(({ user }) => user);

  it('S1 S7 are sent once more when the server says it: none stays without a user', async () => {
    bed.around = (path) =>
      path === '/_session' ? Response.json({ error: 'not_found', reason: 'x' }, { status: 404 }) : undefined;
    const client = bed.open();
    await bed.fail(client, [{ id: 'x', patch: {} }]);
    await bed.becomes(client, ({ failed, unreported }) => failed === 1 && unreported === 0);
    expect(users()).toEqual([undefined, undefined]);
    bed.around = undefined;
    client.signedIn();
    await bed.fail(client, [{ id: 'y', patch: {} }]);
    await bed.becomes(
      client,
      ({ failed, unreported }) =>
        failed === 2 && unreported === 0 && users().length === 4 && !users().includes(undefined),
    );
    expect(users()).toEqual(['ann', 'ann', 'ann', 'ann']);
    expect(await bed.deviceDoc(client)).toMatchObject({ user: 'ann', failed: 2 });
    // Once: nothing is sent again for it.
    const before = bed.seen.length;
    await bed.device.clock.advance(60 * 60_000);
    expect(bed.seen.slice(before).flatMap(({ ids }) => ids.filter((id) => id.startsWith('result:')))).toEqual([]);
  });

  it('S1 S7 are sent once more by a store of an older build, which did not note it', async () => {
    bed.around = (path) =>
      path === '/_session' ? Response.json({ error: 'not_found', reason: 'x' }, { status: 404 }) : undefined;
    const before = bed.open();
    await bed.fail(before, [{ id: 'x', patch: {} }]);
    await bed.becomes(before, ({ failed, unreported }) => failed === 1 && unreported === 0);
    await bed.device.until(before.close());
    const queue = bed.device.database('records-afield-queue');
    const stored = (await queue.get('ht:results')) as { data: string };
    const older = JSON.stringify(JSON.parse(stored.data), (name, value: unknown) =>
      name === 'user' ? undefined : value,
    );
    await queue.put({ ...stored, data: older });
    bed.around = undefined;
    const next = bed.open();
    await bed.becomes(next, ({ unreported }) => unreported === 0 && !users().includes(undefined));
    expect(users()).toEqual(['ann', 'ann']);
  });
});
