import { createClient, type Client, type ClientStatus, type EnqueueRequest, type Target } from '@afield/client';
import { crashPoints, MemoryServer, type CrashPoint, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';

const hash = (letter: string): string => letter.repeat(32);
const leaf = (_id: string, letter: string): object => ({
  _id,
  _rev: `2-${hash(letter)}`,
  _revisions: { start: 2, ids: [hash(letter), hash('0')] },
  type: 'person',
});
const documents = ['one a', 'two a', 'two b', 'three a', 'three b', 'three c'].map((names) => {
  const [id = '', letter = ''] = names.split(' ');
  return leaf(id, letter);
});
const ids = ['one', 'two', 'three', 'nowhere'];
const request = (target: Target): EnqueueRequest => ({
  target,
  actions: [{ action: 'delete', operations: ids.map((id) => ({ id })) }],
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
  // What was deleted by the process that died counts as applied, not as found.
  expect(one).toMatchObject({ state: 'done', applied: 3, alreadyApplied: 1, failed: 0 });
  await client.close();
}

/** How many revisions came after the first two, all deletions: one for each leaf that was there. */
async function deletionsOf(process: CrashProcess, target: Target): Promise<number[]> {
  const changes = async (): Promise<unknown> => {
    if (target === 'local') return new process.PouchDB('records').changes({ since: 0, style: 'all_docs' });
    return server.answer(`${server.urlOf('records')}/_changes?style=all_docs`).body;
  };
  const { results } = (await changes()) as { results: { id: string; changes: { rev: string }[]; deleted?: boolean }[] };
  return ids.map((id) => {
    const found = results.find((one) => one.id === id);
    if (found === undefined) return 0;
    expect(found.deleted).toBe(true);
    expect(found.changes.every(({ rev }) => rev.startsWith('3-'))).toBe(true);
    return found.changes.length;
  });
}

describe('the client dies at any call while documents with hidden conflicts are deleted', () => {
  it.each(['local', 'server'] as const)(
    'S8 R3 each leaf is deleted once, and each operation has been applied, target %s',
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
            if (target === 'server') records.write(documents, false);
            else await new PouchDB('records').bulkDocs(documents, { new_edits: false });
          },
          check: async (process, point) => {
            points.push(point);
            await comesToItsEnd(process, target);
            expect(await deletionsOf(process, target)).toEqual([1, 2, 3, 0]);
          },
        },
      );
      expect(report.points).toBeGreaterThan(20);
      expect(points).toHaveLength(report.points + 1);
      // Three writes on the documents, each with a death before and after it.
      const writes = report.tried.filter(({ what }) => /^(bulkDocs records|POST \/records\/_bulk_docs)$/.test(what));
      expect(writes).toHaveLength(6);
    },
    120_000,
  );
});
