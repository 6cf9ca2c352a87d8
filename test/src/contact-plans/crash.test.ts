import { createClient, type Client, type Doc, type PlanRequest } from '@afield/client';
import { contactsIndex, deleteContact, mergeContacts, moveContact, setContact, setParent } from '@afield/contacts';
import { crashPoints, wrongLineages, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { town } from './town.js';

const docs: readonly Doc[] = [
  ...town({ clinics: 2, reports: 5 }),
  { _id: 's1', form: 'survey', fields: { place_id: '501' } },
  { _id: 'h3', type: 'health_center', contact: { _id: 'n1', parent: { _id: 'h1', parent: { _id: 'd1' } } } },
];

const open = ({ PouchDB, environment }: CrashProcess): Client =>
  createClient({
    name: 'clinic',
    PouchDB,
    environment,
    actions: [setParent, setContact],
    plans: [moveContact, mergeContacts, deleteContact],
    indexes: [contactsIndex],
    jitter: 0,
  });

/** Queues it, as an app does that does not know whether it has done so already, and waits for its end. */
async function run(client: Client, request: PlanRequest): Promise<void> {
  const { bulkOperationId } = await client.enqueue({ ...request, key: 'once' });
  const ended = await firstValueFrom(
    client.bulkOperations$.pipe(
      filter((all) => all.some(({ id, state }) => id === bulkOperationId && /^done|^failed/.test(state))),
    ),
  );
  expect(ended).toMatchObject([{ state: 'done', failed: 0 }]);
}

describe('plans of contacts in a client that dies', () => {
  it.each([
    ['move-contact', { id: 'h1', parent: 'd2' }],
    ['merge-contacts', { sources: ['h1'], target: 'h2' }],
    ['delete-contact', { id: 'h1' }],
  ])(
    'R3 R17 %s is planned again or goes on, at whatever call the client dies: no document is written twice',
    async (plan, request) => {
      const asked: PlanRequest = { target: 'local', plan, request };
      /** How often each document was written when nobody died. */
      let written: readonly string[] | undefined;
      const report = await crashPoints((process) => run(open(process), asked), {
        prepare: ({ device }) => device.database('clinic').bulkDocs(docs),
        check: async (process) => {
          const client = open(process);
          await run(client, asked);
          const { rows } = await process.device.database('clinic').allDocs({ include_docs: true });
          const left = (rows as { doc: Doc }[]).map(({ doc }) => doc);
          const generations = left.map(({ _id, _rev }) => `${_id} ${String(_rev).split('-')[0] ?? ''}`);
          written ??= generations;
          expect(generations).toEqual(written);
          expect(wrongLineages(left)).toEqual([]);
          expect((await client.dryRun(asked)).total).toBe(0);
          await client.close();
        },
      });
      expect(report.points).toBeGreaterThan(40);
    },
    120_000,
  );
});
