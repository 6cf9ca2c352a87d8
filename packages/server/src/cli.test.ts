import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { runCommandLine } from './cli.js';
import type { World } from './command.js';
import { run } from './server.fixture.js';

const admin = { username: 'admin', password: 'hidden-word' };
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** The address of a server that answers so. */
async function answering(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

const json = (status: number, body: unknown): RequestListener => {
  return (_request, response) => void response.writeHead(status).end(JSON.stringify(body));
};

describe('the command line', () => {
  it('says what there is', async () => {
    const help = await run(['--help'], admin);
    expect(help).toMatchObject({ code: 0, said: '', out: expect.stringContaining('COUCHDB_PASSWORD') as string });
    expect(await run([], admin)).toMatchObject({ code: 2, out: '' });
    expect(await run(['set-up'], admin)).toMatchObject({ code: 2 });
    expect(await run(['setup', '--help'], admin)).toMatchObject({ code: 0, requests: [] });
  });

  it.each([
    ['no address', ['setup'], /--url is missing/],
    ['an address that is none', ['setup', '--url', 'localhost'], /--url must/],
    ['a query', ['setup', '--url', 'http://127.0.0.1:1/?a'], /without/],
    ['a password in the address', ['setup', '--url', 'http://admin:hidden-word@127.0.0.1:1'], /COUCHDB_PASSWORD/],
    ['a password as an option', ['setup', '--url', 'http://127.0.0.1:1', '--password=hidden-word'], /command line/],
    ['a password as a word', ['setup', '--url', 'http://127.0.0.1:1', 'hidden-word'], /a word too many/],
    ['a short password', ['setup', '-phidden-word'], /command line/],
    ['an unknown option', ['setup', '--all=hidden-word'], /Unknown option: --all$/m],
    ['an option without a value', ['setup', '--url'], /--url/],
    ['a layout that is none', ['setup', '--url', 'http://127.0.0.1:1', '--layout', 'own'], /shared, per-user/],
    ['a name that CouchDB refuses', ['setup', '--url', 'http://127.0.0.1:1', '--wait', 'long'], /seconds/],
  ])('S7 refuses %s, with the exit code 2 and without repeating a password', async (_, given, reason) => {
    const { code, said, out, requests } = await run(given, admin);
    expect({ code, out, requests }).toEqual({ code: 2, out: '', requests: [] });
    expect(said).toMatch(reason);
    expect(said).not.toContain('hidden-word');
  });

  it('S7 asks for what the environment lacks, the password without showing it', async () => {
    const asked: [string, boolean][] = [];
    const seen: (string | null)[] = [];
    const world: World = {
      environment: { COUCHDB_PASSWORD: '' },
      ask: (question, hidden) => {
        asked.push([question, hidden]);
        return Promise.resolve(hidden ? 'pässword' : 'admin');
      },
      fetch: (_input, init) => {
        seen.push(new Headers(init?.headers).get('authorization'));
        return Promise.resolve(Response.json({ error: 'unauthorized', reason: 'no' }, { status: 401 }));
      },
      out: () => Promise.resolve(),
      say: () => undefined,
      now: Date.now,
    };
    expect(await runCommandLine(['setup', '--url', 'http://127.0.0.1:1'], world)).toBe(1);
    expect(asked.map(([, hidden]) => hidden)).toEqual([false, true]);
    expect(seen).toEqual([`Basic ${Buffer.from('admin:pässword').toString('base64')}`]);
  });

  it('S7 says which variables to set where nobody can be asked', async () => {
    const { code, said } = await run(['setup', '--url', 'http://127.0.0.1:1'], { username: 'admin', password: '' });
    expect({ code, said }).toMatchObject({ code: 2, said: expect.stringContaining('COUCHDB_PASSWORD') as string });
  });

  it('S7 says that a password goes over an open line', async () => {
    const fetcher: typeof fetch = () => Promise.resolve(Response.json({}, { status: 401 }));
    const open = await run(['setup', '--url', 'http://couch.example'], admin, { fetcher });
    expect(open.said).toContain('https://');
    const closed = await run(['setup', '--url', 'https://couch.example'], admin, { fetcher });
    expect(closed.said).not.toContain('http://');
  });
});

describe('a server that is none says what to do', () => {
  const page: RequestListener = (_request, response) => void response.end('<html>hidden-word</html>');
  const sentOn: RequestListener = (_request, response) =>
    void response.writeHead(302, { location: 'https://login.example/?hidden-word' }).end();
  const cut: RequestListener = (request) => void request.socket.destroy();
  it.each<[string, RequestListener, RegExp]>([
    ['a login page', page, /login page/],
    ['a redirect to one', sentOn, /login page/],
    ['another web server', json(404, { message: 'hidden-word' }), /Not found/],
    ['a database', json(200, { db_name: 'records' }), /without the name of a database/],
    ['a CouchDB that is too old', json(200, { couchdb: 'Welcome', version: '1.7.2' }), /older than version 3/],
    ['a CouchDB that refuses the password', json(401, { error: 'unauthorized' }), /COUCHDB_PASSWORD/],
    ['a CouchDB that gives no right', json(403, { error: 'forbidden', reason: 'hidden-word' }), /no right/],
    ['a CouchDB in trouble', json(500, { error: 'x', reason: 'hidden-word' }), /again later/],
    ['a proxy without a CouchDB behind', (_q, response) => void response.writeHead(502).end('bad'), /again later/],
    ['nothing at all', cut, /Nothing answers/],
  ])('S1 %s', async (_, listener, reason) => {
    const { code, said } = await run(['setup', '--url', await answering(listener)], admin);
    expect(code).toBe(1);
    expect(said).toMatch(reason);
    expect(said).not.toContain('hidden-word');
  });

  it('S7 a redirect is never followed: the password stays', async () => {
    let visits = 0;
    const other = await answering((_request, response) => {
      visits++;
      response.end('{}');
    });
    const url = await answering((_request, response) => void response.writeHead(307, { location: other }).end());
    await run(['setup', '--url', url], admin);
    expect(visits).toBe(0);
  });

  it('S1 with --wait a server that is just being started is waited for', async () => {
    let requests = 0;
    const url = await answering((request, response) => {
      requests++;
      if (requests === 1) request.socket.destroy();
      else json(401, { error: 'unauthorized' })(request, response);
    });
    const { code, said } = await run(['setup', '--url', url, '--wait', '20'], admin);
    expect({ code, said }).toMatchObject({ code: 1, said: expect.stringContaining('COUCHDB_PASSWORD') as string });
    expect(requests).toBe(2);
  });
});
