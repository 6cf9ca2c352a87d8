import {
  createClient,
  defineDocumentAction,
  type Client,
  type ClientOptions,
  type FailedOperation,
} from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const set = defineDocumentAction({
  name: 'set',
  operation: z.strictObject({ to: z.record(z.string(), z.unknown()) }),
  isApplied: (doc, { to }) => Object.entries(to).every(([name, value]) => doc[name] === value),
  apply: (doc, { to }) => ({ ...doc, ...to }),
});

const noBlack = `if (doc.colour === 'black') throw { forbidden: 'no black here' };`;
const noDeletions = `if (doc._deleted) throw { forbidden: 'nothing is deleted here' };`;
const noMix = `if (doc.colour === 'blue' && doc.note === 'of another') throw { forbidden: 'not both' };`;

/** The name of a revision that loses against every other one of its generation. */
const least = '0'.repeat(31) + '1';

type Stored = Record<string, unknown> & { readonly _rev: string; readonly _conflicts?: readonly string[] };
let stores = 0;

describe('conflicts of documents that the server refuses', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  let url: string;
  let direct: string;
  let clients: Client[];

  beforeAll(async () => {
    server = await serverUnderTest();
  });
  afterAll(async () => {
    await server.close();
  });
  beforeEach(async () => {
    databases = temporaryDatabases(server.directUrl, server.admin);
    clients = [];
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.proxy.reset();
    await databases.dispose();
  });

  const withRule = async (...rules: readonly string[]): Promise<void> => {
    const validate = `function (doc, old) { ${rules.join(' ')} }`;
    const { name } = await databases.create('records', {
      docs: [{ _id: '_design/rules', validate_doc_update: validate }],
    });
    direct = `${server.directUrl}/${name}`;
    url = `${server.url}/${name}`;
  };
  const open = (options: Partial<ClientOptions> = {}): Client => {
    const client = createClient({
      name: `refused-conflicts-${String(stores++)}`,
      PouchDB: MemoryPouch,
      actions: [set],
      server: url,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...server.admin }) },
      ramp: () => 1000,
      jitter: 0,
      pullEveryS: 3600,
      ...options,
    });
    clients.push(client);
    return client;
  };
  const ask = async (path: string, method = 'GET', body?: object): Promise<Stored> => {
    const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
    const init = { method, headers: { authorization, 'content-type': 'application/json' } };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return (await (await fetch(`${direct}/${path}`, { ...init, ...sent })).json()) as Stored;
  };
  /** Someone else writes on the server, as often as it takes to win. */
  const other = async (id: string, changes: object, times = 1): Promise<void> => {
    for (let time = 1; time <= times; time++) {
      await ask(id, 'PUT', { ...(await ask(id)), ...changes, ...(time < times ? { times: time } : {}) });
    }
  };
  const pushed = (client: Client): Promise<unknown> =>
    firstValueFrom(
      client.status$.pipe(filter(({ push, pending }) => push.state === 'idle' && push.attempts > 0 && pending === 0)),
    );
  const pulled = async (client: Client): Promise<void> => {
    const { pull } = await firstValueFrom(client.status$);
    client.syncNow();
    await firstValueFrom(
      client.status$.pipe(
        filter((now) => now.pull.attempts > pull.attempts && now.pull.state === 'idle' && now.healing.state === 'idle'),
      ),
    );
  };
  const failures = (client: Client, count: number): Promise<readonly FailedOperation[]> =>
    firstValueFrom(client.failures$.pipe(filter((list) => list.length === count)));
  const run = (client: Client, id: string, to: Record<string, unknown>): Promise<unknown> =>
    client.enqueue({ target: 'local', actions: [{ action: 'set', operations: [{ id, to }] }] });
  const done = (client: Client): Promise<unknown> =>
    firstValueFrom(client.status$.pipe(filter(({ pending, state }) => pending === 0 && state !== 'running')));
  const local = (client: Client, id: string): Promise<Stored> =>
    client.documents.get(id, { conflicts: true }) as Promise<Stored>;
  const offline = (): void => {
    server.proxy.addRule({ when: {}, do: { type: 'answer', status: 503 } });
  };
  const online = async (client: Client): Promise<void> => {
    await server.proxy.reset();
    client.syncNow();
  };
  const begun = async (options: Partial<ClientOptions> = {}): Promise<Client> => {
    const client = open(options);
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await pushed(client);
    return client;
  };
  const writes = (): number => server.proxy.requests().filter(({ path }) => path.endsWith('/_bulk_docs')).length;
  /** So many looks that whatever would go on has gone on. */
  const looks = async (client: Client): Promise<void> => {
    for (let look = 0; look < 3; look++) {
      await pulled(client);
      await pushed(client);
    }
  };

  it('S2 a healed version that the server refuses makes its operation fail, and nothing is tried again and again', async () => {
    await withRule(noMix);
    const client = await begun();
    offline();
    await run(client, 'a', { colour: 'blue' });
    await done(client);
    await other('a', { note: 'of another' }, 2);
    await online(client);
    await pulled(client);
    const [failure] = await failures(client, 1);
    expect(failure).toMatchObject({ id: 'a', action: 'set', code: 'forbidden', operation: { id: 'a' } });
    expect(await firstValueFrom(client.bulkOperations$)).toMatchObject([{ state: 'done-with-failures', failed: 1 }]);
    await looks(client);
    // What has changed elsewhere may be a reason to take it: once more, and not again.
    await other('a', { more: 1 }, 2);
    await looks(client);
    const sent = writes();
    await looks(client);
    expect(writes()).toBe(sent);
    expect(await failures(client, 1)).toMatchObject([{ failureId: failure?.failureId }]);
    expect(await ask('a')).toMatchObject({ note: 'of another', more: 1, colour: 'red' });
    expect(await client.revert({})).toBe(1);
    expect(await local(client, 'a')).toMatchObject({ note: 'of another', more: 1, colour: 'red' });
    await run(client, 'a', { colour: 'green' });
    await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'green', more: 1 });
    await failures(client, 0);
  });

  it('S2 a server that takes no deletions: what healing has removed here is no failure, and is sent once', async () => {
    await withRule(noDeletions);
    const client = await begun();
    offline();
    await run(client, 'a', { colour: 'blue' });
    await done(client);
    await other('a', { note: 'of another' }, 2);
    await online(client);
    await pulled(client);
    await expect.poll(() => ask('a')).toMatchObject({ colour: 'blue', note: 'of another' });
    await looks(client);
    const sent = writes();
    await looks(client);
    expect(writes()).toBe(sent);
    expect(await firstValueFrom(client.failures$)).toEqual([]);
    expect(await firstValueFrom(client.status$)).toMatchObject({ failed: 0, conflicts: 0, push: { state: 'idle' } });
    expect(await client.listFailures()).toEqual([]);
    expect(await local(client, 'a')).not.toHaveProperty('_conflicts');
  });

  it('S2 S8 a deletion that the server refuses is one failure, also where hidden versions went with it', async () => {
    await withRule(noDeletions);
    const client = await begun();
    const rev = (await ask('a'))._rev;
    await ask('_bulk_docs', 'POST', {
      new_edits: false,
      docs: [{ _id: 'a', colour: 'white', _rev: `1-${least}`, _revisions: { start: 1, ids: [least] } }],
    });
    await pulled(client);
    await client.enqueue({ target: 'local', actions: [{ action: 'delete', operations: [{ id: 'a' }] }] });
    await done(client);
    const [failure] = await failures(client, 1);
    expect(failure).toMatchObject({ action: 'delete', code: 'forbidden' });
    await looks(client);
    expect(await failures(client, 1)).toHaveLength(1);
    expect(await client.revert({})).toBe(1);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red' });
    expect((await ask('a'))._rev).toBe(rev);
  });

  it('S2 what a resolver builds upon a refused version never takes the server’s version from the server', async () => {
    await withRule(noBlack);
    let asked = 0;
    const resolveConflict: ClientOptions['resolveConflict'] = ({ winner }) => {
      asked++;
      return winner;
    };
    const client = await begun({ resolveConflict });
    await run(client, 'a', { colour: 'black' });
    await failures(client, 1);
    await run(client, 'a', { more: 1 });
    await failures(client, 2);
    await other('a', { note: 'of another' });
    await looks(client);
    expect(await ask('a')).toMatchObject({ colour: 'red', note: 'of another' });
    expect(asked).toBe(0);
    expect(await firstValueFrom(client.conflicts$)).toMatchObject([{ id: 'a', losing: [(await ask('a'))._rev] }]);
    expect(await client.revert({})).toBe(2);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of another' });
    await looks(client);
    expect(await ask('a?conflicts=true&deleted_conflicts=true')).not.toHaveProperty('_conflicts');
  });

  it('S2 the same while nothing is known of the refusal yet', async () => {
    await withRule(noBlack);
    const resolveConflict: ClientOptions['resolveConflict'] = ({ winner }) => ({ ...winner, merged: true });
    const client = await begun({ resolveConflict });
    offline();
    for (const more of [1, 2]) await client.documents.put({ ...(await local(client, 'a')), colour: 'black', more });
    await other('a', { note: 'of another' });
    await server.proxy.reset();
    server.proxy.addRule({ when: { path: '/_bulk_docs' }, do: { type: 'answer', status: 503 } });
    await pulled(client);
    await expect.poll(() => local(client, 'a')).toMatchObject({ merged: true });
    await online(client);
    await failures(client, 1);
    await looks(client);
    expect(await ask('a')).toMatchObject({ colour: 'red', note: 'of another' });
    expect(await client.revert({})).toBe(1);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of another' });
    await run(client, 'a', { colour: 'green' });
    await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'green', note: 'of another' });
    expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
  });

  it('S2 a refused version that has lost meanwhile is sent again on a person’s word', async () => {
    await withRule(noBlack);
    const client = await begun();
    await run(client, 'a', { colour: 'black' });
    await failures(client, 1);
    await other('a', { note: 'of another' }, 2);
    await pulled(client);
    expect(await local(client, 'a')).toMatchObject({ note: 'of another' });
    const rule = await ask('_design/rules');
    await ask(`_design/rules?rev=${rule._rev}`, 'DELETE');
    await client.retryFailed({});
    await failures(client, 0);
    await pulled(client);
    await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'black', note: 'of another' });
    await looks(client);
    expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
  });

  it('S2 what the server refuses on two branches goes back together, and is given up together', async () => {
    for (const decide of ['revert', 'discard'] as const) {
      await withRule(noBlack);
      const client = await begun();
      server.proxy.addRule({ when: { path: '/_bulk_docs' }, do: { type: 'answer', status: 503 } });
      await client.documents.put({ ...(await local(client, 'a')), colour: 'black' });
      await run(client, 'a', { more: 1, colour: 'black' });
      await run(client, 'a', { more: 2 });
      await done(client);
      await other('a', { note: 'of another' }, 4);
      await pulled(client);
      await expect.poll(() => local(client, 'a')).toMatchObject({ note: 'of another', more: 2, colour: 'black' });
      expect(await local(client, 'a')).toHaveProperty('_conflicts');
      await online(client);
      await failures(client, 2);
      await looks(client);
      expect(await client[decide]({})).toBe(2);
      await looks(client);
      await other('a', { note: 'of another still' });
      await looks(client);
      const sent = writes();
      await looks(client);
      expect(writes()).toBe(sent);
      expect(await failures(client, 0)).toEqual([]);
      const shown = await local(client, 'a');
      expect(shown).toMatchObject(decide === 'revert' ? { colour: 'red', note: 'of another still' } : { _id: 'a' });
      expect(await ask('a?conflicts=true')).toMatchObject({ colour: 'red', note: 'of another still' });
      expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
      await client.close();
      clients = [];
    }
  });

  it('S2 two versions that an app has edited, both refused, go back together', async () => {
    await withRule(noBlack);
    const client = await begun();
    await client.documents.put({ ...(await local(client, 'a')), colour: 'black' });
    await failures(client, 1);
    await other('a', { note: 'of another' }, 2);
    await pulled(client);
    await client.documents.put({ ...(await local(client, 'a')), _conflicts: undefined, colour: 'black' });
    await pushed(client);
    await looks(client);
    await failures(client, 1);
    expect(await client.revert({})).toBe(1);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of another' });
    await looks(client);
    await failures(client, 0);
    expect(await local(client, 'a')).not.toHaveProperty('_conflicts');
  });

  it('S2 a hidden version goes also while a copy of the server’s version counts here, and that version stays', async () => {
    await withRule(noBlack);
    const client = await begun();
    await other('a', { note: 'of another' });
    await pulled(client);
    const { ids } = (await ask('a?revs=true'))['_revisions'] as { ids: readonly string[] };
    const lost = { _id: 'a', lost: true, _rev: `2-${least}`, _revisions: { start: 2, ids: [least, ...ids.slice(1)] } };
    await ask('_bulk_docs', 'POST', { new_edits: false, docs: [lost] });
    await run(client, 'a', { colour: 'black' });
    await failures(client, 1);
    expect(await client.revert({})).toBe(1);
    await pulled(client);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', _conflicts: [lost._rev] });
    await client.documents.bulkDocs([{ _id: 'a', _rev: lost._rev, _deleted: true }]);
    await expect.poll(() => ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
    expect(await ask('a')).toMatchObject({ colour: 'red', note: 'of another' });
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of another' });
  });
});
