import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { networkError, send } from '../fixtures/client.js';
import { serverUnderTest, type ServerUnderTest } from '../server-under-test.js';
import { temporaryDatabases, type TemporaryDatabase, type TemporaryDatabases } from '../temporary-databases.js';
import { startDevServer, type Credentials, type DevServer } from './dev-server.js';

const noBadDocuments = {
  _id: '_design/rules',
  validate_doc_update: `function (newDoc, oldDoc, userCtx) {
    if (newDoc.bad) throw({ forbidden: 'bad documents are refused' });
    if (userCtx.roles.indexOf('readers') >= 0) throw({ forbidden: 'readers write nothing' });
  }`,
};

describe('what the embedded server and CouchDB have in common', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  let main: TemporaryDatabase;
  let admin: Credentials;
  let member: Credentials;
  let reader: Credentials;
  let stranger: Credentials;

  beforeAll(async () => {
    server = await serverUnderTest();
    admin = server.admin;
    databases = temporaryDatabases(server.directUrl, admin);
    member = await databases.createUser({ roles: ['members'] });
    reader = await databases.createUser({ roles: ['members', 'readers'] });
    stranger = await databases.createUser();
    const security = { admins: { names: [], roles: [] }, members: { names: [], roles: ['members'] } };
    main = await databases.create('main', { security, docs: [noBadDocuments, { _id: 'known' }] });
  });

  afterAll(async () => {
    await databases.dispose();
    await server.close();
  });

  it('says what it is', async () => {
    expect(server.software).toMatchObject({
      couchdb: 'Welcome',
      version: expect.stringMatching(/^\d+\.\d+/) as string,
    });
    expect(await send('GET', `${server.directUrl}/_up`)).toMatchObject({ status: 200, body: { status: 'ok' } });
  });

  it('refuses a name that CouchDB refuses', async () => {
    expect(await send('PUT', `${server.directUrl}/Upper`, { as: admin })).toMatchObject({
      status: 400,
      body: { error: 'illegal_database_name' },
    });
  });

  it('lets only a server admin create a database and list them', async () => {
    for (const as of [member, undefined]) {
      const sent = as === undefined ? {} : { as };
      expect(await send('PUT', `${server.directUrl}/test-nobodys`, sent)).toMatchObject({
        status: 401,
        body: { error: 'unauthorized' },
      });
      expect((await send('GET', `${server.directUrl}/_all_dbs`, sent)).status).toBe(401);
    }
  });

  it('refuses a row that a validation function forbids and writes the others', async () => {
    const docs = [{ _id: 'refused', bad: true }, { _id: 'taken' }];
    const { status, body } = await send('POST', `${main.url}/_bulk_docs`, { as: member, body: { docs } });
    expect(status).toBe(201);
    expect(body).toHaveLength(2);
    expect(body).toContainEqual({ id: 'refused', error: 'forbidden', reason: 'bad documents are refused' });
    expect(body).toContainEqual(expect.objectContaining({ ok: true, id: 'taken' }));
  });

  it('refuses such a row with new_edits false, too, and names only that one', async () => {
    const docs = [
      { _id: 'copied-bad', _rev: '1-aa', bad: true },
      { _id: 'copied', _rev: '1-aa' },
    ];
    const { status, body } = await send('POST', `${main.url}/_bulk_docs`, {
      as: member,
      body: { docs, new_edits: false },
    });
    expect(status).toBe(201);
    expect(body).toEqual([
      expect.objectContaining({ id: 'copied-bad', error: 'forbidden', reason: 'bad documents are refused' }),
    ]);
    expect((await send('GET', `${main.url}/copied`, { as: member })).status).toBe(200);
    expect((await send('GET', `${main.url}/copied-bad`, { as: member })).status).toBe(404);
  });

  it('keeps the history sent with new_edits false where a validation function looks at the document', async () => {
    const url = `${main.url}/history`;
    const copy = (doc: object) =>
      send('POST', `${main.url}/_bulk_docs`, { as: member, body: { docs: [doc], new_edits: false } });
    await copy({ _id: 'history', _rev: '1-aa', text: 'first' });
    await copy({ _id: 'history', _revisions: { start: 2, ids: ['bb', 'aa'] }, _rev: '2-bb', text: 'second' });
    expect((await send('GET', `${url}?revs=true`, { as: member })).body).toMatchObject({
      _rev: '2-bb',
      text: 'second',
      _revisions: { start: 2, ids: ['bb', 'aa'] },
    });
  });

  it('knows the revisions of a history that came without their documents', async () => {
    const [first, second, third] = ['a', 'b', 'c'].map((letter) => letter.repeat(32));
    const doc = {
      _id: 'known-history',
      _rev: `3-${String(third)}`,
      _revisions: { start: 3, ids: [third, second, first] },
    };
    await send('POST', `${main.url}/_bulk_docs`, { as: member, body: { docs: [doc], new_edits: false } });
    const asked = {
      'known-history': [`1-${String(first)}`, `2-${String(second)}`, `2-${String(first)}`, `3-${String(third)}`],
      'never-there': [`1-${String(first)}`],
    };
    expect((await send('POST', `${main.url}/_revs_diff`, { as: member, body: asked })).body).toMatchObject({
      'known-history': { missing: [`2-${String(first)}`] },
      'never-there': { missing: [`1-${String(first)}`] },
    });
    const known = { 'known-history': [`1-${String(first)}`] };
    expect((await send('POST', `${main.url}/_revs_diff`, { as: member, body: known })).body).toEqual({});
  });

  it('names the leaves that missing revisions may come after', async () => {
    const [first, second, third] = ['a', 'b', 'c'].map((letter) => letter.repeat(32));
    const docs = [
      { _id: 'leaves', _rev: `2-${String(second)}`, _revisions: { start: 2, ids: [second, first] } },
      { _id: 'leaves', _rev: `3-${String(third)}`, _revisions: { start: 3, ids: [third, third, first] } },
    ];
    await send('POST', `${main.url}/_bulk_docs`, { as: member, body: { docs, new_edits: false } });
    const ancestors = async (rev: string): Promise<unknown> => {
      const { body } = await send('POST', `${main.url}/_revs_diff`, { as: member, body: { leaves: [rev] } });
      return (body as { leaves: { possible_ancestors?: string[] } }).leaves.possible_ancestors?.sort();
    };
    expect(await ancestors(`4-${String(first)}`)).toEqual([`2-${String(second)}`, `3-${String(third)}`]);
    expect(await ancestors(`3-${String(first)}`)).toEqual([`2-${String(second)}`]);
    expect(await ancestors(`2-${'d'.repeat(32)}`)).toBeUndefined();
  });

  it('answers who may only read that writing is forbidden, not that nobody is signed in', async () => {
    expect((await send('GET', `${main.url}/known`, { as: reader })).status).toBe(200);
    expect(await send('PUT', `${main.url}/mine`, { as: reader, body: {} })).toMatchObject({
      status: 403,
      body: { error: 'forbidden', reason: 'readers write nothing' },
    });
  });

  it.each(['GET ', 'GET known', 'GET _all_docs', 'GET _changes', 'POST _find', 'POST _bulk_docs', 'POST _bulk_get'])(
    'refuses %s with 403 to who is signed in and no member, with 401 to who is signed out',
    async (request) => {
      const [method = '', path = ''] = request.split(' ');
      const body = method === 'GET' ? undefined : { selector: {}, docs: [{ _id: 'x' }] };
      const url = `${main.url}/${path}`;
      expect(await send(method, url, { as: stranger, body })).toMatchObject({
        status: 403,
        body: { error: 'forbidden' },
      });
      expect(await send(method, url, { body })).toMatchObject({ status: 401, body: { error: 'unauthorized' } });
    },
  );

  it('refuses a design document to a member with 403', async () => {
    expect(await send('PUT', `${main.url}/_design/mine`, { as: member, body: {} })).toMatchObject({
      status: 403,
      body: { error: 'forbidden' },
    });
  });

  it('refuses a wrong password with 401', async () => {
    const wrong = { ...member, password: 'wrong' };
    expect(await send('GET', `${server.directUrl}/_session`, { as: wrong })).toMatchObject({
      status: 401,
      body: { error: 'unauthorized' },
    });
  });

  it('signs in with a cookie and out again', async () => {
    const body = { name: member.username, password: member.password };
    const session = `${server.directUrl}/_session`;
    const signedIn = await send('POST', session, { body });
    expect(signedIn).toMatchObject({ status: 200, body: { ok: true, name: member.username, roles: ['members'] } });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';', 1)[0] ?? '';
    expect((await send('GET', session, { headers: { cookie } })).body).toMatchObject({
      ok: true,
      userCtx: { name: member.username, roles: ['members'] },
    });
    expect((await send('GET', `${main.url}/known`, { headers: { cookie } })).status).toBe(200);
    const signedOut = await send('DELETE', session, { headers: { cookie } });
    expect(signedOut.headers.getSetCookie()[0]).toMatch(/^AuthSession=;/);
    expect((await send('GET', session)).body).toMatchObject({ ok: true, userCtx: { name: null, roles: [] } });
  });

  it('gives the changes of certain documents', async () => {
    const feed = `${main.url}/_changes?filter=_doc_ids`;
    const { status, body } = await send('POST', feed, { as: member, body: { doc_ids: ['known', 'none'] } });
    expect(status).toBe(200);
    expect(body).toMatchObject({ results: [{ id: 'known' }] });
    expect((body as { results: unknown[] }).results).toHaveLength(1);
  });

  it('finds nothing to delete where there is no database', async () => {
    expect((await send('DELETE', `${server.directUrl}/test-never-there`, { as: admin })).status).toBe(404);
  });

  it('gives a new database to admins only', async () => {
    const closed = await databases.create('closed');
    expect((await send('GET', closed.url, { as: admin })).status).toBe(200);
    expect((await send('GET', closed.url, { as: member })).status).toBe(403);
  });
});

describe('the embedded server', () => {
  const origin = 'https://app.example';
  let server: DevServer;

  beforeAll(async () => {
    server = await startDevServer();
    await send('PUT', `${server.url}/main`, { as: server.admin });
  });

  afterAll(() => server.close());

  it('answers a preflight and lets pages of other origins sign in and read the headers that matter', async () => {
    const preflight = await send('OPTIONS', `${server.url}/main/_bulk_docs`, {
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-mine',
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-headers')).toBe('authorization,content-type,x-mine');
    expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT');
    const refused = await send('GET', `${server.url}/main`, { headers: { origin } });
    expect(refused.status).toBe(401);
    for (const { headers } of [preflight, refused]) {
      expect(headers.get('access-control-allow-origin')).toBe(origin);
      expect(headers.get('access-control-allow-credentials')).toBe('true');
      expect(headers.get('access-control-expose-headers')).toMatch(/Retry-After, Date, ETag/);
      expect(headers.get('vary')).toBe('Origin');
    }
  });

  it('answers JSON to who takes anything', async () => {
    const { headers } = await send('GET', `${server.url}/main`, { as: server.admin });
    expect(headers.get('content-type')).toBe('application/json');
  });

  it('refuses a feed with filter=_selector and goes on', async () => {
    const url = `${server.url}/main/_changes?filter=_selector`;
    expect((await send('POST', url, { as: server.admin, body: { selector: {} } })).status).toBe(400);
    expect((await send('GET', `${server.url}/main`, { as: server.admin })).status).toBe(200);
  });

  it('refuses names with a slash rather than taking them for another name', async () => {
    const { status, body } = await send('PUT', `${server.url}/a%2Fb`, { as: server.admin });
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: 'illegal_database_name' });
    expect((await send('GET', `${server.url}/pouch__all_dbs__`, { as: server.admin })).status).toBe(404);
  });

  it('answers 413 to a body over its limit', async () => {
    const small = await startDevServer({ maxBodyBytes: 1_000 });
    const doc = { text: 'x'.repeat(2_000) };
    expect(await send('PUT', `${small.url}/_users/x`, { as: small.admin, body: doc })).toMatchObject({
      status: 413,
      body: { error: 'too_large' },
    });
    await small.close();
  });

  it('survives an error that express-pouchdb forgets to handle, and says so', async () => {
    let hear: (reason: string) => void = () => undefined;
    const problem = new Promise<string>((resolve) => (hear = resolve));
    const fragile = await startDevServer({ onProblem: (reason) => hear(reason) });
    await send('PUT', `${fragile.url}/main`, { as: fragile.admin });
    await send('GET', `${fragile.url}/main/_changes?filter=no/filter`, { as: fragile.admin });
    expect(await problem).toBe('not_found: missing');
    expect(fragile.problems()).toEqual(['not_found: missing']);
    expect((await send('GET', `${fragile.url}/main`, { as: fragile.admin })).status).toBe(200);
    await fragile.close();
  });

  it('answers in JSON what express-pouchdb can not take', async () => {
    const { status, body } = await send('POST', `${server.url}/main/_bulk_docs`, {
      as: server.admin,
      body: { docs: [null] },
    });
    expect(status).toBe(500);
    expect(body).toMatchObject({ error: 'unknown_error' });
  });

  it('shares no databases with another one in the same process', async () => {
    const other = await startDevServer();
    const list = (url: string) => send('GET', `${url}/_all_dbs`, { as: server.admin });
    await send('PUT', `${other.url}/others`, { as: other.admin });
    expect((await list(server.url)).body).not.toContain('others');
    expect((await list(other.url)).body).not.toContain('main');
    await other.close();
    expect((await send('GET', `${server.url}/main`, { as: server.admin })).status).toBe(200);
  });

  it('takes the admin and the port that it is given, and frees the port when it closes', async () => {
    const admin = { username: 'chief', password: 'a b:c' };
    const first = await startDevServer({ admin });
    expect((await send('GET', `${first.url}/_session`, { as: admin })).body).toMatchObject({
      userCtx: { name: 'chief', roles: ['_admin'] },
    });
    await first.close();
    expect(await networkError(send('GET', first.url))).toBe('ECONNREFUSED');
    const second = await startDevServer({ port: first.port });
    expect(second.url).toBe(first.url);
    expect((await send('GET', `${second.url}/_session`, { as: admin })).status).toBe(401);
    await second.close();
    await second.close();
  });

  it('says that a port is taken', async () => {
    const taken: Server = createServer();
    const port = await new Promise<number>((resolve) => {
      taken.listen(0, '127.0.0.1', () => resolve((taken.address() as AddressInfo).port));
    });
    await expect(startDevServer({ port })).rejects.toMatchObject({
      code: 'start_failed',
      message: expect.stringContaining('EADDRINUSE') as string,
    });
    taken.close();
  });
});
