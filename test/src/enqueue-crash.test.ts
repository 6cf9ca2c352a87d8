import { createClient, defineDocumentAction, type Client } from '@afield/client';
import { crashPoints, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { expect, it } from 'vitest';
import { z } from 'zod/mini';

const paint = defineDocumentAction({
  name: 'paint',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});
const ids = Array.from({ length: 250 }, (_, at) => `d${String(at)}`);

const open = ({ PouchDB, environment }: CrashProcess, autoStart: boolean): Client =>
  createClient({ name: 'records', PouchDB, environment, actions: [paint], autoStart, jitter: 0 });

it('O2 wherever the process dies: what was said to be queued is there whole and runs, what was not leaves nothing that half runs', async () => {
  let isQueued = false;
  const report = await crashPoints(
    async (process) => {
      const client = open(process, false);
      await client.enqueue({
        target: 'local',
        actions: [{ action: 'paint', operations: ids.map((id) => ({ id, to: 'blue' })) }],
      });
      isQueued = true;
      await client.close();
    },
    {
      // There is no network.
      fetch: () => Promise.reject(new TypeError('Failed to fetch')),
      prepare: async ({ PouchDB }) => {
        isQueued = false;
        await new PouchDB('records').bulkDocs(ids.map((_id) => ({ _id, colour: 'red' })));
      },
      check: async (process) => {
        const client = open(process, true);
        await firstValueFrom(client.status$.pipe(filter(({ leader, pending }) => leader && pending === 0)));
        const list = await firstValueFrom(client.bulkOperations$);
        if (isQueued) expect(list).toHaveLength(1);
        for (const one of list) expect(one).toMatchObject({ state: 'done', applied: 250, failed: 0 });
        const { rows } = await new process.PouchDB('records').allDocs({ include_docs: true });
        const colours = new Set(rows.map((row) => (row as { doc: { colour: string } }).doc.colour));
        expect([...colours]).toEqual([list.length === 0 ? 'red' : 'blue']);
        await client.close();
      },
    },
  );
  expect(report.points).toBeGreaterThan(5);
}, 60_000);
