import { createClient, defineDocumentAction, IdempotencyConflictError } from '@afield/client';
import type { Client, EnqueueReceipt, EnqueueRequest, Locks } from '@afield/client';
import { crashPoints, FakeDevice, type CrashProcess } from '@afield/testing';
import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});

const paint = (keys: readonly string[], to: string, key?: string): EnqueueRequest => ({
  target: 'local',
  actions: [{ action: 'set-colour', operations: keys.map((one) => ({ id: `doc-${one}`, key: one, to })) }],
  ...(key === undefined ? {} : { key }),
});
const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => `k${String(from + at).padStart(5, '0')}`);

type Tab = ReturnType<FakeDevice['process']>;
type Answer = EnqueueReceipt | { readonly error: unknown };

const open = ({ PouchDB, environment }: Pick<Tab, 'PouchDB' | 'environment'>, locks?: Locks): Client =>
  createClient({
    name: 'records',
    PouchDB,
    environment: locks === undefined ? environment : { ...environment, locks },
    actions: [setColour],
    jitter: 0,
    autoStart: false,
  });
const answered = (promise: Promise<EnqueueReceipt>): Promise<Answer> =>
  promise.catch((error: unknown): Answer => ({ error }));
const listed = async (client: Client): Promise<string[]> => {
  await client.storeId;
  await Promise.resolve();
  const all = await firstValueFrom(client.bulkOperations$);
  return all.filter(({ state }) => state !== 'cancelled').map(({ id }) => id);
};

describe('one key, and more than one who uses it', () => {
  let device: FakeDevice;
  beforeEach(() => {
    device = new FakeDevice();
  });
  afterEach(() => device.dispose());

  const keysLeft = async (): Promise<string[]> => {
    const { rows } = await device.database('records-afield-queue').allDocs({ startkey: 'k:', endkey: 'k:\uffff' });
    return rows.map((row) => (row as { id: string }).id);
  };
  /** A tab whose write of operations waits until it is let go. */
  const heldTab = (): { tab: Tab; writes: Promise<void>; letGo: () => void } => {
    let letGo = (): void => undefined;
    let noteWrite = (): void => undefined;
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    const writes = new Promise<void>((resolve) => (noteWrite = resolve));
    const tab = device.process({
      call: async (call, run) => {
        if (call.method === 'bulkDocs' && call.ids.some((id) => id.startsWith('p:'))) {
          noteWrite();
          await gate;
        }
        return run();
      },
    });
    return { tab, writes, letGo };
  };
  const settles = (promise: Promise<unknown>): { readonly isSettled: boolean } => {
    const state = { isSettled: false };
    promise.then(
      () => (state.isSettled = true),
      () => (state.isSettled = true),
    );
    return state;
  };

  it.each([
    ['blue', 'duplicate'],
    ['green', 'conflict'],
  ] as const)('O4 another tab, while the first is still being written (%s: a %s)', async (colour, what) => {
    const { tab, writes, letGo } = heldTab();
    const [one, two] = [open(tab), open(device.process())];
    const first = one.enqueue(paint(['k1', 'k2'], 'blue'));
    await device.until(writes);
    const second = answered(two.enqueue(paint(['k2', 'k3'], colour)));
    const state = settles(second);
    // As long as it takes: the tab lives.
    await device.clock.advance(600_000);
    expect(state.isSettled).toBe(false);
    letGo();
    const { bulkOperationId } = await device.until(first);
    const answer = await device.until(second);
    if (what === 'duplicate') {
      expect(answer).toMatchObject({
        duplicate: false,
        total: 1,
        duplicates: [{ index: 0, key: 'k2', bulkOperationId }],
      });
      expect(await listed(two)).toHaveLength(2);
    } else {
      expect(answer).toMatchObject({ error: { conflicts: [{ index: 0, key: 'k2', bulkOperationId }] } });
      expect(await listed(two)).toEqual([bulkOperationId]);
      expect(await two.listQuarantined()).toMatchObject([
        { first: { content: { to: 'blue' } }, second: { content: { to: 'green' } } },
      ]);
      expect(await keysLeft()).toEqual(['k:o:k1', 'k:o:k2']);
    }
  });

  it('O4 the same tab, while the first is still being written', async () => {
    const { tab, writes, letGo } = heldTab();
    const client = open(tab);
    const first = client.enqueue(paint(['k1'], 'blue', 'whole'));
    await device.until(writes);
    const same = client.enqueue(paint(['k1'], 'blue', 'whole'));
    const other = answered(client.enqueue(paint(['k1'], 'green')));
    const states = [settles(same), settles(other)];
    await device.clock.advance(600_000);
    expect(states).toEqual([{ isSettled: false }, { isSettled: false }]);
    letGo();
    const { bulkOperationId } = await device.until(first);
    expect(await device.until(same)).toMatchObject({ bulkOperationId, duplicate: true });
    expect(await device.until(other)).toMatchObject({ error: expect.any(IdempotencyConflictError) as unknown });
  });

  it('O4 a tab that ends before its header is there leaves its keys to the next one', async () => {
    const { tab, writes } = heldTab();
    const two = open(device.process());
    await two.storeId;
    void answered(open(tab).enqueue(paint(numbered(0, 1200), 'blue', 'whole')));
    await device.until(writes);
    const second = two.enqueue(paint(numbered(0, 1200), 'blue', 'whole'));
    const state = settles(second);
    await device.clock.advance(60_000);
    expect(state.isSettled).toBe(false);
    tab.kill();
    const receipt = await device.until(second);
    expect(receipt).toMatchObject({ duplicate: false, duplicates: [], total: 1200 });
    expect(await listed(two)).toEqual([receipt.bulkOperationId]);
  });

  it('O4 a request that waits and is refused, or closed, holds up no one', async () => {
    const { tab, writes, letGo } = heldTab();
    const [one, two, three] = [open(tab), open(device.process()), open(device.process())];
    const first = one.enqueue(paint(['k2'], 'blue'));
    await device.until(writes);
    const second = answered(two.enqueue(paint(['k1', 'k2', 'k3'], 'blue')));
    await device.clock.advance(5000);
    // The second waits for k2, and keeps nothing that comes after it.
    expect(await device.until(three.enqueue(paint(['k3'], 'blue')))).toMatchObject({ duplicate: false });
    await device.until(two.close());
    expect(await second).toMatchObject({ error: { code: 'client_closed' } });
    expect(await device.until(three.enqueue(paint(['k1'], 'blue')))).toMatchObject({ duplicate: false });
    letGo();
    await device.until(first);
  });

  it.each(['one tab', 'two tabs'])(
    'O4 two requests whose keys overlap never wait for each other (%s)',
    async (where) => {
      const one = open(device.process());
      const two = where === 'one tab' ? one : open(device.process());
      const answers = await device.until(
        Promise.all([
          one.enqueue(paint(numbered(0, 1200), 'blue')),
          two.enqueue(paint(numbered(450, 1700).reverse(), 'blue')),
          one.enqueue(paint(numbered(900, 1100), 'blue')),
          two.enqueue(paint(numbered(400, 1000), 'blue')),
        ]),
        60_000,
      );
      const queued = answers.reduce((sum, { duplicate, total }) => sum + (duplicate ? 0 : total), 0);
      expect(queued).toBe(1700);
      const requested = 1200 + 1250 + 200 + 600;
      expect(answers.reduce((sum, { duplicates }) => sum + duplicates.length, 0)).toBe(requested - 1700);
    },
  );

  it('O4 without locks a key is taken over after half a minute, and who comes back later gives way', async () => {
    const noLocks: Locks = { request: (_name, _signal, whileHeld) => whileHeld() };
    const { tab, writes, letGo } = heldTab();
    const [one, two] = [open(tab, noLocks), open(device.process(), noLocks)];
    const first = one.enqueue(paint(['k1', 'k2'], 'blue', 'whole'));
    await device.until(writes);
    const second = two.enqueue(paint(['k2'], 'blue'));
    const state = settles(second);
    await device.clock.advance(29_000);
    expect(state.isSettled).toBe(false);
    await device.clock.advance(2000);
    const taken = await device.until(second);
    expect(taken).toMatchObject({ duplicate: false, total: 1 });
    letGo();
    expect(await device.until(first)).toMatchObject({
      duplicate: false,
      total: 1,
      duplicates: [{ index: 1, key: 'k2', bulkOperationId: taken.bulkOperationId }],
    });
    const last = open(device.process());
    expect(await listed(last)).toHaveLength(2);
    expect(await device.until(last.enqueue(paint(['k1', 'k2'], 'blue')))).toMatchObject({ duplicate: true });
  });

  it('O4 what a tab has written in its last moment counts', async () => {
    let noteWrite = (): void => undefined;
    const written = new Promise<void>((resolve) => (noteWrite = resolve));
    const tab = device.process({
      call: async (call, run) => {
        const answer = await run();
        if (call.method !== 'bulkDocs' || !call.ids.includes('h:000000000001')) return answer;
        noteWrite();
        return new Promise(() => undefined);
      },
    });
    const [one, two] = [open(tab), open(device.process())];
    await two.storeId;
    void answered(one.enqueue(paint(['k1'], 'blue')));
    await device.until(written);
    tab.kill();
    expect(await device.until(two.enqueue(paint(['k1'], 'blue')))).toMatchObject({ duplicate: true, sequence: 1 });
  });

  it('O4 without locks, too, a header that comes in the last moment counts', async () => {
    const noLocks: Locks = { request: (_name, _signal, whileHeld) => whileHeld() };
    const { tab, writes, letGo } = heldTab();
    const one = open(tab, noLocks);
    const first = one.enqueue(paint(['k1'], 'blue'));
    await device.until(writes);
    let claims = 0;
    const late = device.process({
      call: async (call, run) => {
        // Its second try is the one after the half minute.
        if (call.method === 'bulkDocs' && call.ids.includes('k:o:k1') && ++claims === 2) {
          letGo();
          await first;
        }
        return run();
      },
    });
    const second = open(late, noLocks).enqueue(paint(['k1'], 'blue'));
    const { bulkOperationId } = await device.until(first);
    expect(await device.until(second)).toMatchObject({ bulkOperationId, duplicate: true });
    expect(claims).toBe(2);
  });

  it('O2 O4 what a store error has ended leaves no key behind, also where an answer got lost', async () => {
    const client = open(device.process());
    const gone = { type: 'reject', error: { name: 'UnknownError', domException: true } } as const;
    for (const { id, commit } of [
      { id: 'k:o:k1', commit: false },
      { id: 'k:o:k1', commit: true },
      { id: 'h:000000000001', commit: false },
    ]) {
      const remove = device.store.add({ when: { call: 'bulkDocs', id, times: 1 }, do: { ...gone, commit } });
      expect(await answered(client.enqueue(paint(['k1', 'k2'], 'blue')))).toMatchObject({
        error: { class: 'storage' },
      });
      remove();
      expect(await keysLeft()).toEqual([]);
    }
  });

  it('O4 keys that could not be removed are there for the next who wants them, in this tab and in another', async () => {
    const gone = { type: 'reject', error: { name: 'UnknownError', domException: true } } as const;
    const client = open(device.process());
    for (const by of [client, open(device.process())]) {
      const [{ length }] = [await listed(by)];
      const key = `key-${String(length)}`;
      // Neither the header can be written, nor the removal of the key.
      device.store.add({ when: { call: 'bulkDocs', id: `k:o:${key}`, fromNth: 2 }, do: gone });
      device.store.add({ when: { call: 'bulkDocs', id: `h:00000000000${String(length + 1)}` }, do: gone });
      expect(await answered(client.enqueue(paint([key], 'green')))).toMatchObject({ error: { class: 'storage' } });
      expect(await keysLeft()).toContain(`k:o:${key}`);
      device.store.clear();
      expect(await device.until(by.enqueue(paint([key], 'blue')), 20_000)).toMatchObject({ duplicate: false });
      expect(await listed(by)).toHaveLength(length + 1);
    }
  });

  it('O4 10,000 duplicates cost a few calls a page, none for each operation', async () => {
    const client = open(device.process());
    await client.storeId;
    const request = paint(numbered(0, 10_000), 'blue');
    const calls = async (act: () => Promise<unknown>): Promise<number> => {
      const before = device.store.calls.length;
      await device.until(act());
      return device.store.calls.length - before;
    };
    const first = await calls(() => client.enqueue(request));
    const again = await calls(async () => {
      const receipt = await client.enqueue(request);
      expect(receipt).toMatchObject({ duplicate: true, total: 10_000 });
      expect(receipt.duplicates).toHaveLength(10_000);
    });
    // Pages of 500: one write each, and one read each where they are there already.
    expect(again).toBeLessThanOrEqual(2 * 20 + 2);
    expect(first).toBeLessThanOrEqual(20 + 10 + 60);
  });
});

describe('the client dies at any call of an enqueue whose keys were given, and it comes again', () => {
  const request: EnqueueRequest = {
    target: 'local',
    key: 'whole',
    actions: [
      {
        action: 'set-colour',
        operations: ['k1', 'k2', undefined].map((key, at) => ({
          id: `doc-${String(at)}`,
          to: 'blue',
          ...(key === undefined ? {} : { key }),
        })),
      },
    ],
  };

  it('O2 O4 exactly one bulk operation with all of it, and no key without one', async () => {
    const report = await crashPoints((process: CrashProcess) => open(process).enqueue(request), {
      check: async (process, { when }) => {
        const client = open(process);
        const before = await listed(client);
        const receipt = await client.enqueue(request);
        expect(await listed(client)).toEqual([receipt.bulkOperationId]);
        expect(receipt).toMatchObject({ total: 3, duplicate: before.length === 1 });
        if (when === 'end') expect(receipt.duplicate).toBe(true);
        expect(await client.enqueue(request)).toMatchObject({ ...receipt, duplicate: true, duplicates: [{}, {}, {}] });
        expect(await client.listNotDone(receipt.bulkOperationId)).toMatchObject([
          { key: 'k1' },
          { key: 'k2' },
          { key: 'whole:2' },
        ]);
        await client.close();
      },
    });
    expect(report.calls).toBeGreaterThanOrEqual(5);
  });

  it('O4 a conflict is in quarantine once, and nothing is queued, wherever it dies', async () => {
    const bad: EnqueueRequest = { ...request, key: 'other', actions: paint(['k0', 'k1', 'k9'], 'green').actions };
    const report = await crashPoints((process: CrashProcess) => answered(open(process).enqueue(bad)), {
      prepare: (process) => open(process).enqueue(request),
      check: async (process) => {
        const client = open(process);
        expect(await answered(client.enqueue(bad))).toMatchObject({ error: { conflictCount: 1 } });
        expect(await client.listQuarantined()).toMatchObject([{ key: 'k1', kind: 'operation' }]);
        expect(await listed(client)).toHaveLength(1);
        expect(await client.enqueue(paint(['k0', 'k9'], 'red', 'other'))).toMatchObject({ duplicate: false });
        await client.close();
      },
    });
    expect(report.calls).toBeGreaterThanOrEqual(5);
  });

  it('O4 a second version of a whole bulk operation is in quarantine with all of it, wherever it dies', async () => {
    const bad: EnqueueRequest = { ...request, actions: paint(numbered(0, 150), 'green').actions };
    await crashPoints((process: CrashProcess) => answered(open(process).enqueue(bad)), {
      prepare: (process) => open(process).enqueue(request),
      check: async (process) => {
        const client = open(process);
        expect(await answered(client.enqueue(bad))).toMatchObject({
          error: { conflicts: [{ index: -1, key: 'whole' }] },
        });
        const [entry, ...more] = await client.listQuarantined();
        expect(more).toEqual([]);
        expect(entry).toMatchObject({ kind: 'bulk-operation', second: { total: 150 } });
        const receipt = await client.resolveQuarantined(entry?.quarantineId ?? '', 'take-second');
        expect(await client.listNotDone(receipt?.bulkOperationId ?? '')).toHaveLength(150);
        await client.close();
      },
    });
  });

  it('O4 `take-second` counts once, wherever it dies', async () => {
    const bad = paint(['k1'], 'green');
    const take = async (process: CrashProcess): Promise<unknown> => {
      const client = open(process);
      const [entry] = [...(await client.listQuarantined()), ...(await client.listQuarantined({ resolved: true }))];
      return client.resolveQuarantined(entry?.quarantineId ?? '', 'take-second').catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'already_resolved' });
      });
    };
    await crashPoints(take, {
      prepare: async (process) => {
        const client = open(process);
        await client.enqueue(request);
        await answered(client.enqueue(bad));
      },
      check: async (process) => {
        await take(process);
        const client = open(process);
        const [, second, ...more] = await listed(client);
        expect(more).toEqual([]);
        expect(await client.listQuarantined()).toEqual([]);
        expect(await client.listQuarantined({ resolved: true })).toMatchObject([
          { resolution: { bulkOperationId: second } },
        ]);
      },
    });
  });
});
