import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  couchdbPublisher,
  createClient,
  defineAction,
  defineDocumentAction,
  defineIndex,
  httpPublisher,
  type AnyAction,
  type Client,
  type ClientOptions,
  type ClientStatus,
  type PouchConstructor,
  type PouchLike,
} from '@afield/client';
import {
  serverUnderTest,
  temporaryDatabases,
  type Interceptor,
  type ServerUnderTest,
  type TemporaryDatabases,
} from '@afield/devserver';
import { FakePresence, memoryIndexedDB, MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom, type Observable } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod/mini';

type Credentials = Awaited<ReturnType<NonNullable<ClientOptions['auth']>['credentials']>>;
interface Person {
  readonly username: string;
  readonly password: string;
}
/** One way to sign in: what the app gives, what must be found nowhere, and the headers that may carry it. */
interface Kind {
  readonly name: string;
  readonly credentials: (person: Person) => Credentials;
  readonly secrets: (person: Person) => string[];
  readonly headers: readonly string[];
  /** Whether a proxy finds the person in a request. Undefined: CouchDB does. */
  readonly known?: (headers: IncomingMessage['headers']) => boolean;
}

const token = 'made-up-token-8f2c1d';
const three = ['X-Auth-CouchDB-UserName', 'X-Auth-CouchDB-Roles', 'X-Auth-CouchDB-Token'];
const publisherSecret = 'made-up-publisher-key-77ac';
const kinds: readonly Kind[] = [
  {
    name: 'basic',
    credentials: (person) => ({ type: 'basic', ...person }),
    secrets: ({ username, password }) => [password, btoa(password), btoa(`${username}:${password}`)],
    headers: ['authorization'],
  },
  {
    name: 'bearer',
    credentials: () => ({ type: 'bearer', token }),
    secrets: () => [token, btoa(token)],
    headers: ['authorization'],
    known: ({ authorization }) => authorization === `Bearer ${token}`,
  },
  {
    name: 'header',
    credentials: () => ({ type: 'header', name: 'X-Made-Up', value: token }),
    secrets: () => [token],
    headers: ['x-made-up'],
    known: (headers) => headers['x-made-up'] === token,
  },
  {
    name: 'headers',
    credentials: () => ({
      type: 'headers',
      headers: Object.fromEntries(three.map((name) => [name, `${token}-${name}`])),
    }),
    secrets: () => [token],
    headers: three.map((name) => name.toLowerCase()),
    known: (headers) => three.every((name) => headers[name.toLowerCase()] === `${token}-${name}`),
  },
  { name: 'cookie', credentials: () => ({ type: 'cookie' }), secrets: () => [], headers: ['cookie'] },
];

let stores = 0;

describe('credentials', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  let elsewhere: Server;
  /** What came to another server, with its headers. */
  let arrived: { url: string; headers: IncomingMessage['headers'] }[];
  let client: Client | undefined;

  beforeAll(async () => {
    server = await serverUnderTest();
    elsewhere = createServer((request, response) => {
      arrived.push({ url: request.url ?? '', headers: request.headers });
      request.resume();
      request.on('end', () => {
        response.writeHead(request.url === '/login' ? 200 : 201, { 'content-type': 'application/json' });
        response.end('{"ok":true}');
      });
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    elsewhere.close();
    await server.close();
  });
  beforeEach(async () => {
    await server.proxy.reset();
    databases = temporaryDatabases(server.url, server.admin);
    arrived = [];
  });
  afterEach(async () => {
    await client?.close();
    client = undefined;
    await server.proxy.reset();
    await databases.dispose();
    vi.restoreAllMocks();
  });

  it.each(kinds)('S7 R12 those of $name are in nothing that is stored, sent, shown or said', async (kind) => {
    const other = `http://127.0.0.1:${String((elsewhere.address() as AddressInfo).port)}`;
    const person = await databases.createUser({ label: 'amber' });
    const security = { admins: { names: [], roles: ['_admin'] }, members: { names: [person.username], roles: [] } };
    const made = (label: string) => databases.create(label, { security });
    const [records, results, events] = [await made('records'), await made('results'), await made('events')];
    const browser = new Browser();
    if (kind.name === 'cookie') await browser.signIn(server.directUrl, person);

    /** Everything that left the client by any way, but what the credentials' own headers carry. */
    const heap = new Heap();
    const carriers: string[] = [];
    const notes = new FakePresence();
    const note = notes.note.bind(notes);
    notes.note = (name, text) => {
      heap.add('note', [name, text]);
      note(name, text);
    };
    for (const level of ['log', 'info', 'warn', 'error', 'debug'] as const) {
      vi.spyOn(console, level).mockImplementation((...said: unknown[]) => {
        heap.add(`console.${level}`, said);
      });
    }
    const indexedDB = memoryIndexedDB();
    const device = open();
    client = device;

    function open(): Client {
      const opened = createClient({
        name: `credentials-${String(stores++)}`,
        user: person.username,
        PouchDB: watched(MemoryPouch, heap),
        actions: [setColour, caller(other, records.url)],
        indexes: [defineIndex({ name: 'by-colour', version: 1, keys: (doc) => doc['colour'] as string | undefined })],
        server: records.url,
        results: { url: results.url, content: true },
        publishers: [
          couchdbPublisher({ url: events.url }),
          httpPublisher({ url: `${other}/events`, headers: { 'x-publisher': publisherSecret } }),
        ],
        auth: { credentials: () => Promise.resolve(kind.credentials(person)) },
        ramp: () => 100,
        jitter: 0,
        environment: {
          indexedDB,
          presence: notes,
          warn: (line) => {
            heap.add('warning', line);
          },
          fetch: async (input, init = {}) => {
            const request = new Request(input, { ...init, signal: null });
            const { headers } = request;
            for (const name of [...kind.headers, 'x-publisher']) {
              const value = headers.get(name);
              if (value !== null) carriers.push(`${name} ${new URL(request.url).origin} ${value}`);
              headers.delete(name);
            }
            heap.add('sent', [
              request.method,
              request.url,
              [...headers],
              typeof init.body === 'string' ? init.body : '',
            ]);
            try {
              return await browser.fetch(input, init);
            } catch (error) {
              heap.add('network', String(error));
              throw error;
            }
          },
        },
      });
      for (const observable of [
        'status$',
        'bulkOperations$',
        'failures$',
        'events$',
        'quarantine$',
        'conflicts$',
      ] as const) {
        (opened[observable] as Observable<unknown>).subscribe((value) => {
          heap.add(observable, value);
        });
      }
      return opened;
    }

    // A server that is away, that does not know us for a moment, that leads elsewhere, and that says again what it was told.
    await server.proxy.setOutage('reset');
    const troubles = [echo(401), echo(500), redirect(`${other}/login`), echo(403)];
    let turn = 0;
    server.proxy.intercept(({ path, headers }) => {
      if (path === '/_session' || path.startsWith('/hand')) return undefined;
      turn++;
      return turn % 4 === 0 ? troubles.shift()?.(headers) : undefined;
    });
    if (kind.known !== undefined) server.proxy.intercept(proxyFor(kind.known, person));
    await device.documents.bulkDocs(['a', 'b', 'c'].map((_id) => ({ _id, colour: 'red' })));
    const queue = (target: 'local' | 'server', action: string, ids: readonly string[]) =>
      device.enqueue({ target, actions: [{ action, operations: ids.map((id) => ({ id, to: 'blue' })) }] });
    await queue('local', 'set-colour', ['a', 'b', 'missing']);
    await queue('server', 'set-colour', ['c', 'nowhere']);
    await queue('server', 'call', ['z']);
    await status(device, ({ push }) => push.failedAttempts > 0);
    heap.add('file', await (await device.exportPending()).text());
    heap.add('refused', await said(device.logout()));
    await server.proxy.setOutage(false);
    device.syncNow();
    // After a refusal (401, 403) the same credentials are not tried again at once: a person says that they are right.
    device.status$.pipe(filter(({ signInRequired }) => signInRequired)).subscribe(() => {
      queueMicrotask(() => {
        if (client === device) device.signedIn();
      });
    });
    await status(
      device,
      ({ pending, unpublished, unreported, unconfirmed }) =>
        pending === 0 && unpublished === 0 && unreported === 0 && unconfirmed === 0,
    );
    expect(troubles).toEqual([]);
    heap.add('errors', [
      await said(device.enqueue({ target: 'server', actions: [] })),
      await said(device.pause('unknown')),
      await said(device.drained()),
    ]);
    heap.add('indexes', await dumpOf(indexedDB));
    for (const { url } of [records, results, events])
      heap.add('at the server', await asAdmin(`${url}/_all_docs?include_docs=true`));

    const secrets = [
      ...kind.secrets(person),
      publisherSecret,
      ...(browser.cookie === undefined ? [] : [browser.cookie.split('=')[1] ?? '']),
    ];
    for (const secret of secrets) expect(heap.placesOf(secret)).toEqual([]);
    // The heap holds what it should: a secret among this would have been found.
    for (const marker of ['set-colour', 'blue', records.url, 'unsynced_work', 'by-colour', 'afield:']) {
      expect(heap.placesOf(marker)).not.toEqual([]);
    }
    const origin = new URL(server.url).origin;
    const toElsewhere = carriers.filter((line) => !line.includes(origin));
    if (kind.name !== 'cookie') expect(carriers.some((line) => line.includes(origin))).toBe(true);
    expect(toElsewhere.every((line) => line === `x-publisher ${other} ${publisherSecret}`)).toBe(true);
    expect(arrived.map(({ url }) => url)).toEqual(expect.arrayContaining(['/events', '/hand']));
    expect(arrived.map(({ url }) => url)).not.toContain('/login');
    for (const { url, headers } of arrived) {
      if (url !== '/events') expect(JSON.stringify(headers)).not.toContain(publisherSecret);
      for (const secret of kind.secrets(person)) expect(JSON.stringify(headers)).not.toContain(secret);
      expect(headers.cookie).toBeUndefined();
    }
  });

  async function asAdmin(url: string): Promise<unknown> {
    const headers = { authorization: `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}` };
    return (await fetch(url.replace(server.url, server.directUrl), { headers })).json();
  }
});

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});

/** A handler that uses its own fetch: at the client's server, and elsewhere. */
function caller(elsewhere: string, records: string): AnyAction {
  return defineAction({
    name: 'call',
    operation: z.looseObject({}),
    run: async (_batch, { fetch }) => {
      await fetch(`${elsewhere}/hand`);
      await fetch(`${records}/_all_docs`);
      return {};
    },
  }) as AnyAction;
}

/** All that is to be searched, each with where it comes from. */
class Heap {
  readonly #lines: { readonly where: string; readonly text: string }[] = [];

  add(where: string, what: unknown): void {
    this.#lines.push({ where, text: typeof what === 'string' ? what : textOf(what) });
  }

  placesOf(wanted: string): string[] {
    expect(wanted.length).toBeGreaterThan(3);
    return [...new Set(this.#lines.filter(({ text }) => text.includes(wanted)).map(({ where }) => where))];
  }
}

/** JSON, with what JSON leaves out of an error, and what lies deeper in base64. */
function textOf(what: unknown): string {
  return JSON.stringify(what, (_name, value: unknown) =>
    value instanceof Error ? { ...value, message: value.message, stack: value.stack, cause: value.cause } : value,
  );
}

/** Every call that writes, whatever is replaced or removed later. */
function watched(PouchDB: PouchConstructor, heap: Heap): PouchConstructor {
  return new Proxy(PouchDB, {
    construct: (target, args: [string, object?]) => {
      const pouch: PouchLike = new target(...args);
      heap.add('name of a database', String(args[0]));
      const { bulkDocs, put } = pouch;
      pouch.bulkDocs = (...given) => {
        heap.add('stored', given[0]);
        return bulkDocs.apply(pouch, given);
      };
      pouch.put = (...given) => {
        heap.add('stored', given[0]);
        return put.apply(pouch, given);
      };
      return pouch;
    },
  });
}

/** A fetch with the cookies of one browser, which Node has not. */
class Browser {
  cookie: string | undefined;
  readonly fetch: typeof fetch = (input, init = {}) => {
    const headers = new Headers(init.headers);
    if (this.cookie !== undefined && init.credentials === 'include') headers.set('cookie', this.cookie);
    return fetch(input, { ...init, headers });
  };
  async signIn(url: string, { username: name, password }: Person): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${url}/_session`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ name, password }),
    });
    this.cookie = answer.headers.getSetCookie()[0]?.split(';')[0];
  }
}

/** A proxy that knows people by other means than CouchDB, and signs in for them. */
function proxyFor(known: NonNullable<Kind['known']>, { username, password }: Person): Interceptor {
  return async ({ headers }, forward) =>
    known(headers)
      ? forward({ headers: { authorization: `Basic ${btoa(`${username}:${password}`)}` } })
      : { status: 401, body: { error: 'unauthorized', reason: 'Who are you?' } };
}

/** An answer that says again what it was told, as pages for developers do. */
function echo(status: number) {
  return (headers: IncomingMessage['headers']) => ({
    status,
    body: { error: status === 401 ? 'unauthorized' : 'forbidden', reason: `You said ${JSON.stringify(headers)}` },
  });
}

function redirect(to: string) {
  return () => ({ status: 302, headers: { location: to }, body: '' });
}

async function said(call: Promise<unknown>): Promise<string> {
  return call.then(
    (value) => textOf(value),
    (error: unknown) => textOf(error),
  );
}

function status(client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> {
  return firstValueFrom(client.status$.pipe(filter(is)));
}

/** All rows of all databases of an IndexedDB. */
async function dumpOf(factory: IDBFactory): Promise<unknown> {
  const asked = <Value>(request: IDBRequest<Value>): Promise<Value> =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => {
        resolve(request.result);
      };
      request.onerror = () => {
        reject(request.error ?? new Error('not read'));
      };
    });
  const found: unknown[] = [];
  for (const { name = '' } of await factory.databases()) {
    const db = await asked(factory.open(name));
    for (const store of db.objectStoreNames) {
      const rows = db.transaction(store).objectStore(store);
      found.push([name, store, await asked(rows.getAll()), await asked(rows.getAllKeys())]);
    }
    db.close();
  }
  return found;
}
