import { createClient, type Client, type ClientStatus, type EnqueueRequest } from '@afield/client';
import { crashPoints, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';

const open = ({ PouchDB, environment }: CrashProcess, rememberDays: number): Client =>
  createClient({ name: 'records', PouchDB, environment, actions: [], rememberDays, jitter: 0 });
const status = (client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
  firstValueFrom(client.status$.pipe(filter(is)));
const ended = (client: Client): Promise<ClientStatus> =>
  status(client, ({ leader, pending }) => leader && pending === 0);

const many = (from: number): EnqueueRequest => ({
  target: 'local',
  actions: [
    {
      action: 'update',
      operations: Array.from({ length: 110 }, (_, at) => ({
        id: `d${String(from + at)}`,
        key: `${String(from)}-${String(at)}`,
        patch: { seen: from },
      })),
    },
  ],
});

/** Names of what the queue database holds, by the letter before their first colon. */
async function names({ PouchDB }: CrashProcess, kind: string): Promise<string[]> {
  const { rows } = await new PouchDB('records-afield-queue').allDocs({});
  return rows.map((row) => (row as { id: string }).id).filter((id) => id.startsWith(`${kind}:`));
}

/** Resolves when nothing is named any more that is to be removed, and only the last header is there. */
async function isTidy(process: CrashProcess): Promise<void> {
  const client = open(process, 0);
  await status(client, ({ leader }) => leader);
  await firstValueFrom(client.bulkOperations$.pipe(filter((all) => all.length === 1)));
  // Past the process: these reads are no calls of it.
  const store = process.device.database('records-afield-queue');
  for (let turn = 0; turn < 500; turn++) {
    const { rows } = await store.allDocs({ keys: ['hk'], include_docs: true });
    const [note] = rows as { doc?: { removing: unknown[]; settled: unknown[] } }[];
    if (note?.doc?.removing.length === 0 && note.doc.settled.length <= 1) break;
  }
  await client.close();
}

describe('the client dies at any call while it removes what is over', () => {
  it('O4 what is half removed counts no more, harms nothing, and is gone after the next start', async () => {
    const report = await crashPoints((process) => isTidy(process), {
      prepare: async (process) => {
        const client = open(process, 30);
        await client.documents.bulkDocs(Array.from({ length: 170 }, (_, at) => ({ _id: `d${String(at)}` })));
        for (const from of [0, 50]) {
          await client.enqueue(many(from));
          await ended(client);
        }
        await client.discard({});
        await client.close();
      },
      check: async (process) => {
        // A client that forgets nothing meets what is half removed, and works.
        const client = open(process, 30);
        await status(client, ({ leader }) => leader);
        const events = await client.listEvents({ limit: 1000 });
        expect(events.length).toBeGreaterThanOrEqual(110);
        const { sequence } = await client.enqueue(many(20));
        expect(sequence).toBe(3);
        await ended(client);
        const found = await firstValueFrom(client.bulkOperations$);
        expect(found.map(({ state }) => state).every((state) => state.startsWith('done'))).toBe(true);
        await client.close();
        await isTidy(process);
        expect(await names(process, 'h')).toEqual(['h:000000000003']);
        expect(await names(process, 'hr')).toEqual([]);
        expect(await names(process, 'f')).toEqual([]);
        expect((await names(process, 'b')).filter((id) => !id.startsWith('b:000000000003:'))).toEqual([]);
        expect(await names(process, 'p')).toHaveLength(2);
        expect((await names(process, 'k')).filter((id) => !id.startsWith('k:o:20-'))).toEqual([]);
        expect(await names(process, 'k')).toHaveLength(110);
      },
      every: 2,
    });
    expect(report.points).toBeGreaterThan(20);
  }, 300_000);
});
