import { createClient, type BulkOperationStatus, type Client, type Doc, type PlanRequest } from '@afield/client';
import {
  contactsIndex,
  deleteContact,
  deleteUser,
  mergeContacts,
  moveContact,
  setContact,
  setParent,
} from '@afield/contacts';
import { FakeDevice, MemoryServer, wrongLineages, type FakeProcess } from '@afield/testing';
import { filter, firstValueFrom, map } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { town, under } from './town.js';

const ended = new Set(['done', 'done-with-failures', 'failed', 'cancelled']);
const move: PlanRequest = { target: 'local', plan: 'move-contact', request: { id: 'h1', parent: 'd2' } };

describe('plans of contacts in a client', () => {
  let server: MemoryServer;
  let devices: FakeDevice[];
  let device: FakeDevice;

  beforeEach(() => {
    server = new MemoryServer();
    server.create('records');
    server.create('_users');
    devices = [];
    device = newDevice();
  });
  afterEach(async () => {
    for (const one of devices) await one.dispose();
  });

  const newDevice = (): FakeDevice => {
    const made = new FakeDevice({ fetch: server.fetch });
    devices.push(made);
    return made;
  };
  const open = ({ PouchDB, environment }: FakeProcess = device.process(), withServer = false): Client =>
    createClient({
      name: 'clinic',
      PouchDB,
      environment,
      actions: [setParent, setContact, deleteUser],
      plans: [moveContact, mergeContacts, deleteContact],
      indexes: [contactsIndex],
      jitter: 0,
      ...(withServer ? { server: server.urlOf('records') } : {}),
    });
  const seed = (docs: readonly Doc[], on = device): Promise<unknown> => on.database('clinic').bulkDocs(docs);
  const docsOf = async (on = device): Promise<Doc[]> => {
    const { rows } = await on.database('clinic').allDocs({ include_docs: true });
    return (rows as { doc: Doc }[]).map(({ doc }) => doc);
  };
  const wrong = async (on = device): Promise<unknown> => wrongLineages(await docsOf(on));
  const reaches = (
    client: Client,
    id: string,
    isThere: (status: BulkOperationStatus) => boolean,
    on = device,
  ): Promise<BulkOperationStatus> =>
    on.until(
      firstValueFrom(
        client.bulkOperations$.pipe(
          map((all) => all.find((one) => one.id === id)),
          filter((one) => one !== undefined && isThere(one)),
          map((one) => one as BulkOperationStatus),
        ),
      ),
    );
  const ends = (client: Client, id: string, on = device): Promise<BulkOperationStatus> =>
    reaches(client, id, ({ state }) => ended.has(state), on);
  const queue = async (client: Client, request: PlanRequest, on = device): Promise<string> =>
    (await on.until(client.enqueue(request))).bulkOperationId;
  /** A tab whose write number so many on the documents is held until it is released. */
  const holding = (at: number): { readonly tab: FakeProcess; readonly release: () => void } => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let writes = 0;
    const tab = device.process({
      call: async (call, carryOut) => {
        if (call.method === 'bulkDocs' && call.database === 'clinic' && (writes += 1) === at) await released;
        return carryOut();
      },
    });
    return { tab, release };
  };
  const run = async (client: Client, request: PlanRequest, on = device): Promise<BulkOperationStatus> =>
    ends(client, await queue(client, request, on), on);

  it('R17 queued offline, it runs on the documents as they are then; run again it changes nothing', async () => {
    device.connectivity.set(false);
    await seed(town({ clinics: 60, reports: 150 }));
    const client = open();
    const before = { id: 'c7', parent: under('h2', 'd2') };
    await device.until(client.enqueue({ target: 'local', actions: [{ action: 'set-parent', operations: [before] }] }));
    const id = await queue(client, move);
    const done = await ends(client, id);
    // h1, n1, 59 clinics with four people each, c7's people; contacts of h1, 60 clinics, 150 reports.
    expect(done).toMatchObject({ state: 'done', total: 1 + 1 + 59 * 5 + 4 + 1 + 60 + 150, failed: 0 });
    expect(await wrong()).toEqual([]);
    const all = await docsOf();
    expect(all.find(({ _id }) => _id === 'c7-p1')).toMatchObject({ parent: under('c7', 'h2', 'd2') });
    expect(all.find(({ _id }) => _id === 'c8-p1')).toMatchObject({ parent: under('c8', 'h1', 'd2') });
    expect(await run(client, move)).toMatchObject({ state: 'done', total: 0 });
    expect(await docsOf()).toEqual(all);
    await device.until(client.close());
  });

  it('a dry run says at once how many operations of which kind it would be, and changes nothing', async () => {
    await seed(town({ clinics: 2, reports: 5 }));
    const client = open();
    await device.until(client.index('contacts').build());
    const before = await docsOf();
    const { actions, total } = await device.until(client.dryRun(move));
    expect(actions.map(({ action, operations }) => [action, operations.length])).toEqual([
      ['set-parent', 12],
      ['set-contact', 8],
    ]);
    expect(total).toBe(20);
    expect(await docsOf()).toEqual(before);
    expect(await firstValueFrom(client.bulkOperations$)).toEqual([]);
  });

  it('R6 moves a health centre of 3,000 contacts with 5,000 reports, and a second run changes nothing', async () => {
    await seed(town({ clinics: 600, reports: 5000 }));
    const client = open();
    const done = await run(client, move);
    expect(done).toMatchObject({ state: 'done', total: 3002 + 601 + 5000, failed: 0 });
    expect(await wrong()).toEqual([]);
    expect(await run(client, move)).toMatchObject({ state: 'done', total: 0 });
  }, 120_000);

  it('R7 waits as waiting-index while its index is parked, then sees all documents', async () => {
    await seed(town({ clinics: 60, reports: 0 }));
    const fault = { type: 'reject', error: { name: 'DataError' } } as const;
    const mend = device.indexStore.add({ when: { call: 'write' }, do: fault });
    const client = open();
    const id = await queue(client, move);
    expect(await reaches(client, id, ({ state }) => state === 'waiting-index')).toMatchObject({ attempts: 0 });
    mend();
    await device.until(client.index('contacts').resume());
    expect(await ends(client, id)).toMatchObject({ state: 'done', total: 302 + 61 });
  });

  it.each([2, 4])('R3 killed at its write number %i it goes on where it was', async (at) => {
    await seed(town({ clinics: 60, reports: 150 }));
    let writes = 0;
    const doomed = device.process({
      call: (call, carryOut) => {
        const isWrite = call.method === 'bulkDocs' && call.database === 'clinic';
        if (isWrite && (writes += 1) === at) doomed.kill();
        return carryOut();
      },
    });
    const first = open(doomed);
    const id = await queue(first, move);
    await device.clock.advance(60_000);
    expect(doomed.alive).toBe(false);
    const second = open();
    const done = await ends(second, id);
    expect(done).toMatchObject({ state: 'done', total: 302 + 61 + 150, failed: 0 });
    expect(await wrong()).toEqual([]);
    expect(await run(second, move)).toMatchObject({ total: 0 });
  });

  it('R19 cancelled in the middle, and queued again: the rest is done, nothing twice', async () => {
    await seed(town({ clinics: 60, reports: 150 }));
    const { tab, release } = holding(3);
    const client = open(tab);
    const id = await queue(client, move);
    await reaches(client, id, ({ cursor }) => cursor === 200);
    await device.until(client.cancel(id));
    release();
    expect(await ends(client, id)).toMatchObject({ state: 'cancelled' });
    expect(await wrong()).not.toEqual([]);
    const again = await run(client, move);
    expect(again.total).toBeLessThanOrEqual(302 + 61 + 150 - 200);
    expect(again).toMatchObject({ state: 'done', failed: 0 });
    expect(await wrong()).toEqual([]);
  });

  it('S8 refused, it is failed with the code that says why, and nothing was written', async () => {
    await seed(town({ clinics: 2, reports: 2 }));
    const before = await docsOf();
    const client = open();
    const wrongMove: PlanRequest = { ...move, request: { id: 'h1', parent: 'c1' } };
    expect(await run(client, wrongMove)).toMatchObject({ state: 'failed', lastError: { code: 'circular_lineage' } });
    await expect(device.until(client.dryRun(wrongMove))).rejects.toMatchObject({ code: 'circular_lineage' });
    expect(await docsOf()).toEqual(before);
    await expect(device.until(client.enqueue({ ...move, target: 'server' }))).rejects.toMatchObject({
      code: 'invalid_request',
    });
    await expect(device.until(client.enqueue({ ...move, request: { id: 'h1' } }))).rejects.toThrow('request.parent');
  });

  it('R4 an edit that comes between plan and operation is a guard_mismatch, and stays', async () => {
    await seed(town({ clinics: 60, reports: 0 }));
    const { tab, release } = holding(2);
    const client = open(tab);
    const id = await queue(client, move);
    await reaches(client, id, ({ cursor }) => cursor === 100);
    const person = (await docsOf()).find(({ _id }) => _id === 'c59-p3');
    await device.database('clinic').put({ ...person, parent: under('h2', 'd2') });
    release();
    const done = await ends(client, id);
    expect(done).toMatchObject({ state: 'done-with-failures', failed: 1 });
    expect(await firstValueFrom(client.failures$)).toMatchObject([{ id: 'c59-p3', code: 'guard_mismatch' }]);
    expect(await wrong()).toEqual([]);
    expect(await run(client, move)).toMatchObject({ total: 0 });
  });

  it('R6 merges: the reports are about the target then, and the source is gone on the server, too', async () => {
    await seed([
      ...town({ clinics: 3, reports: 8 }),
      { _id: 'r-h1', form: 'survey', place_id: '501', fields: { place_uuid: 'h1', note: 'kept' } },
    ]);
    const client = open(device.process(), true);
    const merge: PlanRequest = { target: 'local', plan: 'merge-contacts', request: { sources: ['h1'], target: 'h2' } };
    expect(await run(client, merge)).toMatchObject({
      state: 'done',
      actions: ['set-parent', 'set-contact', 'update', 'delete'],
      failed: 0,
    });
    expect(await wrong()).toEqual([]);
    const records = server.create('records');
    await device.until(firstValueFrom(client.status$.pipe(filter(() => records.read('h1')?.['_deleted'] === true))));
    expect(records.read('r-h1')).toMatchObject({ place_id: '502', fields: { place_uuid: 'h2', note: 'kept' } });
    expect(await run(client, merge)).toMatchObject({ state: 'done', total: 0 });
  });

  it('R6 deletes with users: offline all but the accounts, then the accounts', async () => {
    const amber = { _id: 'org.couchdb.user:amber', type: 'user-settings', facility_id: ['c0'], contact_id: 'c0-p0' };
    const accounts = server.create('_users');
    accounts.write([{ _id: amber._id, name: 'amber', type: 'user', facility_id: ['c0'] }]);
    server.create('records').write([amber]);
    await seed(town({ clinics: 2, reports: 8 }));
    const client = open(device.process(), true);
    const settings = async (): Promise<Doc | undefined> => (await docsOf()).find(({ _id }) => _id === amber._id);
    while ((await settings()) === undefined) await device.clock.advance(1000);
    device.connectivity.set(false);
    const request = { target: 'local', plan: 'delete-contact', request: { id: 'c0', deleteUsers: true } } as const;
    const id = await queue(client, request);
    await reaches(client, id, ({ state }) => state === 'waiting-network');
    const left = (await docsOf()).map(({ _id }) => _id);
    expect(left.filter((one) => one.startsWith('c0') || ['r0', 'r2', 'r4', 'r6'].includes(one))).toEqual([]);
    device.connectivity.set(true);
    expect(await ends(client, id)).toMatchObject({ state: 'done', failed: 0 });
    expect(accounts.read(amber._id)?.['_deleted']).toBe(true);
    while ((await settings())?.['inactive'] !== true) await device.clock.advance(1000);
    expect(await run(client, request)).toMatchObject({ state: 'done', total: 0 });
  });

  it('R3 two clients: who was registered below the old place comes right with the next run of the same request', async () => {
    const other = newDevice();
    await seed(town({ clinics: 3, reports: 6 }));
    const [here, there] = [open(device.process(), true), open(other.process(), true)];
    const isSynced = (count: number, on: FakeDevice): Promise<unknown> =>
      on.until(
        (async () => {
          while ((await docsOf(on)).length < count) await on.clock.advance(1000);
        })(),
      );
    await isSynced(town({ clinics: 3, reports: 6 }).length, other);
    other.connectivity.set(false);
    await run(here, move);
    await other.until(there.documents.put({ _id: 'new', type: 'person', parent: under('c1', 'h1', 'd1') }));
    other.connectivity.set(true);
    await isSynced(town({ clinics: 3, reports: 6 }).length + 1, device);
    expect(await wrong()).toMatchObject([{ id: 'new' }]);
    expect(await run(here, move)).toMatchObject({ state: 'done', total: 1 });
    expect(await wrong()).toEqual([]);
  });
});
