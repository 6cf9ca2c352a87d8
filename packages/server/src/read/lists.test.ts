import {
  serverUnderTest,
  temporaryDatabases,
  type Credentials,
  type ServerUnderTest,
  type TemporaryDatabases,
} from '@afield/devserver';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { databaseOfUser } from '../databases.js';
import { ownNames, run, sendAs, type Ran } from '../server.fixture.js';

const day = 86_400_000;
const now = Date.parse('2026-11-30T12:00:00Z');

let server: ServerUnderTest;
let users: TemporaryDatabases;
let supervisor: Credentials;
let own: ReturnType<typeof ownNames>;
let results: string;

beforeAll(async () => {
  server = await serverUnderTest();
  users = temporaryDatabases(server.directUrl, server.admin);
  supervisor = await users.createUser({ label: 'sue', roles: ['afield-supervisor'] });
});
beforeEach(() => {
  own = ownNames(server);
  results = own.name('results');
  return () => own.dispose();
});
afterAll(async () => {
  await users.dispose();
  await server.close();
});

const setup = (...given: string[]): Promise<Ran> => {
  const names = ['--results', results, '--events', own.name('events')];
  return run(['setup', '--url', server.directUrl, ...names, ...given], server.admin);
};
const ask = (list: string, given: readonly string[] = [], as: Credentials = supervisor): Promise<Ran> =>
  run([list, '--url', server.directUrl, '--results', results, ...given], as, { now: () => now });
const rows = ({ out }: Ran): Record<string, unknown>[] =>
  out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const put = async (docs: readonly object[], database = results): Promise<void> => {
  const { status } = await sendAs(server.admin, 'POST', `${server.directUrl}/${database}/_bulk_docs`, { docs });
  expect(status).toBe(201);
};

const row = (at: number, code: string, more: object = {}): Record<string, unknown> => ({
  index: 0,
  id: 'p1',
  action: 'set-parent',
  code,
  fields: ['parent'],
  mayHaveBeenApplied: false,
  at,
  ...more,
});

/** A failures document as a device writes it. */
function failures(store: string, bulk: string, operations: readonly Record<string, unknown>[], user?: string): object {
  const times = operations.flatMap(({ at }) => (typeof at === 'number' ? [at] : []));
  const codes = (list: typeof operations): string[] => [...new Set(list.map(({ code }) => code as string))].sort();
  const open = operations.filter(({ resolution }) => resolution === undefined);
  return {
    _id: `failures:${store}:${bulk}:0`,
    type: 'afield-failures',
    v: 1,
    store,
    ...(user === undefined ? {} : { user }),
    bulkOperation: bulk,
    sequence: 1,
    chunk: 0,
    codes: codes(operations),
    openCodes: codes(open),
    open: open.length,
    firstAt: times.length === 0 ? null : Math.min(...times),
    lastAt: times.length === 0 ? null : Math.max(...times),
    operations,
    changes: 1,
  };
}

/** A device document as a device writes it. */
function device(store: string, seenAt: number, more: object = {}): object {
  const none = { pending: 0, failed: 0, stopped: 0, quarantined: 0, unpublished: 0, unreported: 0, unconfirmed: 0 };
  const progress = { asOf: 4, lastSequence: 4, drained: true, oldestUnsentAt: null, writes: 1 };
  return { _id: `device:${store}`, type: 'afield-device', v: 1, store, ...none, ...progress, seenAt, ...more };
}

describe('failures of a database that devices share', () => {
  beforeEach(async () => {
    await setup();
  });

  it('S1 are listed by device, user, code and time, each with one question', async () => {
    const discarded = { resolution: { how: 'discarded', at: now } };
    await put([
      failures('s1', 'b1', [row(now - 9 * day, 'missing'), row(now - 2 * day, 'forbidden')], 'ann'),
      failures('s2', 'b2', [row(now - day, 'forbidden', { id: 'p2' }), row(now - day, 'missing', discarded)], 'bob'),
      failures('s3', 'b3', [], 'bob'),
      failures('s4', 'b4', [row(now - day, 'crashed', discarded)], 'bob'),
    ]);
    const found = async (...given: string[]): Promise<string[]> => {
      const ran = await ask('failures', given);
      expect(ran).toMatchObject({ code: 0, said: '' });
      expect(ran.requests.filter((one) => one.startsWith('POST'))).toEqual([`POST /${results}/_find`]);
      return rows(ran).map(({ store, code }) => `${String(store)} ${String(code)}`);
    };
    expect(await found()).toEqual(['s1 missing', 's1 forbidden', 's2 forbidden']);
    expect(await found('--resolved')).toEqual([
      's1 missing',
      's1 forbidden',
      's2 forbidden',
      's2 missing',
      's4 crashed',
    ]);
    expect(await found('--since', '7d')).toEqual(['s1 forbidden', 's2 forbidden']);
    expect(await found('--until', '2026-11-29')).toEqual(['s1 missing', 's1 forbidden']);
    expect(await found('--since', '2026-11-28T12:00:00.000Z', '--until', '2026-11-29')).toEqual(['s1 forbidden']);
    expect(await found('--code', 'missing')).toEqual(['s1 missing']);
    expect(await found('--code', 'missing', '--code', 'crashed', '--resolved')).toHaveLength(3);
    expect(await found('--user', 'bob')).toEqual(['s2 forbidden']);
    expect(await found('--device', 's1', '--code', 'forbidden')).toEqual(['s1 forbidden']);
    expect(await found('--device', 's1', '--user', 'bob')).toEqual([]);
    expect(rows(await ask('failures', ['--user', 'bob']))).toEqual([
      {
        ...{ at: '2026-11-29T12:00:00.000Z', store: 's2', user: 'bob', bulkOperation: 'b2', sequence: 1, index: 0 },
        ...{ id: 'p2', action: 'set-parent', code: 'forbidden', fields: ['parent'], mayHaveBeenApplied: false },
        ...{
          refused: false,
          app: null,
          resolution: null,
          resolvedAt: null,
          reason: null,
          content: null,
          withheld: null,
        },
      },
    ]);
  });

  it('S1 come page by page, each once, and no further page than is asked for', async () => {
    const count = 45;
    await put(Array.from({ length: count }, (_, n) => failures('s1', `b${String(n)}`, [row(now - n, 'missing')])));
    const all = await ask('failures');
    expect(new Set(rows(all).map(({ bulkOperation }) => bulkOperation)).size).toBe(count);
    expect(rows(all)).toHaveLength(count);
    expect(all.requests.filter((one) => one.startsWith('POST'))).toHaveLength(3);
    const some = await ask('failures', ['--limit', '3']);
    expect(rows(some)).toHaveLength(3);
    expect(some.said).toContain('--limit');
    expect(some.requests.filter((one) => one.startsWith('POST'))).toHaveLength(1);
  });

  it('S1 that do not fit are counted and said, and hide no others', async () => {
    const odd = failures(
      's1',
      'b1',
      [row(now, 'missing'), row(now, 'missing', { at: 'yesterday' }), row(9e15, 'missing')],
      'ann',
    );
    const newer = { ...failures('s2', 'b2', [row(now, 'missing')]), v: 2 };
    await put([odd, newer]);
    const ran = await ask('failures');
    expect(ran.code).toBe(0);
    expect(rows(ran).map(({ at }) => at)).toEqual(['2026-11-30T12:00:00.000Z', 9e15]);
    expect(ran.said).toContain('2 left out');
  });

  it('S1 are exported as CSV that no spreadsheet runs', async () => {
    const evil = row(now, 'missing', { id: '=HYPERLINK("http://x")', action: '@a', index: -1 });
    await put([failures('s1', 'b1', [evil], '+ann')]);
    const { out } = await ask('failures', ['--format', 'csv']);
    const [head, first, rest] = out.split('\r\n');
    expect(head).toMatch(/^at,store,user,bulkOperation,.*,withheld$/);
    expect(first).toContain(`,s1,'+ann,b1,1,-1,"'=HYPERLINK(""http://x"")",'@a,missing,`);
    expect(rest).toBe('');
    expect((await ask('failures', ['--format', 'csv', '--code', 'none'])).out).toBe(`${head ?? ''}\r\n`);
  });

  it('S1 with a version in conflict are said: no device writes that', async () => {
    await put([failures('s1', 'b1', [row(now, 'missing')])]);
    const other = { ...failures('s1', 'b1', [row(now, 'crashed')]), _rev: '1-00000000000000000000000000000000' };
    const body = { docs: [other], new_edits: false };
    await sendAs(server.admin, 'POST', `${server.directUrl}/${results}/_bulk_docs`, body);
    const ran = await ask('failures');
    expect(rows(ran)).toHaveLength(1);
    if (!server.isEmbedded) expect(ran.said).toContain('in conflict');
  });

  it('S1 an index that is not there is named, with the command that makes it', async ({ skip }) => {
    if (server.isEmbedded) skip('the embedded server looks at all documents instead');
    const index = `${server.directUrl}/${results}/_index/afield-by-time/json/by-time`;
    await sendAs(server.admin, 'DELETE', index);
    expect(await ask('failures')).toMatchObject({ code: 1, said: expect.stringMatching(/by-time.*setup/) as string });
  });

  it('S1 are not for strangers', async () => {
    const stranger = await users.createUser();
    const refused = await ask('failures', [], stranger);
    expect(refused).toMatchObject({ code: 1, out: '', said: expect.stringContaining('afield-supervisor') as string });
  });
});

describe('failures of users who have a database each', () => {
  it('S1 are listed across all of them, with reason and content, or of one user', async () => {
    const [ann, bob] = [own.name('ann'), own.name('bob')];
    await setup('--layout', 'per-user', '--user', ann, '--user', bob);
    const content = { phone: '=1', nested: { a: 1 } };
    const told = row(now, 'missing', { reason: 'No such person.', content });
    const many = Array.from({ length: 30 }, (_, n) => failures('s1', `b${String(n)}`, [told]));
    await put(many, databaseOfUser(results, ann));
    await put([failures('s2', 'b', [row(now - 9 * day, 'missing')])], databaseOfUser(results, bob));
    const all = await ask('failures', [], server.admin);
    expect(rows(all)).toHaveLength(31);
    expect(rows(all)[0]).toMatchObject({ user: ann, reason: 'No such person.', content });
    expect(rows(await ask('failures', ['--since', '7d'], server.admin))).toHaveLength(30);
    expect(rows(await ask('failures', ['--device', 's2'], server.admin))).toMatchObject([{ user: bob, store: 's2' }]);
    expect((await ask('failures', ['--format', 'csv'], server.admin)).out).toContain('"{""phone"":""=1""');

    // A supervisor may not list the databases, but may read each of them.
    const refused = await ask('failures');
    expect(refused).toMatchObject({ code: 1, said: expect.stringContaining('/_all_dbs') as string });
    // It may as well be a typing mistake in the name of the shared one, or that one was never made.
    expect(refused.said).toContain(`There is no database ${results},`);
    expect(refused.said).toContain('--user');
    expect(rows(await ask('failures', ['--user', bob]))).toMatchObject([{ user: bob }]);
  });

  it('S1 no database of the user who was named is said, with the name that it would have', async () => {
    const nobody = own.name('nobody');
    const missing = await ask('failures', ['--layout', 'per-user', '--user', nobody], server.admin);
    expect(missing).toMatchObject({ code: 1, out: '' });
    expect(missing.said).toContain(`no database ${databaseOfUser(results, nobody)} of this user`);
    expect(missing.said).not.toContain(`no database ${results},`);
  });

  it('S1 no database at all is said, with what to do', async () => {
    expect(await ask('failures', [], server.admin)).toMatchObject({
      code: 1,
      out: '',
      said: expect.stringContaining('afield-server setup') as string,
    });
  });
});

describe('devices', () => {
  it('S1 silent for some days are listed, the quietest first, with the age of their oldest unsent work', async () => {
    await setup();
    const unsent = { pending: 3, unconfirmed: 2, oldestUnsentAt: now - 20 * day, drained: false, user: 'ann' };
    await put([
      device('s1', now - 8 * day, { ...unsent, appVersion: '1.2' }),
      device('s2', now - 10 * day),
      device('s3', now - day),
      { ...device('s4', now - 9 * day), pending: 'many' },
    ]);
    const silent = await ask('devices', ['--silent-for', '7d']);
    expect(silent).toMatchObject({ code: 0, said: expect.stringContaining('1 left out') as string });
    expect(rows(silent).map(({ store }) => store)).toEqual(['s2', 's1']);
    expect(rows(silent)[1]).toMatchObject({
      ...{ store: 's1', user: 'ann', appVersion: '1.2', seenAt: '2026-11-22T12:00:00.000Z', silentS: 8 * 86_400 },
      ...{ pending: 3, failed: 0, unconfirmed: 2, drained: false },
      ...{ oldestUnsentAt: '2026-11-10T12:00:00.000Z', oldestUnsentS: 20 * 86_400 },
    });
    expect(rows(await ask('devices'))).toHaveLength(3);
    expect(rows(await ask('devices', ['--user', 'ann']))).toMatchObject([{ store: 's1' }]);
    expect((await ask('devices', ['--format', 'csv'])).out).toMatch(/^store,user,appVersion,seenAt,/);
  });

  it('S1 of users who have a database each are listed across all of them', async () => {
    const ann = own.name('ann');
    await setup('--layout', 'per-user', '--user', ann);
    await put([device('s1', now - 8 * day), device('s2', now)], databaseOfUser(results, ann));
    expect(rows(await ask('devices', ['--silent-for', '7d'], server.admin))).toMatchObject([
      { store: 's1', user: ann },
    ]);
  });

  it.each([
    ['devices', '--silent-for', 'long'],
    ['failures', '--since', 'yesterday'],
    ['failures', '--until', '2026-13-01'],
    ['failures', '--limit', '0'],
    ['failures', '--format', 'xml'],
  ])('S1 %s refuses %s %s', async (list, option, text) => {
    const { code, said, requests } = await ask(list, [option, text]);
    expect({ code, requests }).toEqual({ code: 2, requests: [] });
    expect(said).toContain(option);
  });
});
