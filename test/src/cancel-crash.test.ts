import { createClient, defineDocumentAction, type Client, type Target } from '@afield/client';
import { crashPoints, MemoryServer, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const paint = defineDocumentAction({
  name: 'paint',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});
const ids = ['a', 'b', 'c'];

/** The process may die between the write of a document and its outcome, while a person has cancelled meanwhile. */
describe.each<Target>(['local', 'server'])('a cancel in the middle of the work, target %s', (target) => {
  let server: MemoryServer;
  let said: 'nothing' | 'queued' | 'cancelled';

  const open = ({ PouchDB, environment }: CrashProcess): Client =>
    createClient({
      name: 'records',
      PouchDB,
      environment,
      actions: [paint],
      server: server.urlOf('records'),
      replication: false,
      batchSize: 1,
      jitter: 0,
    });
  const isBlue = async (process: CrashProcess, id: string): Promise<boolean> => {
    const doc =
      target === 'server' ? server.create('records').read(id) : await process.device.database('records').get(id);
    return (doc as { colour?: string }).colour === 'blue';
  };
  const blues = async (process: CrashProcess): Promise<number> =>
    (await Promise.all(ids.map((id) => isBlue(process, id)))).filter(Boolean).length;

  it('R19 R3 what was written counts as applied, wherever the process dies', async () => {
    const { points } = await crashPoints(
      async (process) => {
        const client = open(process);
        const { bulkOperationId } = await client.enqueue({
          target,
          actions: [{ action: 'paint', operations: ids.map((id) => ({ id, to: 'blue' })) }],
        });
        said = 'queued';
        await firstValueFrom(client.bulkOperations$.pipe(filter(([one]) => (one?.cursor ?? 0) > 0)));
        await client.cancel(bulkOperationId).catch((error: unknown) => {
          // It may have come to its end before.
          expect(error).toMatchObject({ code: 'already_ended' });
        });
        said = 'cancelled';
        await firstValueFrom(client.status$.pipe(filter(({ pending }) => pending === 0)));
      },
      {
        fetch: (input, init) => server.fetch(input, init),
        prepare: async ({ device }) => {
          server = new MemoryServer();
          server.create('records');
          said = 'nothing';
          const docs = ids.map((_id) => ({ _id }));
          if (target === 'server') server.create('records').write(docs);
          else await device.database('records').bulkDocs(docs);
        },
        check: async (process) => {
          const client = open(process);
          await firstValueFrom(client.status$.pipe(filter(({ leader, pending }) => leader && pending === 0)));
          const [one] = await firstValueFrom(client.bulkOperations$);
          if (said !== 'nothing') expect(one).toBeDefined();
          if (said === 'cancelled') expect(['cancelled', 'done']).toContain(one?.state);
          if (one === undefined) return client.close();
          const written = await blues(process);
          if (one.state === 'done') expect(written).toBe(3);
          await firstValueFrom(client.bulkOperations$.pipe(filter(([now]) => now?.applied === written)));
          await client.close();
          expect(await blues(process)).toBe(written);
        },
      },
    );
    expect(points).toBeGreaterThan(20);
  }, 60_000);
});
