import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { definePlan } from './actions/plan.js';
import type { Client, ClientOptions, EnqueueRequest, OperationInput } from './model/client.js';
import { IdempotencyConflictError } from './model/errors.js';
import type { AnyPlan } from './model/plan.js';
import type { QuarantineEntry } from './model/quarantine.js';
import { handAction, paint, setColour, TestBed } from './test-bed.fixture.js';

const anyPlan = definePlan({
  name: 'any-plan',
  request: z.looseObject({}),
  plan: () => Promise.resolve([]),
}) as AnyPlan;

describe('a delivery that comes twice', () => {
  let bed: TestBed;
  let client: Client;
  beforeEach(() => {
    bed = new TestBed();
    client = open();
  });
  afterEach(() => bed.close());

  const open = (options: Partial<ClientOptions> = {}): Client =>
    bed.open({ autoStart: false, actions: [setColour, handAction('work').action], plans: [anyPlan], ...options });
  const work = (operations: readonly OperationInput[], more: Partial<EnqueueRequest> = {}): EnqueueRequest => ({
    target: 'local',
    actions: [{ action: 'work', operations }],
    ...more,
  });
  const conflictOf = async (
    request: Parameters<Client['enqueue']>[0],
    by = client,
  ): Promise<IdempotencyConflictError> => {
    const error: unknown = await by.enqueue(request).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof IdempotencyConflictError)) throw new Error(`no conflict, but ${String(error)}`);
    return error;
  };
  const stored = async (prefix: string): Promise<string[]> => {
    const { rows } = (await new bed.PouchDB('clinic-afield-queue').allDocs({
      startkey: prefix,
      endkey: `${prefix}\uffff`,
    })) as { rows: { id: string }[] };
    return rows.map(({ id }) => id);
  };

  it('O4 under the key of the whole is a success that changes nothing and says so', async () => {
    const request = paint(['a', 'b'], 'blue', { key: 'sync-1' });
    const first = await client.enqueue(request);
    expect(first).toMatchObject({ key: 'sync-1', total: 2, duplicate: false, duplicates: [] });
    const before = await stored('');
    expect(await client.enqueue(request)).toEqual({
      ...first,
      duplicate: true,
      duplicates: [
        { index: 0, key: 'sync-1:0', bulkOperationId: first.bulkOperationId },
        { index: 1, key: 'sync-1:1', bulkOperationId: first.bulkOperationId },
      ],
    });
    expect(await bed.list(client)).toHaveLength(1);
    expect(await stored('')).toEqual(before);
  });

  it('O4 is known after a restart, and while it runs, and after its end', async () => {
    const request = work([{ id: 'a', key: 'k1' }]);
    const { action, calls } = handAction('work');
    const { bulkOperationId } = await client.enqueue(request);
    await client.close();
    const running = bed.open({ actions: [action] });
    await bed.until(() => calls.length === 1);
    expect(await running.enqueue(request)).toMatchObject({ bulkOperationId, duplicate: true });
    calls[0]?.answer({});
    await bed.settled(running, bulkOperationId);
    expect(await running.enqueue(request)).toMatchObject({ bulkOperationId, duplicate: true });
    expect(calls).toHaveLength(1);
  });

  it('O4 the order of fields does not count, the order of a list and every value does', async () => {
    await client.enqueue(work([{ id: 'a', key: 'k', at: { x: 1, y: [1, 2] }, note: null }]));
    const same = work([{ note: null, at: { y: [1, 2], x: 1 }, key: 'k', id: 'a' }]);
    expect(await client.enqueue(same)).toMatchObject({ duplicate: true });
    for (const other of [
      { id: 'a', at: { x: 1, y: [2, 1] }, note: null },
      { id: 'b', at: { x: 1, y: [1, 2] }, note: null },
      { id: 'a', at: { x: 1, y: [1, 2] } },
      { id: null, at: { x: 1, y: [1, 2] }, note: null },
      { id: 'a', at: JSON.parse('{"x":1,"y":[1,2],"__proto__":{}}') as unknown, note: null },
    ]) {
      expect((await conflictOf(work([{ ...other, key: 'k' }]))).conflictCount).toBe(1);
    }
    await expect(
      client.enqueue({
        ...same,
        target: 'local',
        actions: [{ action: 'set-colour', operations: [{ id: 'a', key: 'k', to: 'x' }] }],
      }),
    ).rejects.toBeInstanceOf(IdempotencyConflictError);
  });

  it('O4 an own field of any name is content: `__proto__` and `constructor` too', async () => {
    const withField = (text: string): EnqueueRequest => work([{ id: 'a', key: 'k', at: JSON.parse(text) as unknown }]);
    await client.enqueue(withField('{"__proto__":{"x":1}}'));
    expect(await client.enqueue(withField('{"__proto__":{"x":1}}'))).toMatchObject({ duplicate: true });
    await conflictOf(withField('{"__proto__":{"x":2}}'));
    await conflictOf(withField('{}'));
    await client.enqueue(
      work([
        { id: 'a', key: '__proto__' },
        { id: 'a', key: 'constructor' },
      ]),
    );
    expect(await client.enqueue(work([{ id: 'a', key: '__proto__' }]))).toMatchObject({ duplicate: true });
  });

  it('O4 with some duplicates the rest is queued and they are listed', async () => {
    const one = await client.enqueue(
      work([
        { id: 'a', key: 'k1' },
        { id: 'b', key: 'k2' },
      ]),
    );
    const two = await client.enqueue(
      work([{ id: 'x' }, { id: 'b', key: 'k2' }, { id: 'c', key: 'k3' }, { id: 'a', key: 'k1' }, { id: 'y' }], {
        key: 'two',
      }),
    );
    expect(two).toMatchObject({
      total: 3,
      duplicate: false,
      duplicates: [
        { index: 1, key: 'k2', bulkOperationId: one.bulkOperationId },
        { index: 3, key: 'k1', bulkOperationId: one.bulkOperationId },
      ],
    });
    expect((await client.listNotDone(two.bulkOperationId)).map(({ id, key }) => [id, key])).toEqual([
      ['x', 'two:0'],
      ['c', 'k3'],
      ['y', 'two:2'],
    ]);
    // Delivered again as a whole, each operation is where it was then.
    const again = await client.enqueue(
      work([{ id: 'x' }, { id: 'b', key: 'k2' }, { id: 'c', key: 'k3' }, { id: 'a', key: 'k1' }, { id: 'y' }], {
        key: 'two',
      }),
    );
    expect(again).toMatchObject({ bulkOperationId: two.bulkOperationId, duplicate: true });
    expect(again.duplicates.map(({ key, bulkOperationId }) => [key, bulkOperationId])).toEqual([
      ['two:0', two.bulkOperationId],
      ['k2', one.bulkOperationId],
      ['k3', two.bulkOperationId],
      ['k1', one.bulkOperationId],
      ['two:2', two.bulkOperationId],
    ]);
  });

  it('O4 with all operations known it is the bulk operation of then, and a new key of the whole is not used up', async () => {
    const one = await client.enqueue(work([{ id: 'a', key: 'k1' }]));
    const receipt = await client.enqueue(work([{ id: 'a', key: 'k1' }], { key: 'whole' }));
    expect(receipt).toMatchObject({ bulkOperationId: one.bulkOperationId, key: one.key, duplicate: true });
    expect(await stored('k:b')).toEqual([]);
    expect(await client.enqueue(work([{ id: 'b' }], { key: 'whole' }))).toMatchObject({ duplicate: false });
  });

  it('O4 twice in one request: the second is listed; with other content all is refused', async () => {
    const receipt = await client.enqueue(work([{ id: 'a', key: 'k1' }, { id: 'b' }, { id: 'a', key: 'k1' }]));
    expect(receipt).toMatchObject({
      total: 2,
      duplicate: false,
      duplicates: [{ index: 2, key: 'k1', bulkOperationId: receipt.bulkOperationId }],
    });
    const { conflicts } = await conflictOf(
      work([
        { id: 'a', key: 'k2' },
        { id: 'b', key: 'k2' },
      ]),
    );
    expect(conflicts).toMatchObject([{ index: 1, key: 'k2', bulkOperationId: undefined }]);
    expect(await stored('k:o:')).toEqual(['k:o:k1']);
    expect(await client.listQuarantined()).toMatchObject([
      { kind: 'operation', key: 'k2', bulkOperationId: undefined, first: { id: 'a' }, second: { id: 'b' } },
    ]);
  });

  it('O4 one conflict anywhere: nothing is queued, both versions are in quarantine, no key is left behind', async () => {
    const { bulkOperationId } = await client.enqueue(work([{ id: 'z' }, { id: 'a', key: 'k1', n: 1 }]));
    const bad = work(
      [
        { id: 'x', key: 'k0' },
        { id: 'a', key: 'k1', n: 2 },
        { id: 'y', key: 'k9' },
      ],
      { key: 'whole' },
    );
    const error = await conflictOf(bad);
    const [conflict] = error.conflicts;
    expect(error).toMatchObject({ code: 'idempotency_conflict', conflictCount: 1 });
    expect(conflict).toMatchObject({ index: 1, key: 'k1', bulkOperationId });
    expect(await bed.list(client)).toHaveLength(1);
    expect(await stored('k:')).toEqual(['k:o:k1']);
    const entries = await client.listQuarantined();
    expect(entries).toEqual([
      {
        quarantineId: conflict?.quarantineId ?? '',
        kind: 'operation',
        key: 'k1',
        bulkOperationId,
        first: { action: 'work', target: 'local', id: 'a', key: 'k1', content: { n: 1 } },
        second: { action: 'work', target: 'local', id: 'a', key: 'k1', content: { n: 2 } },
        at: bed.clock.wall(),
        resolution: undefined,
      } satisfies QuarantineEntry,
    ]);
    // The same conflict again is the same entry.
    expect((await conflictOf(bad)).conflicts).toEqual(error.conflicts);
    expect(await client.listQuarantined()).toHaveLength(1);
    // Without the bad one all goes.
    expect(
      await client.enqueue(
        work([
          { id: 'x', key: 'k0' },
          { id: 'y', key: 'k9' },
        ]),
      ),
    ).toMatchObject({ total: 2, duplicate: false });
  });

  it('O4 shows the first 20 conflicts and counts all; all are kept', async () => {
    const many = (n: number): OperationInput[] =>
      Array.from({ length: 600 }, (_, at) => ({ id: 'a', key: `k${String(at)}`, n }));
    await client.enqueue(work(many(1)));
    const error = await conflictOf(work(many(2)));
    expect(error.conflicts).toHaveLength(20);
    expect(error.conflictCount).toBe(600);
    const entries = await client.listQuarantined();
    expect(entries).toHaveLength(600);
    expect(
      entries.every(({ first, second, key }) => {
        const [a, b] = [first, second] as { key: string; content: { n: number } }[];
        return a?.key === key && a.content.n === 1 && b?.key === key && b.content.n === 2;
      }),
    ).toBe(true);
  });

  it('O4 the key of a plan is the key of its request', async () => {
    const plan = { target: 'local', plan: 'any-plan', request: { from: 'c1' }, key: 'move-1' } as const;
    const first = await client.enqueue(plan);
    expect(first).toMatchObject({ total: 0, duplicate: false, duplicates: [] });
    expect(await client.enqueue(plan)).toEqual({ ...first, duplicate: true });
    const { conflicts } = await conflictOf({ ...plan, request: { from: 'c2' } });
    expect(conflicts).toMatchObject([{ index: -1, key: 'move-1', bulkOperationId: first.bulkOperationId }]);
    bed.clock.advance(1);
    await conflictOf(paint(['a'], 'blue', { key: 'move-1' }));
    expect(await client.listQuarantined()).toMatchObject([
      {
        kind: 'bulk-operation',
        first: { target: 'local', plan: 'any-plan', request: { from: 'c1' } },
        second: { target: 'local', plan: 'any-plan', request: { from: 'c2' } },
      },
      { kind: 'bulk-operation', second: { total: 1, actions: [{ action: 'set-colour', operations: [{ id: 'a' }] }] } },
    ]);
  });

  it('O4 the quarantine is shown to whoever subscribes late, and in the other tab', async () => {
    const other = open();
    await other.storeId;
    await client.enqueue(work([{ id: 'a', key: 'k1' }]));
    await conflictOf(work([{ id: 'b', key: 'k1' }]));
    for (const one of [client, other, open()]) {
      const entries = await firstValueFrom(one.quarantine$.pipe(filter((all) => all.length > 0)));
      expect(entries).toMatchObject([{ key: 'k1', first: { id: 'a' }, second: { id: 'b' } }]);
      expect((await firstValueFrom(one.status$.pipe(filter(({ quarantined }) => quarantined > 0)))).quarantined).toBe(
        1,
      );
    }
  });

  it('O1 a generated key needs no record: nothing is stored beside the bulk operation', async () => {
    await client.enqueue(paint(['a', 'b'], 'blue'));
    await client.enqueue(paint(['a', 'b'], 'blue'));
    expect(await stored('k:')).toEqual([]);
    expect(await bed.list(client)).toHaveLength(2);
  });

  it('O1 refuses a key that is half of a character: a store would take it for another', async () => {
    for (const key of ['\ud83d', 'a\udc00b']) {
      await expect(client.enqueue(work([{ id: 'a', key }]))).rejects.toMatchObject({
        issues: [{ index: 0, field: 'key' }],
      });
      await expect(client.enqueue(work([{ id: 'a' }], { key }))).rejects.toMatchObject({
        issues: [{ index: -1, field: 'key' }],
      });
    }
    expect(await client.enqueue(work([{ id: 'a', key: '\ud83d\ude00' }]))).toMatchObject({ duplicate: false });
  });

  it('O4 what is nested deeply is compared as any other: it is no business of the queue', async () => {
    const nested = (inmost: number): EnqueueRequest => {
      let deep: unknown = inmost;
      for (let level = 0; level < 3000; level++) deep = { a: deep };
      return work([{ id: 'a', key: 'k', deep }], { key: 'whole' });
    };
    expect(await client.enqueue(nested(1))).toMatchObject({ duplicate: false });
    expect(await client.enqueue(nested(1))).toMatchObject({ duplicate: true });
    await conflictOf(nested(2));
  });

  it('R19 the key of an edited operation is derived: another one is refused', async () => {
    const running = open({ autoStart: true });
    const { bulkOperationId } = await running.enqueue(paint(['nowhere'], 'blue'));
    await bed.settled(running, bulkOperationId);
    const [failure] = await running.listFailures();
    const edited = running.editAndRetry(failure?.failureId ?? '', { id: 'a', to: 'x', key: 'mine' });
    await expect(edited).rejects.toMatchObject({ code: 'invalid_request', issues: [{ index: 0, field: 'key' }] });
  });
});
