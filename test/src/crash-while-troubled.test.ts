import { createClient, defineDocumentAction, type Client, type ClientStatus, type Target } from '@afield/client';
import { crashPoints, MemoryServer, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});

let server: MemoryServer;
const fetchAt: typeof fetch = (input, init) => server.fetch(input, init);
const open = ({ PouchDB, environment }: CrashProcess): Client =>
  createClient({
    name: 'records',
    PouchDB,
    environment,
    actions: [setColour],
    server: server.urlOf('records'),
    results: server.urlOf('results'),
    batchSize: 2,
    jitter: 0,
  });
const paint = (client: Client, target: Target, ids: readonly string[]): Promise<unknown> =>
  client.enqueue({ target, actions: [{ action: 'set-colour', operations: ids.map((id) => ({ id, to: 'blue' })) }] });
const status = (client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
  firstValueFrom(client.status$.pipe(filter((one) => one.leader && is(one))));
const atServer = (client: Client): Promise<ClientStatus> =>
  status(
    client,
    ({ pending, unreported, push, results }) =>
      pending === 0 && unreported === 0 && push.attempts > 0 && push.state === 'idle' && results.state === 'idle',
  );

/** A fresh server, and documents where the target's are. */
async function prepare({ PouchDB }: CrashProcess, target: Target, ids: readonly string[]): Promise<void> {
  server = new MemoryServer();
  server.create('results');
  const records = server.create('records');
  const docs = ids.map((_id) => ({ _id }));
  if (target === 'server') records.write(docs);
  else await new PouchDB('records').bulkDocs(docs);
}

/** How often a document was written, the first time included. */
async function writes({ device }: CrashProcess, target: Target, id: string): Promise<number> {
  const doc = target === 'server' ? server.create('records').read(id) : await device.database('records').get(id);
  return Number.parseInt(String((doc as { _rev?: string } | undefined)?._rev), 10);
}

describe.each(['local', 'server'] as const)('the client dies while there is trouble, target %s', (target) => {
  it('R3 the answer to a write gets lost, and the process too: applied once, and counted as ours', async () => {
    let isQueued = false;
    const { points } = await crashPoints(
      async (process) => {
        const { network, store } = process.device;
        const error = { name: 'AbortError', domException: true };
        network.add({
          when: { method: 'POST', path: '/_bulk_docs', nth: 1 },
          do: { type: 'network-error', commit: true },
        });
        const write = { call: 'bulkDocs', database: 'records' } as const;
        store.add({ when: { ...write, nth: 1 }, do: { type: 'reject', error, commit: true } });
        store.add({ when: { ...write, nth: 3 }, do: { type: 'reject', error } });
        const client = open(process);
        await paint(client, target, ['a', 'b', 'c', 'nowhere']);
        isQueued = true;
        await atServer(client);
      },
      {
        fetch: fetchAt,
        every: 2,
        prepare: async (process) => {
          isQueued = false;
          await prepare(process, target, ['a', 'b', 'c']);
        },
        check: async (process) => {
          const client = open(process);
          await status(client, () => true);
          const found = await firstValueFrom(client.bulkOperations$);
          if (isQueued) expect(found).toHaveLength(1);
          if (found.length === 0) return;
          await atServer(client);
          expect(await firstValueFrom(client.bulkOperations$)).toMatchObject([
            { state: 'done-with-failures', applied: 3, alreadyApplied: 0, failed: 1 },
          ]);
          expect(await firstValueFrom(client.failures$)).toMatchObject([{ id: 'nowhere', code: 'missing' }]);
          for (const id of ['a', 'b', 'c']) expect(await writes(process, target, id)).toBe(2);
        },
      },
    );
    expect(points).toBeGreaterThan(40);
  }, 120_000);

  it('R19 a failed operation is retried: queued anew once, never lost and never open as well', async () => {
    let reached: 'nothing' | 'failed' | 'retried' = 'nothing';
    const { points } = await crashPoints(
      async (process) => {
        const client = open(process);
        await paint(client, target, ['a', 'late']);
        await atServer(client);
        if (target === 'server') server.create('records').write([{ _id: 'late' }]);
        else await process.device.database('records').put({ _id: 'late' });
        reached = 'failed';
        await client.retryFailed();
        reached = 'retried';
        await atServer(client);
      },
      {
        fetch: fetchAt,
        every: 2,
        prepare: async (process) => {
          reached = 'nothing';
          await prepare(process, target, ['a']);
        },
        check: async (process) => {
          if (reached === 'nothing') return;
          const client = open(process);
          await atServer(client);
          const found = await firstValueFrom(client.bulkOperations$);
          if (reached === 'retried') expect(found).toHaveLength(2);
          expect(await firstValueFrom(client.failures$)).toHaveLength(found.length === 1 ? 1 : 0);
          if (found.length === 1) await client.retryFailed();
          await atServer(client);
          expect(await firstValueFrom(client.bulkOperations$)).toMatchObject([
            { total: 2, applied: 1 },
            { state: 'done', total: 1, applied: 1 },
          ]);
          expect(await firstValueFrom(client.failures$)).toEqual([]);
          expect(await client.listFailures({ resolved: true })).toHaveLength(1);
          expect(await writes(process, target, 'late')).toBe(2);
        },
      },
    );
    expect(points).toBeGreaterThan(40);
  }, 120_000);
});
