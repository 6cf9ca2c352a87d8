import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import {
  createClient,
  defineDocumentAction,
  RetryableError,
  type Client,
  type ClientOptions,
  type ClientStatus,
  type FailedOperation,
  type Publisher,
} from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});

/** The server takes no document of this colour. */
const noBlack = {
  _id: '_design/no-black',
  validate_doc_update: "function (doc) { if (doc.colour === 'black') throw { forbidden: 'no black here' }; }",
};

type Stored = Record<string, unknown>;
let stores = 0;

describe('documents, results and failures on the way to the server', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  let urls: { records: string; results: string };
  let clients: Client[];

  beforeAll(async () => {
    server = await serverUnderTest();
  });
  afterAll(async () => {
    await server.close();
  });
  beforeEach(async () => {
    databases = temporaryDatabases(server.url, server.admin);
    const records = await databases.create('records', { docs: [noBlack] });
    urls = { records: records.url, results: (await databases.create('results')).url };
    clients = [];
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.proxy.reset();
    await databases.dispose();
  });

  const open = (options: Partial<ClientOptions> = {}): Client => {
    const client = createClient({
      name: `sync-${String(stores++)}`,
      PouchDB: MemoryPouch,
      actions: [setColour],
      server: urls.records,
      results: urls.results,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...server.admin }) },
      // Every retry comes soon: these tests are about what is sent, not about when.
      ramp: () => 1000,
      jitter: 0,
      ...options,
    });
    clients.push(client);
    return client;
  };
  const ask = async (url: string): Promise<Stored> => {
    const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
    return (await (await fetch(url, { headers: { authorization, accept: 'application/json' } })).json()) as Stored;
  };
  const remove = async (url: string): Promise<void> => {
    const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
    expect((await fetch(url, { method: 'DELETE', headers: { authorization } })).status).toBe(200);
  };
  const all = async (): Promise<Stored[]> => {
    const { rows } = (await ask(`${urls.results}/_all_docs?include_docs=true`)) as { rows: { doc: Stored }[] };
    return rows.map(({ doc }) => doc);
  };
  /** What is there of bulk operations. */
  const results = async (): Promise<Stored[]> => (await all()).filter(({ type }) => type !== 'afield-device');
  const status = (client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
    firstValueFrom(client.status$.pipe(filter(is)));
  const atServer = (client: Client): Promise<ClientStatus> =>
    status(
      client,
      ({ pending, unreported, push, results: sent }) =>
        pending === 0 && unreported === 0 && push.state === 'idle' && push.attempts > 0 && sent.state === 'idle',
    );
  const failures = (client: Client, count: number): Promise<readonly FailedOperation[]> =>
    firstValueFrom(client.failures$.pipe(filter((list) => list.length === count)));
  const paint = (client: Client, ids: readonly string[], to: string): Promise<unknown> =>
    client.enqueue({ target: 'local', actions: [{ action: 'set-colour', operations: ids.map((id) => ({ id, to })) }] });

  it('R19 S1 what a person does with failures reaches the server: retried and applied, and discarded', async () => {
    const client = open();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await paint(client, ['a', 'b', 'c'], 'blue');
    await failures(client, 2);
    await atServer(client);
    await client.documents.bulkDocs([{ _id: 'b', colour: 'red' }]);
    const { bulkOperations } = await client.retryFailed({ id: 'b' });
    await client.discard({ id: 'c' });
    await failures(client, 0);
    await firstValueFrom(client.bulkOperations$.pipe(filter((all) => all.every(({ state }) => state === 'done'))));
    await atServer(client);
    const stored = await results();
    const first = stored.find(({ type, sequence }) => type === 'afield-result' && sequence === 1);
    expect(first).toMatchObject({ state: 'done', applied: 1, failed: 0, resolved: 2, notDone: 0 });
    expect(stored.find(({ type, sequence }) => type === 'afield-result' && sequence === 2)).toMatchObject({
      state: 'done',
      applied: 1,
    });
    expect(stored.find(({ type }) => type === 'afield-failures')).toMatchObject({
      operations: [
        { id: 'b', resolution: { how: 'retried', bulkOperationId: bulkOperations[0]?.bulkOperationId } },
        { id: 'c', resolution: { how: 'discarded' } },
      ],
    });
  });

  it('O5 S1 a conflict whose second version a person drops reaches the server at once, with the end of its failure', async () => {
    const client = open();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    const operations = [{ id: 'a', doc: { colour: 'blue' } }];
    await client.enqueue({ target: 'local', actions: [{ action: 'create', operations }] });
    await failures(client, 1);
    await atServer(client);
    const [entry] = await client.listQuarantined();
    await client.resolveQuarantined(entry?.quarantineId ?? '', 'keep-first');
    await failures(client, 0);
    await atServer(client);
    expect((await results()).find(({ type }) => type === 'afield-failures')).toMatchObject({
      operations: [{ id: 'a', resolution: { how: 'discarded' } }],
    });
  });

  it('R19 S2 a document that the server refused is sent again as it is, and its failure ends when the server takes it', async () => {
    const client = open();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await atServer(client);
    await paint(client, ['a'], 'black');
    await failures(client, 1);
    await atServer(client);
    const before = (await client.documents.get('a')) as Stored;
    const design = (await ask(`${urls.records}/_design/no-black`)) as { _rev: string };
    await remove(`${urls.records}/_design/no-black?rev=${design._rev}`);
    expect(await client.retryFailed({ code: 'forbidden' })).toEqual({ bulkOperations: [], queued: 0, sentAgain: 1 });
    await failures(client, 0);
    expect(await ask(`${urls.records}/a`)).toMatchObject({ colour: 'black', _rev: before['_rev'] });
    await atServer(client);
    expect((await results()).find(({ type }) => type === 'afield-result')).toMatchObject({
      state: 'done',
      applied: 1,
      failed: 0,
      resolved: 0,
    });
  });

  it('R19 S2 a refused operation is edited and retried: the new revision proves the old one', async () => {
    const client = open();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await atServer(client);
    await paint(client, ['a'], 'black');
    const [failure] = await failures(client, 1);
    await client.editAndRetry(failure?.failureId ?? '', { id: 'a', to: 'grey' });
    await failures(client, 0);
    expect(await ask(`${urls.records}/a`)).toMatchObject({ colour: 'grey' });
  });

  it('S2 a document that the server refuses becomes a failed operation, and never holds up the others', async () => {
    const client = open();
    await client.documents.bulkDocs(['a', 'b', 'c'].map((_id) => ({ _id, colour: 'red' })));
    await atServer(client);
    await client.enqueue({
      target: 'local',
      actions: [
        {
          action: 'set-colour',
          operations: [
            { id: 'a', to: 'blue' },
            { id: 'b', to: 'black' },
            { id: 'c', to: 'blue' },
          ],
        },
      ],
    });
    expect(await failures(client, 1)).toMatchObject([
      { id: 'b', index: 1, code: 'forbidden', reason: 'no black here', operation: { content: { to: 'black' } } },
    ]);
    await atServer(client);
    expect(await ask(`${urls.records}/a`)).toMatchObject({ colour: 'blue' });
    expect(await ask(`${urls.records}/b`)).toMatchObject({ colour: 'red' });
    expect(await client.documents.get('b')).toMatchObject({ colour: 'black' });
    const [list, result] = await results();
    expect(result).toMatchObject({ state: 'done-with-failures', total: 3, applied: 2, failed: 1 });
    expect(list).toMatchObject({ operations: [{ index: 1, id: 'b', code: 'forbidden', fields: ['to'] }] });
  });

  it('S1 S2 a later revision that the server takes makes the refused one applied, and the result is updated', async () => {
    const client = open();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await paint(client, ['a'], 'black');
    await failures(client, 1);
    await atServer(client);
    await client.documents.put({ ...(await client.documents.get('a')), colour: 'green' });
    await failures(client, 0);
    await atServer(client);
    expect(await ask(`${urls.records}/a`)).toMatchObject({ colour: 'green' });
    const sent = await results();
    expect(sent.find(({ type }) => type === 'afield-result')).toMatchObject({ state: 'done', applied: 1, failed: 0 });
    expect(sent.find(({ type }) => type === 'afield-failures')).toMatchObject({ operations: [] });
  });

  it('S2 an edit of the app itself that the server refuses is a failure too, of no bulk operation', async () => {
    const client = open();
    await client.documents.bulkDocs([
      { _id: 'mine', colour: 'black' },
      { _id: 'other', colour: 'red' },
    ]);
    expect(await failures(client, 1)).toMatchObject([{ id: 'mine', bulkOperationId: undefined, code: 'forbidden' }]);
    await status(client, ({ push }) => push.state === 'idle' && push.attempts > 0);
    expect(await ask(`${urls.records}/other`)).toMatchObject({ colour: 'red' });
  });

  it('S1 results hold ids, codes and names of fields only: no reason, no content, no credential', async () => {
    const client = open();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await paint(client, ['a', 'nowhere'], 'private colour');
    await atServer(client);
    const text = JSON.stringify(await all());
    expect(text).toContain('missing');
    expect(text).toContain('afield-device');
    for (const secret of ['private colour', 'not there', server.admin.password]) expect(text).not.toContain(secret);
  });

  it('S1 a result whose answer got lost is sent again and stored once', async () => {
    server.proxy.addRule({
      when: { method: 'POST', path: '/_bulk_docs', times: 1, database: new URL(urls.results).pathname.slice(1) },
      do: { type: 'reset', commit: true },
    });
    const client = open();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await paint(client, ['a'], 'blue');
    const shown = await atServer(client);
    expect(shown.results.failedAttempts).toBeGreaterThan(0);
    expect(await results()).toHaveLength(1);
  });

  it('S2 what another device writes comes here, and what is written here goes there, with the same revisions', async () => {
    const [one, two] = [open(), open({ pullEveryS: 1 })];
    await one.documents.bulkDocs([
      { _id: 'a', colour: 'red', _attachments: { 'n.txt': { content_type: 'text/plain', data: 'aGk=' } } },
    ]);
    await atServer(one);
    const there = (await ask(`${urls.records}/a`)) as { _rev: string };
    await expect
      .poll(async () => two.documents.get('a').catch(() => undefined), { timeout: 10_000 })
      .toMatchObject({ _rev: there._rev });
    expect(await one.documents.get('a')).toMatchObject({ _rev: there._rev });
    const copy = (await two.documents.get('a', { attachments: true })) as {
      _attachments: { 'n.txt': { data: string } };
    };
    expect(copy._attachments['n.txt'].data).toBe('aGk=');
  });

  it('S8 S2 plain ids of every kind, deletions, attachments and all live leaves are on the server as they are here', async () => {
    const client = open();
    const plain = [
      'a/b',
      'a%2Fb',
      'a#b',
      'a+b',
      'a?b',
      'a b',
      'zażółć',
      'constructor',
      'toString',
      'hasOwnProperty',
      'prototype',
    ];
    await client.documents.bulkDocs([
      ...plain.map((_id) => ({ _id, colour: 'red' })),
      { _id: 'gone', colour: 'red' },
      { _id: 'photo', _attachments: { 'n/1.txt': { content_type: 'text/plain', data: 'aGk=' } } },
    ]);
    const { _rev } = (await client.documents.get('gone')) as { _rev: string };
    await client.documents.bulkDocs([{ _id: 'gone', _rev, _deleted: true }]);
    const leaves = ['1-aa', '1-bb', '1-cc'].map((rev) => ({
      _id: 'leaves',
      _rev: rev,
      _revisions: { start: 1, ids: [rev.slice(2)] },
      rev,
    }));
    await client.documents.bulkDocs(leaves, { new_edits: false });
    await atServer(client);
    for (const id of plain) {
      const here = (await client.documents.get(id)) as Stored;
      expect(await ask(`${urls.records}/${encodeURIComponent(id)}`)).toEqual(here);
    }
    const { results: changes } = (await ask(`${urls.records}/_changes`)) as { results: Stored[] };
    expect(changes.find(({ id }) => id === 'gone')).toMatchObject({ deleted: true });
    expect(await ask(`${urls.records}/photo?attachments=true`)).toMatchObject({
      _attachments: { 'n/1.txt': { data: 'aGk=' } },
    });
    const shown = (await ask(`${urls.records}/leaves?conflicts=true`)) as { _rev: string; _conflicts: string[] };
    expect([shown._rev, ...shown._conflicts].sort()).toEqual(['1-aa', '1-bb', '1-cc']);
  });

  it('R12 a results database that is closed to the user holds up nothing else', async () => {
    const user = await databases.createUser();
    const records = await databases.create('records-of-user', { security: 'everyone' });
    urls = { records: records.url, results: urls.results };
    const client = open({ auth: { credentials: () => Promise.resolve({ type: 'basic', ...user }) } });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await paint(client, ['a'], 'blue');
    const shown = await status(client, ({ results: sent }) => sent.state === 'waiting-retry');
    expect(shown).toMatchObject({
      signInRequired: false,
      results: { lastError: { class: 'auth', code: 'forbidden' } },
    });
    await client.documents.put({ ...(await client.documents.get('a')), note: 'later' });
    await expect.poll(() => ask(`${urls.records}/a`)).toMatchObject({ colour: 'blue', note: 'later' });
  });

  it('a server database that is not there is said to be the server’s matter', async () => {
    const client = open({ server: `${urls.records}-nowhere` });
    await client.documents.bulkDocs([{ _id: 'a' }]);
    const shown = await status(client, ({ push, pull }) => push.failedAttempts > 0 && pull.failedAttempts > 0);
    expect(shown.push.lastError).toEqual({ class: 'server', code: 'database-missing' });
    expect(shown.pull.lastError).toEqual({ class: 'server', code: 'database-missing' });
  });

  it('R12 signed out in the middle: waits, asks once, and goes on with fresh credentials', async () => {
    // A user of its own: real servers lock an account after some wrong passwords.
    const user = await databases.createUser();
    const records = await databases.create('records-of-user', { security: 'everyone' });
    const ofUser = await databases.create('results-of-user', { security: 'everyone' });
    urls = { records: records.url, results: ofUser.url };
    let password = 'wrong';
    const asked: string[] = [];
    const client = open({
      auth: {
        credentials: (why) => {
          asked.push(why);
          return Promise.resolve({ type: 'basic', username: user.username, password });
        },
      },
    });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await paint(client, ['a'], 'blue');
    await status(client, ({ signInRequired, push }) => signInRequired && push.state === 'waiting-auth');
    expect(asked).toEqual(['first', 'refused']);
    ({ password } = user);
    client.signedIn();
    await atServer(client);
    expect(await ask(`${urls.records}/a`)).toMatchObject({ colour: 'blue' });
  });

  it('O8 S2 a document that stays behind at the push holds back its own event, and no other', async () => {
    let isStuck = true;
    /** The server of a document that it cannot write now: the others are written. */
    const stuck: typeof fetch = async (input, init) => {
      const isWrite = (input instanceof Request ? input.url : String(input)).endsWith('/_bulk_docs');
      const body = isWrite && isStuck && typeof init?.body === 'string' ? init.body : undefined;
      const { docs, ...rest } = JSON.parse(body ?? '{}') as { docs?: { _id: string }[] };
      if (docs?.some(({ _id }) => _id === 'd000') !== true) return fetch(input, init);
      const others = docs.filter(({ _id }) => _id !== 'd000');
      await (await fetch(input, { ...init, body: JSON.stringify({ ...rest, docs: others }) })).text();
      const row = { id: 'd000', error: 'internal_server_error', reason: 'made up' };
      return new Response(JSON.stringify([row]), { status: 201, headers: { 'content-type': 'application/json' } });
    };
    const taken: string[] = [];
    let isOpen = false;
    const place: Publisher = {
      name: 'place',
      needs: 'nothing',
      publish: (events) => {
        if (!isOpen) return Promise.reject(new RetryableError('down', { class: 'server', code: 'x' }));
        taken.push(...events.map(({ documentId }) => documentId));
        return Promise.resolve({ accepted: events.map(({ id }) => id) });
      },
    };
    const client = open({ environment: { fetch: stuck }, publishers: [place], ramp: () => 600_000 });
    const ids = Array.from({ length: 250 }, (_, at) => `d${String(at).padStart(3, '0')}`);
    await client.documents.bulkDocs(ids.map((_id) => ({ _id, colour: 'red' })));
    await paint(client, ids, 'blue');
    await status(client, ({ push, pending }) => pending === 0 && push.nextAttemptAt !== undefined);
    isOpen = true;
    client.syncNow();
    await status(client, ({ unpublished }) => unpublished === 1);
    expect(taken.sort()).toEqual(ids.slice(1));
    isStuck = false;
    client.syncNow();
    await status(client, ({ unpublished }) => unpublished === 0);
    expect(taken.at(-1)).toBe('d000');
  });

  it('close leaves nothing behind: a process that has closed its client ends by itself', async () => {
    const script = `
      import { createClient } from '@afield/client';
      import { MemoryPouch } from '@afield/testing';
      const client = createClient({ name: 'ends', PouchDB: MemoryPouch, actions: [], server: ${JSON.stringify(urls.records)},
        results: ${JSON.stringify(urls.results)}, auth: { credentials: async () => ({ type: 'basic', username: 'x', password: 'y' }) } });
      await client.documents.bulkDocs([{ _id: 'z' }]);
      await client.enqueue({ target: 'local', actions: [{ action: 'delete', operations: [{ id: 'z' }] }] });
      client.failures$.subscribe();
      await new Promise((resolve) => client.status$.subscribe(({ pending }) => pending === 0 && resolve()));
      await client.close();
      console.log('closed');`;
    const child = spawn(process.execPath, ['--input-type=module', '--unhandled-rejections=strict', '-e', script], {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said: string[] = [];
    child.stdout.on('data', (chunk: Buffer) => said.push(chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => said.push(chunk.toString()));
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect(said.join('')).toBe('closed\n');
    expect(code).toBe(0);
  }, 15_000);
});
