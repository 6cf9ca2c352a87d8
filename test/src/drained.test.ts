import { ClientClosedError, createClient, NotDrainedError, type Client, type Publisher } from '@afield/client';
import { Refusal } from '@afield/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { day, minute, ResultsBed } from './results-bed.js';

describe('the device document, and what it proves', () => {
  let bed: ResultsBed;
  beforeEach(() => {
    bed = new ResultsBed();
  });
  afterEach(() => bed.dispose());

  const deviceWrites = (): number =>
    bed.seen.filter(({ path, ids }) => path.endsWith('_bulk_docs') && ids.some((id) => id.startsWith('device:')))
      .length;

  it('S11 drained() resolves when all is done and confirmed, and a document on the server says so', async () => {
    const client = bed.open({ appVersion: '7.1' });
    await bed.create(client, 'a', 'b');
    await bed.create(client, 'c');
    const drained = await bed.device.until(client.drained());
    expect(drained).toEqual({ asOf: 2, document: `device:${await client.storeId}` });
    expect(bed.records.ids()).toEqual(['a', 'b', 'c']);
    const nothing = {
      pending: 0,
      failed: 0,
      stopped: 0,
      quarantined: 0,
      unpublished: 0,
      unreported: 0,
      unconfirmed: 0,
    };
    expect(await bed.deviceDoc(client)).toMatchObject({
      ...nothing,
      drained: true,
      asOf: 2,
      lastSequence: 2,
      appVersion: '7.1',
      oldestUnsentAt: null,
      seenAt: bed.device.clock.wall(),
    });
  });

  it('S11 drained() waits across an outage; the document says how far all is done until then', async () => {
    const client = bed.open();
    await bed.create(client, 'a');
    await bed.device.until(client.drained());
    bed.around = (path) =>
      path.startsWith('/records/') ? Response.json({ error: 'x', reason: 'x' }, { status: 503 }) : undefined;
    const queuedAt = bed.device.clock.wall();
    await bed.create(client, 'b');
    let isOver = false;
    const drained = client.drained().finally(() => (isOver = true));
    await bed.device.clock.advance(60 * minute);
    expect(isOver).toBe(false);
    expect(await bed.deviceDoc(client)).toMatchObject({
      asOf: 1,
      lastSequence: 2,
      drained: false,
      oldestUnsentAt: queuedAt,
    });
    expect((await bed.deviceDoc(client))?.unconfirmed).toBeGreaterThan(0);
    bed.around = undefined;
    expect(await bed.device.until(drained)).toMatchObject({ asOf: 2 });
    expect(bed.records.ids()).toEqual(['a', 'b']);
  });

  it('S11 a proof of before is none: drained() waits until the server has taken a new one', async () => {
    const client = bed.open();
    await bed.create(client, 'a');
    await bed.device.until(client.drained());
    bed.around = (path) =>
      path.startsWith('/results/') ? Response.json({ error: 'x', reason: 'x' }, { status: 503 }) : undefined;
    let isOver = false;
    const drained = client.drained().finally(() => (isOver = true));
    await bed.device.clock.advance(10 * minute);
    expect(isOver).toBe(false);
    bed.around = undefined;
    expect(await bed.device.until(drained)).toMatchObject({ asOf: 1 });
  });

  it('S11 an edit of the app itself is not confirmed before the server has it', async () => {
    const client = bed.open();
    await bed.device.until(client.drained());
    bed.around = (path) =>
      path.startsWith('/records/') ? Response.json({ error: 'x', reason: 'x' }, { status: 503 }) : undefined;
    await client.documents.put({ _id: 'own' });
    let isOver = false;
    const drained = client.drained().finally(() => (isOver = true));
    await bed.device.clock.advance(10 * minute);
    expect(isOver).toBe(false);
    expect(await bed.becomes(client, ({ unconfirmed }) => unconfirmed > 0)).toMatchObject({ pending: 0 });
    bed.around = undefined;
    await bed.device.until(drained);
    expect(bed.records.ids()).toEqual(['own']);
    expect((await bed.becomes(client, () => true)).unconfirmed).toBe(0);
  });

  const counts = async (drained: Promise<unknown>): Promise<unknown> => {
    const error: unknown = await bed.device.until(drained.catch((thrown: unknown) => thrown));
    expect(error).toBeInstanceOf(NotDrainedError);
    return (error as NotDrainedError).counts;
  };

  it('S11 drained() rejects with the counts when something has failed, and resolves when a person has decided', async () => {
    const client = bed.open();
    const waiting = client.drained();
    await bed.fail(client, [
      { id: 'x', patch: {} },
      { id: 'y', patch: {} },
    ]);
    expect(await counts(waiting)).toMatchObject({ failed: 2, stopped: 0, quarantined: 0 });
    expect(await counts(client.drained())).toMatchObject({ failed: 2 });
    await bed.device.until(client.discard({}));
    expect(await bed.device.until(client.drained())).toMatchObject({ asOf: 1 });
  });

  it('S11 drained() rejects when the server has refused a document that the app wrote itself', async () => {
    bed.records.validate = () => new Refusal(403, 'forbidden', 'never');
    const client = bed.open();
    await client.documents.put({ _id: 'own' });
    expect(await counts(client.drained())).toMatchObject({ failed: 1, pending: 0 });
  });

  it('S11 drained() rejects for what is in quarantine', async () => {
    const client = bed.open();
    const request = (to: number) =>
      ({ target: 'local', actions: [{ action: 'create', operations: [{ id: 'a', key: 'k', doc: { to } }] }] }) as const;
    await bed.device.until(client.enqueue(request(1)));
    await bed.device.until(client.enqueue(request(2)).catch(() => undefined));
    expect(await counts(client.drained())).toMatchObject({ quarantined: 1, failed: 0 });
  });

  it('S11 drained() waits for publishers', async () => {
    let isTaking = false;
    const publish: Publisher['publish'] = (events) =>
      Promise.resolve({ accepted: isTaking ? events.map(({ id }) => id) : [] });
    const client = bed.open({ publishers: [{ name: 'bus', publish }] });
    await bed.create(client, 'a');
    let isOver = false;
    const drained = client.drained().finally(() => (isOver = true));
    await bed.device.clock.advance(20 * minute);
    expect(isOver).toBe(false);
    expect(await bed.deviceDoc(client)).toMatchObject({ unpublished: 1, asOf: 0, drained: false });
    isTaking = true;
    expect(await bed.device.until(drained)).toMatchObject({ asOf: 1 });
  });

  it('S11 drained() rejects when the client is closed, and with the reason of its signal', async () => {
    bed.isDown = true;
    const client = bed.open();
    await bed.create(client, 'a');
    const abort = new AbortController();
    const [aborted, closed] = [client.drained({ signal: abort.signal }), client.drained()];
    const refusals = Promise.allSettled([aborted, closed]);
    await bed.device.clock.advance(minute);
    abort.abort(new Error('no more'));
    await bed.device.until(client.close());
    expect(await refusals).toMatchObject([
      { status: 'rejected', reason: { message: 'no more' } },
      { status: 'rejected', reason: expect.any(ClientClosedError) as unknown },
    ]);
  });

  it('S11 a tab that does not lead waits for the document that the other one sends', async () => {
    bed.open();
    await bed.device.clock.advance(minute);
    const other = bed.open();
    await bed.device.clock.advance(minute);
    expect((await bed.becomes(other, () => true)).leader).toBe(false);
    bed.around = (path) =>
      path.startsWith('/records/') ? Response.json({ error: 'x', reason: 'x' }, { status: 503 }) : undefined;
    await other.documents.put({ _id: 'own' });
    let isOver = false;
    const drained = other.drained().finally(() => (isOver = true));
    await bed.device.clock.advance(2 * minute);
    expect(isOver).toBe(false);
    bed.around = undefined;
    await bed.device.until(drained);
    expect(bed.records.ids()).toEqual(['own']);
    await bed.create(other, 'a');
    expect(await bed.device.until(other.drained())).toMatchObject({ asOf: 1 });
    expect(bed.records.ids()).toEqual(['a', 'own']);
    await bed.fail(other, [{ id: 'x', patch: {} }]);
    expect(await counts(other.drained())).toMatchObject({ failed: 1 });
  });

  it('S11 without a results database drained() resolves, and names no document', async () => {
    const { PouchDB, environment } = bed.device.process();
    const client: Client = createClient({ name: 'alone', PouchDB, environment, actions: [], jitter: 0 });
    bed.clients.push(client);
    await bed.create(client, 'a');
    expect(await bed.device.until(client.drained())).toEqual({ asOf: 1, document: undefined });
  });

  it('S1 the device document comes at least once a day, and otherwise only when something has changed', async () => {
    const client = bed.open();
    await bed.create(client, 'a');
    await bed.device.until(client.drained());
    await bed.device.clock.advance(minute);
    const before = deviceWrites();
    const requests = bed.seen.length;
    bed.device.clock.freezeTimers(day - 20 * minute);
    await bed.device.clock.advance(2 * minute);
    expect(bed.seen.length).toBe(requests);
    bed.device.clock.freezeTimers(20 * minute);
    await bed.device.clock.advance(2 * minute);
    expect(deviceWrites()).toBe(before + 1);
    expect((await bed.deviceDoc(client))?.seenAt).toBeGreaterThan(bed.device.clock.wall() - 30 * minute);
  });

  it('S1 a device that was opened after a day says at once that it is there', async () => {
    const client = bed.open();
    await bed.device.until(client.drained());
    await bed.device.until(client.close());
    bed.device.clock.freezeTimers(2 * day);
    const again = bed.open();
    await bed.device.clock.advance(minute);
    expect((await bed.deviceDoc(again))?.seenAt).toBeGreaterThan(bed.device.clock.wall() - 2 * minute);
  });

  it.each<[string, boolean]>([
    ['recreated', false],
    ['restored from a backup', true],
  ])(
    'S11 a results database that was %s gets all results anew, and nothing counts as delivered that is not there',
    async (_what, isBackup) => {
      const client = bed.open();
      await bed.create(client, 'a');
      await bed.device.until(client.drained());
      const backup = isBackup ? bed.backup() : [];
      await bed.fail(client, [{ id: 'x', patch: {} }]);
      await bed.becomes(
        client,
        ({ pending, unreported, results }) => pending + unreported === 0 && results.state === 'idle',
      );
      await bed.device.until(client.discard({}));
      await bed.device.until(client.drained());
      const stored = bed.all('result:').concat(bed.all('failures:'));
      bed.restore(backup);
      expect(await bed.device.until(client.drained())).toMatchObject({ asOf: 2 });
      const bare = (docs: readonly object[]): object[] => docs.map((doc) => ({ ...doc, _rev: '', changes: 0 }));
      expect(bare(bed.all('result:').concat(bed.all('failures:')))).toEqual(bare(stored));
      expect(await bed.deviceDoc(client)).toMatchObject({ drained: true, asOf: 2 });
    },
  );
});
