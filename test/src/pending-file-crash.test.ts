import { couchdbPublisher, createClient, definePlan, type Client, type ClientStatus } from '@afield/client';
import { setParent } from '@afield/contacts';
import { crashPoints, MemoryServer, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const away = () => Promise.reject(new TypeError('no network'));
/** Never runs here. */
const plan = definePlan({ name: 'none', request: z.strictObject({}), plan: () => Promise.resolve([]) });
const ids = Array.from({ length: 5 }, (_, at) => `d${String(at)}`);

describe('a file is taken in by a process that dies', () => {
  let server: MemoryServer;
  let file: string | undefined;

  const open = (
    { PouchDB, environment }: CrashProcess,
    name: string,
    fetch = environment.fetch,
    autoStart = true,
  ): Client =>
    createClient({
      name,
      PouchDB,
      environment: { ...environment, fetch },
      actions: [setParent],
      plans: [plan],
      user: 'amber',
      server: server.urlOf('records'),
      results: { url: server.urlOf('results'), content: true },
      publishers: [couchdbPublisher({ url: server.urlOf('events') })],
      batchSize: 2,
      jitter: 0,
      autoStart,
    });
  const becomes = (client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
    firstValueFrom(client.status$.pipe(filter(is)));

  /** Done and refused work, work that waits for the server, a key in quarantine, an edit, a plan that is held back. */
  async function work(process: CrashProcess): Promise<void> {
    const client = open(process, 'old', away);
    await client.documents.bulkDocs([
      ...ids.map((_id) => ({ _id, parent: { _id: 'p1' } })),
      { _id: 'photo', _attachments: { p: { content_type: 'text/plain', data: 'aGk=' } } },
    ]);
    const moved = (to: string, operations: readonly string[]) => ({
      action: 'set-parent',
      operations: operations.map((id) => ({ id, key: `${id}-${to}`, parent: { _id: to } })),
    });
    await client.enqueue({ target: 'local', actions: [moved('p2', [...ids, 'nowhere'])] });
    await becomes(client, ({ pending }) => pending === 0);
    const [failure] = await client.listFailures();
    await client.editAndRetry(failure?.failureId ?? '', { id: 'nowhere', parent: { _id: 'p3' } });
    await client.enqueue({ target: 'local', lane: 'slow', key: 'later', actions: [moved('p3', ids)] });
    await becomes(client, ({ pending }) => pending === 0);
    await client.enqueue({ target: 'server', actions: [moved('p4', ['s1'])] });
    await client.enqueue({ target: 'local', key: 'later', actions: [moved('p5', ids)] }).catch(() => undefined); // it is in quarantine
    await client.enqueue({ target: 'server', plan: 'none', request: {} });
    file = await (await client.exportPending()).text();
    await client.close();
  }

  it('S7 the same file again brings the rest, and everything is done once', async () => {
    const expected = { bulkOperations: 5, operations: 13, documents: 6, duplicates: 0, paused: 0 };
    let receipts = 0;
    let halves = 0;
    const report = await crashPoints(
      async (process) => {
        const client = open(process, 'new', away);
        expect(await client.importPending(file ?? '')).toEqual(expected);
        await client.close();
      },
      {
        fetch: (input, init) => server.fetch(input, init),
        every: 2,
        prepare: async (process) => {
          server = new MemoryServer();
          server.create('results');
          server.create('events');
          server.create('records').write([{ _id: 's1', parent: { _id: 'p1' } }]);
          if (file === undefined) await work(process);
        },
        check: async (process) => {
          const client = open(process, 'new', process.environment.fetch, false);
          await client.storeId;
          for (const { id, target, state } of await firstValueFrom(client.bulkOperations$)) {
            if (target === 'local') expect(state).toMatch(/^(paused|done|done-with-failures)$/);
            // Half of it is here: nobody can let it run.
            if (state === 'paused') {
              await expect(client.resume(id)).rejects.toMatchObject({ code: 'import_unfinished' });
              halves++;
            }
          }
          const { bulkOperations, duplicates } = await client.importPending(file ?? '');
          expect(bulkOperations + duplicates).toBe(expected.bulkOperations);
          if (duplicates > 0) receipts++;
          await client.start();
          await becomes(
            client,
            ({ pending, unpublished, unreported, unconfirmed, leader, results }) =>
              leader && pending + unpublished + unreported + unconfirmed === 0 && results.state === 'idle',
          );
          const all = await firstValueFrom(client.bulkOperations$);
          expect(
            all.map(({ state, applied, alreadyApplied, failed, total }) => [
              state,
              applied,
              alreadyApplied,
              failed,
              total,
            ]),
          ).toEqual([
            ['done', 5, 0, 0, 6], // what failed of it was retried
            ['done-with-failures', 0, 0, 1, 1],
            ['done', 5, 0, 0, 5],
            ['done', 1, 0, 0, 1],
            ['done', 0, 0, 0, 0],
          ]);
          const records = server.create('records');
          for (const id of ids)
            expect(records.read(id)).toMatchObject({
              parent: { _id: 'p3' },
              _rev: expect.stringMatching(/^3-/) as unknown,
            });
          expect(records.read('s1')).toMatchObject({ parent: { _id: 'p4' } });
          expect(records.read('photo')).toHaveProperty('_attachments.p');
          const events = server.create('events').ids();
          expect(new Set(events.map((id) => id.slice(id.indexOf(':')))).size).toBe(11);
          expect(events).toHaveLength(11);
          const failures = await client.listFailures();
          expect(failures.map(({ id, code }) => [id, code])).toEqual([['nowhere', 'missing']]);
          expect(await client.listFailures({ resolved: true })).toHaveLength(1);
          expect(await client.listQuarantined()).toMatchObject([{ kind: 'bulk-operation', key: 'later' }]);
          // What was queued under its keys comes again: it is known.
          const [first] = await client.listQuarantined();
          await client.resolveQuarantined(first?.quarantineId ?? '', 'take-second');
          await becomes(client, ({ pending, quarantined }) => pending + quarantined === 0);
          expect(await client.documents.get('d0')).toMatchObject({ parent: { _id: 'p5' } });
          await client.close();
        },
      },
    );
    expect(report.points).toBeGreaterThan(15);
    expect(receipts).toBeGreaterThan(3);
    expect(halves).toBeGreaterThan(3);
  }, 240_000);
});
