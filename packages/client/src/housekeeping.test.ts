import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Client, ClientOptions, EnqueueReceipt } from './model/client.js';
import { RetryableError } from './model/errors.js';
import type { DocumentEvent, Publisher } from './model/event.js';
import type { PouchConstructor } from './model/pouch.js';
import { handAction, paint, setColour, TestBed } from './test-bed.fixture.js';

const day = 86_400_000;

describe('housekeeping', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(() => bed.close());

  /** Names of all that the queue database holds. */
  const stored = async (): Promise<string[]> => {
    const { rows } = await new bed.PouchDB('clinic-afield-queue').allDocs({});
    return rows.map((row) => (row as { id: string }).id);
  };
  const of = (prefix: string, ids: readonly string[]): string[] => ids.filter((id) => id.startsWith(prefix));
  const note = async (): Promise<{ counted: number; removing: unknown[] } | undefined> => {
    const { rows } = await new bed.PouchDB('clinic-afield-queue').allDocs({ keys: ['hk'], include_docs: true });
    return (rows[0] as { doc?: { counted: number; removing: unknown[] } }).doc;
  };
  const counted = async (): Promise<number> => (await note())?.counted ?? -1;
  /** Whether a look has counted more than this, and has removed what it was to remove. */
  const hasLooked = async (before: number): Promise<boolean> => {
    const { counted: now = -1, removing = [] } = (await note()) ?? {};
    return now > before && removing.length === 0;
  };
  /** A day on which the device sleeps; resolves when housekeeping has looked. */
  const aDay = async (ms = day): Promise<void> => {
    const before = await counted();
    bed.clock.sleep(ms);
    bed.clock.advance(60_000);
    await bed.until(() => hasLooked(before));
    await bed.rest();
  };
  const done = async (client: Client, ids: readonly string[], to: string, more: object = {}): Promise<string> => {
    const { bulkOperationId } = await client.enqueue(paint(ids, to, more));
    await bed.settled(client, bulkOperationId);
    return bulkOperationId;
  };
  const shown = async (client: Client): Promise<string[]> => (await bed.list(client)).map(({ id }) => id);
  /** Opened, and housekeeping has looked once. */
  const opened = async (options: Partial<ClientOptions> = {}): Promise<Client> => {
    const client = bed.open(options);
    await firstValueFrom(client.status$.pipe(filter(({ leader }) => leader)));
    // A look writes something down only where something is over.
    const isOver = (await bed.list(client)).some(({ state }) => state.startsWith('done'));
    if (isOver) await bed.until(() => hasLooked(-1));
    await bed.rest();
    return client;
  };
  const reopened = async (client: Client, options: Partial<ClientOptions> = {}): Promise<Client> => {
    await client.close();
    bed.forget(client);
    return opened(options);
  };

  it('O4 remembers for 30 days what is over, then removes all of it, and never uses its number again', async () => {
    const seed = bed.open();
    const ids = await bed.seed(seed, 300);
    const first = await done(seed, ids, 'blue');
    const second = await done(seed, ids, 'green');
    let client = await reopened(seed);
    for (let passed = 0; passed < 29; passed++) await aDay();
    expect(await shown(client)).toEqual([first, second]);
    await aDay();
    expect(await shown(client)).toEqual([second]);
    const left = await stored();
    expect(of('h:', left)).toEqual(['h:000000000002']);
    expect(of('b:', left).every((id) => id.startsWith('b:000000000002:'))).toBe(true);
    expect(of('p:', left)).toHaveLength(3);
    expect(of('d:', left).every((id) => id.includes(second))).toBe(true);
    // The last number is kept, however old: the next one is counted from it.
    for (let passed = 0; passed < 3; passed++) await aDay();
    expect(await shown(client)).toEqual([second]);
    client = await reopened(client);
    const { sequence } = await client.enqueue(paint(ids, 'red'));
    expect(sequence).toBe(3);
  });

  it('O4 the time can be set; with 0 days it goes at the next look', async () => {
    const seed = bed.open();
    const ids = await bed.seed(seed, 3);
    await done(seed, ids, 'blue');
    const second = await done(seed, ids, 'green');
    const client = await reopened(seed, { rememberDays: 0 });
    await bed.until(async () => of('h:', await stored()).length === 1);
    expect(await shown(client)).toEqual([second]);
    expect(() => bed.open({ rememberDays: -1 })).toThrow('rememberDays');
    expect(() => bed.open({ rememberDays: Infinity })).toThrow('rememberDays');
  });

  it('O4 never forgets while anything of it is open: a failure, an event, what a bug or a pause has stopped', async () => {
    const { action, calls } = handAction('work');
    const events: DocumentEvent[] = [];
    let isDown = true;
    const publisher: Publisher = {
      name: 'place',
      needs: 'nothing',
      publish: (sent) => {
        if (isDown) return Promise.reject(new RetryableError('down'));
        events.push(...sent);
        return Promise.resolve({ accepted: sent.map(({ id }) => id) });
      },
    };
    const options = { actions: [setColour, action], publishers: [publisher], rememberDays: 2 };
    const client = bed.open(options);
    await client.documents.bulkDocs([
      { _id: 'a', colour: 'red' },
      { _id: 'cold', colour: 'red', frozen: true },
    ]);
    const unpublished = await done(client, ['a'], 'blue');
    const failing = await done(client, ['cold'], 'blue');
    const work = async (id: string): Promise<string> =>
      (await client.enqueue({ target: 'local', actions: [{ action: 'work', operations: [{ id }] }] })).bulkOperationId;
    const broken = await work('x');
    await bed.until(() => calls.length === 1);
    calls[0]?.fail(new TypeError('a bug'));
    await bed.settled(client, broken);
    const paused = await work('y');
    await bed.until(() => calls.length === 2);
    await client.pause(paused);
    calls[1]?.fail(new RetryableError('not now'));
    const last = await done(client, ['a'], 'green');
    await aDay();
    for (let passed = 0; passed < 4; passed++) await aDay();
    expect(await shown(client)).toEqual([unpublished, failing, broken, paused, last]);
    isDown = false;
    client.syncNow();
    await bed.until(() => events.length === 2, 60_000);
    await client.discard({});
    await client.cancel(broken);
    await client.cancel(paused);
    await aDay();
    // From now on nothing of them is open: the time begins.
    await aDay();
    expect(await shown(client)).toHaveLength(5);
    await aDay();
    expect(await shown(client)).toEqual([last]);
    expect(of('f:', await stored())).toEqual([]);
    expect(await client.listFailures({ resolved: true })).toEqual([]);
  });

  it('O4 what a retry took over is remembered as long as the retry', async () => {
    const client = bed.open({ rememberDays: 2 });
    await client.documents.bulkDocs([{ _id: 'cold', colour: 'red', frozen: true }]);
    const first = await done(client, ['cold'], 'blue');
    const { bulkOperations } = await client.retryFailed();
    const retry = bulkOperations[0]?.bulkOperationId ?? '';
    await bed.settled(client, retry);
    const last = await done(client, ['cold'], 'green');
    await aDay();
    for (let passed = 0; passed < 4; passed++) await aDay();
    expect(await shown(client)).toEqual([first, retry, last]);
    await client.discard({ bulkOperationId: retry });
    for (let passed = 0; passed < 3; passed++) await aDay();
    expect(await shown(client)).toEqual([last]);
  });

  it('O4 a key is remembered exactly as long as its bulk operation', async () => {
    const client = await opened({ rememberDays: 2 });
    await bed.seed(client, 2);
    const own = { id: 'd0001', to: 'blue', key: 'mine' };
    const request = {
      target: 'local',
      key: 'whole',
      actions: [{ action: 'set-colour', operations: [own, { id: 'd0000', to: 'blue' }] }],
    } as const;
    const again = { target: 'local', actions: [{ action: 'set-colour', operations: [own] }] } as const;
    const { bulkOperationId: first } = await client.enqueue(request);
    await bed.settled(client, first);
    const last = await done(client, ['d0000'], 'green');
    await aDay();
    await aDay();
    expect(await client.enqueue(request)).toMatchObject({ bulkOperationId: first, duplicate: true });
    expect(await client.enqueue(again)).toMatchObject({ bulkOperationId: first, duplicate: true });
    await aDay();
    expect(await shown(client)).toEqual([last]);
    expect(of('k:', await stored())).toEqual([]);
    const { bulkOperationId: anew } = await client.enqueue(request);
    expect(anew).not.toBe(first);
    expect(await client.enqueue(again)).toMatchObject({ bulkOperationId: anew, duplicate: true });
    await bed.settled(client, anew);
  });

  it('O4 remembers what has a conflict in quarantine until a person has decided, then removes both versions', async () => {
    const client = await opened({ rememberDays: 1 });
    await bed.seed(client, 2);
    const first = await done(client, ['d0000'], 'blue', { key: 'k' });
    await expect(client.enqueue(paint(['d0001'], 'blue', { key: 'k' }))).rejects.toMatchObject({
      code: 'idempotency_conflict',
    });
    const last = await done(client, ['d0000'], 'green');
    for (let passed = 0; passed < 4; passed++) await aDay();
    expect(await shown(client)).toEqual([first, last]);
    const [conflict] = await client.listQuarantined();
    await client.resolveQuarantined(conflict?.quarantineId ?? '', 'keep-first');
    for (let passed = 0; passed < 3; passed++) await aDay();
    expect(await shown(client)).toEqual([last]);
    expect(await client.listQuarantined({ resolved: true })).toEqual([]);
    const left = await stored();
    expect([...of('u:', left), ...of('k:', left)]).toEqual([]);
    expect(of('p:', left)).toHaveLength(1);
  });

  it('O4 a second version that a person has chosen keeps its content, and goes when it is over itself', async () => {
    const client = await opened({ rememberDays: 1 });
    await bed.seed(client, 2);
    await done(client, ['d0000'], 'blue', { key: 'k' });
    await client.enqueue(paint(['d0001'], 'blue', { key: 'k' })).catch(() => undefined);
    const [conflict] = await client.listQuarantined();
    const { bulkOperationId = '' } =
      (await client.resolveQuarantined(conflict?.quarantineId ?? '', 'take-second')) ?? {};
    await bed.settled(client, bulkOperationId);
    for (let passed = 0; passed < 3; passed++) await aDay();
    expect(await shown(client)).toEqual([bulkOperationId]);
    expect(of('p:', await stored())).toHaveLength(1);
    expect((await client.listEvents()).map(({ documentId }) => documentId)).toEqual(['d0001']);
    await done(client, ['d0000'], 'green');
    await aDay();
    expect(of('p:', await stored())).toHaveLength(1);
    expect(of('u:', await stored())).toEqual([]);
  });

  it('O4 a second version that another tab chooses while its conflict is about to be removed keeps its content', async () => {
    bed.channels = null;
    const seed = await opened();
    await bed.seed(seed, 2);
    await done(seed, ['d0000'], 'blue', { key: 'k' });
    await seed.enqueue(paint(['d0001'], 'blue', { key: 'k' })).catch(() => undefined);
    await done(seed, ['d0000'], 'green');
    const [conflict] = await seed.listQuarantined();
    await seed.close();
    bed.forget(seed);

    const other = bed.open({ autoStart: false });
    await bed.list(other);
    let receipt: EnqueueReceipt | undefined;
    const reads: string[] = [];
    const PouchDB = function (name: string, options: object) {
      const db = new bed.PouchDB(name, options);
      const allDocs = db.allDocs.bind(db);
      return Object.assign(db, {
        allDocs: async (asked: { startkey?: string }) => {
          // All headers are read, and now it is looked which conflicts there are.
          reads.push(asked.startkey ?? '');
          const isLook = reads.slice(-2).join() === 'h:000000000003,u:' && receipt === undefined;
          if (isLook) receipt = await other.resolveQuarantined(conflict?.quarantineId ?? '', 'take-second');
          return allDocs(asked as never);
        },
      });
    } as unknown as PouchConstructor;
    bed.open({ PouchDB, rememberDays: 0 });
    await bed.until(() => receipt !== undefined);
    await bed.rest();
    expect(await other.listNotDone(receipt?.bulkOperationId ?? '')).toHaveLength(1);
  });

  it('R18 a clock that jumps ten years ahead, or back and forth, makes nothing forgotten at once', async () => {
    const seed = bed.open();
    const ids = await bed.seed(seed, 2);
    const first = await done(seed, ids, 'blue');
    const second = await done(seed, ids, 'green');
    let client = await reopened(seed);
    await aDay(3650 * day);
    expect(await shown(client)).toEqual([first, second]);
    expect(await counted()).toBeLessThanOrEqual(day + 120_000);
    bed.clock.jumpWall(-7300 * day);
    client = await reopened(client);
    bed.clock.jumpWall(7300 * day);
    client = await reopened(client);
    expect(await shown(client)).toEqual([first, second]);
    expect(await counted()).toBeLessThanOrEqual(2 * day + 240_000);
  });

  it('O8 events go on behind what is removed: published in order, each once, with nothing before them', async () => {
    const sent: string[] = [];
    const publisher: Publisher = {
      name: 'place',
      needs: 'nothing',
      publish: (events) => {
        sent.push(...events.map(({ sequence, previous }) => `${String(sequence)} ${String(previous !== null)}`));
        return Promise.resolve({ accepted: events.map(({ id }) => id) });
      },
    };
    const options = { publishers: [publisher], rememberDays: 0 };
    /** What is published is noted as such. */
    const noted = (one: Client): Promise<unknown> =>
      firstValueFrom(
        one.status$.pipe(
          filter(({ unpublished, publishers: { place } }) => unpublished === 0 && place?.state === 'idle'),
        ),
      );
    let client = bed.open(options);
    const ids = await bed.seed(client, 1);
    for (const to of ['blue', 'green', 'red']) await done(client, ids, to);
    await noted(client);
    client = await reopened(client, options);
    await bed.until(async () => of('h:', await stored()).length === 1);
    await done(client, ids, 'blue');
    await noted(client);
    client = await reopened(client, options);
    await bed.until(async () => of('h:', await stored()).length === 1);
    expect(sent).toEqual(['1 false', '2 true', '3 true', '4 true']);
    expect((await client.listEvents()).map(({ sequence }) => sequence)).toEqual([4]);
    expect(await firstValueFrom(client.status$)).toMatchObject({ unpublished: 0, pending: 0 });
  });

  it('R17 a tab that has not heard of newer numbers takes none that was used before', async () => {
    bed.channels = null;
    const client = await opened({ rememberDays: 0 });
    const ids = await bed.seed(client, 2);
    const late = bed.open({ autoStart: false });
    await late.storeId;
    for (const to of ['blue', 'green', 'red']) await done(client, ids, to);
    await aDay();
    expect(of('h:', await stored())).toEqual(['h:000000000003']);
    const { sequence, bulkOperationId } = await late.enqueue(paint(ids, 'black'));
    expect(sequence).toBe(4);
    expect(of('h:', await stored())).toEqual(['h:000000000003', 'h:000000000004']);
    await bed.until(async () => (await shown(client)).includes(bulkOperationId), 10_000);
    expect(await bed.settled(client, bulkOperationId)).toMatchObject({ state: 'done', applied: 2 });
  });

  it('O4 other tabs show no more what one has removed, and read nothing of it', async () => {
    const client = await opened({ rememberDays: 0 });
    const ids = await bed.seed(client, 2);
    await done(client, ids, 'blue');
    const second = await done(client, ids, 'green');
    const other = bed.open({ autoStart: false });
    expect(await shown(other)).toHaveLength(2);
    await aDay();
    await bed.until(async () => (await shown(other)).length === 1);
    expect(await shown(other)).toEqual([second]);
    expect((await other.listEvents()).map(({ sequence }) => sequence)).toEqual([2, 2]);
  });

  it('S9 what was removed is unknown to whoever asks for it', async () => {
    bed.channels = null;
    const client = await opened({ rememberDays: 0 });
    const ids = await bed.seed(client, 2);
    const first = await done(client, ids, 'blue');
    await done(client, ids, 'green');
    const other = bed.open({ autoStart: false });
    expect(await shown(other)).toHaveLength(2);
    await aDay();
    expect(of('h:', await stored())).toHaveLength(1);
    await expect(other.retryRest(first)).rejects.toMatchObject({ code: 'unknown_bulk_operation' });
    await expect(other.cancel(first)).rejects.toMatchObject({ code: 'unknown_bulk_operation' });
  });
});
