import {
  createClient,
  defineDocumentAction,
  type BulkOperationStatus,
  type Client,
  type ClientOptions,
  type FailedOperation,
} from '@afield/client';
import { deleteUser } from '@afield/contacts';
import {
  FakeDevice,
  FakeProcess,
  MemoryServer,
  Refusal,
  type MemoryDatabase,
  type StoredDocument,
} from '@afield/testing';
import { filter, firstValueFrom, map } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const ended = new Set(['done', 'done-with-failures', 'failed']);
const idOf = (name: string): string => `org.couchdb.user:${name}`;
const account = (name: string, more: object = {}): StoredDocument => ({ _id: idOf(name), type: 'user', name, ...more });
const settings = (name: string, more: object = {}): StoredDocument => ({
  _id: idOf(name),
  type: 'user-settings',
  facility_id: ['a1'],
  ...more,
});
const toGo = (name: string, more: object = {}): StoredDocument => ({ id: idOf(name), ...more });

const setNote = defineDocumentAction({
  name: 'set-note',
  operation: z.strictObject({ note: z.string() }),
  isApplied: (doc, { note }) => doc['note'] === note,
  apply: (doc, { note }) => ({ ...doc, note }),
});

describe('delete-user', () => {
  let device: FakeDevice;
  let server: MemoryServer;
  let records: MemoryDatabase;
  let users: MemoryDatabase;
  /** Requests of the client, such as `_users/_bulk_docs`. */
  let asked: string[];
  let client: Client;
  let tab: FakeProcess;

  beforeEach(() => {
    server = new MemoryServer();
    records = server.create('records');
    users = server.create('_users');
    asked = [];
    device = new FakeDevice({
      fetch: (input, init) => {
        const path = new URL(String(input as string)).pathname.slice(1);
        if (path !== '_session') asked.push(path); // who is signed in is asked once, before all else
        return server.fetch(input, init);
      },
    });
    client = open();
  });
  afterEach(async () => {
    await client.close();
    await device.dispose();
    expect(server.unknown).toEqual([]);
  });

  const open = (options: Partial<ClientOptions> = {}): Client => {
    tab = device.process();
    const { PouchDB, environment } = tab;
    return createClient({
      name: 'records',
      PouchDB,
      environment,
      actions: [deleteUser, setNote],
      server: server.urlOf('records'),
      auth: { credentials: () => Promise.resolve({ type: 'basic', username: 'admin', password: 'made up' }) },
      replication: false,
      jitter: 0,
      ...options,
    });
  };
  const enqueue = async (operations: readonly object[], target: 'local' | 'server' = 'server'): Promise<string> => {
    const { bulkOperationId } = await client.enqueue({
      target,
      actions: [{ action: 'delete-user', operations: operations as { id: string }[] }],
    });
    return bulkOperationId;
  };
  const reached = (isThere: (bulk: BulkOperationStatus) => boolean): Promise<BulkOperationStatus> =>
    device.until(
      firstValueFrom(
        client.bulkOperations$.pipe(
          map((all) => all.at(-1)),
          filter((bulk) => bulk !== undefined),
          filter(isThere),
        ),
      ),
    );
  const run = async (...operations: readonly object[]): Promise<BulkOperationStatus> => {
    await enqueue(operations);
    return reached(({ state }) => ended.has(state));
  };
  const failures = (): Promise<readonly FailedOperation[]> => firstValueFrom(client.failures$);
  const codes = async (): Promise<unknown[]> => (await failures()).map(({ id, code }) => [id, code]);
  const isGone = (name: string): boolean => users.tree(idOf(name))?.winner?.deleted === true;
  const revisionsOf = (database: MemoryDatabase, name: string): number =>
    Number.parseInt(database.tree(idOf(name))?.winner?.rev ?? '0', 10);

  it('R6 deletes the account and marks the settings, with the time of the client; the rest stays', async () => {
    const data = Buffer.from('a photo').toString('base64');
    users.write([account('amber')]);
    records.write([settings('amber', { known: true, _attachments: { photo: { content_type: 'image/png', data } } })]);
    const now = device.clock.wall();
    expect(await run(toGo('amber'))).toMatchObject({ state: 'done', applied: 1, attempts: 1 });
    expect(isGone('amber')).toBe(true);
    expect(records.read(idOf('amber'), undefined, { attachments: true })).toMatchObject({
      type: 'user-settings',
      facility_id: ['a1'],
      known: true,
      inactive: true,
      deletion_date: now,
      _attachments: { photo: { data } },
    });
  });

  it('S8 leaves no hidden version of an account that could sign in again', async () => {
    const hash = (letter: string): string => letter.repeat(32);
    const version = (letter: string): StoredDocument =>
      account('amber', { _rev: `2-${hash(letter)}`, _revisions: { start: 2, ids: [hash(letter), hash('0')] } });
    users.write(['a', 'b', 'c'].map(version), false);
    expect(await run(toGo('amber'))).toMatchObject({ state: 'done', applied: 1, attempts: 1 });
    expect(users.tree(idOf('amber'))?.leaves()).toMatchObject([
      { deleted: true },
      { deleted: true },
      { deleted: true },
    ]);
  });

  it('R6 finishes what an earlier run began, and writes nothing where all is done', async () => {
    users.write([account('only-account'), account('inactive-settings')]);
    records.write([
      settings('only-settings', { deletion_date: null }),
      settings('inactive-settings', { inactive: true, deletion_date: 1 }),
      settings('all-done', { inactive: true }),
    ]);
    const names = ['only-account', 'only-settings', 'inactive-settings', 'all-done', 'never-there'];
    const bulk = await run(...names.map((name) => toGo(name)));
    expect(bulk).toMatchObject({ state: 'done', applied: 3, alreadyApplied: 2 });
    expect([isGone('only-account'), isGone('inactive-settings')]).toEqual([true, true]);
    expect(records.read(idOf('only-settings'))).toMatchObject({ inactive: true, deletion_date: device.clock.wall() });
    expect(records.read(idOf('inactive-settings'))).toMatchObject({ _rev: /^1-/, deletion_date: 1 });
    expect(records.read(idOf('all-done'))).not.toHaveProperty('deletion_date');
    expect(records.tree(idOf('only-account'))).toBeUndefined();
    expect(asked).toEqual(['_users/_all_docs', 'records/_all_docs', 'records/_bulk_docs', '_users/_bulk_docs']);

    asked = [];
    expect(await run(...names.map((name) => toGo(name)))).toMatchObject({ state: 'done', alreadyApplied: 5 });
    expect(asked).toEqual(['_users/_all_docs', 'records/_all_docs']);
  });

  it('R6 does so for the target local too: at the server, once there is a network', async () => {
    users.write([account('amber')]);
    records.write([settings('amber')]);
    device.connectivity.set(false);
    await enqueue([toGo('amber')], 'local');
    await reached(({ state }) => state === 'waiting-network');
    expect(asked).toEqual([]);
    device.connectivity.set(true);
    expect((await reached(({ state }) => ended.has(state))).state).toBe('done');
    expect([isGone('amber'), records.read(idOf('amber'))?.['inactive']]).toEqual([true, true]);
  });

  it('R17 in a bulk operation with other actions, each is done at its place', async () => {
    users.write([account('amber')]);
    const documents = device.database('records');
    await documents.bulkDocs([{ _id: 'p1' }, { _id: 'p2' }]);
    const note = (id: string) => ({ action: 'set-note', operations: [{ id, note: 'moved' }] });
    await client.enqueue({
      target: 'local',
      actions: [note('p1'), { action: 'delete-user', operations: [{ id: idOf('amber') }] }, note('p2')],
    });
    expect(await reached(({ state }) => ended.has(state))).toMatchObject({ state: 'done', applied: 3 });
    expect(isGone('amber')).toBe(true);
    expect(await documents.get('p2')).toMatchObject({ note: 'moved' });
  });

  it('S9 an id that is none of a user fails alone', async () => {
    users.write([account('amber')]);
    const bulk = await run({ id: 'p1' }, { id: 'org.couchdb.user:' }, { id: '' }, toGo('amber'));
    expect(bulk).toMatchObject({ state: 'done-with-failures', applied: 1, failed: 3 });
    expect((await failures()).map(({ code }) => code)).toEqual(['invalid_id', 'invalid_id', 'no_id']);
    expect(isGone('amber')).toBe(true);
  });

  describe.each([
    ['the first write', 'records'],
    ['the second write', '_users'],
  ])('when the answer to %s is lost', (_which, database) => {
    it('R3 converges, and no guard fails for what it did itself', async () => {
      // The account is inside the list, the settings are not: asked in the other order, the guard would refuse.
      users.write([account('amber', { facility_id: 'a1' })]);
      records.write([settings('amber', { facility_id: ['elsewhere'] })]);
      device.network.add({
        when: { path: `/${database}/_bulk_docs`, nth: 1 },
        do: { type: 'network-error', commit: true },
      });
      const bulk = await run(toGo('amber', { facilities: ['a1'] }));
      expect(bulk).toMatchObject({ state: 'done', failed: 0, attempts: 2, lastError: { class: 'network' } });
      expect([isGone('amber'), revisionsOf(records, 'amber'), revisionsOf(users, 'amber')]).toEqual([true, 2, 2]);
    });

    it('R3 likewise when the process dies there', async () => {
      users.write([account('amber', { facility_id: 'a1' })]);
      records.write([settings('amber', { facility_id: ['elsewhere'] })]);
      const hold = device.network.add({
        when: { path: `/${database}/_bulk_docs`, nth: 1 },
        do: { type: 'hold', commit: true },
      });
      await enqueue([toGo('amber', { facilities: ['a1'] })]);
      await device.clock.advance(0);
      expect(revisionsOf(database === 'records' ? records : users, 'amber')).toBe(2);
      tab.kill();
      hold();
      client = open();
      await client.start();
      const bulk = await reached(({ state }) => ended.has(state));
      expect(bulk).toMatchObject({ state: 'done', failed: 0 });
      expect([isGone('amber'), revisionsOf(records, 'amber'), revisionsOf(users, 'amber')]).toEqual([true, 2, 2]);
    });
  });

  it('R8 a conflict on the settings is tried again on what won, and holds up no one else', async () => {
    users.write([account('amber'), account('basil')]);
    records.write([settings('amber'), settings('basil')]);
    let refusals = 0;
    records.validate = (doc) => {
      if (doc['_id'] !== idOf('amber') || refusals === 2) return undefined;
      refusals++;
      return new Refusal(409, 'conflict', 'Document update conflict.');
    };
    await enqueue([toGo('amber'), toGo('basil')]);
    await reached(({ failedAttempts }) => failedAttempts === 2);
    expect([isGone('amber'), isGone('basil')]).toEqual([false, true]);
    records.write([{ ...records.read(idOf('amber')), language: 'en' }]);
    const bulk = await reached(({ state }) => ended.has(state));
    expect(bulk).toMatchObject({ state: 'done', attempts: 3, lastError: { class: 'conflict' } });
    expect(records.read(idOf('amber'))).toMatchObject({ language: 'en', inactive: true });
    expect([isGone('amber'), revisionsOf(records, 'basil')]).toEqual([true, 2]);
  });

  it('R8 so is a conflict on the account', async () => {
    users.write([account('amber')]);
    records.write([settings('amber')]);
    let refusals = 0;
    users.validate = () => (refusals++ === 0 ? new Refusal(409, 'conflict', 'Document update conflict.') : undefined);
    expect(await run(toGo('amber'))).toMatchObject({ state: 'done', attempts: 2 });
    expect([isGone('amber'), revisionsOf(records, 'amber')]).toEqual([true, 2]);
  });

  it('R9 R10 refused rows fail alone and once, also when others make the batch run again', async () => {
    users.write(['amber', 'basil', 'clove', 'dill'].map((name) => account(name)));
    records.write(['amber', 'basil', 'clove', 'dill'].map((name) => settings(name)));
    const forbidden = new Refusal(403, 'forbidden', 'This one stays.');
    let conflicts = 2;
    records.validate = (doc) => {
      if (doc['_id'] === idOf('amber')) return forbidden;
      return doc['_id'] === idOf('clove') && conflicts-- > 0 ? new Refusal(409, 'conflict', 'x') : undefined;
    };
    users.validate = (doc) => (doc['_id'] === idOf('basil') ? forbidden : undefined);
    const given = ['amber', 'basil', 'clove', 'dill'].map((name) =>
      toGo(name, name === 'dill' ? { facilities: 'a9' } : {}),
    );
    const bulk = await run(...given);
    expect(bulk).toMatchObject({ state: 'done-with-failures', attempts: 3, applied: 1, failed: 3 });
    expect(await codes()).toEqual([
      [idOf('amber'), 'forbidden'],
      [idOf('basil'), 'forbidden'],
      [idOf('dill'), 'guard_mismatch'],
    ]);
    expect(['amber', 'basil', 'clove', 'dill'].map(isGone)).toEqual([false, false, true, false]);
    expect(revisionsOf(records, 'amber')).toBe(1);
  });

  it('R9 a refusal that came once is kept, and what that attempt did is applied, when another row runs again', async () => {
    users.write(['amber', 'basil', 'clove'].map((name) => account(name)));
    records.write(['amber', 'basil', 'clove'].map((name) => settings(name)));
    const refusals = new Map([
      [idOf('amber'), new Refusal(403, 'forbidden', 'This one stays.')],
      [idOf('clove'), new Refusal(409, 'conflict', 'x')],
    ]);
    records.validate = (doc) => {
      const refusal = refusals.get(String(doc['_id']));
      refusals.delete(String(doc['_id']));
      return refusal;
    };
    const bulk = await run(...['amber', 'basil', 'clove'].map((name) => toGo(name)));
    expect(bulk).toMatchObject({ state: 'done-with-failures', attempts: 2, applied: 2, alreadyApplied: 0, failed: 1 });
    expect(await codes()).toEqual([[idOf('amber'), 'forbidden']]);
    expect(['amber', 'basil', 'clove'].map(isGone)).toEqual([false, true, true]);
    expect(revisionsOf(records, 'amber')).toBe(1);
  });

  it('R13 a server that wants a pause at the first write is not asked for the second one', async () => {
    users.write([account('amber'), account('basil')]);
    records.write([settings('amber')]);
    device.network.add({
      when: { path: '/records/_bulk_docs', nth: 1 },
      do: { type: 'answer', status: 503, headers: { 'retry-after': '7' } },
    });
    const bulk = await run(toGo('amber'), toGo('basil'));
    expect(bulk).toMatchObject({ state: 'done', attempts: 2, applied: 2, lastError: { class: 'throttled' } });
    const reads = ['_users/_all_docs', 'records/_all_docs'];
    expect(asked).toEqual([...reads, ...reads, 'records/_bulk_docs', '_users/_bulk_docs']);
  });

  it('R12 waits for credentials in the middle, counts nothing, and goes on', async () => {
    users.write([account('amber')]);
    records.write([settings('amber')]);
    const lift = device.network.add({
      when: { path: '/_users/_bulk_docs' },
      do: { type: 'answer', status: 401, body: { error: 'unauthorized', reason: 'Who are you?' } },
    });
    await enqueue([toGo('amber')]);
    expect(await reached(({ state }) => state === 'waiting-auth')).toMatchObject({ attempts: 0 });
    expect([isGone('amber'), records.read(idOf('amber'))?.['inactive']]).toEqual([false, true]);
    lift();
    client.signedIn();
    expect(await reached(({ state }) => ended.has(state))).toMatchObject({ state: 'done', attempts: 1 });
    expect([isGone('amber'), revisionsOf(records, 'amber')]).toEqual([true, 2]);
  });

  it('R11 an account that the server refuses to read holds up no other', async () => {
    users.write([account('amber'), account('basil')]);
    device.network.add({
      when: { path: '/_users/_all_docs', times: 2 },
      do: { type: 'answer', status: 413, body: { error: 'too_large', reason: 'x' } },
    });
    const bulk = await run(toGo('amber'), toGo('basil'));
    expect(bulk).toMatchObject({ state: 'done-with-failures', attempts: 1, applied: 1 });
    expect(await codes()).toEqual([[idOf('amber'), 'too_large']]);
    expect([isGone('amber'), isGone('basil')]).toEqual([false, true]);
  });
});
