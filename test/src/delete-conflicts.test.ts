import { createClient, type Client, type ClientOptions, type Target } from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

const hash = (letter: string): string => letter.repeat(32);
const attachment = { 'a.txt': { content_type: 'text/plain', data: 'YQ==' } };
/** A document with so many live leaves, and one that is deleted; every second leaf has an attachment. */
const leavesOf = (id: string, count: number): object[] =>
  ['1', '5', '4', '3', '2'].slice(0, count + 1).map((letter, place) => ({
    _id: id,
    _rev: `2-${hash(letter)}`,
    _revisions: { start: 2, ids: [hash(letter), hash('0')] },
    type: 'person',
    leaf: letter,
    ...(place === 0 ? { _deleted: true } : {}),
    ...(place % 2 === 1 ? { _attachments: attachment } : {}),
  }));
const ids = ['one', 'two', 'three', 'a/b%c#d?e+f'];
const documents = [
  ...leavesOf('one', 1),
  ...leavesOf('two', 2),
  ...leavesOf('three', 3),
  ...leavesOf('a/b%c#d?e+f', 4),
];

let stores = 0;
let server: ServerUnderTest;
let databases: TemporaryDatabases;
const clients: Client[] = [];

beforeAll(async () => {
  server = await serverUnderTest();
  databases = temporaryDatabases(server.url, server.admin);
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
});
afterAll(async () => {
  await databases.dispose();
  await server.close();
});

const ask = async (url: string, method = 'GET', body?: object): Promise<unknown> => {
  const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
  const headers = { authorization, accept: 'application/json', 'content-type': 'application/json' };
  return (await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })).json();
};
const open = (url: string, options: Partial<ClientOptions> = {}): Client => {
  const client = createClient({
    name: `delete-${String(stores++)}`,
    PouchDB: MemoryPouch,
    actions: [],
    ramp: () => 1000,
    jitter: 0,
    server: url,
    auth: { credentials: () => Promise.resolve({ type: 'basic', ...server.admin }) },
    ...options,
  });
  clients.push(client);
  return client;
};
const run = async (client: Client, target: Target): Promise<object> => {
  const { bulkOperationId } = await client.enqueue({
    target,
    actions: [{ action: 'delete', operations: ids.map((id) => ({ id })) }],
  });
  const list = await firstValueFrom(
    client.bulkOperations$.pipe(
      filter((all) => all.some(({ id, state }) => id === bulkOperationId && state.startsWith('done'))),
    ),
  );
  const { applied, alreadyApplied, failed } = list.find(({ id }) => id === bulkOperationId) ?? {};
  return { applied, alreadyApplied, failed };
};
/** What is live of each document on the server, leaf by leaf. */
const liveOnServer = async (url: string): Promise<unknown[]> => {
  const all = ids.map((id) => ask(`${url}/${encodeURIComponent(id)}?open_revs=all`));
  const leaves = (await Promise.all(all)).flat() as { ok?: { _id: string; _deleted?: boolean } }[];
  return leaves.filter(({ ok }) => ok?._deleted !== true);
};
const liveHere = async (client: Client): Promise<unknown[]> => {
  const read = client.documents.get.bind(client.documents) as unknown as (
    id: string,
    options: object,
  ) => Promise<{ ok?: { _deleted?: boolean } }[]>;
  const leaves = (await Promise.all(ids.map((id) => read(id, { open_revs: 'all' })))).flat();
  return leaves.filter(({ ok }) => ok?._deleted !== true);
};

describe('S8 a document with hidden conflicts is deleted', () => {
  it('S8 R6 on the server: no leaf is left, and a second time there is nothing to do', async () => {
    const { url } = await databases.create('records');
    await ask(`${url}/_bulk_docs`, 'POST', { new_edits: false, docs: documents });
    expect(await liveOnServer(url)).toHaveLength(10);
    const client = open(url, { replication: false });
    expect(await run(client, 'server')).toEqual({ applied: 4, alreadyApplied: 0, failed: 0 });
    expect(await liveOnServer(url)).toEqual([]);
    expect(await run(client, 'server')).toEqual({ applied: 0, alreadyApplied: 4, failed: 0 });
  });

  it('S8 R6 on the device: no leaf is left, here and on the server once it has come there', async () => {
    const { url } = await databases.create('records');
    await ask(`${url}/_bulk_docs`, 'POST', { new_edits: false, docs: documents });
    const client = open(url);
    await client.storeId;
    await client.documents.bulkDocs(documents, { new_edits: false });
    expect(await liveHere(client)).toHaveLength(10);
    expect(await run(client, 'local')).toEqual({ applied: 4, alreadyApplied: 0, failed: 0 });
    expect(await liveHere(client)).toEqual([]);
    client.syncNow();
    await expect.poll(() => liveOnServer(url), { timeout: 20_000 }).toEqual([]);
    expect(await liveHere(client)).toEqual([]);
    expect(await run(client, 'local')).toEqual({ applied: 0, alreadyApplied: 4, failed: 0 });
  });
});
