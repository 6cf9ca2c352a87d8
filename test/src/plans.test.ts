import { createClient, defineDocumentAction, definePlan, type Client } from '@afield/client';
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
const repaint = definePlan({
  name: 'repaint',
  request: z.strictObject({ from: z.string(), to: z.string() }),
  plan: async ({ from, to }, { db }) => {
    const wanted = (await db.range('p', 'p\uffff')).filter((doc) => doc['colour'] === from);
    return [{ action: 'set-colour', operations: wanted.map(({ _id }) => ({ id: _id, to })) }];
  },
});
let stores = 0;

describe('a plan on the documents of a server', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  let client: Client;

  beforeAll(async () => {
    server = await serverUnderTest();
  });
  afterAll(async () => {
    await server.close();
  });
  beforeEach(async () => {
    databases = temporaryDatabases(server.url, server.admin);
    const others = [
      { _id: 'o1', colour: 'red' },
      { _id: 'p/ü&#?%', colour: 'red' },
    ];
    const many = Array.from({ length: 1050 }, (_, at) => ({
      _id: `p${String(at)}`,
      colour: at < 1020 ? 'red' : 'blue',
    }));
    const records = await databases.create('records', { docs: [...others, ...many] });
    client = createClient({
      name: `plans-${String(stores++)}`,
      PouchDB: MemoryPouch,
      actions: [setColour],
      plans: [repaint],
      server: records.url,
      replication: false,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...server.admin }) },
      ramp: () => 1000,
      jitter: 0,
    });
  });
  afterEach(async () => {
    await client.close();
    await server.proxy.reset();
    await databases.dispose();
  });
  const request = { target: 'server', plan: 'repaint', request: { from: 'red', to: 'green' } } as const;

  it('R1 reads them page by page, and plans again when an answer was not the server’s', async () => {
    server.proxy.addRule({ when: { method: 'GET', path: '/_all_docs', times: 1 }, do: { type: 'captive-portal' } });
    server.proxy.addRule({ when: { method: 'GET', path: '/_all_docs', nth: 3 }, do: { type: 'cut', share: 0.5 } });
    await client.enqueue(request);
    const [done] = await firstValueFrom(client.bulkOperations$.pipe(filter(([one]) => one?.state === 'done')));
    expect(done).toMatchObject({ plan: 'repaint', total: 1021, applied: 1021, failed: 0, failedAttempts: 2 });
    expect(await client.dryRun(request)).toMatchObject({ total: 0 });
    expect(await client.dryRun({ ...request, request: { from: 'green', to: 'red' } })).toMatchObject({ total: 1021 });
  });

  it('a dry run rejects with what is in the way', async () => {
    server.proxy.addRule({
      when: { path: '/_all_docs' },
      do: { type: 'answer', status: 503, body: { error: 'down', reason: 'made up' } },
    });
    await expect(client.dryRun(request)).rejects.toMatchObject({ name: 'RetryableError', class: 'server' });
  });
});
