import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { networkError, send, type Received } from '../fixtures/client.js';
import { serverUnderTest, type ServerUnderTest } from '../server-under-test.js';
import { temporaryDatabases, type TemporaryDatabase, type TemporaryDatabases } from '../temporary-databases.js';
import { startFaultProxy, type FaultProxy } from './fault-proxy.js';
import type { FaultRule } from './rules.js';

let server: ServerUnderTest;
let databases: TemporaryDatabases;
let proxy: FaultProxy;
let direct: TemporaryDatabase;
/** The database through the proxy. */
let url: string;

beforeAll(async () => {
  server = await serverUnderTest();
  proxy = server.proxy;
  databases = temporaryDatabases(server.directUrl, server.admin);
});

beforeEach(async () => {
  direct = await databases.create('main', { security: 'everyone', docs: [{ _id: 'a', text: 'x'.repeat(2_000) }] });
  url = `${server.url}/${direct.name}`;
});

afterEach(async () => {
  await proxy.reset();
  await databases.dispose();
});

afterAll(() => server.close());

const write = (id: string): Promise<Received> => send('POST', `${url}/_bulk_docs`, { body: { docs: [{ _id: id }] } });
const isStored = async (id: string): Promise<boolean> => (await send('GET', `${direct.url}/${id}`)).status === 200;

describe('passing on', () => {
  it('passes bodies, status and headers on as they are', async () => {
    const sent = await send('PUT', `${url}/b?x=%2F`, { body: { text: 'ä' } });
    expect(sent.status).toBe(201);
    const through = await send('GET', `${url}/b`);
    const straight = await send('GET', `${direct.url}/b`);
    expect(through.text).toBe(straight.text);
    expect(through.headers.get('etag')).toBe(straight.headers.get('etag'));
    expect((await send('GET', `${url}/none`)).status).toBe(404);
    const etag = through.headers.get('etag') ?? '';
    const unchanged = await request(`${url}/b`, { headers: { 'if-none-match': etag } });
    expect(unchanged.statusCode).toBe(304);
    await unchanged.body.dump();
  });

  it('passes HEAD on with the length and without a body', async () => {
    const head = await send('HEAD', `${url}/a`);
    expect(head.status).toBe(200);
    expect(head.text).toBe('');
    expect(head.headers.get('content-type')).toBe('application/json');
  });

  it('passes attachments on byte by byte, sent in chunks', async () => {
    const bytes = randomBytes(300_000);
    const { body } = await send('PUT', `${url}/photo`, { body: {} });
    const chunked = new ReadableStream({
      start(controller) {
        controller.enqueue(bytes.subarray(0, 100_000));
        controller.enqueue(bytes.subarray(100_000));
        controller.close();
      },
    });
    const stored = await fetch(`${url}/photo/raw?rev=${(body as { rev: string }).rev}`, {
      method: 'PUT',
      headers: { 'content-type': 'image/png' },
      body: chunked,
      duplex: 'half',
    } as RequestInit);
    expect(stored.status).toBe(201);
    const read = await fetch(`${url}/photo/raw`);
    expect(read.headers.get('content-type')).toBe('image/png');
    expect(Buffer.from(await read.arrayBuffer()).equals(bytes)).toBe(true);
  });

  it('passes a long poll on when the change comes', async () => {
    const { body } = await send('GET', `${url}/_changes`);
    const since = encodeURIComponent(String((body as { last_seq: unknown }).last_seq));
    const poll = send('GET', `${url}/_changes?feed=longpoll&since=${since}`);
    await write('late');
    expect((await poll).body).toMatchObject({ results: [{ id: 'late' }] });
  });

  it('passes a continuous feed on line by line and lets go of it with the client', async () => {
    const gone = new AbortController();
    const feed = await fetch(`${url}/_changes?feed=continuous&since=0&heartbeat=10000`, { signal: gone.signal });
    const reader = feed.body?.getReader();
    const first = await reader?.read();
    expect(Buffer.from(first?.value ?? []).toString()).toContain('"id":"a"');
    gone.abort();
    expect((await send('GET', `${url}/a`)).status).toBe(200);
  });

  it('passes the head on before there is a body, and ends the request behind when the client goes', async () => {
    let leave: () => void = () => undefined;
    const left = new Promise<void>((resolve) => (leave = resolve));
    const silent = createServer((incoming, answer) => {
      incoming.socket.once('close', leave);
      answer.writeHead(200, { 'x-feed': 'open' }).flushHeaders();
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const upstream = `http://127.0.0.1:${String((silent.address() as AddressInfo).port)}`;
    const own = await startFaultProxy({ upstream });
    const gone = new AbortController();
    const feed = await fetch(`${own.url}/main/_changes`, { signal: gone.signal });
    expect(feed.headers.get('x-feed')).toBe('open');
    gone.abort();
    await left;
    await own.close();
    silent.close();
  });

  it('answers preflights itself and adds CORS to true answers and to faults', async () => {
    const origin = 'https://app.example';
    const headers = {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization',
    };
    const preflight = await send('OPTIONS', `${url}/_bulk_docs`, { headers });
    expect(preflight.status).toBe(204);
    const truth = await send('GET', `${url}/a`, { headers: { origin } });
    proxy.addRule({ do: { type: 'answer', status: 503, headers: { 'Retry-After': '7' } } });
    const fault = await send('GET', `${url}/a`, { headers: { origin } });
    expect(fault.headers.get('retry-after')).toBe('7');
    for (const received of [preflight, truth, fault]) {
      expect(received.headers.get('access-control-allow-origin')).toBe(origin);
      expect(received.headers.get('access-control-allow-credentials')).toBe('true');
      expect(received.headers.get('access-control-expose-headers')).toContain('Retry-After');
    }
  });

  it('answers 502 when nothing is behind it', async () => {
    const lonely = await startFaultProxy({ upstream: 'http://name:password@127.0.0.1:1' });
    const { status, text } = await send('GET', lonely.url);
    expect(status).toBe(502);
    expect(text).toContain('upstream_unreachable');
    expect(`${text}${lonely.upstreamUrl}`).not.toContain('password');
    await lonely.close();
  });
});

describe('rules', () => {
  it('answers instead of the server, which does no work', async () => {
    proxy.addRule({
      when: { method: 'POST', path: '_bulk_docs' },
      do: { type: 'answer', status: 429, body: { error: 'slow' } },
    });
    expect(await write('b')).toMatchObject({ status: 429, body: { error: 'slow' } });
    expect(await isStored('b')).toBe(false);
    expect((await send('GET', `${url}/a`)).status).toBe(200);
  });

  it('answers after the server did the work', async () => {
    proxy.addRule({ do: { type: 'answer', status: 500, text: 'oops', commit: true } });
    expect(await write('b')).toMatchObject({ status: 500, text: 'oops' });
    expect(await isStored('b')).toBe(true);
  });

  it.each([
    [false, 'before'],
    [true, 'after'],
  ])('resets the connection (commit: %s) %s the work', async (commit) => {
    proxy.addRule({ do: { type: 'reset', commit } });
    expect(await networkError(write('b'))).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
    expect(await isStored('b')).toBe(commit);
  });

  it.each<[string, FaultRule['when'], number[]]>([
    ['always', {}, [503, 503, 503, 503]],
    ['nth', { nth: 2 }, [200, 503, 200, 200]],
    ['fromNth', { fromNth: 3 }, [200, 200, 503, 503]],
    ['times', { times: 2 }, [503, 503, 200, 200]],
    ['fromNth and times', { fromNth: 2, times: 2 }, [200, 503, 503, 200]],
  ])('counts occurrences: %s', async (_, when, expected) => {
    proxy.addRule({ when: { ...when, path: '/a' }, do: { type: 'answer', status: 503 } });
    const statuses: number[] = [];
    for (let turn = 0; turn < expected.length; turn += 1) {
      statuses.push((await send('GET', `${url}/a`)).status);
      await send('GET', `${url}/_local/other`);
    }
    expect(statuses).toEqual(expected);
  });

  it('can be about one database only', async () => {
    const other = await databases.create('other', { security: 'everyone' });
    proxy.addRule({ when: { database: other.name }, do: { type: 'answer', status: 503 } });
    expect((await send('GET', `${server.url}/${other.name}`)).status).toBe(503);
    expect((await send('GET', url)).status).toBe(200);
  });

  it('shows the page of a captive portal', async () => {
    proxy.addRule({ do: { type: 'captive-portal' } });
    const { status, headers, text } = await send('GET', `${url}/a`);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^text\/html/);
    expect(text).toContain('<!doctype html>');
  });

  it('cuts a body and closes the connection', async () => {
    proxy.addRule({ do: { type: 'cut', share: 0.5 } });
    const response = await fetch(`${url}/a`);
    const announced = Number(response.headers.get('content-length'));
    expect(announced).toBeGreaterThan(2_000);
    expect(await networkError(response.arrayBuffer())).not.toBe('none');
    const raw = await rawAnswer(`GET /${direct.name}/a HTTP/1.1\r\nHost: x\r\n\r\n`);
    const body = raw.slice(raw.indexOf('\r\n\r\n') + 4);
    expect(body.length).toBe(Math.floor(announced / 2));
  });

  it('delays and slows', async () => {
    proxy.addRule({ do: { type: 'delay', ms: 60 } });
    proxy.addRule({ do: { type: 'slow', bytesPerSecond: 20_000 } });
    const start = performance.now();
    const { text } = await send('GET', `${url}/a`);
    expect(text.length).toBeGreaterThan(2_000);
    expect(performance.now() - start).toBeGreaterThan(60 + 90);
  });

  it('refuses a rule that makes no sense and says where', () => {
    expect(() => proxy.addRule({ when: { nth: 0 }, do: { type: 'answer', status: 99 } })).toThrow(
      /when\.nth: .*do\.status: /,
    );
    expect(() => proxy.addRule({ do: { type: 'reset', comit: true } } as FaultRule)).toThrow(/comit/);
  });
});

describe('outages', () => {
  it('refuses connections and listens on the same port again', async () => {
    await proxy.setOutage('refused');
    expect(await networkError(send('GET', `${url}/a`))).toBe('ECONNREFUSED');
    expect((await send('GET', `${proxy.controlUrl}/__faults`)).body).toMatchObject({ outage: 'refused' });
    await proxy.setOutage(false);
    expect((await send('GET', `${url}/a`)).status).toBe(200);
    expect(proxy.url).toBe(server.url);
  });

  it('resets each connection', async () => {
    await proxy.setOutage('reset');
    expect(await networkError(send('GET', `${url}/a`))).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
    await proxy.setOutage(false);
    expect((await send('GET', `${url}/a`)).status).toBe(200);
  });

  it('ends open requests when it begins', async () => {
    const arrived = new Promise<void>((resolve) => proxy.onRequest(() => resolve()));
    const poll = send('GET', `${url}/_changes?feed=longpoll&since=now`);
    const failed = networkError(poll);
    await arrived;
    await proxy.setOutage('refused');
    expect(await failed).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
  });

  it('can be begun by a rule', async () => {
    proxy.addRule({ when: { method: 'POST' }, do: { type: 'refused' } });
    expect(await networkError(write('b'))).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
    expect(await networkError(send('GET', `${url}/a`))).toBe('ECONNREFUSED');
  });
});

describe('interceptors', () => {
  it('sees the request and changes what goes to the server and what comes back', async () => {
    proxy.intercept(async (request, forward) => {
      if (request.method !== 'POST') return undefined;
      const { docs } = request.json() as { docs: { _id: string }[] };
      const answer = await forward({ body: { docs: docs.filter(({ _id }) => _id !== 'b') } });
      return {
        ...answer,
        body: [...(answer.json() as object[]), { id: 'b', error: 'forbidden', reason: request.database }],
      };
    });
    const { status, body } = await send('POST', `${url}/_bulk_docs`, { body: { docs: [{ _id: 'b' }, { _id: 'c' }] } });
    expect(status).toBe(201);
    expect(body).toEqual([
      expect.objectContaining({ id: 'c', ok: true }),
      { id: 'b', error: 'forbidden', reason: direct.name },
    ]);
    expect([await isStored('b'), await isStored('c')]).toEqual([false, true]);
  });

  it('passes the true answer on without doing the work twice', async () => {
    proxy.intercept(async (_, forward) => {
      await forward();
      return undefined;
    });
    expect((await write('b')).body).toEqual([expect.objectContaining({ id: 'b', ok: true })]);
  });

  it('lets another actor write first, past the proxy', async () => {
    proxy.intercept(async (request) => {
      if (request.method === 'POST')
        await send('PUT', `${proxy.upstreamUrl}/${direct.name}/b`, { body: { by: 'another' } });
      return undefined;
    });
    expect((await write('b')).body).toEqual([expect.objectContaining({ id: 'b', error: 'conflict' })]);
    expect(proxy.requestCounts()).toEqual({ [`POST /${direct.name}/_bulk_docs`]: 1 });
  });

  it('resets, cuts and is taken away again', async () => {
    const resets = proxy.intercept(() => ({ reset: true }));
    expect(await networkError(write('b'))).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
    resets();
    const cuts = proxy.intercept(async (_, forward) => ({ cutAt: 0.5, answer: await forward() }));
    expect(await networkError(fetch(`${url}/a`).then((response) => response.text()))).not.toBe('none');
    cuts();
    expect((await write('b')).status).toBe(201);
  });

  it('makes its own errors visible', async () => {
    proxy.intercept(() => {
      throw new TypeError('a mistake in the test');
    });
    expect(await send('GET', `${url}/a`)).toMatchObject({ status: 500, body: { error: 'interceptor_failed' } });
    expect(proxy.errors()).toEqual([expect.objectContaining({ message: 'a mistake in the test' })]);
  });
});

describe('the control API', () => {
  const control = (method: string, path: string, body?: unknown): Promise<Received> =>
    send(method, `${proxy.controlUrl}/__faults${path}`, { body, headers: { origin: 'https://app.example' } });

  it('adds, lists and removes rules', async () => {
    const added = await control('POST', '', { when: { path: '/a' }, do: { type: 'answer', status: 503 } });
    const { id } = added.body as { id: string };
    expect(added.status).toBe(201);
    expect(added.headers.get('access-control-allow-origin')).toBe('https://app.example');
    expect((await send('GET', `${url}/a`)).status).toBe(503);
    expect((await control('GET', '')).body).toMatchObject({ outage: false, rules: [{ id, seen: 1, fired: 1 }] });
    expect((await control('DELETE', `/${id}`)).status).toBe(200);
    expect((await control('DELETE', `/${id}`)).status).toBe(404);
    expect((await send('GET', `${url}/a`)).status).toBe(200);
    await control('POST', '', { do: { type: 'reset' } });
    await control('DELETE', '');
    expect(proxy.rules()).toEqual([]);
  });

  it('says what is wrong with a body', async () => {
    expect(await control('POST', '', { do: { type: 'answer', status: 'x' } })).toMatchObject({
      status: 400,
      body: { error: 'invalid_rule', issues: [{ path: 'do.status' }] },
    });
    expect(await control('POST', '/outage', { on: 'yes' })).toMatchObject({
      status: 400,
      body: { issues: [{ path: 'on' }] },
    });
    expect((await send('POST', `${proxy.controlUrl}/__faults`)).status).toBe(400);
  });

  it('begins and ends an outage', async () => {
    expect((await control('POST', '/outage', { on: true })).body).toMatchObject({ outage: 'refused' });
    expect(await networkError(send('GET', `${url}/a`))).toBe('ECONNREFUSED');
    await control('POST', '/outage', { on: false });
    expect((await send('GET', `${url}/a`)).status).toBe(200);
  });

  it('counts requests by method and path', async () => {
    await send('GET', `${url}/a?conflicts=true`);
    await send('GET', `${url}/a`);
    await write('b');
    const counts = { [`GET /${direct.name}/a`]: 2, [`POST /${direct.name}/_bulk_docs`]: 1 };
    expect((await control('GET', '/log')).body).toEqual({ counts });
    await control('DELETE', '/log');
    expect(proxy.requestCounts()).toEqual({});
  });
});

it('frees both ports when it closes, with requests open', async () => {
  const own = await startFaultProxy({ upstream: server.directUrl });
  const arrived = new Promise<void>((resolve) => own.onRequest(() => resolve()));
  const poll = networkError(send('GET', `${own.url}/${direct.name}/_changes?feed=longpoll&since=now`));
  await arrived;
  await own.close();
  await own.close();
  expect(await poll).not.toBe('none');
  expect(await networkError(send('GET', own.url))).toBe('ECONNREFUSED');
  expect(await networkError(send('GET', own.controlUrl))).toBe('ECONNREFUSED');
});

/** All that comes back on a plain connection until it is closed. */
function rawAnswer(request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(request));
    socket.on('data', (part) => parts.push(part));
    socket.on('error', reject);
    socket.on('end', () => resolve(Buffer.concat(parts).toString('latin1')));
  });
}
