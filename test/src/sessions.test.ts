import { createClient, defineDocumentAction, type Client, type ClientOptions, type ClientStatus } from '@afield/client';
import {
  serverUnderTest,
  temporaryDatabases,
  type Interceptor,
  type ServerUnderTest,
  type TemporaryDatabases,
} from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom, map } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod/mini';

type Credentials = Awaited<ReturnType<NonNullable<ClientOptions['auth']>['credentials']>>;
interface Person {
  readonly username: string;
  readonly password: string;
}

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});
const basicOf = ({ username, password }: Person): string => `Basic ${btoa(`${username}:${password}`)}`;
const unauthorized = { status: 401, body: { error: 'unauthorized', reason: 'Who are you?' } };
let stores = 0;

/** A fetch with the cookies of one browser, which Node has not. */
class Browser {
  cookie: string | undefined;
  readonly fetch: typeof fetch = async (input, init = {}) => {
    const headers = new Headers(init.headers);
    if (this.cookie !== undefined && init.credentials === 'include') headers.set('cookie', this.cookie);
    const answer = await fetch(input, { ...init, headers });
    const [set] = answer.headers.getSetCookie();
    if (set !== undefined && init.credentials === 'include') this.cookie = set.split(';')[0];
    return answer;
  };
  async signIn(url: string, { username: name, password }: Person): Promise<void> {
    const body = JSON.stringify({ name, password });
    const headers = { 'content-type': 'application/json' };
    const answer = await this.fetch(`${url}/_session`, { method: 'POST', body, headers, credentials: 'include' });
    expect(answer.status).toBe(200);
  }
}

describe('people and their sign-ins', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  let records: string;
  let amber: Person;
  let birch: Person;
  let clients: Client[];

  beforeAll(async () => {
    server = await serverUnderTest();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    databases = temporaryDatabases(server.url, server.admin);
    amber = await databases.createUser({ label: 'amber' });
    birch = await databases.createUser({ label: 'birch' });
    const names = [amber.username, birch.username];
    const security = { admins: { names: [], roles: ['_admin'] }, members: { names, roles: [] } };
    records = (await databases.create('records', { security })).url;
    clients = [];
    await server.proxy.reset();
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.proxy.reset();
    await databases.dispose();
  });

  const open = (options: Partial<ClientOptions>): Client => {
    const client = createClient({
      name: `people-${String(stores++)}`,
      PouchDB: MemoryPouch,
      actions: [setColour],
      server: records,
      ramp: () => 1000,
      jitter: 0,
      ...options,
    });
    clients.push(client);
    return client;
  };
  /** A proxy that knows people by other means than CouchDB, and signs in for them. */
  const guard = (who: (headers: Readonly<Record<string, unknown>>) => Person | undefined): (() => void) => {
    const watch: Interceptor = async ({ headers }, forward) => {
      const person = who(headers);
      return person === undefined ? unauthorized : forward({ headers: { authorization: basicOf(person) } });
    };
    return server.proxy.intercept(watch);
  };
  const asAdmin = async (path: string): Promise<Record<string, unknown>> => {
    const headers = { authorization: basicOf(server.admin) };
    return (await (
      await fetch(`${records.replace(server.url, server.directUrl)}/${path}`, { headers })
    ).json()) as Record<string, unknown>;
  };
  const edit = (client: Client, ids: readonly string[], target: 'local' | 'server' = 'local') =>
    client.enqueue({
      target,
      actions: [{ action: 'set-colour', operations: ids.map((id) => ({ id, to: 'blue' })) }],
    });
  const status = (client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
    firstValueFrom(client.status$.pipe(filter(is)));
  /** The server has the document in this colour. */
  const arrived = (id: string, colour: string): Promise<unknown> =>
    vi.waitFor(async () => {
      expect(await asAdmin(id)).toMatchObject({ colour });
    }, 10_000);
  const bulk = (client: Client, id: string, states: readonly string[]) =>
    firstValueFrom(
      client.bulkOperations$.pipe(
        map((all) => all.find((one) => one.id === id && states.includes(one.state))),
        filter((one) => one !== undefined),
      ),
    );
  const sent = (): string[] =>
    Object.keys(server.proxy.requestCounts()).map((line) => line.replace(new URL(records).pathname, '/records'));

  const kinds: [string, () => Promise<{ credentials: Credentials; fetch?: typeof fetch }>][] = [
    ['basic', () => Promise.resolve({ credentials: { type: 'basic', ...amber } })],
    [
      'cookie',
      async () => {
        const browser = new Browser();
        await browser.signIn(server.directUrl, amber);
        return { credentials: { type: 'cookie' }, fetch: browser.fetch };
      },
    ],
    [
      'bearer',
      () => {
        guard(({ authorization }) => (authorization === 'Bearer made-up' ? amber : undefined));
        return Promise.resolve({ credentials: { type: 'bearer', token: 'made-up' } });
      },
    ],
    [
      'header',
      () => {
        guard((headers) => (headers['x-amber'] === 'made-up' ? amber : undefined));
        return Promise.resolve({ credentials: { type: 'header', name: 'X-Amber', value: 'made-up' } });
      },
    ],
    [
      'headers',
      () => {
        const three = ['UserName', 'Roles', 'Token'].map((name) => `X-Auth-CouchDB-${name}`);
        guard((headers) =>
          three.every((name) => headers[name.toLowerCase()] === `made-up ${name}`) ? amber : undefined,
        );
        const headers = Object.fromEntries(three.map((name) => [name, `made-up ${name}`]));
        return Promise.resolve({ credentials: { type: 'headers', headers } });
      },
    ],
  ];

  it.each(kinds)('R12 S7 signs in by %s, and is asked who it is once, before anything else', async (kind, made) => {
    const { credentials, fetch: through } = await made();
    const client = open({
      user: amber.username,
      auth: { credentials: () => Promise.resolve(credentials) },
      ...(through === undefined ? {} : { environment: { fetch: through } }),
    });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    const { bulkOperationId } = await edit(client, ['a']);
    await bulk(client, bulkOperationId, ['done']);
    await arrived('a', 'blue');
    const asked = server.proxy.requests().filter(({ path }) => path === '/_session').length;
    expect(asked).toBe(kind === 'basic' ? 0 : 1);
    if (kind !== 'basic') expect(server.proxy.requests()[0]).toMatchObject({ path: '/_session' });
  });

  it('S7 someone else is signed in: nothing is tried, here or there, until the right person comes', async () => {
    let token = 'birch';
    guard(({ authorization }) => ({ 'Bearer amber': amber, 'Bearer birch': birch })[String(authorization)]);
    const client = open({
      user: amber.username,
      auth: { credentials: () => Promise.resolve({ type: 'bearer', token }) },
    });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    expect(await status(client, ({ signInRequired }) => signInRequired)).toMatchObject({ signInCause: 'other-user' });
    const here = await edit(client, ['a']);
    const there = await edit(client, ['b'], 'server');
    for (const { bulkOperationId } of [here, there]) {
      expect(await bulk(client, bulkOperationId, ['waiting-auth'])).toMatchObject({
        attempts: 0,
        lastError: { class: 'auth', code: 'other-user' },
      });
    }
    expect(sent()).toEqual(['GET /_session']);
    expect(await client.documents.get('a')).toMatchObject({ colour: 'red' });
    expect(await status(client, ({ push }) => push.state === 'waiting-auth')).toMatchObject({ pending: 2 });

    token = 'amber';
    client.signedIn();
    expect(await bulk(client, here.bulkOperationId, ['done'])).toMatchObject({ attempts: 1, failedAttempts: 0 });
    expect(await bulk(client, there.bulkOperationId, ['done-with-failures'])).toMatchObject({ failedAttempts: 0 });
    await arrived('a', 'blue');
    expect(await firstValueFrom(client.status$)).toMatchObject({ signInRequired: false, signInCause: undefined });
  });

  it('S7 basic credentials of someone else are never sent', async () => {
    const client = open({
      user: amber.username,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...birch }) },
    });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await status(client, ({ signInCause }) => signInCause === 'other-user');
    expect(sent()).toEqual([]);
  });

  it('S7 without a user the store is for the first one that the server names, and stays theirs', async () => {
    const browser = new Browser();
    await browser.signIn(server.directUrl, amber);
    const auth = { credentials: () => Promise.resolve({ type: 'cookie' } as const) };
    const options = { name: `people-${String(stores++)}`, auth, environment: { fetch: browser.fetch } };
    const first = open(options);
    await first.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await arrived('a', 'red');
    const { bulkOperationId } = await edit(first, ['a']);
    await bulk(first, bulkOperationId, ['done']);
    await arrived('a', 'blue');
    await first.close();

    await browser.signIn(server.directUrl, birch);
    await server.proxy.reset();
    const again = open(options);
    await again.documents.bulkDocs([{ _id: 'b', colour: 'red' }]);
    await status(again, ({ signInCause }) => signInCause === 'other-user');
    expect(sent()).toEqual(['GET /_session']);
    await browser.signIn(server.directUrl, amber);
    again.signedIn();
    await arrived('b', 'red');
    await again.close();
    await expect(open({ ...options, user: birch.username }).storeId).rejects.toMatchObject({ code: 'other_user' });
  });

  it('S7 someone else signs in with the browser while a client with its cookies is open', async () => {
    const browser = new Browser();
    await browser.signIn(server.directUrl, amber);
    const client = open({ user: amber.username, environment: { fetch: browser.fetch } });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await arrived('a', 'red');
    await browser.signIn(server.directUrl, birch);
    client.syncNow(); // as when the page comes into view again
    await status(client, ({ signInCause }) => signInCause === 'other-user');
    await client.documents.bulkDocs([{ _id: 'b', colour: 'red' }]);
    await status(client, ({ push }) => push.state === 'waiting-auth');
    expect(await asAdmin('b')).toMatchObject({ error: 'not_found' });
  });

  it.each(['bearer', 'cookie'])(
    'R12 a sign-in (%s) that ends in the middle is renewed once; nothing counts as an attempt, nothing is done twice',
    async (kind) => {
      const browser = new Browser();
      let valid = 'one';
      let requests = 0;
      if (kind === 'bearer') guard(({ authorization }) => (authorization === `Bearer ${valid}` ? amber : undefined));
      server.proxy.onRequest(({ path, method }) => {
        if (method !== 'POST' || path === '/_session' || ++requests !== 3) return;
        valid = 'two';
        browser.cookie = undefined;
      });
      const asked: string[] = [];
      const ids = Array.from({ length: 10 }, (_, at) => `d${String(at)}`);
      const admin = { authorization: basicOf(server.admin), 'content-type': 'application/json' };
      const docs = ids.map((_id) => ({ _id, colour: 'red' }));
      const bulkDocs = `${records.replace(server.url, server.directUrl)}/_bulk_docs`;
      await fetch(bulkDocs, { method: 'POST', headers: admin, body: JSON.stringify({ docs }) });
      const client = open({
        user: amber.username,
        batchSize: 1,
        environment: { fetch: browser.fetch },
        auth: {
          credentials: async (why) => {
            asked.push(why);
            if (kind === 'bearer') return { type: 'bearer', token: why === 'first' ? 'one' : 'two' };
            await browser.signIn(server.directUrl, amber);
            return { type: 'cookie' };
          },
        },
      });
      await client.documents.bulkDocs([{ _id: 'mine', colour: 'red' }]);
      const bulks = await Promise.all([edit(client, ids.slice(0, 5), 'server'), edit(client, ids.slice(5), 'server')]);
      for (const { bulkOperationId } of bulks) {
        expect(await bulk(client, bulkOperationId, ['done'])).toMatchObject({
          applied: 5,
          attempts: 5,
          failedAttempts: 0,
        });
      }
      await arrived('mine', 'red');
      expect(await firstValueFrom(client.status$)).toMatchObject({ push: { failedAttempts: 0 } });
      expect(asked).toEqual(['first', 'refused']);
      for (const id of ids) expect(await asAdmin(id)).toMatchObject({ colour: 'blue', _rev: /^2-/ });
    },
  );

  it('R12 a cookie that the server renews with an answer is the one that is sent from then on', async () => {
    let count = 0;
    const browser = new Browser();
    browser.cookie = 'Made=0';
    const renew: Interceptor = async ({ headers }, forward) => {
      if (headers.cookie !== `Made=${String(count)}`) return unauthorized;
      const answer = await forward({ headers: { authorization: basicOf(amber) } });
      return { ...answer, headers: { ...answer.headers, 'set-cookie': `Made=${String(++count)}; Path=/; HttpOnly` } };
    };
    server.proxy.intercept(renew);
    const client = open({ user: amber.username, replication: false, environment: { fetch: browser.fetch } });
    for (const id of ['a', 'b']) {
      const { bulkOperationId } = await edit(client, [id], 'server');
      expect(await bulk(client, bulkOperationId, ['done-with-failures'])).toMatchObject({ failedAttempts: 0 });
    }
    expect(count).toBeGreaterThan(2);
    expect(await firstValueFrom(client.status$)).toMatchObject({ signInRequired: false });
  });

  it('R12 R15 a sign-in that hangs is a named state, is asked for once, keeps nobody from closing, and can be begun anew', async () => {
    let answer: ((credentials: Credentials) => void) | undefined;
    let asked = 0;
    const client = open({
      user: amber.username,
      auth: {
        credentials: () => {
          asked++;
          return new Promise((resolve) => (answer = resolve));
        },
      },
    });
    const { bulkOperationId } = await edit(client, ['a'], 'server');
    await bulk(client, bulkOperationId, ['waiting-auth']);
    expect(await status(client, ({ signInRequired }) => signInRequired)).toMatchObject({ signInCause: undefined });
    client.syncNow();
    expect(asked).toBe(1);
    client.signedIn();
    await status(client, () => asked === 2);
    answer?.({ type: 'basic', ...amber });
    await bulk(client, bulkOperationId, ['done-with-failures']);
    client.signedIn(); // asked once more, and never answered: `afterEach` closes it all the same
    await edit(client, ['b'], 'server');
  });

  it('S7 a server that says nothing of sessions lets work go on', async () => {
    server.proxy.addRule({ when: { path: '/_session' }, do: { type: 'answer', status: 404, body: 'Not here' } });
    guard(() => amber);
    const client = open({
      user: amber.username,
      auth: { credentials: () => Promise.resolve({ type: 'bearer', token: 'any' }) },
    });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await arrived('a', 'red');
  });
});
