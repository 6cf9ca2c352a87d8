import { firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Client, ClientOptions, EnqueueReceipt, EnqueueRequest } from './model/client.js';
import type { DocumentEvent, PublishAnswer, Publisher } from './model/event.js';
import type { PouchConstructor } from './model/pouch.js';
import { endStates } from './model/states.js';
import { paint, TestBed } from './test-bed.fixture.js';

const create = (id: string, doc: Record<string, unknown>, key = 'k1'): EnqueueRequest => ({
  target: 'local',
  actions: [{ action: 'create', operations: [{ id, key, doc }] }],
});

describe('a document that is there already, with other content', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(() => bed.close());

  /** One that is there, and one that an operation wants. */
  const conflict = async (): Promise<{ client: Client; quarantineId: string; found: object }> => {
    const client = bed.open();
    await client.documents.bulkDocs([{ _id: 'a', type: 'person', name: 'first' }]);
    const found = await client.documents.get('a');
    const { bulkOperationId } = await client.enqueue(create('a', { type: 'person', name: 'second' }));
    expect(await bed.settled(client, bulkOperationId)).toMatchObject({ state: 'done-with-failures', failed: 1 });
    const [entry] = await client.listQuarantined();
    expect(entry).toMatchObject({ kind: 'create', key: 'k1', bulkOperationId, first: found });
    expect(entry?.second).toMatchObject({ action: 'create', id: 'a', key: 'k1', content: { doc: { name: 'second' } } });
    return { client, quarantineId: entry?.quarantineId ?? '', found };
  };

  /** Takes leave, the clock going on while other tabs are waited for. */
  const left = async (client: Client): Promise<void> => {
    let isOver = false;
    const leaving = client.logout().finally(() => (isOver = true));
    leaving.catch(() => undefined);
    await bed.until(() => isOver, 100);
    await leaving;
  };

  it('O5 goes to quarantine with both versions, and is a failed operation', async () => {
    const { client } = await conflict();
    expect(await client.listFailures()).toMatchObject([{ id: 'a', key: 'k1', code: 'conflicting_content' }]);
    expect(await firstValueFrom(client.quarantine$)).toHaveLength(1);
    expect(await client.documents.get('a')).toMatchObject({ name: 'first' });
  });

  it.each(['keep-first', 'discard'] as const)(
    'O5 `%s` leaves the document, and gives the failure up',
    async (decision) => {
      const { client, quarantineId, found } = await conflict();
      expect(await client.resolveQuarantined(quarantineId, decision)).toBeUndefined();
      expect(await client.documents.get('a')).toEqual(found);
      expect(await client.listFailures()).toEqual([]);
      expect(await client.listFailures({ resolved: true })).toMatchObject([{ resolution: { how: 'discarded' } }]);
      expect(await client.listQuarantined()).toEqual([]);
    },
  );

  it('O5 `take-second` writes over the version that the person has seen, under a derived key, and ends the failure', async () => {
    const { client, quarantineId } = await conflict();
    const receipt = await client.resolveQuarantined(quarantineId, 'take-second');
    const id = receipt?.bulkOperationId ?? '';
    expect(await bed.settled(client, id)).toMatchObject({ state: 'done', applied: 1 });
    expect(await client.documents.get('a')).toMatchObject({ name: 'second' });
    expect(await client.listFailures()).toEqual([]);
    expect(await client.listFailures({ resolved: true })).toMatchObject([
      { resolution: { how: 'retried', bulkOperationId: id } },
    ]);
    const events = await client.listEvents();
    expect(events.map(({ kind, key }) => [kind, key])).toEqual([['new', expect.stringMatching(/^k1~[0-9a-f]{8}$/)]]);
  });

  it('O5 `take-second` never writes over a version that no one has seen: that is a new conflict', async () => {
    const { client, quarantineId } = await conflict();
    await bed.settled(client, (await client.enqueue(update('a', { name: 'third' }))).bulkOperationId);
    const receipt = await client.resolveQuarantined(quarantineId, 'take-second');
    expect(await bed.settled(client, receipt?.bulkOperationId ?? '')).toMatchObject({ failed: 1 });
    expect(await client.documents.get('a')).toMatchObject({ name: 'third' });
    expect(await client.listQuarantined()).toMatchObject([{ kind: 'create', first: { name: 'third' } }]);
  });

  it('O5 counts also when the failure was discarded before', async () => {
    const { client, quarantineId } = await conflict();
    await client.discard({ code: 'conflicting_content' });
    const receipt = await client.resolveQuarantined(quarantineId, 'take-second');
    expect(await bed.settled(client, receipt?.bulkOperationId ?? '')).toMatchObject({ state: 'done', applied: 1 });
    expect(await client.documents.get('a')).toMatchObject({ name: 'second' });
  });

  it('O5 R19 a discarded failure closes its conflict: nothing waits for a decision, and both versions are kept', async () => {
    const { client, quarantineId, found } = await conflict();
    expect(await client.discard({ code: 'conflicting_content' })).toBe(1);
    expect(await client.listQuarantined()).toEqual([]);
    expect(await firstValueFrom(client.status$)).toMatchObject({ failed: 0, quarantined: 0 });
    expect(await client.listQuarantined({ resolved: true })).toMatchObject([
      {
        quarantineId,
        first: found,
        second: { content: { doc: { name: 'second' } } },
        resolution: { decision: 'failure-discarded', at: bed.clock.wall(), bulkOperationId: undefined },
      },
    ]);
    const late = client.resolveQuarantined(quarantineId, 'keep-first');
    await expect(late).rejects.toMatchObject({ code: 'already_resolved' });
    expect(await client.drained()).toMatchObject({ asOf: 1 });
    await left(client);
  });

  it.each(['retried', 'edited and retried'])('O5 R19 a failure that is %s closes its conflict', async (how) => {
    const { client } = await conflict();
    await client.documents.put({ ...(await client.documents.get('a')), _deleted: true });
    const [failure] = await client.listFailures();
    const edited = { id: 'a', doc: { type: 'person', name: 'third' } };
    const { bulkOperations } =
      how === 'retried' ? await client.retryFailed() : await client.editAndRetry(failure?.failureId ?? '', edited);
    const [{ bulkOperationId } = { bulkOperationId: '' }] = bulkOperations;
    expect(await client.listQuarantined()).toEqual([]);
    expect(await client.listQuarantined({ resolved: true })).toMatchObject([
      { first: { name: 'first' }, resolution: { decision: 'failure-retried', bulkOperationId } },
    ]);
    expect(await bed.settled(client, bulkOperationId)).toMatchObject({ state: 'done' });
    expect(await client.drained()).toMatchObject({ asOf: 2 });
    await left(client);
  });

  it('O5 R19 a retry that meets the same document is a new conflict; the old one stays closed', async () => {
    const { client, quarantineId } = await conflict();
    const { bulkOperations } = await client.retryFailed();
    await bed.settled(client, bulkOperations[0]?.bulkOperationId ?? '');
    const open = await client.listQuarantined();
    expect(open).toMatchObject([{ bulkOperationId: bulkOperations[0]?.bulkOperationId }]);
    expect(open[0]?.quarantineId).not.toBe(quarantineId);
    expect(await client.listFailures()).toHaveLength(1);
  });

  it('O5 R19 only the conflict of the discarded failure is closed', async () => {
    const { client } = await conflict();
    await client.documents.bulkDocs([{ _id: 'b', type: 'person', name: 'first' }]);
    await bed.settled(
      client,
      (await client.enqueue(create('b', { type: 'person', name: 'second' }, 'k2'))).bulkOperationId,
    );
    expect(await client.discard({ id: 'a' })).toBe(1);
    expect(await client.listQuarantined()).toMatchObject([{ key: 'k2' }]);
    await expect(client.drained()).rejects.toMatchObject({ counts: { failed: 1, quarantined: 1 } });
  });

  it('O5 R19 a tab that has not heard of the conflict closes it with its failure too', async () => {
    bed.channels = null;
    const other = bed.open({ autoStart: false });
    expect(await other.listQuarantined()).toEqual([]);
    const { client } = await conflict();
    expect(await other.discard({ id: 'a' })).toBe(1);
    expect(await client.listQuarantined()).toEqual([]);
  });

  it('O5 R19 the other tabs show at once that a conflict is closed with its failure', async () => {
    const { client } = await conflict();
    const other = bed.open({ autoStart: false });
    expect(await other.discard({ id: 'a' })).toBe(1);
    await bed.until(async () => (await firstValueFrom(client.status$)).quarantined === 0);
    expect(await firstValueFrom(client.quarantine$)).toEqual([]);
  });

  it('O5 R19 `take-second` ends the failure at once, also while what it has queued does not run yet', async () => {
    const { client, quarantineId } = await conflict();
    await client.close();
    const resting = bed.open({ autoStart: false });
    const receipt = await resting.resolveQuarantined(quarantineId, 'take-second');
    expect(await resting.listFailures()).toEqual([]);
    expect(await firstValueFrom(resting.status$)).toMatchObject({ failed: 0, quarantined: 0, pending: 1 });
    expect(await resting.listFailures({ resolved: true })).toMatchObject([
      { resolution: { how: 'retried', bulkOperationId: receipt?.bulkOperationId, index: 0 } },
    ]);
  });

  it.each(['discard', 'keep-first', 'retry'] as const)(
    'O5 R19 a store that stops at any write of `%s` leaves failure and conflict either both open or both closed',
    async (how) => {
      const { client, quarantineId } = await conflict();
      await client.close();
      for (let write = 1; ; write++) {
        const { PouchDB, hasEnded } = stopping(bed, write);
        const dying = bed.open({ PouchDB, autoStart: false });
        const calls = {
          discard: () => dying.discard({ id: 'a' }),
          'keep-first': () => dying.resolveQuarantined(quarantineId, 'keep-first'),
          retry: () => dying.retryFailed(),
        };
        let isOver = false;
        const call = calls[how]().then(
          () => (isOver = true),
          () => (isOver = true),
        );
        await bed.until(() => isOver || hasEnded());
        if (hasEnded()) bed.forget(dying);
        else await call.then(() => dying.close());
        const next = bed.open({ autoStart: false });
        const [failures, entries] = [await next.listFailures(), await next.listQuarantined()];
        expect(entries.length).toBe(failures.length);
        expect(await firstValueFrom(next.status$)).toMatchObject({ failed: failures.length });
        await next.close();
        if (!hasEnded()) break;
        expect(write).toBeLessThan(20);
      }
      const last = bed.open({ autoStart: false });
      expect(await last.listFailures()).toEqual([]);
    },
  );

  it.each(['failure', 'conflict'] as const)(
    'O5 R19 what an older build has left half decided (only the %s) is made good at the next start',
    async (decided) => {
      const { client, quarantineId } = await conflict();
      const [failure] = await client.listFailures();
      await client.close();
      const queue = new bed.PouchDB('clinic-afield-queue');
      const id = decided === 'failure' ? (failure?.failureId ?? '') : quarantineId;
      const at = bed.clock.wall();
      const resolution = decided === 'failure' ? { how: 'discarded', at } : { decision: 'keep-first', at };
      await queue.put({ ...(await queue.get(id)), resolution });
      if (decided === 'failure') {
        const report = 'hr:000000000001';
        await queue.put({ _id: report, v: 1, refused: 0, resolved: 1, delivered: null, chunks: 0 });
      }
      const next = bed.open();
      await bed.until(async () => (await next.listFailures()).length + (await next.listQuarantined()).length === 0);
      expect(await firstValueFrom(next.status$)).toMatchObject({ failed: 0, quarantined: 0 });
    },
  );

  it.each([
    ['one tab', 'take-second'],
    ['one tab', 'retry'],
    ['two tabs', 'take-second'],
    ['two tabs', 'retry'],
  ] as const)(
    'O5 R19 counts also when the failure is retried at the same moment (%s, %s first)',
    async (tabs, first) => {
      const { client, quarantineId } = await conflict();
      const other = tabs === 'one tab' ? client : bed.open({ autoStart: false });
      await bed.list(other);
      const take = (): Promise<EnqueueReceipt | undefined> => client.resolveQuarantined(quarantineId, 'take-second');
      let taking: ReturnType<typeof take> | undefined;
      if (first === 'take-second') taking = take();
      const retrying = other.retryFailed();
      taking ??= take();
      const { bulkOperationId: id = '' } = (await taking) ?? {};
      await retrying;
      await bed.until(async () => (await bed.list(client)).every(({ state }) => endStates.has(state)));
      expect(await bed.now(client, id)).toMatchObject({ state: 'done' });
      expect(await client.documents.get('a')).toMatchObject({ name: 'second' });
    },
  );

  const update = (id: string, patch: Record<string, unknown>): EnqueueRequest => ({
    target: 'local',
    actions: [{ action: 'update', operations: [{ id, patch }] }],
  });
});

/** A store whose process ends right after it has written that often. */
function stopping(bed: TestBed, after: number): { PouchDB: PouchConstructor; hasEnded: () => boolean } {
  let left = after;
  class Stopping extends (bed.PouchDB as unknown as new (name: string) => Record<string, unknown>) {
    constructor(name: string) {
      super(name);
      const bulkDocs = (this['bulkDocs'] as (docs: unknown) => Promise<unknown>).bind(this);
      this['bulkDocs'] = async (docs: unknown) => {
        if (left === 0) return new Promise(() => undefined);
        left--;
        const answer = await bulkDocs(docs);
        return left > 0 ? answer : new Promise(() => undefined);
      };
    }
  }
  return { PouchDB: Stopping as never, hasEnded: () => left === 0 };
}

/** A place that has other content under an id already. */
class Place implements Publisher {
  readonly name = 'place';
  readonly needs = 'nothing';
  readonly stored = new Map<string, unknown>();
  isDown = false;
  publish(events: readonly DocumentEvent[]): Promise<PublishAnswer> {
    if (this.isDown) return Promise.resolve({ accepted: [], error: { class: 'network', code: 'down' } });
    const conflicts = events.filter(({ id }) => this.stored.has(id));
    const accepted = events.filter(({ id }) => !this.stored.has(id));
    for (const event of accepted) this.stored.set(event.id, event);
    return Promise.resolve({
      accepted: accepted.map(({ id }) => id),
      conflicts: conflicts.map(({ id }) => ({ id, stored: this.stored.get(id) })),
    });
  }
}

describe('an event whose id is there already, with other content', () => {
  let bed: TestBed;
  let place: Place;
  beforeEach(() => {
    bed = new TestBed();
    place = new Place();
  });
  afterEach(() => bed.close());

  const conflict = async (more: Partial<ClientOptions> = {}): Promise<{ client: Client; quarantineId: string }> => {
    const client = bed.open({ publishers: [place], ...more });
    await bed.seed(client, 2);
    place.stored.set(`${await client.storeId}:b:1:0`, { other: 'content' });
    await client.enqueue(paint(['d0000', 'd0001'], 'blue', { key: '1' }));
    await bed.until(() => place.stored.size === 2);
    await bed.until(async () => (await client.listQuarantined()).length === 1);
    const [entry] = await client.listQuarantined();
    return { client, quarantineId: entry?.quarantineId ?? '' };
  };

  it('O6 goes to quarantine with both versions; it is never counted as published, and holds nothing up', async () => {
    const { client } = await conflict();
    const [entry] = await client.listQuarantined();
    expect(entry).toMatchObject({
      kind: 'event',
      key: '1:0',
      first: { other: 'content' },
      second: { publisher: 'place', event: { documentId: 'd0000' } },
    });
    await client.enqueue(paint(['d0000'], 'green', { key: '2' }));
    await bed.until(() => place.stored.size === 3);
    expect(place.stored.get(`${await client.storeId}:b:1:0`)).toEqual({ other: 'content' });
  });

  it.each([
    ['a BigInt', 5n],
    ['something that contains itself', Object.assign([], { 0: globalThis })],
  ])('O6 a place that shows %s holds up no event', async (_what, shown) => {
    const client = bed.open({ publishers: [{ name: 'odd', publish: (events) => odd(events), needs: 'nothing' }] });
    const odd = ([event]: readonly DocumentEvent[]): Promise<PublishAnswer> =>
      Promise.resolve({ accepted: [], conflicts: [{ id: event?.id ?? '', stored: shown }] });
    await bed.seed(client, 1);
    await client.enqueue(paint(['d0000'], 'blue'));
    await bed.until(async () => (await client.listQuarantined()).length === 1);
    expect(await client.listQuarantined()).toMatchObject([{ kind: 'event', first: null }]);
    expect(await firstValueFrom(client.status$)).toMatchObject({ unpublished: 0 });
  });

  it('O6 `take-second` publishes ours under an id derived from the old one, once the place takes it', async () => {
    const { client, quarantineId } = await conflict();
    place.isDown = true;
    await expect(client.resolveQuarantined(quarantineId, 'take-second')).rejects.toMatchObject({ code: 'down' });
    expect(await client.listQuarantined()).toHaveLength(1);
    place.isDown = false;
    await client.resolveQuarantined(quarantineId, 'take-second');
    const taken = [...place.stored].find(([id]) => id.includes(':b:1:0~'));
    expect(taken?.[1]).toMatchObject({ documentId: 'd0000', key: '1:0' });
    expect(await client.listQuarantined()).toEqual([]);
  });

  it('O6 `keep-first` and `discard` publish nothing', async () => {
    const { client, quarantineId } = await conflict();
    await client.resolveQuarantined(quarantineId, 'keep-first');
    expect(place.stored.size).toBe(2);
    expect(await client.listQuarantined({ resolved: true })).toMatchObject([
      { resolution: { decision: 'keep-first' } },
    ]);
  });
});
