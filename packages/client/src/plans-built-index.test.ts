import 'fake-indexeddb/auto';
import { IDBFactory } from 'fake-indexeddb';
import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { definePlan } from './actions/plan.js';
import { defineIndex } from './lookup/define.js';
import type { Client, ClientOptions, PlanRequest } from './model/client.js';
import { paint, TestBed } from './test-bed.fixture.js';

const repaint = definePlan({
  name: 'repaint',
  request: z.strictObject({ from: z.string(), to: z.string() }),
  indexes: ['by-colour'],
  plan: async ({ from, to }, { index }) => {
    const { rows } = await index('by-colour').query(from);
    return [{ action: 'set-colour', operations: rows.map(({ id }) => ({ id, to })) }];
  },
});
const requested: PlanRequest = { target: 'local', plan: 'repaint', request: { from: 'red', to: 'blue' } };

describe('a plan and the index that it asks', () => {
  let bed: TestBed;
  let indexedDB: IDBFactory;
  /** Whether the key function throws at one document. */
  let isBroken: boolean;

  beforeEach(() => {
    bed = new TestBed();
    indexedDB = new IDBFactory();
    isBroken = false;
  });
  afterEach(() => bed.close());

  const byColour = defineIndex({
    name: 'by-colour',
    version: 1,
    keys: (doc) => {
      if (isBroken && doc._id === 'd0200') throw new RangeError('made to fail');
      return doc['colour'] as string;
    },
  });
  const open = (options: Partial<ClientOptions> = {}): Client =>
    bed.open({
      plans: [repaint],
      indexes: [byColour],
      ...options,
      environment: { indexedDB, warn: () => undefined },
    });
  const stateOf = async (client: Client): Promise<string> =>
    (await firstValueFrom(client.index('by-colour').state$)).state;
  const parks = (client: Client): Promise<void> => bed.until(async () => (await stateOf(client)) === 'parked');
  const blue = async (client: Client): Promise<number> =>
    (await bed.colours(client)).filter((colour) => colour === 'blue').length;

  it('R15 runs when the index of all documents is built, on all of them', async () => {
    const client = open({ autoStart: false });
    await bed.seed(client, 250);
    const { bulkOperationId: id } = await client.enqueue(requested);
    await client.start();
    expect(await bed.settled(client, id)).toMatchObject({ state: 'done', total: 250, applied: 250 });
    expect(await blue(client)).toBe(250);
  });

  it('R17 finds by the index what was queued before it, and nothing that was changed away', async () => {
    const client = open();
    await bed.seed(client, 3);
    await client.documents.put({ _id: 'e1', colour: 'green' });
    await bed.until(async () => (await stateOf(client)) === 'ready');
    await client.enqueue(paint(['e1'], 'red'));
    await client.enqueue(paint(['d0000'], 'green'));
    const { bulkOperationId: id } = await client.enqueue(requested);
    expect(await bed.settled(client, id)).toMatchObject({ state: 'done', total: 3, failedAttempts: 0 });
    expect(await bed.colours(client)).toEqual(['green', 'blue', 'blue', 'blue']);
  });

  it('R7 B2 waits while the index is parked, and goes on when a person has resumed it', async () => {
    isBroken = true;
    const client = open();
    await bed.seed(client, 250);
    const { bulkOperationId: id } = await client.enqueue(requested);
    await parks(client);
    await bed.rest();
    expect(await bed.now(client, id)).toMatchObject({ state: 'waiting-index', attempts: 0, nextAttemptAt: undefined });
    await expect(client.dryRun(requested)).rejects.toMatchObject({ code: 'index_not_ready', state: 'parked' });
    isBroken = false;
    await client.index('by-colour').resume();
    expect(await bed.settled(client, id)).toMatchObject({ state: 'done', total: 250 });
  });

  it('R15 waits again after a restart, which tries the index again', async () => {
    isBroken = true;
    const first = open();
    await bed.seed(first, 250);
    const { bulkOperationId: id } = await first.enqueue(requested);
    await parks(first);
    await first.close();
    const second = open();
    await parks(second);
    await bed.rest();
    expect(await bed.now(second, id)).toMatchObject({ state: 'waiting-index', attempts: 0 });
    await second.close();
    isBroken = false;
    expect(await bed.settled(open(), id)).toMatchObject({ state: 'done', total: 250 });
  });

  it('R15 S6 goes on in the tab that leads when another tab has built the index', async () => {
    isBroken = true;
    const leader = open();
    await bed.seed(leader, 250);
    const { bulkOperationId: id } = await leader.enqueue(requested);
    await parks(leader);
    await bed.reaches(leader, id, ['waiting-index']);
    const other = open({ autoStart: false });
    isBroken = false;
    await other.index('by-colour').resume();
    expect(await bed.settled(leader, id)).toMatchObject({ state: 'done', total: 250 });
    expect(bed.clock.monotonic()).toBe(0);
  });

  it('R15 S6 goes on within a minute when the news of the other tab got lost', async () => {
    isBroken = true;
    const leader = open();
    await bed.seed(leader, 250);
    const { bulkOperationId: id } = await leader.enqueue(requested);
    await parks(leader);
    await bed.reaches(leader, id, ['waiting-index']);
    bed.channels = null;
    const other = open({ autoStart: false });
    isBroken = false;
    await other.index('by-colour').resume();
    await bed.rest();
    expect(await bed.now(leader, id)).toMatchObject({ state: 'waiting-index' });
    bed.clock.advance(61_000);
    expect(await bed.settled(leader, id)).toMatchObject({ state: 'done', total: 250 });
  });
});
