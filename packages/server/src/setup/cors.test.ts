import { serverUnderTest, type ServerUnderTest } from '@afield/devserver';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ownNames, run, sendAs, type Ran } from '../server.fixture.js';
import { checkedOrigin } from './cors.js';

let server: ServerUnderTest;
let own: ReturnType<typeof ownNames>;
beforeAll(async () => {
  server = await serverUnderTest();
  own = ownNames(server);
});
afterAll(async () => {
  await own.dispose();
  await server.close();
});

type Config = Record<string, Record<string, string>>;

/** Answers for the settings of nodes from memory, and passes everything else on to the server. */
function withSettings(nodes: Record<string, Config>): typeof fetch {
  const json = (body: unknown, status = 200): Promise<Response> => Promise.resolve(Response.json(body, { status }));
  return (input, init) => {
    const { pathname } = new URL(input as string);
    if (pathname === '/_membership') return json({ all_nodes: [], cluster_nodes: Object.keys(nodes) });
    const [, prefix, node = '', , section = '', key = ''] = pathname.split('/').map(decodeURIComponent);
    if (prefix !== '_node') return fetch(input, init);
    const config = nodes[node];
    if (config === undefined) return json({ error: 'not_found', reason: 'no such node' }, 404);
    if (init?.method !== 'PUT') return json(config[section] ?? {});
    (config[section] ??= {})[key] = JSON.parse(init.body as string) as string;
    return json('');
  };
}

const setup = (fetcher: typeof fetch, ...given: string[]): Promise<Ran> => {
  const names = ['--results', own.name('results'), '--events', own.name('events')];
  return run(
    ['setup', '--url', server.directUrl, ...names, '--origin', 'https://app.example', ...given],
    server.admin,
    {
      fetcher,
    },
  );
};

describe('CORS', () => {
  it('R13 a page may see when to come again, and what time the server has; on each node of a cluster', async () => {
    const nodes: Record<string, Config> = { 'a@1': {}, 'b@2': {} };
    expect(await setup(withSettings(nodes), '--origin', 'http://localhost:5173')).toMatchObject({ code: 0 });
    const wanted = {
      cors: {
        origins: 'https://app.example, http://localhost:5173',
        credentials: 'true',
        exposed_headers:
          'accept-ranges, etag, server, x-couch-request-id, x-couch-update-newrev, x-couchdb-body-time, date, retry-after',
      },
      chttpd: { enable_cors: 'true' },
    };
    expect(nodes).toEqual({ 'a@1': wanted, 'b@2': wanted });
    const second = await setup(withSettings(nodes), '--origin', 'http://localhost:5173');
    expect(second.requests.filter((one) => !one.startsWith('GET'))).toEqual([]);
  });

  it('S1 adds to the lists that a person has made, and takes nothing away', async () => {
    const cors = {
      origins: 'https://other.example',
      headers: 'X-Mine,authorization',
      methods: 'GET',
      credentials: 'true',
    };
    const node: Config = { cors };
    expect(await setup(withSettings({ n: node }))).toMatchObject({ code: 0 });
    expect(node['cors']).toMatchObject({
      origins: 'https://other.example, https://app.example',
      headers: 'X-Mine, authorization, accept, content-type, if-match, origin',
      methods: 'GET, DELETE, HEAD, OPTIONS, POST, PUT',
    });
  });

  it('S1 keeps what a person has switched off, and every origin allowed, unless it is forced', async () => {
    const node: Config = { cors: { origins: '*', credentials: 'false' }, chttpd: { enable_cors: 'false' } };
    const kept = await setup(withSettings({ n: node }));
    expect(kept.code).toBe(3);
    expect(kept.out.match(/kept/g)).toHaveLength(3);
    expect(node).toMatchObject({ cors: { origins: '*', credentials: 'false' }, chttpd: { enable_cors: 'false' } });
    expect(await setup(withSettings({ n: node }), '--force')).toMatchObject({ code: 0 });
    expect(node).toMatchObject({ cors: { origins: 'https://app.example', credentials: 'true' } });
  });

  it('S7 never lets every page of the web sign in: credentials are not switched on beside every origin', async () => {
    const node: Config = { cors: { origins: '*' } };
    expect((await setup(withSettings({ n: node }))).code).toBe(3);
    expect(node['cors']).not.toHaveProperty('credentials');
  });

  it('S1 leaves CORS alone where no origin is given, and goes on where a server has no settings', async () => {
    const names = ['--results', own.name('results'), '--events', own.name('events')];
    const without = await run(['setup', '--url', server.directUrl, ...names], server.admin);
    expect(without.requests.join()).not.toContain('_config');
    const notThere: typeof fetch = (input, init) =>
      (input as string).includes('/_node/')
        ? Promise.resolve(Response.json({ error: 'not_found' }, { status: 404 }))
        : fetch(input, init);
    const { code, out } = await setup(notThere);
    expect({ code, out }).toMatchObject({
      code: 0,
      out: expect.stringMatching(/skipped +setting .*set CORS/) as string,
    });
  });

  it('R13 a real CouchDB then shows them to a page', async ({ skip }) => {
    if (server.isEmbedded) skip('the embedded server sets its headers itself');
    const config = `${server.directUrl}/_node/_local/_config`;
    const before: Config = {};
    for (const section of ['cors', 'chttpd']) {
      before[section] = (await sendAs(server.admin, 'GET', `${config}/${section}`)).body as Record<string, string>;
    }
    const origin = `https://${own.name('app')}.example`;
    try {
      expect(await setup(fetch, '--origin', origin)).toMatchObject({ code: 0 });
      await vi.waitFor(async () => {
        const { headers } = await fetch(`${server.directUrl}/`, { headers: { origin } });
        expect(headers.get('access-control-allow-origin')).toBe(origin);
        expect(headers.get('access-control-allow-credentials')).toBe('true');
        expect(headers.get('access-control-expose-headers')).toMatch(/\bdate, retry-after\b/);
        expect(headers.get('date')).not.toBeNull();
      });
      // A refusal and a missing database are seen too, and not taken for a network error.
      for (const path of ['_all_dbs', own.name('none')]) {
        const { status, headers } = await fetch(`${server.directUrl}/${path}`, { headers: { origin } });
        expect([401, 404]).toContain(status);
        expect(headers.get('access-control-allow-origin')).toBe(origin);
      }
      const preflight = await fetch(`${server.directUrl}/x/_bulk_docs`, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type',
        },
      });
      expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization,content-type');
    } finally {
      for (const [section, key] of [
        ['chttpd', 'enable_cors'],
        ['cors', 'origins'],
        ['cors', 'credentials'],
        ['cors', 'exposed_headers'],
      ] as const) {
        const value = before[section]?.[key];
        await sendAs(server.admin, value === undefined ? 'DELETE' : 'PUT', `${config}/${section}/${key}`, value);
      }
    }
  });
});

it.each(['*', 'app.example', 'https://app.example/path', 'https://a:b@app.example', 'file:///x'])(
  'S1 an origin is no %s',
  (text) => {
    expect(() => checkedOrigin(text)).toThrow(/--origin/);
  },
);

it('S1 an origin is written as a browser sends it', () => {
  expect(checkedOrigin('HTTPS://App.Example:443/')).toBe('https://app.example');
});
