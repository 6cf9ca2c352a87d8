import { filter, firstValueFrom, map } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineAction, defineDocumentAction } from './actions/define.js';
import { definePlan } from './actions/plan.js';
import type { ActionPart, Client, ClientOptions, PlanRequest } from './model/client.js';
import type { Presence } from './model/environment.js';
import { AfieldError, InvalidRequestError, PlanRefusedError, RetryableError } from './model/errors.js';
import type { AnyAction } from './model/handler.js';
import type { AnyPlan, PlanContext } from './model/plan.js';
import type { PouchConstructor, PouchLike } from './model/pouch.js';
import type { BulkOperationStatus } from './model/states.js';
import type { ManualClock } from './retry/manual-clock.fixture.js';
import { TestBed } from './test-bed.fixture.js';

const setParent = defineDocumentAction({
  name: 'set-parent',
  operation: z.strictObject({ parent: z.string() }),
  isApplied: (doc, { parent }) => doc['parent'] === parent,
  apply: (doc, { parent }) => ({ ...doc, parent, times: ((doc['times'] as number | undefined) ?? 0) + 1 }),
});

interface Move {
  readonly from: string;
  readonly to: string;
}
const move = z.strictObject({ from: z.string(), to: z.string() });
const isChildOf =
  (parent: string) =>
  (doc: object): boolean =>
    (doc as { parent?: unknown }).parent === parent;
const moves = async ({ from, to }: Move, db: PlanContext['db']): Promise<ActionPart[]> => {
  const children = (await db.range('d', 'd\uffff')).filter(isChildOf(from));
  return [{ action: 'set-parent', operations: children.map(({ _id }) => ({ id: _id, parent: to })) }];
};
/** All that lie under one place get another one. */
const moveAll = definePlan({ name: 'move-all', request: move, plan: (request, { db }) => moves(request, db) });
const requested: PlanRequest = { target: 'local', plan: 'move-all', request: { from: 'a', to: 'b' } };

describe('a plan', () => {
  let bed: TestBed;
  let clock: ManualClock;
  /** Whether `late` works; before that it waits. */
  let isLate: boolean;

  beforeEach(() => {
    bed = new TestBed();
    bed.presence.isVisible = false; // what another tab is at is no stop of the process
    clock = bed.clock;
    isLate = false;
  });

  afterEach(() => bed.close());

  const late = defineAction({
    name: 'late',
    operation: z.strictObject({}),
    run: () => (isLate ? Promise.resolve({}) : Promise.reject(new RetryableError('not yet'))),
  });
  const itIsLate = (client: Client): void => {
    isLate = true;
    client.syncNow();
    clock.advance(0);
  };
  const open = (plans: readonly AnyPlan[] = [moveAll], options: Partial<ClientOptions> = {}): Client =>
    bed.open({ actions: [setParent as AnyAction, late as AnyAction], plans, ...options });
  const reaches = (client: Client, id: string, ...states: string[]): Promise<BulkOperationStatus> =>
    bed.reaches(client, id, states);
  const seed = async (client: Client, count: number, parent = 'a'): Promise<void> => {
    const ids = Array.from({ length: count }, (_, at) => `d${String(at).padStart(4, '0')}`);
    await client.documents.bulkDocs(ids.map((_id) => ({ _id, parent })));
  };
  const put = (client: Client, id: string, parent: string): Promise<unknown> =>
    client.documents.put({ _id: id, parent });
  const under = async (client: Client, parent: string): Promise<string[]> => {
    const { rows } = await client.documents.allDocs({ include_docs: true });
    return (rows as { id: string; doc: object }[]).filter(({ doc }) => isChildOf(parent)(doc)).map(({ id }) => id);
  };
  const queueLate = async (client: Client, id: string): Promise<string> =>
    (await client.enqueue({ target: 'local', actions: [{ action: 'late', operations: [{ id }] }] })).bulkOperationId;
  const setOne = async (client: Client, id: string, parent: string): Promise<string> => {
    const operations = [{ id, parent }];
    const receipt = await client.enqueue({ target: 'local', actions: [{ action: 'set-parent', operations }] });
    return receipt.bulkOperationId;
  };
  const stored = async (prefix: string): Promise<string[]> => {
    const { rows } = await new bed.PouchDB('clinic-afield-queue').allDocs({
      startkey: prefix,
      endkey: `${prefix}\uffff`,
    });
    return (rows as { id: string }[]).map(({ id }) => id);
  };

  it('becomes operations when it runs, and then runs as any bulk operation', async () => {
    const client = open();
    await seed(client, 250);
    const receipt = await client.enqueue({ ...requested, key: 'move a' });
    expect(receipt).toMatchObject({ key: 'move a', total: 0 });
    const done = await reaches(client, receipt.bulkOperationId, 'done');
    // One attempt of the plan, three of batches.
    expect(done).toMatchObject({ plan: 'move-all', actions: ['set-parent'], total: 250, applied: 250, attempts: 4 });
    expect(await under(client, 'b')).toHaveLength(250);
  });

  it('V2 shows `planning` while it plans, and counts as pending until it is known', async () => {
    let go: (() => void) | undefined;
    const slow = definePlan({
      name: 'slow',
      request: z.strictObject({}),
      plan: () => new Promise<ActionPart[]>((resolve) => (go = (): void => resolve([]))),
    });
    const client = open([slow]);
    const { bulkOperationId } = await client.enqueue({ target: 'local', plan: 'slow', request: {} });
    const planning = await reaches(client, bulkOperationId, 'planning');
    expect(planning).toMatchObject({ plan: 'slow', actions: [], total: 0, attempt: 1, nextAttemptAt: undefined });
    expect(await firstValueFrom(client.status$)).toMatchObject({ state: 'planning', pending: 1 });
    await expect.poll(() => go).toBeDefined();
    go?.();
    expect(await reaches(client, bulkOperationId, 'done')).toMatchObject({ total: 0, attempts: 1, failed: 0 });
    expect(await firstValueFrom(client.status$)).toMatchObject({ state: 'idle', pending: 0 });
  });

  it('R17 a plan sees the documents as they are then: all that was queued before it is applied first', async () => {
    const client = open();
    await seed(client, 2);
    await put(client, 'd9', 'elsewhere');
    const first = await queueLate(client, 'x');
    await reaches(client, first, 'waiting-retry');
    const before = await setOne(client, 'd9', 'a');
    const planned = await client.enqueue(requested);
    await reaches(client, before, 'done');
    await put(client, 'd8', 'a');
    expect((await reaches(client, planned.bulkOperationId, 'queued')).attempt).toBe(0);
    itIsLate(client);
    await reaches(client, first, 'done');
    expect(await reaches(client, planned.bulkOperationId, 'done')).toMatchObject({ total: 4 });
    expect(await under(client, 'b')).toEqual(['d0000', 'd0001', 'd8', 'd9']);
  });

  it('R17 holds back everything later of its target until it is planned, then only its own documents', async () => {
    let isUp = false;
    const flaky = definePlan({
      name: 'flaky',
      request: move,
      plan: () =>
        isUp
          ? Promise.resolve([{ action: 'late', operations: [{ id: 'd1' }] }])
          : Promise.reject(new RetryableError('not yet')),
    });
    const client = open([flaky]);
    await put(client, 'd1', 'a');
    await put(client, 'd2', 'a');
    const plan = await client.enqueue({ ...requested, plan: 'flaky' });
    const same = await setOne(client, 'd1', 'c');
    const other = await setOne(client, 'd2', 'c');
    await reaches(client, plan.bulkOperationId, 'waiting-retry');
    expect(await under(client, 'c')).toEqual([]);
    isUp = true;
    client.syncNow();
    clock.advance(0);
    await reaches(client, other, 'done');
    expect(await under(client, 'c')).toEqual(['d2']);
    expect(await reaches(client, plan.bulkOperationId, 'waiting-retry')).toMatchObject({ total: 1 });
    itIsLate(client);
    await reaches(client, same, 'done');
    expect(await under(client, 'c')).toEqual(['d1', 'd2']);
  });

  it.each([1, 300])('R17 one that says its %i documents waits for these alone, and holds back these', async (count) => {
    const declared = definePlan({
      name: 'declared',
      request: z.strictObject({ ids: z.array(z.string()) }),
      subjects: ({ ids }) => ids,
      plan: ({ ids }) => Promise.resolve([{ action: 'late', operations: ids.slice(0, 1).map((id) => ({ id })) }]),
    });
    const client = open([declared]);
    for (const id of ['d1', 'd2', 'd3']) await put(client, id, 'a');
    const ids = Array.from({ length: count }, (_, at) => `d${String(at * 10 + 1)}`);
    const request = { target: 'local', plan: 'declared', request: { ids } } as const;
    await reaches(client, await queueLate(client, 'd2'), 'waiting-retry');
    const plan = await client.enqueue(request);
    const same = await setOne(client, 'd1', 'c');
    const other = await setOne(client, 'd3', 'c');
    expect(await reaches(client, plan.bulkOperationId, 'waiting-retry')).toMatchObject({ total: 1 });
    await reaches(client, other, 'done');
    const second = await client.enqueue({ ...request, request: { ids: [...ids, 'd2'] } });
    await reaches(client, await setOne(client, 'd4', 'c'), 'done-with-failures');
    expect(await reaches(client, second.bulkOperationId, 'queued')).toMatchObject({ total: 0, attempts: 0 });
    expect(await under(client, 'c')).toEqual(['d3']);
    itIsLate(client);
    await reaches(client, same, 'done');
    await reaches(client, second.bulkOperationId, 'done');
    expect(await under(client, 'c')).toEqual(['d1', 'd3']);
  });

  it('R17 one that touches a document which it did not declare has a bug, and changes nothing', async () => {
    const wrong = definePlan({
      name: 'wrong',
      request: z.strictObject({}),
      subjects: () => ['d1'],
      plan: () =>
        Promise.resolve([
          {
            action: 'set-parent',
            operations: [
              { id: 'd1', parent: 'b' },
              { id: 'd2', parent: 'b' },
            ],
          },
        ]),
    });
    const client = open([wrong]);
    await put(client, 'd1', 'a');
    const { bulkOperationId } = await client.enqueue({ target: 'local', plan: 'wrong', request: {} });
    const { bug } = await reaches(client, bulkOperationId, 'failed');
    expect(bug?.stack).toMatch(/operation 1, field id: .*declared/);
    expect(await under(client, 'b')).toEqual([]);
  });

  it('R17 plans of one lane run one after another', async () => {
    const order: string[] = [];
    let isUp = false;
    const named = definePlan({
      name: 'named',
      request: z.strictObject({ name: z.string() }),
      subjects: () => [],
      plan: ({ name }) => {
        if (!isUp && name === 'one') return Promise.reject(new RetryableError('not yet'));
        order.push(name);
        return Promise.resolve([]);
      },
    });
    const client = open([named]);
    const queue = async (name: string, lane?: string): Promise<string> => {
      const more = lane === undefined ? {} : { lane };
      return (await client.enqueue({ target: 'local', plan: 'named', request: { name }, ...more })).bulkOperationId;
    };
    await queue('one', 'x');
    const two = await queue('two', 'x');
    await reaches(client, await queue('three'), 'done');
    expect(order).toEqual(['three']);
    isUp = true;
    client.syncNow();
    clock.advance(0);
    await reaches(client, two, 'done');
    expect(order).toEqual(['three', 'one', 'two']);
  });

  it('R1 R2 what may pass is tried again on the ramp, and the ramp starts anew with the first batch', async () => {
    const attempts: [number, number][] = [];
    const asking = definePlan({
      name: 'asking',
      request: z.strictObject({}),
      plan: async (_, { fetch, attempt, now }) => {
        attempts.push([attempt, (now - Date.UTC(2026, 0, 1)) / 1000]);
        await fetch('http://helper.test/');
        return [{ action: 'late', operations: [{ id: 'd1' }] }];
      },
    });
    let isUp = false;
    const client = open([asking], {
      environment: {
        fetch: () => (isUp ? Promise.resolve(new Response('{}')) : Promise.reject(new TypeError('down'))),
      },
    });
    const { bulkOperationId } = await client.enqueue({ target: 'local', plan: 'asking', request: {} });
    for (const [place, seconds] of [0, 60, 120].entries()) {
      const { nextAttemptAt, lastError } = await firstValueFrom(
        client.bulkOperations$.pipe(
          filter(([one]) => one?.state === 'waiting-retry' && one.failedAttempts === place + 1),
          map(([one]) => one as BulkOperationStatus),
        ),
      );
      expect(lastError).toMatchObject({ class: 'network' });
      expect(nextAttemptAt).toBe(clock.wall() + seconds * 1000);
      if (place === 2) isUp = true;
      clock.advance(seconds * 1000);
    }
    const late = await firstValueFrom(
      client.bulkOperations$.pipe(filter(([one]) => one?.total === 1 && one.nextAttemptAt !== undefined)),
    );
    expect(attempts).toEqual([
      [1, 0],
      [2, 0],
      [3, 60],
      [4, 180],
    ]);
    // The first attempt at its batch has failed: the next one is due at once.
    expect(late[0]).toMatchObject({
      state: 'waiting-retry',
      attempt: 1,
      attempts: 5,
      total: 1,
      nextAttemptAt: clock.wall(),
    });
    itIsLate(client);
    await reaches(client, bulkOperationId, 'done');
  });

  it('R5 any other error is a bug: `failed`, the stack kept, until a person tries it again', async () => {
    let isMended = false;
    const broken = definePlan({
      name: 'broken',
      request: move,
      plan: (request, { db }) => (isMended ? moves(request, db) : Promise.reject(new TypeError('Failed to fetch'))),
    });
    const client = open([broken]);
    await seed(client, 3);
    const first = await client.enqueue({ ...requested, plan: 'broken', key: 'once' });
    expect(await reaches(client, first.bulkOperationId, 'failed')).toMatchObject({
      total: 0,
      lastError: { class: 'bug', code: 'TypeError' },
      bug: { name: 'TypeError', stack: expect.stringContaining('Failed to fetch') as string },
    });
    isMended = true;
    const again = await client.retryRest(first.bulkOperationId);
    expect(again.key).toBe('once~1');
    expect(await reaches(client, again.bulkOperationId, 'done')).toMatchObject({ plan: 'broken', total: 3 });
    expect(await reaches(client, first.bulkOperationId, 'failed')).toMatchObject({
      continuedBy: again.bulkOperationId,
    });
  });

  it('R5 a plan that refuses its request ends as `failed` with its own code, and nothing is written', async () => {
    let isBelow = true;
    const checking = definePlan({
      name: 'checking',
      request: move,
      plan: (request, { db }) => {
        if (isBelow) throw new PlanRefusedError('circular_lineage', 'The target lies below what is moved.');
        return moves(request, db);
      },
    });
    const client = open([checking]);
    await seed(client, 2);
    const asked = { ...requested, plan: 'checking' };
    const { bulkOperationId } = await client.enqueue(asked);
    expect(await reaches(client, bulkOperationId, 'failed')).toMatchObject({
      total: 0,
      attempts: 1,
      lastError: { class: 'bug', code: 'circular_lineage' },
      bug: { name: 'PlanRefusedError', stack: 'The target lies below what is moved.' },
    });
    expect(await stored('p:')).toEqual([]);
    expect(await under(client, 'a')).toHaveLength(2);
    const refused: unknown = await client.dryRun(asked).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(PlanRefusedError);
    expect(refused).toMatchObject({ code: 'circular_lineage', message: 'The target lies below what is moved.' });
    isBelow = false;
    const again = await client.retryRest(bulkOperationId);
    expect(await reaches(client, again.bulkOperationId, 'done')).toMatchObject({ applied: 2 });
  });

  it('R5 the code of a refusal is a word, never a sentence: it is sent to the server', () => {
    expect(() => new PlanRefusedError('Anna lies below it', 'x')).toThrow(TypeError);
    expect(() => new PlanRefusedError('', 'x')).toThrow(TypeError);
  });

  it.each([
    [
      'a wrong field',
      [
        {
          action: 'set-parent',
          operations: [
            { id: 'd1', parent: 'b' },
            { id: 'd2', parent: 5 },
          ],
        },
      ],
      /operation 1, field parent: .*set-parent/,
    ],
    ['an unknown action', [{ action: 'made-up', operations: [{ id: 'd1' }] }], /actions\.0\.action: .*made-up/],
    ['no list', 'nothing', /actions: must be a list/],
    [
      'one key twice',
      [{ action: 'delete', operations: ['d1', 'd2'].map((id) => ({ id, key: 'k' })) }],
      /operation 1, field key: .*another one/,
    ],
  ])(
    'R5 S9 operations that could not be queued are the bug of the plan, which names them: %s',
    async (_, made, said) => {
      const plan = definePlan({
        name: 'wrong',
        request: z.strictObject({}),
        plan: () => Promise.resolve(made as ActionPart[]),
      });
      const client = open([plan]);
      const { bulkOperationId } = await client.enqueue({ target: 'local', plan: 'wrong', request: {} });
      const { bug, lastError } = await reaches(client, bulkOperationId, 'failed');
      expect(lastError).toEqual({ class: 'bug', code: 'InvalidRequestError' });
      expect(bug?.stack).toMatch(said);
      expect(await stored('p:')).toEqual([]);
      await expect(client.dryRun({ target: 'local', plan: 'wrong', request: {} })).rejects.toThrow(said);
    },
  );

  it('S10 a plan that this app does not know waits until an app does', async () => {
    const before = open([moveAll], { autoStart: false });
    await seed(before, 2);
    const { bulkOperationId } = await before.enqueue(requested);
    await before.close();
    const without = open([]);
    expect(await reaches(without, bulkOperationId, 'waiting-handler')).toMatchObject({ plan: 'move-all', attempts: 0 });
    await without.close();
    expect(await reaches(open(), bulkOperationId, 'done')).toMatchObject({ applied: 2 });
  });

  it.each([
    [{ plan: 'made-up' }, 'plan'],
    [{ plan: 5 }, 'plan'],
    [{ actions: [] }, 'actions'],
    [{ target: 'server' }, 'target'],
    [{ target: 'both' }, 'target'],
    [{ key: '' }, 'key'],
    [{ key: 'k'.repeat(257) }, 'key'],
    [{ lane: '' }, 'lane'],
    [{ reqest: 1 }, 'reqest'],
    [{ request: { from: 'a', to: 5 } }, 'request.to'],
    [{ request: undefined }, 'request'],
    [{ request: 'a' }, 'request'],
    [{ plan: 'any', request: { at: new Date(0) } }, 'request.at'],
    [{ plan: 'unsure', request: {} }, 'plan'],
    [{ plan: 'throwing', request: {} }, 'plan'],
  ])('S9 a request with %j is refused, names the field, and nothing is stored', async (wrong, field) => {
    const plan = (): Promise<ActionPart[]> => Promise.resolve([]);
    const request = z.looseObject({});
    const client = open([
      moveAll,
      definePlan({ name: 'any', request, plan }),
      definePlan({ name: 'unsure', request, plan, subjects: () => [5 as never] }),
      definePlan({ name: 'throwing', request, plan, subjects: () => JSON.parse('no') as string[] }),
    ]);
    const refused: unknown = await client
      .enqueue({ ...requested, ...(wrong as object) })
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(InvalidRequestError);
    expect((refused as InvalidRequestError).issues[0]).toMatchObject({ index: -1, field });
    for (const prefix of ['h:', 'p:', 'q:']) expect(await stored(prefix)).toEqual([]);
  });

  it('O2 what is queued is the request as it was given', async () => {
    const asItIs = { version: 1 as const, vendor: 'x', validate: (value: unknown) => ({ value: value as Move }) };
    const client = open([{ ...moveAll, request: { '~standard': asItIs } }]);
    await seed(client, 2);
    const request = { from: 'a', to: 'b' };
    const queued = client.enqueue({ ...requested, request });
    request.to = 'nowhere';
    await reaches(client, (await queued).bulkOperationId, 'done');
    expect(await under(client, 'b')).toHaveLength(2);
  });

  it('a dry run says what would be done now, stores nothing and changes nothing', async () => {
    const client = open([moveAll], { autoStart: false });
    await seed(client, 2);
    await client.storeId;
    expect(await client.dryRun(requested)).toEqual({
      actions: [
        {
          action: 'set-parent',
          operations: [
            { id: 'd0000', parent: 'b' },
            { id: 'd0001', parent: 'b' },
          ],
        },
      ],
      total: 2,
    });
    for (const prefix of ['h:', 'p:', 'q:']) expect(await stored(prefix)).toEqual([]);
    expect(await under(client, 'a')).toHaveLength(2);
    await expect(client.dryRun({ ...requested, request: {} })).rejects.toBeInstanceOf(InvalidRequestError);
    await expect(client.dryRun(undefined as never)).rejects.toBeInstanceOf(InvalidRequestError);
  });

  it('a dry run rejects with what the plan threw', async () => {
    const failing = definePlan({
      name: 'failing',
      request: z.strictObject({}),
      plan: async (_, { fetch }) => {
        await fetch('http://helper.test/');
        return [];
      },
    });
    const client = open([failing], { environment: { fetch: () => Promise.reject(new TypeError('down')) } });
    const error: unknown = await client
      .dryRun({ target: 'local', plan: 'failing', request: {} })
      .catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RetryableError);
    expect(error).toMatchObject({ class: 'network' });
  });

  it('O2 a crash after the operations were stored and before the header names them: planned anew, nothing mixed', async () => {
    const Original = bed.PouchDB;
    const headerWrites: unknown[] = [];
    bed.PouchDB = function (name: string): PouchLike {
      const pouch = new Original(name);
      const bulkDocs = pouch.bulkDocs.bind(pouch);
      pouch.bulkDocs = (docs, options) => {
        const planned = docs.some((doc) => (doc as { plan?: { planned?: boolean } }).plan?.planned === true);
        if (!planned) return bulkDocs(docs, options);
        headerWrites.push(docs);
        return Promise.reject(new Error('killed'));
      };
      return pouch;
    } as unknown as PouchConstructor;
    const killed = open();
    await seed(killed, 150);
    const { bulkOperationId } = await killed.enqueue(requested);
    await reaches(killed, bulkOperationId, 'waiting-storage');
    await killed.close();
    expect(headerWrites.length).toBeGreaterThan(0);
    bed.PouchDB = Original;
    const orphans = await stored('p:');
    expect(orphans.length).toBeGreaterThan(0);
    const client = open([moveAll], { autoStart: false });
    await put(client, 'd0000x', 'a');
    await client.start();
    expect(await reaches(client, bulkOperationId, 'done')).toMatchObject({ total: 151, applied: 151, failed: 0 });
    expect(await under(client, 'b')).toHaveLength(151);
    expect(await stored('p:')).toHaveLength(orphans.length + 2);
  });

  it('R19 paused while it plans, it plans again when it goes on; cancelled, it changes nothing', async () => {
    const answers: ((parts: ActionPart[]) => void)[] = [];
    const slow = definePlan({
      name: 'slow',
      request: move,
      plan: () => new Promise<ActionPart[]>((resolve) => answers.push(resolve)),
    });
    const parts = (parent: string): ActionPart[] => [{ action: 'set-parent', operations: [{ id: 'd1', parent }] }];
    const client = open([slow]);
    await put(client, 'd1', 'a');
    const { bulkOperationId } = await client.enqueue({ ...requested, plan: 'slow' });
    await expect.poll(() => answers.length).toBe(1);
    await client.pause(bulkOperationId);
    answers[0]?.(parts('too early'));
    expect(await reaches(client, bulkOperationId, 'paused')).toMatchObject({ attempt: 0, total: 0 });
    await client.resume(bulkOperationId);
    await expect.poll(() => answers.length).toBe(2);
    answers[1]?.(parts('b'));
    expect(await reaches(client, bulkOperationId, 'done')).toMatchObject({ total: 1 });
    const second = await client.enqueue({ ...requested, plan: 'slow' });
    await expect.poll(() => answers.length).toBe(3);
    await client.cancel(second.bulkOperationId);
    answers[2]?.(parts('c'));
    const after = await setOne(client, 'd2', 'x');
    await reaches(client, after, 'done-with-failures');
    expect(await reaches(client, second.bulkOperationId, 'cancelled')).toMatchObject({ total: 0, applied: 0 });
    expect(await under(client, 'b')).toEqual(['d1']);
  });

  it('S6 two tabs that plan at once: one of the two plans counts, every document is changed once', async () => {
    const answers: (() => void)[] = [];
    const slow = definePlan({
      name: 'slow',
      request: move,
      plan: async (request, { db }) => {
        const parts = await moves(request, db);
        await new Promise<void>((resolve) => answers.push(resolve));
        return parts;
      },
    });
    const one = open([slow]);
    await seed(one, 120);
    const { bulkOperationId } = await one.enqueue({ ...requested, plan: 'slow' });
    await expect.poll(() => answers.length).toBe(1);
    const two = open([slow]);
    await expect.poll(() => answers.length).toBe(2);
    answers[1]?.();
    await reaches(two, bulkOperationId, 'done');
    answers[0]?.();
    expect(await reaches(one, bulkOperationId, 'done')).toMatchObject({ total: 120, applied: 120 });
    const { rows } = await one.documents.allDocs({ include_docs: true });
    for (const row of rows) expect(row).toMatchObject({ doc: { parent: 'b', times: 1 } });
  });

  it('R16 one that stops the process goes on the ramp, is never given up, and says nothing against its operations', async () => {
    let note: string | undefined;
    let isMended = false;
    const hanging = definePlan({
      name: 'hanging',
      request: move,
      plan: (request, { db }) => (isMended ? moves(request, db) : new Promise<ActionPart[]>(() => undefined)),
    });
    // The page is there until the process ends: closing is not told.
    const presence: Presence = {
      visible: () => true,
      subscribe: () => () => undefined,
      note: (_, text) => {
        if (text.endsWith('visible')) note = text;
      },
      noted: () => note,
    };
    const session = async (run: (client: Client) => Promise<unknown>): Promise<void> => {
      const client = open([hanging], { environment: { presence } });
      await run(client);
      await client.close();
    };
    let id = '';
    await session(async (client) => {
      id = (await client.enqueue({ ...requested, plan: 'hanging' })).bulkOperationId;
      await reaches(client, id, 'planning');
    });
    for (let stops = 1; stops < 5; stops++) {
      await session(async (client) => {
        await reaches(client, id, 'waiting-retry');
        clock.advance(0);
        await reaches(client, id, 'planning');
      });
    }
    await session(async (client) => {
      const waits = client.bulkOperations$.pipe(filter(([one]) => one?.nextAttemptAt !== undefined));
      const [one] = await firstValueFrom(waits);
      expect(one).toMatchObject({ state: 'waiting-retry', attempt: 5, nextAttemptAt: clock.wall() + 240_000 });
      isMended = true;
      await seed(client, 3);
      clock.advance(240_000);
      // Its operations are not suspect: they run together.
      expect(await reaches(client, id, 'done')).toMatchObject({ total: 3, attempts: 7 });
    });
  });

  it('the result on the server names the plan and what came of it', async () => {
    const sent: unknown[] = [];
    const stored = new Map<string, object>();
    const client = open([moveAll], {
      results: 'http://couch.test/results',
      environment: {
        fetch: (input, init) => {
          const body = JSON.parse(init?.body as string) as { keys?: string[]; docs?: { _id: string }[] };
          sent.push(...(body.docs ?? []).filter(({ _id }) => _id.startsWith('result:')));
          for (const doc of body.docs ?? []) stored.set(doc._id, { ...doc, _rev: '1-x' });
          const rowOf = (key: string): object => {
            const doc = stored.get(key);
            return doc === undefined ? { key, error: 'not_found' } : { id: key, key, value: { rev: '1-x' }, doc };
          };
          const json = (input as string).includes('_all_docs')
            ? { rows: body.keys?.map(rowOf) }
            : body.docs?.map(({ _id }) => ({ id: _id, ok: true, rev: '1-x' }));
          return Promise.resolve(new Response(JSON.stringify(json)));
        },
      },
    });
    await seed(client, 2);
    await client.enqueue(requested);
    await expect.poll(() => sent.length).toBe(1);
    const counts = { total: 2, applied: 2, notDone: 0, failed: 0 };
    expect(sent[0]).toMatchObject({ plan: 'move-all', actions: ['set-parent'], state: 'done', ...counts });
  });

  it.each([
    [{ plans: 'x' }],
    [{ plans: [moveAll, moveAll] }],
    [{ plans: [{ ...moveAll, name: '' }] }],
    [{ plans: [{ ...moveAll, plan: undefined }] }],
    [{ plans: [{ ...moveAll, request: {} }] }],
    [{ plans: [{ ...moveAll, subjects: [] }] }],
  ])('a wrong plan is refused at once: %j', (options) => {
    expect(() => open([], { autoStart: false, ...(options as object) })).toThrow(AfieldError);
  });
});
