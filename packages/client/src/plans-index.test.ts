import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod/mini';
import { defineAction } from './actions/define.js';
import { definePlan } from './actions/plan.js';
import { defineIndex } from './lookup/define.js';
import { HandIndex } from './lookup/hand-index.fixture.js';
import type { Client, ClientOptions, PlanRequest } from './model/client.js';
import { IndexNotReadyError, InvalidRequestError, RetryableError } from './model/errors.js';
import type { AnyAction } from './model/handler.js';
import type { AnyPlan, PlanContext } from './model/plan.js';
import type { BulkOperationStatus } from './model/states.js';
import { paint, setColour, TestBed } from './test-bed.fixture.js';

vi.mock('./lookup/kept-index.js', () => ({ KeptIndex: HandIndex }));

const byColour = defineIndex({ name: 'by-colour', version: 1, keys: (doc) => doc['colour'] as string });
const found = async (index: PlanContext['index'], from: string): Promise<{ id: string }[]> =>
  [...(await index('by-colour').query(from)).rows].map(({ id }) => ({ id }));

/** Paints all that have one colour. */
const repaint = definePlan({
  name: 'repaint',
  request: z.strictObject({ from: z.string(), to: z.string() }),
  indexes: ['by-colour'],
  plan: async ({ from, to }, { index }) => {
    const operations = (await found(index, from)).map(({ id }) => ({ id, to }));
    return [{ action: 'set-colour', operations }];
  },
});
const requested: PlanRequest = { target: 'local', plan: 'repaint', request: { from: 'red', to: 'blue' } };
/** The same, and says which documents it may change. */
const repaintOne = definePlan({ ...repaint, name: 'repaint-one', subjects: () => ['d0000'] });

describe('a plan that asks an index', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
    HandIndex.all.length = 0;
  });
  afterEach(() => bed.close());

  const open = (plans: readonly AnyPlan[] = [repaint], options: Partial<ClientOptions> = {}): Client =>
    bed.open({
      plans,
      indexes: [byColour],
      ...options,
      environment: { indexedDB: {} as IDBFactory, ...options.environment },
    });
  /** The index of the client that was opened last. */
  const index = (): HandIndex => {
    const last = HandIndex.all.at(-1);
    if (last === undefined) throw new Error('no client has an index');
    return last;
  };
  const queue = async (client: Client, request = requested): Promise<string> =>
    (await client.enqueue(request)).bulkOperationId;
  const reaches = (client: Client, id: string, ...states: string[]): Promise<BulkOperationStatus> =>
    bed.reaches(client, id, states);
  const seed = async (client: Client, count: number): Promise<void> => {
    index().rows = (await bed.seed(client, count)).map((id) => ({ id, key: 'red' }));
  };
  const stored = async (prefix: string): Promise<number> =>
    (await new bed.PouchDB('clinic-afield-queue').allDocs({ startkey: prefix, endkey: `${prefix}\uffff` })).rows.length;
  const parked = (): IndexNotReadyError => new IndexNotReadyError('by-colour', 'parked', 'DataError');
  const behind = (): IndexNotReadyError => new IndexNotReadyError('by-colour', 'behind');
  /** Two attempts end with these: the first retry is due at once, so that the next one has a delay. */
  const refusedTwice = async (client: Client, id: string, refusal: () => IndexNotReadyError): Promise<void> => {
    index().refusals.push(refusal(), refusal());
    index().become('ready');
    await bed.until(async () => {
      const { failedAttempts, state } = await bed.now(client, id);
      if (failedAttempts === 1 && state === 'waiting-index' && !index().isReady) index().become('ready');
      return failedAttempts === 2 && state === 'waiting-index';
    });
  };

  it('R15 waits as `waiting-index` without an attempt, and goes on at once when the index is ready', async () => {
    const client = open();
    await seed(client, 3);
    index().become('building');
    const id = await queue(client);
    await reaches(client, id, 'waiting-index');
    await bed.rest();
    const waiting = await bed.now(client, id);
    expect(waiting).toMatchObject({ attempt: 0, attempts: 0, failedAttempts: 0, lastError: undefined });
    expect(waiting.nextAttemptAt).toBeUndefined();
    expect(index().queries).toBe(0);
    index().become('ready');
    expect(await reaches(client, id, 'done')).toMatchObject({ total: 3, applied: 3, failedAttempts: 0 });
    expect(await bed.colours(client)).toEqual(['blue', 'blue', 'blue']);
    expect(bed.clock.monotonic()).toBe(0);
  });

  it('R17 while it waits it holds back what is later of its target', async () => {
    const client = open();
    await seed(client, 2);
    const id = await queue(client);
    const later = await queue(client, paint(['d0001'], 'green') as never);
    await reaches(client, id, 'waiting-index');
    await bed.rest();
    expect(await bed.colours(client)).toEqual(['red', 'red']);
    index().become('ready');
    await reaches(client, later, 'done');
    expect(await bed.colours(client)).toEqual(['blue', 'green']);
  });

  it('R17 one that says its documents holds back these alone', async () => {
    const client = open([repaintOne]);
    await seed(client, 1);
    await client.documents.put({ _id: 'd0001', colour: 'red' });
    const id = await queue(client, { ...requested, plan: 'repaint-one' });
    const same = await queue(client, paint(['d0000'], 'green') as never);
    const other = await queue(client, paint(['d0001'], 'green') as never);
    await reaches(client, other, 'done');
    await reaches(client, id, 'waiting-index');
    expect(await bed.colours(client)).toEqual(['red', 'green']);
    index().become('ready');
    await reaches(client, same, 'done');
    expect(await bed.colours(client)).toEqual(['green', 'green']);
  });

  it('R7 an index that parks in the middle passes: the attempt counts, and nothing is lost', async () => {
    const client = open();
    await seed(client, 2);
    index().refusals.push(parked());
    index().become('ready');
    const id = await queue(client);
    const waiting = await bed.becomes(client, id, ({ failedAttempts }) => failedAttempts === 1);
    expect(waiting).toMatchObject({ state: 'waiting-index', attempts: 1, total: 0 });
    expect(waiting.lastError).toEqual({ class: 'storage', code: 'index_not_ready' });
    index().become('ready');
    expect(await reaches(client, id, 'done')).toMatchObject({ applied: 2, failedAttempts: 1 });
  });

  it('R15 what waits for a parked index waits for no time, and is due when the index is ready', async () => {
    const client = open();
    await seed(client, 2);
    const id = await queue(client);
    await refusedTwice(client, id, parked);
    await bed.becomes(client, id, ({ nextAttemptAt }) => nextAttemptAt === undefined);
    const { attempts } = await bed.now(client, id);
    bed.clock.advance(3_600_000);
    client.syncNow();
    await bed.rest();
    expect(await bed.now(client, id)).toMatchObject({ state: 'waiting-index', attempts });
    const before = bed.clock.monotonic();
    index().become('ready');
    expect(await reaches(client, id, 'done')).toMatchObject({ applied: 2 });
    expect(bed.clock.monotonic()).toBe(before);
  });

  it('R7 R2 an index that is ready and only behind is asked again on the ramp, never in a loop', async () => {
    const client = open();
    await seed(client, 2);
    const id = await queue(client);
    index().refusals.push(behind(), behind(), behind());
    index().become('ready');
    await bed.becomes(client, id, ({ failedAttempts }) => failedAttempts === 1);
    bed.clock.advance(0);
    await bed.becomes(client, id, ({ failedAttempts }) => failedAttempts === 2);
    await bed.rest();
    expect(await bed.now(client, id)).toMatchObject({
      state: 'waiting-index',
      attempts: 2,
      nextAttemptAt: bed.clock.wall() + 60_000,
    });
    bed.clock.advance(60_000);
    await bed.becomes(client, id, ({ failedAttempts }) => failedAttempts === 3);
    client.syncNow();
    bed.clock.advance(0);
    expect(await reaches(client, id, 'done')).toMatchObject({ applied: 2 });
  });

  it('R15 one that waits for its next time at an index that then parks is due when that is ready again', async () => {
    const client = open();
    await seed(client, 2);
    const id = await queue(client);
    index().refusals.push(behind(), behind());
    index().become('ready');
    await bed.becomes(client, id, ({ failedAttempts }) => failedAttempts === 1);
    bed.clock.advance(0);
    await bed.becomes(client, id, (bulk) => bulk.failedAttempts === 2 && bulk.nextAttemptAt !== undefined);
    await bed.rest();
    const before = bed.clock.monotonic();
    index().become('parked');
    await bed.becomes(client, id, ({ nextAttemptAt }) => nextAttemptAt === undefined);
    index().become('ready');
    expect(await reaches(client, id, 'done')).toMatchObject({ attempts: 4, applied: 2 });
    expect(bed.clock.monotonic()).toBe(before);
  });

  it('R13 an index that becomes ready makes nothing due before the time that a server asked for', async () => {
    const asking = definePlan({
      ...repaint,
      name: 'asking',
      plan: async (request, context) => {
        if (context.attempt === 1) throw new RetryableError('busy', { notBeforeMs: 600_000 });
        return repaint.plan(request, context);
      },
    });
    const client = open([asking]);
    await seed(client, 2);
    index().become('ready');
    const id = await queue(client, { ...requested, plan: 'asking' });
    await reaches(client, id, 'waiting-retry');
    index().become('parked');
    await bed.rest();
    index().become('ready');
    await bed.rest();
    expect(await bed.now(client, id)).toMatchObject({ state: 'waiting-retry', attempts: 1 });
    bed.clock.advance(600_000);
    await reaches(client, id, 'done');
  });

  it('R15 after a restart it waits for the index, not for the time that was left', async () => {
    const first = open();
    await seed(first, 2);
    const id = await queue(first);
    await refusedTwice(first, id, parked);
    const { rows } = index();
    await first.close();
    const second = open();
    index().rows = rows;
    await bed.becomes(second, id, (bulk) => bulk.state === 'waiting-index' && bulk.nextAttemptAt === undefined);
    await bed.rest();
    expect(await bed.now(second, id)).toMatchObject({ state: 'waiting-index', attempts: 2 });
    const before = bed.clock.monotonic();
    index().become('ready');
    expect(await reaches(second, id, 'done')).toMatchObject({ applied: 2 });
    expect(bed.clock.monotonic()).toBe(before);
  });

  it('R19 paused while it waits, it does not go on with the index; cancelled, it holds back nothing', async () => {
    const client = open();
    await seed(client, 1);
    const id = await queue(client);
    await reaches(client, id, 'waiting-index');
    await client.pause(id);
    index().become('ready');
    await bed.rest();
    expect(await bed.now(client, id)).toMatchObject({ state: 'paused', attempts: 0 });
    index().become('building');
    await client.resume(id);
    await reaches(client, id, 'waiting-index');
    const later = await queue(client, paint(['d0000'], 'green') as never);
    await client.cancel(id);
    await reaches(client, later, 'done');
    index().become('ready');
    await bed.rest();
    expect(await bed.now(client, id)).toMatchObject({ state: 'cancelled', attempts: 0, total: 0 });
    expect(await bed.colours(client)).toEqual(['green']);
  });

  it('R17 once it is planned it needs the index no more', async () => {
    let isUp = false;
    const late = defineAction({
      name: 'late',
      operation: z.strictObject({}),
      run: () => (isUp ? Promise.resolve({}) : Promise.reject(new RetryableError('not yet'))),
    });
    const planning = definePlan({
      ...repaint,
      name: 'planning',
      plan: async ({ from }, context) => [{ action: 'late', operations: await found(context.index, from) }],
    });
    const client = open([planning], { actions: [late as AnyAction, setColour] });
    await seed(client, 2);
    index().become('ready');
    const id = await queue(client, { ...requested, plan: 'planning' });
    await reaches(client, id, 'waiting-retry');
    index().become('parked');
    isUp = true;
    client.syncNow();
    bed.clock.advance(0);
    expect(await reaches(client, id, 'done')).toMatchObject({ applied: 2 });
  });

  it('S10 a plan that this app does not know waits for that first', async () => {
    const before = open();
    await seed(before, 1);
    const id = await queue(before);
    await before.close();
    const without = open([]);
    await reaches(without, id, 'waiting-handler');
    index().become('ready');
    await bed.rest();
    expect(await bed.now(without, id)).toMatchObject({ state: 'waiting-handler', attempts: 0 });
  });

  it('S9 the target `server` is refused: an index knows only the documents of this device', async () => {
    const client = open([repaint], { server: 'http://couch.test/clinic', replication: false, autoStart: false });
    index().become('ready');
    const asked = { ...requested, target: 'server' } as const;
    for (const call of [client.enqueue(asked), client.dryRun(asked)]) {
      const refused: unknown = await call.catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(InvalidRequestError);
      expect((refused as InvalidRequestError).issues).toEqual([
        {
          index: -1,
          field: 'target',
          message: 'must be "local": the plan "repaint" asks an index, which knows only the documents of this device',
        },
      ]);
    }
    for (const prefix of ['h:', 'q:']) expect(await stored(prefix)).toBe(0);
    expect(index().queries).toBe(0);
  });

  it('R5 one that was queued for the server before it asked an index has a bug, and changes nothing', async () => {
    const server = { server: 'http://couch.test/clinic', replication: false, autoStart: false };
    const before = open([definePlan({ ...repaint, indexes: [] })], server);
    const id = await queue(before, { ...requested, target: 'server' });
    await before.close();
    const client = open([repaint], { ...server, autoStart: true });
    await reaches(client, id, 'waiting-index');
    index().become('ready');
    const { bug } = await reaches(client, id, 'failed');
    expect(bug?.stack).toContain('must be "local"');
    expect(index().queries).toBe(0);
  });

  it('B2 a dry run rejects while the index is not ready, and stores nothing', async () => {
    const client = open([repaint], { autoStart: false });
    await seed(client, 2);
    index().become('building');
    const refused: unknown = await client.dryRun(requested).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(IndexNotReadyError);
    expect(refused).toMatchObject({ index: 'by-colour', state: 'building', code: 'index_not_ready' });
    index().become('ready');
    expect(await client.dryRun(requested)).toMatchObject({ total: 2 });
    for (const prefix of ['h:', 'q:']) expect(await stored(prefix)).toBe(0);
  });

  it('R5 an index that the plan did not name is a bug of the plan', async () => {
    const undeclared = definePlan({ ...repaint, name: 'undeclared', indexes: [] });
    const client = open([undeclared]);
    index().become('ready');
    const id = await queue(client, { ...requested, plan: 'undeclared' });
    const { bug, lastError } = await reaches(client, id, 'failed');
    expect(lastError).toEqual({ class: 'bug', code: 'TypeError' });
    expect(bug?.stack).toContain('The plan "undeclared" does not name the index "by-colour" in its `indexes`');
    expect(index().queries).toBe(0);
  });

  it('S6 an index is built by the tab that leads, is told of what was written, and ends with the client', async () => {
    const idle = open([repaint], { autoStart: false });
    await idle.storeId;
    const ofIdle = index();
    const leader = open();
    await bed.until(() => index().follows === 1);
    expect(ofIdle.follows).toBe(0);
    await bed.seed(leader, 1);
    await bed.rest();
    const before = index().pokes;
    await reaches(leader, await queue(leader, paint(['d0000'], 'green') as never), 'done');
    await bed.until(() => index().pokes > before);
    const ofLeader = index();
    await leader.close();
    expect(ofLeader.isClosed).toBe(true);
    await idle.close();
    expect(ofIdle.isClosed).toBe(true);
  });

  it('S2 an index is told that a pull has ended, also one that failed: some documents may have come', async () => {
    const down = (): Promise<Response> => Promise.reject(new TypeError('down'));
    const client = open([repaint], { server: 'http://couch.test/clinic', environment: { fetch: down } });
    await bed.until(async () => (await firstValueFrom(client.status$)).pull.failedAttempts > 0);
    expect(index().pokes).toBeGreaterThan(0);
  });

  it('R15 once a minute the index looks for what was written, though nobody said so', async () => {
    const client = open();
    await bed.list(client);
    await bed.until(() => index().follows === 1);
    await bed.rest();
    const before = index().pokes;
    bed.clock.advance(60_000);
    expect(index().pokes).toBeGreaterThan(before);
  });
});
