import { createClient, type Client, type EnqueueRequest, type Target } from '@afield/client';
import { deleteUser, setParent } from '@afield/contacts';
import { crashPoints, MemoryServer, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';

const startAt = Date.UTC(2026, 4, 1, 12);
const idOf = (name: string): string => `org.couchdb.user:${name}`;
const user = (name: string, more: object = {}): object => ({ _id: idOf(name), name, facility_id: ['a1'], ...more });

/** What the account allows the settings would not: a guard that looked at the wrong one would be seen. */
const settings = [
  user('amber', { facility_id: ['elsewhere'], language: 'en', _attachments: { n: { data: 'aGk=' } } }),
  user('basil'),
  user('clove', { inactive: true, deletion_date: 1 }),
];
const accounts = [user('amber'), user('basil', { facility_id: 'a9' }), user('elder')];
const names = ['amber', 'basil', 'clove', 'dill', 'elder'];

const request = (target: Target): EnqueueRequest => ({
  target,
  actions: [
    { action: 'set-parent', operations: [{ id: 'p1', parent: { _id: 'h2' } }] },
    {
      action: 'delete-user',
      operations: names.map((name) => ({ id: idOf(name), facilities: ['a1', 'a2'] })),
    },
    { action: 'delete', operations: [{ id: 'p2' }] },
  ],
});

let server: MemoryServer;
let isQueued: boolean;

const open = ({ PouchDB, environment }: Pick<CrashProcess, 'PouchDB' | 'environment'>): Client =>
  createClient({
    name: 'records',
    PouchDB,
    environment,
    actions: [setParent, deleteUser],
    server: server.urlOf('records'),
    replication: false,
    jitter: 0,
  });

async function run(client: Client, target: Target): Promise<void> {
  await firstValueFrom(client.status$.pipe(filter(({ leader }) => leader)));
  await client.storeId;
  const found = await firstValueFrom(client.bulkOperations$);
  if (isQueued) expect(found).toHaveLength(1);
  if (found.length === 0) await client.enqueue(request(target));
  isQueued = true;
  const [one] = await firstValueFrom(
    client.bulkOperations$.pipe(filter(([first]) => first?.state.startsWith('done') ?? false)),
  );
  expect(one).toMatchObject({ state: 'done-with-failures', target, cursor: 7, failed: 1 });
  const failures = await firstValueFrom(client.failures$);
  expect(failures).toMatchObject([{ id: idOf('basil'), code: 'guard_mismatch' }]);
  await client.close();
}

/** Whatever happened: what was wanted is there, and no document was written twice. */
function isDeletedOnce(): void {
  const [records, users] = [server.create('records'), server.create('_users')];
  const generation = (database: typeof records, name: string): string =>
    String(database.read(idOf(name))?.['_rev'] ?? '').split('-')[0] ?? '';
  expect(records.read(idOf('amber'))).toMatchObject({
    inactive: true,
    language: 'en',
    facility_id: ['elsewhere'],
    _attachments: { n: { stub: true } },
  });
  const date = Number(records.read(idOf('amber'))?.['deletion_date']);
  expect(date).toBeGreaterThanOrEqual(startAt);
  expect(date).toBeLessThan(startAt + 3_600_000);
  expect(['amber', 'basil', 'clove'].map((name) => generation(records, name))).toEqual(['2', '1', '1']);
  expect(users.ids().filter((id) => users.read(id) !== undefined && users.read(id)?.['_deleted'] !== true)).toEqual([
    idOf('basil'),
  ]);
  expect(server.unknown).toEqual([]);
}

describe('delete-user by a client', () => {
  it.each(['local', 'server'] as const)(
    'R3 R6 R9 the client dies at any call, and another one ends it: each document is written once, target %s',
    async (target) => {
      const report = await crashPoints((process) => run(open(process), target), {
        startAt,
        fetch: (input, init) => server.fetch(input, init),
        prepare: async ({ PouchDB }) => {
          isQueued = false;
          server = new MemoryServer();
          const people = [{ _id: 'p1' }, { _id: 'p2' }];
          server.create('records').write(target === 'server' ? [...settings, ...people] : settings);
          server.create('_users').write(accounts);
          if (target === 'local') await new PouchDB('records').bulkDocs(people);
        },
        check: async (process) => {
          await run(open(process), target);
          isDeletedOnce();
        },
      });
      expect(report.points).toBeGreaterThan(20);
    },
    60_000,
  );
});
