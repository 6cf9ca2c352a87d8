import { randomBytes } from 'node:crypto';
import { couchdbPublisher, createClient, type Client, type ClientOptions } from '@afield/client';
import {
  serverUnderTest,
  temporaryDatabases,
  type Credentials,
  type ServerUnderTest,
  type TemporaryDatabases,
} from '@afield/devserver';
import { databaseOfUser, runCommandLine } from '@afield/server';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

describe('a server that "afield-server setup" has prepared', () => {
  const prefix = `test-${randomBytes(6).toString('hex')}`;
  const [records, results, events] = ['records', 'results', 'events'].map((label) => `${prefix}-${label}`) as [
    string,
    string,
    string,
  ];
  const clients: Client[] = [];
  let server: ServerUnderTest;
  let users: TemporaryDatabases;
  let supervisor: Credentials;

  beforeAll(async () => {
    server = await serverUnderTest();
    users = temporaryDatabases(server.directUrl, server.admin);
    supervisor = await users.createUser({ label: 'sue', roles: ['afield-supervisor'] });
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    const names = (await (await asAdmin('_all_dbs')).json()) as string[];
    for (const name of names) if (name.startsWith(prefix)) await asAdmin(name, 'DELETE');
  });
  afterAll(async () => {
    await users.dispose();
    await server.close();
  });

  const asAdmin = (path: string, method = 'GET'): Promise<Response> => {
    const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
    return fetch(`${server.directUrl}/${path}`, { method, headers: { authorization } });
  };

  /** Runs a command as somebody; what it brings, line by line. */
  async function command(as: Credentials, name: string, ...given: string[]): Promise<string[]> {
    let out = '';
    let said = '';
    const code = await runCommandLine([name, '--url', server.directUrl, '--results', results, ...given], {
      environment: { COUCHDB_USER: as.username, COUCHDB_PASSWORD: as.password },
      ask: undefined,
      fetch,
      out: (text) => Promise.resolve(void (out += text)),
      say: (line) => void (said += line),
      now: Date.now,
    });
    expect({ code, said }).toEqual({ code: 0, said: '' });
    return out.split('\n').filter((line) => line !== '');
  }
  const setup = (...given: string[]): Promise<string[]> =>
    command(server.admin, 'setup', '--events', events, '--app-db', records, ...given);

  const open = (as: Credentials, options: Partial<ClientOptions>): Client => {
    const client = createClient({
      name: `rights-${randomBytes(6).toString('hex')}`,
      PouchDB: MemoryPouch,
      actions: [],
      user: as.username,
      server: `${server.url}/${records}`,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...as }) },
      ramp: () => 1000,
      jitter: 0,
      ...options,
    });
    clients.push(client);
    return client;
  };
  /** One operation that works, and one that fails for good; until all of it is at the server. */
  const work = async (client: Client): Promise<void> => {
    await client.enqueue({
      target: 'server',
      actions: [
        { action: 'create', operations: [{ id: `p-${randomBytes(6).toString('hex')}`, doc: { type: 'person' } }] },
        { action: 'update', operations: [{ id: 'nobody', patch: { phone: '1' } }] },
      ],
    });
    const isThere = filter<{ pending: number; failed: number; unreported: number; unpublished: number }>(
      ({ pending, failed, unreported, unpublished }) => failed === 1 && pending + unreported + unpublished === 0,
    );
    await firstValueFrom(client.status$.pipe(isThere));
  };

  it('S1 takes results, failures, the device and events of devices, and shows them to a supervisor', async () => {
    await setup();
    const people = [
      await users.createUser({ label: 'ann', roles: ['afield-device'] }),
      await users.createUser({ label: 'bob', roles: ['afield-device'] }),
    ];
    const publishers = [couchdbPublisher({ url: `${server.url}/${events}` })];
    const devices = people.map((as) => open(as, { results: `${server.url}/${results}`, publishers }));
    await Promise.all(devices.map(work));
    const [ann, bob] = await Promise.all(devices.map(({ storeId }) => storeId));
    const failures = (await command(supervisor, 'failures')).map((line) => JSON.parse(line) as object);
    expect(failures).toHaveLength(2);
    const wanted = { id: 'nobody', action: 'update', code: 'missing', fields: ['patch'], reason: null, content: null };
    expect(failures).toContainEqual(expect.objectContaining({ store: ann, user: people[0]?.username, ...wanted }));
    expect(failures).toContainEqual(expect.objectContaining({ store: bob, user: people[1]?.username, ...wanted }));
    const seen = (await command(supervisor, 'devices')).map((line) => JSON.parse(line) as { store: string });
    expect(seen.map(({ store }) => store).sort()).toEqual([ann, bob].sort());
    const { rows } = (await (await asAdmin(`${events}/_all_docs?include_docs=true`)).json()) as {
      rows: { doc: { name?: string; store?: string } }[];
    };
    const published = rows.filter(({ doc }) => doc.name === 'documents.new.person').map(({ doc }) => doc.store);
    expect(published.sort()).toEqual([ann, bob].sort());
  });

  it('S1 takes reason and content in the database of one user', async () => {
    const ann = await users.createUser({ label: 'ann', roles: ['afield-device'] });
    await setup('--layout', 'per-user', '--user', ann.username);
    const client = open(ann, {
      results: { url: `${server.url}/${databaseOfUser(results, ann.username)}`, content: true },
    });
    await work(client);
    const lines = await command(supervisor, 'failures', '--user', ann.username);
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { user: ann.username, code: 'missing', reason: expect.any(String) as string, content: { patch: { phone: '1' } } },
    ]);
  });
});
