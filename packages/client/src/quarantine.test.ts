import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { definePlan } from './actions/plan.js';
import type { Client, ClientOptions, EnqueueRequest, OperationInput } from './model/client.js';
import type { AnyPlan } from './model/plan.js';
import type { QuarantineDecision } from './model/quarantine.js';
import { handAction, paint, setColour, TestBed } from './test-bed.fixture.js';

const paintAll = definePlan({
  name: 'paint-all',
  request: z.strictObject({ ids: z.array(z.string()), to: z.string() }),
  plan: ({ ids, to }) => Promise.resolve([{ action: 'set-colour', operations: ids.map((id) => ({ id, to })) }]),
}) as AnyPlan;

describe('a person decides on a conflict', () => {
  let bed: TestBed;
  let client: Client;
  beforeEach(() => {
    bed = new TestBed();
    client = open();
  });
  afterEach(() => bed.close());

  const open = (options: Partial<ClientOptions> = {}): Client =>
    bed.open({ autoStart: false, actions: [setColour, handAction('work').action], plans: [paintAll], ...options });
  const work = (operations: readonly OperationInput[], more: Partial<EnqueueRequest> = {}): EnqueueRequest => ({
    target: 'local',
    actions: [{ action: 'work', operations }],
    ...more,
  });
  const conflict = async (by: Client = client): Promise<string> => {
    await by.enqueue(work([{ id: 'a', key: 'k1', n: 1 }]));
    await by.enqueue(work([{ id: 'a', key: 'k1', n: 2 }], { lane: 'slow' })).catch(() => undefined);
    const [entry] = await by.listQuarantined();
    return entry?.quarantineId ?? '';
  };
  const code = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => 'no error',
      (error: unknown) => (error as { code?: unknown }).code,
    );

  it.each(['keep-first', 'discard'] as const)('O4 `%s` leaves what counts as it is, and is kept', async (decision) => {
    const id = await conflict();
    expect(await client.resolveQuarantined(id, decision)).toBeUndefined();
    expect(await client.listQuarantined()).toEqual([]);
    expect(await client.listQuarantined({ resolved: true })).toMatchObject([
      { quarantineId: id, first: { content: { n: 1 } }, second: { content: { n: 2 } }, resolution: { decision } },
    ]);
    expect(await firstValueFrom(client.quarantine$)).toEqual([]);
    expect(await bed.list(client)).toHaveLength(1);
    expect(await code(client.resolveQuarantined(id, 'take-second'))).toBe('already_resolved');
    // The same delivery stays refused; there is nothing new to decide.
    expect(await code(client.enqueue(work([{ id: 'a', key: 'k1', n: 2 }])))).toBe('idempotency_conflict');
    expect(await client.listQuarantined()).toEqual([]);
  });

  it('O4 `take-second` queues the second version too, in its lane, under a key derived from the old one', async () => {
    const id = await conflict();
    const receipt = await client.resolveQuarantined(id, 'take-second');
    expect(receipt).toMatchObject({ total: 1, duplicate: false });
    const list = await bed.list(client);
    expect(list).toMatchObject([{}, { id: receipt?.bulkOperationId, lane: 'slow' }]);
    const [operation] = await client.listNotDone(receipt?.bulkOperationId ?? '');
    expect(operation).toMatchObject({ id: 'a', action: 'work', operation: { id: 'a', content: { n: 2 } } });
    expect(operation?.key).toMatch(/^k1~[0-9a-f]{8}$/);
    expect(await client.listQuarantined({ resolved: true })).toMatchObject([
      { resolution: { decision: 'take-second', bulkOperationId: receipt?.bulkOperationId } },
    ]);
    expect(await code(client.resolveQuarantined(id, 'discard'))).toBe('already_resolved');
  });

  it('O4 `take-second` of a whole bulk operation queues all of it, of a plan its request', async () => {
    const docs = await bed.seed(client, 250);
    await client.enqueue(paint(docs.slice(0, 1), 'blue', { key: 'bulk' }));
    await client.enqueue(paint(docs, 'green', { key: 'bulk' })).catch(() => undefined);
    bed.clock.advance(1);
    const plan = { target: 'local', plan: 'paint-all', key: 'plan' } as const;
    await client.enqueue({ ...plan, request: { ids: ['d0000'], to: 'grey' } });
    await client.enqueue({ ...plan, request: { ids: ['d0001'], to: 'white' } }).catch(() => undefined);
    const entries = await client.listQuarantined();
    expect(entries).toMatchObject([{ kind: 'bulk-operation' }, { kind: 'bulk-operation' }]);
    const receipts = [];
    for (const { quarantineId } of entries) receipts.push(await client.resolveQuarantined(quarantineId, 'take-second'));
    expect(receipts).toMatchObject([{ total: 250 }, { total: 0 }]);
    expect(receipts[0]?.key).toMatch(/^bulk~[0-9a-f]{8}$/);
    await client.start();
    for (const receipt of receipts) {
      expect(await bed.settled(client, receipt?.bulkOperationId ?? '')).toMatchObject({ state: 'done' });
    }
    expect(await bed.colours(client)).toEqual(['green', 'white', ...docs.slice(2).map(() => 'green')]);
  });

  it('O4 a client that was closed between queueing and marking has done it once: the next one marks it', async () => {
    const id = await conflict();
    await client.close();
    // The mark is the only write that a store refuses.
    const PouchDB = failing(bed, (docs) => docs.some(({ _id, resolution }) => _id === id && resolution !== undefined));
    const first = open({ PouchDB });
    await expect(first.resolveQuarantined(id, 'take-second')).rejects.toMatchObject({ class: 'storage' });
    await first.close();
    const next = open();
    expect(await code(next.resolveQuarantined(id, 'take-second'))).toBe('already_resolved');
    expect(await bed.list(next)).toHaveLength(2);
    expect(await next.listQuarantined()).toEqual([]);
    const [, queued] = await bed.list(next);
    expect(await next.listQuarantined({ resolved: true })).toMatchObject([
      { resolution: { bulkOperationId: queued?.id } },
    ]);
  });

  it('O4 what was not marked is marked before it runs', async () => {
    const id = await conflict();
    await client.close();
    const PouchDB = failing(bed, (docs) => docs.some(({ _id, resolution }) => _id === id && resolution !== undefined));
    const first = open({ PouchDB });
    await first.resolveQuarantined(id, 'take-second').catch(() => undefined);
    await first.close();
    const { action, calls } = handAction('work');
    const next = bed.open({ actions: [action] });
    await bed.until(() => calls.length === 1);
    calls[0]?.answer({});
    await bed.until(() => calls.length === 2);
    expect(await next.listQuarantined({ resolved: true })).toMatchObject([{ resolution: { decision: 'take-second' } }]);
    expect(await code(next.resolveQuarantined(id, 'take-second'))).toBe('already_resolved');
    calls[1]?.answer({});
  });

  it.each([
    ['take-second', 'take-second'],
    ['take-second', 'discard'],
    ['keep-first', 'discard'],
  ] as const)('O4 two tabs at once (%s, %s): one decision counts, and nothing runs twice', async (...both) => {
    const id = await conflict();
    const other = open();
    await other.storeId;
    const decide = (by: Client, decision: QuarantineDecision): Promise<unknown> =>
      by.resolveQuarantined(id, decision).then(
        () => 'decided',
        (error: unknown) => (error as { code?: unknown }).code,
      );
    const answers = await Promise.all([decide(client, both[0]), decide(other, both[1])]);
    expect([...answers].sort()).toEqual(['already_resolved', 'decided']);
    const last = open();
    const [entry] = await last.listQuarantined({ resolved: true });
    const queued = (await bed.list(last)).slice(1).filter(({ state }) => state !== 'cancelled');
    expect(queued).toHaveLength(entry?.resolution?.decision === 'take-second' ? 1 : 0);
    expect(queued.map((one) => one.id)).toEqual(queued.map(() => entry?.resolution?.bulkOperationId));
    for (const one of [client, other]) {
      await firstValueFrom(one.quarantine$.pipe(filter((all) => all.length === 0)));
      await firstValueFrom(one.status$.pipe(filter(({ quarantined }) => quarantined === 0)));
    }
  });

  it('O4 refuses a conflict that is not there, a decision that is none, and a filter with other fields', async () => {
    const id = await conflict();
    expect(await code(client.resolveQuarantined('u:o:nothing', 'discard'))).toBe('unknown_quarantine');
    expect(await code(client.resolveQuarantined('h:000000000001', 'discard'))).toBe('unknown_quarantine');
    expect(await code(client.resolveQuarantined(id, 'take-first' as never))).toBe('invalid_decision');
    expect(await code(client.listQuarantined({ open: true } as never))).toBe('invalid_request');
    expect(await client.listQuarantined()).toHaveLength(1);
  });
});

interface Written {
  readonly _id: string;
  readonly resolution?: unknown;
}

/** A PouchDB that refuses the bulk writes that are meant. */
function failing(bed: TestBed, isMeant: (docs: readonly Written[]) => boolean): TestBed['PouchDB'] {
  const Real = bed.PouchDB;
  const open = (name: string): object => {
    const pouch = new Real(name);
    const bulkDocs = pouch.bulkDocs.bind(pouch);
    pouch.bulkDocs = (docs, options) =>
      isMeant(docs as readonly Written[])
        ? Promise.reject(Object.assign(new Error('gone'), { name: 'InvalidStateError' }))
        : bulkDocs(docs, options);
    return pouch;
  };
  return function (name: string) {
    return open(name);
  } as unknown as TestBed['PouchDB'];
}
