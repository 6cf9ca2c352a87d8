import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { firstValueFrom } from 'rxjs';
import { OtherStoreError } from './model/errors.js';
import type { Client } from './model/client.js';
import { storeNameOf } from './model/store-name.js';
import { paint, TestBed } from './test-bed.fixture.js';

const server = 'http://couch.test/records';
/** No server answers in these tests: whatever runs is local. */
const noServer = { fetch: (): Promise<never> => Promise.reject(new TypeError('Failed to fetch')) };

describe('whose a store is', () => {
  let bed: TestBed;

  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(async () => {
    // A read that is under way when another tab closes the connection that they share has no answer.
    await bed.rest();
    await bed.close();
  });

  const open = (user: string | undefined, at: string | undefined = server): Client =>
    bed.open({
      replication: false,
      environment: noServer,
      ...(user === undefined ? {} : { user }),
      ...(at === undefined ? {} : { server: at }),
    });
  const queued = async (): Promise<{ _id: string; user?: string; server?: string }[]> => {
    const { rows } = (await new bed.PouchDB('clinic-afield-queue').allDocs({ include_docs: true })) as {
      rows: { doc: { _id: string; user?: string; server?: string } }[];
    };
    return rows.map(({ doc }) => doc);
  };
  const refusals = (client: Client): Promise<unknown[]> =>
    Promise.all(
      [
        client.storeId,
        client.start(),
        client.enqueue(paint(['a'], 'blue')),
        client.listFailures(),
        client.listEvents(),
        client.listQuarantined(),
        client.pause('some'),
        firstValueFrom(client.failures$),
      ].map((call) => Promise.resolve(call).catch((error: unknown) => error)),
    );

  it('S7 the store remembers its user and its server, and every header carries the user', async () => {
    const client = open('amber');
    const [id] = await bed.seed(client, 1);
    const { bulkOperationId } = await client.enqueue(paint([id], 'blue'));
    await bed.settled(client, bulkOperationId);
    const docs = await queued();
    expect(docs.find(({ _id }) => _id === 'hs')).toMatchObject({ user: 'amber', server });
    expect(docs.find(({ _id }) => _id.startsWith('h:'))).toMatchObject({ user: 'amber' });
  });

  it.each([
    ['another user', 'birch', server, 'other_user'],
    ['another server', 'amber', 'http://couch.test/others', 'other_server'],
  ])('S7 opened for %s every call is refused, nothing is shown, lost or run', async (_what, user, at, code) => {
    const first = open('amber');
    await bed.seed(first, 1);
    const { bulkOperationId } = await first.enqueue(paint(['d0000', 'missing'], 'blue'));
    await bed.settled(first, bulkOperationId);
    await first.close();
    const before = await queued();

    const other = open(user, at);
    for (const refusal of await refusals(other)) {
      expect(refusal).toBeInstanceOf(OtherStoreError);
      expect(refusal).toMatchObject({ code });
    }
    expect(await firstValueFrom(other.bulkOperations$)).toEqual([]);
    expect(await firstValueFrom(other.status$)).toMatchObject({ leader: false, failed: 0, pending: 0 });
    expect(() => other.documents).toThrow(OtherStoreError);
    await other.close();
    expect(await queued()).toEqual(before);

    const again = open('amber');
    expect((await bed.list(again)).map(({ id }) => id)).toEqual([bulkOperationId]);
  });

  it('S7 hears nothing of the tab whose store it is', async () => {
    const owner = open('amber');
    await bed.seed(owner, 1);
    const other = open('birch');
    await refusals(other);
    const events: unknown[] = [];
    other.events$.subscribe((event) => events.push(event));
    const { bulkOperationId } = await owner.enqueue(paint(['d0000'], 'blue'));
    await bed.settled(owner, bulkOperationId);
    await bed.rest();
    expect(events).toEqual([]);
    expect(await firstValueFrom(other.bulkOperations$)).toEqual([]);
  });

  it('S7 the refused client holds no lock: the tab of the right person runs', async () => {
    const held: string[] = [];
    const owner = open('amber');
    await owner.storeId;
    await owner.close();
    const other = bed.open({
      user: 'birch',
      environment: {
        locks: {
          request: async (name, _signal, whileHeld) => {
            held.push(name);
            await whileHeld();
            held.splice(held.indexOf(name), 1);
          },
        },
      },
    });
    await refusals(other);
    await bed.until(() => !held.includes('afield:clinic'));
  });

  it('S7 S10 a store without a user is of whoever opens it, and stays theirs', async () => {
    const old = bed.open();
    const { bulkOperationId } = await old.enqueue(paint(['a'], 'blue'));
    await bed.settled(old, bulkOperationId);
    await old.close();
    expect((await queued()).every(({ user }) => user === undefined)).toBe(true);

    const amber = open('amber');
    expect((await bed.list(amber)).map(({ id }) => id)).toEqual([bulkOperationId]);
    await amber.close();
    for (const refusal of await refusals(open('birch'))) expect(refusal).toMatchObject({ code: 'other_user' });
  });

  it('S7 a client that names no user and no server opens it: it is this device', async () => {
    const known = open('amber');
    await known.storeId;
    await known.close();
    const plain = bed.open();
    await plain.enqueue(paint(['a'], 'blue'));
    expect((await queued()).find(({ _id }) => _id.startsWith('h:'))).toMatchObject({ user: 'amber' });
  });

  it('S7 of two tabs that open a new store for two people one gets it', async () => {
    const answers = await Promise.all(
      [open('amber'), open('birch')].map((client) =>
        client.storeId.then(
          () => 'mine',
          (error: unknown) => error,
        ),
      ),
    );
    expect(answers.filter((one) => one === 'mine')).toHaveLength(1);
    expect(answers.find((one) => one !== 'mine')).toMatchObject({ code: 'other_user' });
  });

  it('S7 one server in another spelling is the same', async () => {
    const first = open('amber', 'http://couch.test/records');
    await first.storeId;
    await first.close();
    await expect(open('amber', 'http://COUCH.test:80/records/').storeId).resolves.toBeTypeOf('string');
  });

  it('S9 a user that is no text is refused at once', () => {
    expect(() => bed.open({ user: '' })).toThrow(/`user` must be a text/);
    expect(() => bed.open({ user: 7 as never })).toThrow(/`user` must be a text/);
  });
});

describe('the name of a store', () => {
  it('S7 is one per user, server and app', () => {
    const of = (user: string, at: string, app: string): string => storeNameOf({ user, server: at, app });
    const names = [
      of('amber', 'https://a.test/db', 'visits'),
      of('birch', 'https://a.test/db', 'visits'),
      of('amber', 'https://b.test/db', 'visits'),
      of('amber', 'https://a.test/other', 'visits'),
      of('amber', 'https://a.test/db', 'stock'),
      of('amber@https', 'https://a.test/db', 'visits'),
      of('amber', 'https://a.test/db', 'visits@amber'),
    ];
    expect(new Set(names).size).toBe(names.length);
    expect(of('amber', 'https://A.test:443/db/', 'visits')).toBe(names[0]);
    expect(() => of('', 'https://a.test/db', 'visits')).toThrow(/`user`/);
    expect(() => of('amber', 'https://amber:secret@a.test/db', 'visits')).toThrow(/must not hold credentials/);
  });
});
