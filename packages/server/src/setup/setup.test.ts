import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { databaseOfUser } from '../databases.js';
import { ownNames, run, sendAs, type Ran } from '../server.fixture.js';

let server: ServerUnderTest;
let users: TemporaryDatabases;
let own: ReturnType<typeof ownNames>;
let results: string;
let events: string;

beforeAll(async () => {
  server = await serverUnderTest();
  users = temporaryDatabases(server.directUrl, server.admin);
});
beforeEach(() => {
  own = ownNames(server);
  results = own.name('results');
  events = own.name('events');
  return () => own.dispose();
});
afterAll(async () => {
  await users.dispose();
  await server.close();
});

const setup = (...given: string[]): Promise<Ran> =>
  run(['setup', '--url', server.directUrl, '--results', results, '--events', events, ...given], server.admin);
const at = (path: string): string => `${server.directUrl}/${path}`;
const outcomes = ({ out }: Ran): string[] => [
  ...new Set(
    out
      .trim()
      .split('\n')
      .map((line) => line.slice(0, 18).trim()),
  ),
];
const changing = ({ requests }: Ran): string[] => requests.filter((one) => !/^(GET|HEAD) /.test(one));

describe('setup', () => {
  it('S1 makes databases that devices write, each its own documents, and supervisors read', async () => {
    expect(await setup('--app-db', own.name('app'))).toMatchObject({ code: 0, said: '' });
    const ann = await users.createUser({ label: 'ann', roles: ['afield-device'] });
    const bob = await users.createUser({ label: 'bob', roles: ['afield-device'] });
    const supervisor = await users.createUser({ label: 'sue', roles: ['afield-supervisor'] });
    const stranger = await users.createUser({ label: 'max' });
    const doc = { type: 'afield-result', store: 's1', user: ann.username };
    const url = at(`${results}/result:s1:b1`);

    const written = await sendAs(ann, 'PUT', url, doc);
    expect(written.status).toBe(201);
    const again = await sendAs(ann, 'PUT', url, { ...doc, changes: 2, _rev: written.body['rev'] });
    expect(again.status).toBe(201);
    const rev = again.body['rev'] as string;
    expect((await sendAs(bob, 'PUT', url, { ...doc, _rev: rev })).status).toBe(403);
    expect((await sendAs(bob, 'PUT', url, { ...doc, user: bob.username, _rev: rev })).status).toBe(403);
    expect((await sendAs(bob, 'DELETE', `${url}?rev=${rev}`)).status).toBe(403);
    expect((await sendAs(ann, 'DELETE', `${url}?rev=${rev}`)).status).toBe(403);
    const above = { ...doc, _id: 'result:s1:b1', user: bob.username, _rev: '9-ffffffffffffffffffffffffffffffff' };
    await sendAs(bob, 'POST', at(`${results}/_bulk_docs`), { new_edits: false, docs: [above] });
    expect((await sendAs(supervisor, 'PUT', at(`${results}/result:s2:b1`), doc)).status).toBe(403);
    expect((await sendAs(ann, 'PUT', at(`${results}/_design/mine`), {})).status).toBeGreaterThanOrEqual(400);
    expect((await sendAs(supervisor, 'GET', url)).body).toMatchObject({ changes: 2, user: ann.username });
    expect((await sendAs(stranger, 'GET', url)).status).toBe(403);

    const event = { name: 'documents.new.person', store: 's1' };
    const published = await sendAs(ann, 'PUT', at(`${events}/e1`), event);
    expect(published.status).toBe(201);
    const changed = { ...event, index: 1, _rev: published.body['rev'] };
    expect((await sendAs(ann, 'PUT', at(`${events}/e1`), changed)).status).toBe(403);
    expect((await sendAs(stranger, 'GET', at(`${events}/e1`))).status).toBe(403);
    expect((await sendAs(ann, 'PUT', at(`${own.name('app')}/p1`), { type: 'person' })).status).toBe(201);
  });

  it('S1 makes databases that one user alone writes, without a name in the documents', async () => {
    const ann = await users.createUser({ label: 'ann' });
    const bob = await users.createUser({ label: 'bob', roles: ['afield-device'] });
    const supervisor = await users.createUser({ label: 'sue', roles: ['afield-supervisor'] });
    const given = ['--layout', 'per-user', '--user', ann.username, '--user', bob.username];
    expect(await setup(...given)).toMatchObject({ code: 0 });
    const database = at(databaseOfUser(results, ann.username));
    const doc = { type: 'afield-result', store: 's1' };
    expect((await sendAs(ann, 'PUT', `${database}/result:s1:b1`, doc)).status).toBe(201);
    expect((await sendAs(bob, 'GET', `${database}/result:s1:b1`)).status).toBe(403);
    expect((await sendAs(bob, 'PUT', `${database}/result:s1:b2`, doc)).status).toBe(403);
    expect((await sendAs(supervisor, 'GET', `${database}/result:s1:b1`)).status).toBe(200);
    expect((await sendAs(supervisor, 'PUT', `${database}/result:s1:b2`, doc)).status).toBe(403);
    expect((await sendAs(bob, 'GET', at(databaseOfUser(events, ann.username)))).status).toBe(403);
    expect((await sendAs(bob, 'GET', at(databaseOfUser(events, bob.username)))).status).toBe(200);
    expect((await sendAs(server.admin, 'GET', at(results))).status).toBe(404);
    expect(outcomes(await setup(...given))).toEqual(['already so']);
  });

  it('S1 changes nothing the second time, and nothing at all in a dry run', async () => {
    const dry = await setup('--dry-run');
    expect(changing(dry)).toEqual([]);
    expect(outcomes(dry)).toEqual(['already so', 'would be made']);
    expect((await sendAs(server.admin, 'GET', at(results))).status).toBe(404);
    expect(outcomes(await setup())).toContain('made');
    const second = await setup();
    expect(outcomes(second)).toEqual(['already so']);
    expect(changing(second)).toEqual([]);
  });

  it('S1 goes on after a run that was stopped, wherever it was', async () => {
    const whole = await setup('--dry-run');
    const steps = whole.out.split('\n').filter((line) => line.startsWith('would')).length;
    for (let stopAfter = 0; stopAfter <= steps; stopAfter++) {
      let changes = 0;
      const fetcher: typeof fetch = (input, init) => {
        if (init?.method !== 'GET' && changes++ === stopAfter) return Promise.reject(new TypeError('stopped'));
        return fetch(input, init);
      };
      const given = ['setup', '--url', server.directUrl, '--results', own.name(`r${String(stopAfter)}`)];
      const stopped = await run([...given, '--events', events], server.admin, { fetcher });
      expect(stopped.code).toBe(changes > stopAfter ? 1 : 0);
      expect((await run([...given, '--events', events], server.admin)).code).toBe(0);
      expect(outcomes(await run([...given, '--events', events], server.admin))).toEqual(['already so']);
    }
  });

  it('S1 shows what a person has made otherwise, and keeps it unless it is forced', async () => {
    await setup();
    const security = { admins: { names: [], roles: ['_admin'] }, members: { names: ['eve'], roles: [] } };
    await sendAs(server.admin, 'PUT', at(`${results}/_security`), security);
    const url = at(`${results}/_design/afield-validation`);
    const { body } = await sendAs(server.admin, 'GET', url);
    const text = 'function () {}';
    await sendAs(server.admin, 'PUT', url, { ...body, validate_doc_update: text });
    const index = at(`${results}/_index`);
    await sendAs(server.admin, 'DELETE', `${index}/afield-by-time/json/by-time`);
    await sendAs(server.admin, 'POST', index, { ddoc: 'afield-by-time', name: 'by-time', index: { fields: ['x'] } });

    const kept = await setup();
    expect(kept).toMatchObject({ code: 3, said: expect.stringContaining('--force') as string });
    expect(kept.out).toContain('members names [eve] roles []');
    expect(changing(kept)).toEqual([]);
    expect(outcomes(await setup('--force', '--dry-run'))).toContain('would be replaced');
    expect((await sendAs(server.admin, 'GET', url)).body).toMatchObject({ validate_doc_update: text });

    expect(await setup('--force')).toMatchObject({ code: 0, out: expect.stringContaining('replaced') as string });
    expect(outcomes(await setup())).toEqual(['already so']);
  });

  it('S1 brings a validation of an older version up to date without being forced', async () => {
    await setup();
    const url = at(`${events}/_design/afield-validation`);
    const { body } = await sendAs(server.admin, 'GET', url);
    const { createHash } = await import('node:crypto');
    const text = 'function (newDoc) { /* of an older version */ }';
    const afield = createHash('sha256').update(text).digest('hex');
    await sendAs(server.admin, 'PUT', url, { ...body, validate_doc_update: text, afield });
    expect(await setup()).toMatchObject({ code: 0, out: expect.stringMatching(/made +validation of/) as string });
    expect(outcomes(await setup())).toEqual(['already so']);
  });

  it('S1 leaves the rights of an app’s own database to who has set them', async () => {
    const app = own.name('app');
    await sendAs(server.admin, 'PUT', at(app));
    const security = { admins: { names: [], roles: ['_admin'] }, members: { names: ['eve'], roles: [] } };
    await sendAs(server.admin, 'PUT', at(`${app}/_security`), security);
    expect(await setup('--app-db', app)).toMatchObject({ code: 0 });
    expect((await sendAs(server.admin, 'GET', at(`${app}/_security`))).body).toEqual(security);
  });

  it('S1 is for admins: anybody else is told so', async () => {
    const ann = await users.createUser({ roles: ['afield-device'] });
    const refused = await run(['setup', '--url', server.directUrl], ann);
    expect(refused).toMatchObject({ code: 1, said: expect.stringContaining('Only an admin') as string });
    const wrong = await run(['setup', '--url', server.directUrl], { ...ann, password: 'wrong-one' });
    expect(wrong).toMatchObject({ code: 1, said: expect.stringContaining('COUCHDB_PASSWORD') as string });
    expect(wrong.said).not.toContain('wrong-one');
  });
});
