import { createServer as createHttpsServer } from 'node:https';
import { createServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { couchdbPublisher } from '@afield/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { selfSigned } from './self-signed.js';
import { TroubleBed } from './trouble-bed.js';

const red = (ids: readonly string[]): { _id: string; colour: string }[] => ids.map((_id) => ({ _id, colour: 'red' }));
const many = Array.from({ length: 30 }, (_, at) => `d${String(at).padStart(2, '0')}`);

/** Each line of docs/server-trouble.md. */
describe('S2 a server in trouble', () => {
  let bed: TroubleBed;
  let database: string;
  const others: Server[] = [];
  beforeAll(async () => {
    bed = await TroubleBed.open();
  });
  beforeEach(async () => {
    await bed.begin();
    database = new URL(bed.records).pathname.slice(1);
  });
  afterEach(async () => {
    await bed.end();
    await Promise.all(others.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
  });
  afterAll(() => bed.server.close());

  /** Listens on a free port of this machine until the test ends. */
  const listening = async (server: Server): Promise<number> => {
    others.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };

  it('R12 S2 the database is not there: it is said so, tried again, and goes on when it is made', async () => {
    await bed.remove();
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    const shown = await bed.status(client, ({ push, pull }) => push.failedAttempts > 2 && pull.failedAttempts > 1);
    for (const { state, lastError } of [shown.push, shown.pull]) {
      expect(lastError).toEqual({ class: 'server', code: 'database-missing' });
      expect(['waiting-retry', 'running']).toContain(state);
    }
    expect(shown).toMatchObject({ signInRequired: false, push: { left: 30 } });
    await bed.create();
    await bed.arrived(many);
  });

  it('R12 S2 the database goes away after all was pushed, and comes back empty: all arrives again', async () => {
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    await bed.pushed(client);
    await bed.remove();
    await bed.status(client, ({ pull }) => pull.lastError?.code === 'database-missing');
    await bed.create();
    await bed.arrived(many);
  });

  it('R4 S2 a user who may only read: each document is a failure `forbidden`, sent again on the app’s word once they may', async () => {
    const reader = await bed.databases.createUser();
    const validation = `function (doc, old, user) { if (user.roles.indexOf('_admin') < 0) throw { forbidden: 'read only' }; }`;
    await bed.ask('/_design/read-only', 'PUT', { validate_doc_update: validation });
    const client = bed.client({ auth: { credentials: () => Promise.resolve({ type: 'basic', ...reader }) } });
    await client.documents.bulkDocs(red(['a', 'b', 'c']));
    const failures = await bed.failures(client, 3);
    expect(failures.map(({ code, reason }) => `${code} ${reason}`)).toEqual(Array(3).fill('forbidden read only'));
    const shown = await bed.status(client, ({ push }) => push.state === 'idle');
    expect(shown).toMatchObject({ signInRequired: false, push: { left: 0 } });
    expect(await bed.ids()).toEqual([]);
    const { _rev } = await bed.ask('/_design/read-only');
    await bed.ask(`/_design/read-only?rev=${String(_rev)}`, 'DELETE');
    await client.retryFailed({ code: 'forbidden' });
    await bed.failures(client, 0);
    await bed.arrived(['a', 'b', 'c']);
  });

  it('R12 S2 a user whose requests to write are refused as a whole: the queue waits for another sign-in, and goes on', async () => {
    const rule = bed.server.proxy.addRule({
      when: { method: 'POST', path: '/_bulk_docs' },
      do: { type: 'answer', status: 403, body: { error: 'forbidden', reason: 'read only' } },
    });
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    const shown = await bed.status(client, ({ push }) => push.state === 'waiting-auth');
    expect(shown).toMatchObject({ signInRequired: true, push: { lastError: { class: 'auth', code: 'forbidden' } } });
    bed.server.proxy.removeRule(rule);
    client.signedIn();
    await bed.arrived(many);
  });

  it('R7 S2 the server’s disk is full (507): it is tried again, and nothing is given up', async () => {
    const rule = bed.server.proxy.addRule({
      when: { method: 'POST', path: '/_bulk_docs' },
      do: { type: 'answer', status: 507, body: { error: 'insufficient_storage', reason: 'full' } },
    });
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    const shown = await bed.status(client, ({ push }) => push.failedAttempts > 1);
    expect(shown.push.lastError).toEqual({ class: 'server', code: '507' });
    expect(shown.failed).toBe(0);
    bed.server.proxy.removeRule(rule);
    await bed.arrived(many);
  });

  it('R7 S2 the server’s disk is full for some rows: they are tried again, the others are there', async () => {
    let isFull = true;
    bed.answer = async (request, forward) => {
      if (!isFull || !request.path.endsWith('/_bulk_docs')) return undefined;
      const { docs, ...rest } = request.json() as { docs: { _id: string }[] };
      const taken = docs.filter(({ _id }) => _id !== 'd07');
      await forward({ body: JSON.stringify({ ...rest, docs: taken }) });
      const full = { id: 'd07', error: 'insufficient_storage', reason: 'full' };
      return { status: 201, body: taken.length === docs.length ? [] : [full] };
    };
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    const shown = await bed.status(client, ({ push }) => push.failedAttempts > 1);
    expect(shown.push).toMatchObject({ left: 1, lastError: { class: 'server', code: 'not-stored' } });
    expect(await bed.ids()).toEqual(many.filter((id) => id !== 'd07'));
    isFull = false;
    await bed.arrived(many);
  });

  it('R7 S2 a certificate that nobody vouches for is the network’s matter: nothing is sent, and nothing is lost', async () => {
    const heard: string[] = [];
    const bad = createHttpsServer(selfSigned(), (request, response) => {
      heard.push(request.url ?? '');
      response.end();
    });
    const port = await listening(bad);
    let isBad = true;
    const name = bed.newName();
    const good = fetch;
    const client = bed.client({
      name,
      environment: {
        fetch: (input, init) => {
          const url = input instanceof Request ? input.url : String(input);
          return good(isBad ? url.replace(bed.server.url, `https://127.0.0.1:${String(port)}`) : url, init);
        },
      },
    });
    await client.documents.bulkDocs(red(many));
    const shown = await bed.status(client, ({ push }) => push.failedAttempts > 1);
    expect(shown.push.lastError).toEqual({ class: 'network', code: 'no-answer' });
    expect(heard).toEqual([]);
    isBad = false;
    await bed.arrived(many);
  });

  it.each([
    ['a redirect to a login page', { type: 'answer', status: 302, headers: { location: '/login' }, text: '<html>' }],
    ['a login page', { type: 'answer', status: 200, headers: { 'content-type': 'text/html' }, text: '<html>' }],
    ['a captive portal', { type: 'captive-portal' }],
    ['an empty answer', { type: 'answer', status: 200, text: '' }],
  ] as const)('R7 S2 %s in the place of every answer is no success, and no sign-out', async (_what, act) => {
    const rule = bed.server.proxy.addRule({ when: { database }, do: act });
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    const shown = await bed.status(client, ({ push, pull }) => push.failedAttempts > 1 && pull.failedAttempts > 1);
    expect(shown).toMatchObject({
      signInRequired: false,
      push: { lastError: { class: 'network', code: 'not-couchdb' } },
      pull: { lastError: { class: 'network', code: 'not-couchdb' } },
    });
    bed.server.proxy.removeRule(rule);
    await bed.arrived(many);
    expect(await bed.status(client, ({ push }) => push.state === 'idle')).toMatchObject({ failed: 0 });
  });

  it('R7 S2 a redirect is not followed: no document and no credential goes to another address', async () => {
    const heard: string[] = [];
    const login = createServer((request, response) => {
      heard.push(`${request.method ?? ''} ${request.headers.authorization ?? ''}`);
      response.end('<html>');
    });
    const port = await listening(login);
    const location = `http://127.0.0.1:${String(port)}/login`;
    bed.server.proxy.addRule({ when: { database }, do: { type: 'answer', status: 307, headers: { location } } });
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    await bed.status(client, ({ push, pull }) => push.failedAttempts > 1 && pull.failedAttempts > 1);
    expect(heard).toEqual([]);
  });

  it('R7 S2 a proxy that keeps answers back and gives them late and in one piece: all arrives once', async () => {
    bed.server.proxy.addRule({ when: { database }, do: { type: 'delay', ms: 150 } });
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    await bed.arrived(many);
    expect(await bed.pushed(client)).toMatchObject({ push: { failedAttempts: 0 } });
  });

  it('R11 S2 a proxy that takes requests of a certain size and answers 413 gets smaller ones', async () => {
    bed.answer = (request) =>
      request.body.length > 3000
        ? { status: 413, headers: { 'content-type': 'text/html' }, body: '<html>' }
        : undefined;
    const client = bed.client();
    await client.documents.bulkDocs(many.map((_id) => ({ _id, note: 'x'.repeat(300) })));
    await bed.arrived(many);
    expect(await bed.pushed(client)).toMatchObject({ failed: 0, push: { failedAttempts: 0 } });
  });

  it('R7 S2 a proxy that gives up (504) when the server has already stored: it is asked first, and nothing is sent twice', async () => {
    let isSlow = true;
    bed.answer = async (request, forward) => {
      if (!isSlow || !request.path.endsWith('/_bulk_docs')) return undefined;
      isSlow = false;
      await forward();
      return { status: 504, headers: { 'content-type': 'text/html' }, body: '<html>Gateway Timeout' };
    };
    const client = bed.client();
    await client.documents.bulkDocs(red(many));
    await bed.arrived(many);
    const shown = await bed.status(client, ({ push }) => push.state === 'idle' && push.failedAttempts > 0);
    expect(shown.push.lastError).toEqual({ class: 'network', code: 'not-couchdb' });
    expect(bed.named('/_bulk_docs').sort()).toEqual(many);
  });

  it('O3 R6 S2 a proxy that repeats every request changes nothing: documents and events are there once', async () => {
    bed.answer = async (_request, forward) => {
      await forward();
      return forward();
    };
    const events = await bed.databases.create('events', { security: 'everyone' });
    const throughProxy = (url: string): string => url.replace(bed.server.directUrl, bed.server.url);
    const client = bed.client({
      publishers: [couchdbPublisher({ url: throughProxy(events.url) })],
    });
    await client.documents.bulkDocs(red(many));
    await bed.paint(client, many, 'blue');
    const isOver = bed.status(
      client,
      ({ pending, unpublished, push }) => pending + unpublished === 0 && push.state === 'idle' && push.left === 0,
    );
    expect(await isOver).toMatchObject({ failed: 0, quarantined: 0 });
    await bed.arrived(many);
    const { results: changes } = (await bed.ask('/_changes?style=all_docs')) as { results: { changes: unknown[] }[] };
    expect(changes.map(({ changes: leaves }) => leaves.length)).toEqual(many.map(() => 1));
    expect(await bed.countIn(events.url)).toBe(30);
  });
});
