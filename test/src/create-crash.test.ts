import { createClient, type Client, type ClientStatus, type EnqueueRequest, type Target } from '@afield/client';
import { crashPoints, MemoryServer, type CrashPoint, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';

const person = { type: 'person', name: 'Person 1' };
const documents = [
  { _id: 'gone', type: 'clinic' },
  { _id: 'same', name: 'Person 1', type: 'person' },
  { _id: 'other', type: 'person', name: 'Person 2' },
  { _id: 'changes', phone: '1', address: { street: 'a', town: 'b' } },
];
const request = (target: Target): EnqueueRequest => ({
  target,
  actions: [
    { action: 'create', operations: ['new', 'gone', 'same', 'other'].map((id) => ({ id, doc: person })) },
    {
      action: 'update',
      operations: ['changes', 'nowhere'].map((id) => ({
        id,
        patch: { phone: '2', address: { street: null } },
        expected: { phone: '1' },
      })),
    },
  ],
});

let server: MemoryServer;
let isQueued: boolean;

const open = ({ PouchDB, environment }: CrashProcess): Client =>
  createClient({
    name: 'records',
    PouchDB,
    environment,
    actions: [],
    server: server.urlOf('records'),
    replication: false,
    jitter: 0,
  });
const status = (client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
  firstValueFrom(client.status$.pipe(filter(is)));
const ended = (client: Client): Promise<ClientStatus> =>
  status(client, ({ leader, pending }) => leader && pending === 0);

async function comesToItsEnd(process: CrashProcess, target: Target): Promise<void> {
  const client = open(process);
  await status(client, ({ leader }) => leader);
  const found = await firstValueFrom(client.bulkOperations$);
  if (isQueued) expect(found).toHaveLength(1);
  if (found.length === 0) await client.enqueue(request(target));
  await ended(client);
  const [one] = await firstValueFrom(client.bulkOperations$);
  // What was written by the process that died counts as applied, not as found.
  expect(one).toMatchObject({ state: 'done-with-failures', applied: 3, alreadyApplied: 1, failed: 2 });
  const failures = await firstValueFrom(client.failures$);
  expect(failures.map(({ id, code, mayHaveBeenApplied }) => [id, code, mayHaveBeenApplied])).toEqual([
    ['other', 'conflicting_content', false],
    ['nowhere', 'missing', false],
  ]);
  await client.close();
}

type Stored = Record<string, unknown>;

async function read(process: CrashProcess, target: Target, ids: readonly string[]): Promise<(Stored | undefined)[]> {
  if (target === 'server') {
    const database = server.create('records');
    return ids.map((id) => database.read(id));
  }
  const { rows } = await new process.PouchDB('records').allDocs({ keys: ids, include_docs: true });
  return rows.map((row) => (row as { doc?: Stored | null }).doc ?? undefined);
}

describe('the client dies at any call while documents are created and updated', () => {
  it.each(['local', 'server'] as const)(
    'R3 R9 O5 each is created or changed once, and what is another or missing is left alone, target %s',
    async (target) => {
      const points: CrashPoint[] = [];
      const report = await crashPoints(
        async (process) => {
          const client = open(process);
          await client.enqueue(request(target));
          isQueued = true;
          await ended(client);
          await client.close();
        },
        {
          fetch: (input, init) => server.fetch(input, init),
          prepare: async ({ PouchDB }) => {
            isQueued = false;
            server = new MemoryServer();
            const records = server.create('records');
            const database = target === 'local' ? new PouchDB('records') : undefined;
            const write = async (docs: object[]): Promise<{ rev?: string }[]> =>
              (database === undefined ? records.write(docs) : await database.bulkDocs(docs)) as { rev?: string }[];
            const [gone] = await write(documents);
            await write([{ _id: 'gone', _rev: gone?.rev, _deleted: true }]);
          },
          check: async (process, point) => {
            points.push(point);
            await comesToItsEnd(process, target);
            const ids = ['new', 'gone', 'same', 'other', 'changes', 'nowhere'];
            const docs = await read(process, target, ids);
            const generations = docs.map((doc) => Number.parseInt(String(doc?.['_rev'] ?? '0'), 10));
            expect(generations).toEqual([1, 3, 1, 1, 2, 0]);
            expect(docs.slice(0, 5)).toMatchObject([person, person, person, { name: 'Person 2' }, { phone: '2' }]);
            expect(docs[4]?.['address']).toEqual({ town: 'b' });
          },
        },
      );
      expect(report.points).toBeGreaterThan(20);
      expect(points).toHaveLength(report.points + 1);
    },
    120_000,
  );
});
