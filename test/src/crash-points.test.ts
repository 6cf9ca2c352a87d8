import { createClient, type Client, type ClientStatus, type EnqueueRequest, type Target } from '@afield/client';
import { setParent } from '@afield/contacts';
import { crashPoints, MemoryServer, type CrashPoint, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';

const old = { _id: 'h1', parent: { _id: 'd1' } };
const wanted = { _id: 'h2', parent: { _id: 'd1' } };
const documents = [
  { _id: 'moves', parent: old, name: 'kept' },
  { _id: 'is-there', parent: wanted },
  { _id: 'elsewhere', parent: { _id: 'h9' } },
  { _id: 'moves-too', parent: old, _attachments: { n: { content_type: 'text/plain', data: 'aGk=' } } },
  { _id: 'goes', parent: old },
  { _id: 'stays', parent: old },
];
const guard = { parent: wanted, current_parent_id: 'h1' };
const request = (target: Target): EnqueueRequest => ({
  target,
  actions: [
    {
      action: 'set-parent',
      operations: [
        { id: 'moves', ...guard },
        { id: 'is-there', ...guard },
        { id: 'nowhere', ...guard },
        { id: 'elsewhere', ...guard },
        { id: '', ...guard },
        { id: 'moves-too', ...guard },
      ],
    },
    { action: 'delete', operations: [{ id: 'goes' }] },
  ],
});

let server: MemoryServer;
let isQueued: boolean;

const open = ({ PouchDB, environment }: CrashProcess): Client =>
  createClient({
    name: 'records',
    PouchDB,
    environment,
    actions: [setParent],
    server: server.urlOf('records'),
    results: server.urlOf('results'),
    batchSize: 4,
    jitter: 0,
  });
const status = (client: Client, is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
  firstValueFrom(client.status$.pipe(filter(is)));
/** Everything has its outcome, and the server knows of it. */
const atServer = (client: Client): Promise<ClientStatus> =>
  status(
    client,
    ({ leader, pending, unreported, push, results }) =>
      leader &&
      pending === 0 &&
      unreported === 0 &&
      push.attempts > 0 &&
      push.state === 'idle' &&
      results.state === 'idle',
  );

/** The queue is as it was confirmed: all of it, or (when nothing was confirmed) all or nothing. Then it comes to its end. */
async function comesToItsEnd(process: CrashProcess, target: Target): Promise<void> {
  const client = open(process);
  await status(client, ({ leader }) => leader);
  const found = await firstValueFrom(client.bulkOperations$);
  if (isQueued) expect(found).toHaveLength(1);
  if (found.length === 0) await client.enqueue(request(target));
  await atServer(client);
  const [one, ...more] = await firstValueFrom(client.bulkOperations$);
  expect(more).toEqual([]);
  expect(one).toMatchObject({ state: 'done-with-failures', cursor: 7, total: 7, failed: 3 });
  expect((one?.applied ?? 0) + (one?.alreadyApplied ?? 0)).toBe(4);
  // What was written by the process that died counts as applied, not as found.
  expect(one).toMatchObject({ applied: 3, alreadyApplied: 1 });
  const failures = await firstValueFrom(client.failures$);
  expect(failures.map(({ index, code, mayHaveBeenApplied }) => [index, code, mayHaveBeenApplied])).toEqual([
    [2, 'missing', false],
    [3, 'guard_mismatch', false],
    [4, 'no_id', false],
  ]);
  expect(server.unknown).toEqual([]);
  await client.close();
}

async function read(
  process: CrashProcess,
  target: Target,
): Promise<Record<string, Record<string, unknown> | undefined>> {
  const ids = documents.map(({ _id }) => _id);
  if (target === 'server') {
    const database = server.create('records');
    return Object.fromEntries(ids.map((id) => [id, database.read(id) as Record<string, unknown> | undefined]));
  }
  const { rows } = await new process.PouchDB('records').allDocs({ keys: ids, include_docs: true });
  return Object.fromEntries(
    ids.map((id, at) => [id, (rows[at] as { doc?: Record<string, unknown> }).doc ?? undefined]),
  );
}

/** Each document was written once, if at all. */
async function isWrittenOnce(process: CrashProcess, target: Target): Promise<void> {
  const docs = await read(process, target);
  const generation = (id: string): string => String(docs[id]?.['_rev']).split('-')[0] ?? '';
  expect(['moves', 'moves-too', 'is-there', 'elsewhere', 'stays'].map(generation)).toEqual(['2', '2', '1', '1', '1']);
  expect(docs['moves']).toMatchObject({ parent: wanted, name: 'kept' });
  expect(docs['moves-too']).toMatchObject({ parent: wanted, _attachments: { n: { stub: true } } });
  expect(docs['goes'] ?? { _deleted: true }).toMatchObject({ _deleted: true });
}

describe('the client dies at any call, and another one takes over', () => {
  it.each(['local', 'server'] as const)(
    'R3 R9 O2 every operation has one outcome and one write, target %s',
    async (target) => {
      const points: CrashPoint[] = [];
      const report = await crashPoints(
        async (process) => {
          const client = open(process);
          await client.enqueue(request(target));
          isQueued = true;
          await atServer(client);
          await client.close();
        },
        {
          fetch: (input, init) => server.fetch(input, init),
          prepare: async ({ PouchDB }) => {
            isQueued = false;
            server = new MemoryServer();
            server.create('results');
            const records = server.create('records');
            if (target === 'local') await new PouchDB('records').bulkDocs(documents);
            else records.write(documents);
          },
          check: async (process, point) => {
            points.push(point);
            await comesToItsEnd(process, target);
            await isWrittenOnce(process, target);
          },
        },
      );
      expect(report.points).toBeGreaterThan(40);
      expect(points).toHaveLength(report.points + 1);
    },
    120_000,
  );
});
