import { firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import type { ClientOptions } from '../model/client.js';
import type { DocumentEvent, Publisher } from '../model/event.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import { bring, Device, meet } from './devices.fixture.js';

/*
 * An operation loses, is run again on the winner of that moment, and fails there. Meanwhile a third device has built upon
 * the version that lost: that branch is longer, and wins after all.
 */
describe('an operation whose branch wins after all', () => {
  let devices: Device[] = [];
  afterEach(async () => {
    await Promise.all(devices.map((device) => device.close()));
    devices = [];
  });
  interface Scene {
    /** Its operation fails when it is healed. */
    readonly loser: Device;
    readonly winner: Device;
    /** Has built upon what has lost. */
    readonly third: Device;
    readonly bulkOperationId: string;
    readonly phone: string;
  }

  const three = async (
    options: Partial<ClientOptions> | (() => Partial<ClientOptions>) = {},
  ): Promise<readonly [Device, Device, Device]> => {
    const device = (): Device => new Device(typeof options === 'function' ? options() : options);
    const all = [device(), device(), device()] as const;
    devices = [...all];
    await all[0].documents.bulkDocs([{ _id: 'p1', name: 'Person 1', phone: '1' }]);
    await meet(...all);
    return all;
  };

  /** Two have changed one field, each guarded; the one that loses has failed, and does not know yet of the third. */
  const failed = async (options: Parameters<typeof three>[0] = {}): Promise<Scene> => {
    const [a, b, third] = await three(options);
    const ids = [await a.set('p1', { phone: '2' }, { phone: '1' }), await b.set('p1', { phone: '3' }, { phone: '1' })];
    const isFirst = ((await a.leaves('p1'))[0]?.rev ?? '') < ((await b.leaves('p1'))[0]?.rev ?? '');
    const [loser, winner] = isFirst ? [a, b] : [b, a];
    await bring(loser.documents, third.documents);
    await third.set('p1', { name: 'Person 1c' });
    await bring(winner.documents, loser.documents);
    await loser.heal();
    expect(await firstValueFrom(loser.client.failures$)).toMatchObject([{ id: 'p1', code: 'guard_mismatch' }]);
    expect(await loser.live('p1')).toMatchObject([{ phone: isFirst ? '3' : '2' }]);
    return { loser, winner, third, bulkOperationId: ids[isFirst ? 0 : 1] ?? '', phone: isFirst ? '2' : '3' };
  };
  const statusOf = async ({ client }: Device, id: string): Promise<unknown> =>
    (await firstValueFrom(client.bulkOperations$)).find((one) => one.id === id);

  it('S2 is applied again: no failure is left, its counts and its event are as before', async () => {
    const { loser, third, bulkOperationId, phone } = await failed();
    expect(await statusOf(loser, bulkOperationId)).toMatchObject({ applied: 0, failed: 1 });
    expect(await loser.client.listEvents()).toEqual([]);
    await bring(third.documents, loser.documents);
    await loser.heal();
    expect((await loser.live('p1'))[0]).toMatchObject({ phone, name: 'Person 1c' });
    expect(await firstValueFrom(loser.client.failures$)).toEqual([]);
    expect(await loser.client.listFailures({ resolved: true })).toEqual([]);
    expect(await statusOf(loser, bulkOperationId)).toMatchObject({ state: 'done', applied: 1, failed: 0 });
    expect(await loser.client.listEvents()).toMatchObject([{ bulkOperationId, documentId: 'p1', changed: true }]);
  });

  it('S2 on all devices that is so in the end, and only the other operation has failed', async () => {
    const { loser, winner, third, bulkOperationId, phone } = await failed();
    for (let round = 0; round < 3; round++) {
      await meet(loser, winner, third);
      for (const device of devices) await device.heal();
    }
    for (const device of devices) expect(await device.live('p1')).toMatchObject([{ phone, name: 'Person 1c' }]);
    expect(await statusOf(loser, bulkOperationId)).toMatchObject({ state: 'done', applied: 1, failed: 0 });
    expect(await firstValueFrom(winner.client.failures$)).toMatchObject([{ code: 'guard_mismatch' }]);
  });

  it('S2 R19 what a person has decided about the failure stays', async () => {
    const { loser, third, bulkOperationId } = await failed();
    await loser.client.discard({ bulkOperationId });
    await bring(third.documents, loser.documents);
    await loser.heal();
    expect(await loser.client.listFailures({ resolved: true })).toMatchObject([{ resolution: { how: 'discarded' } }]);
    expect(await statusOf(loser, bulkOperationId)).toMatchObject({ applied: 0, resolved: 1 });
    expect(await loser.client.listEvents()).toEqual([]);
  });

  describe('while a person retries it', () => {
    /** Called before the retry is durable. */
    let before: (() => Promise<unknown>) | undefined;
    const retriesLate = (): Partial<ClientOptions> => {
      const PouchDB = memoryPouch();
      class Late extends (PouchDB as unknown as new (name: string) => Record<string, unknown>) {
        constructor(name: string) {
          super(name);
          const bulkDocs = (this['bulkDocs'] as (...given: unknown[]) => Promise<unknown>).bind(this);
          this['bulkDocs'] = async (docs: { retries?: boolean }[], ...more: unknown[]) => {
            const now = docs.some(({ retries }) => retries === true) ? before : undefined;
            if (now !== undefined) before = undefined;
            await now?.();
            return bulkDocs(docs, ...more);
          };
        }
      }
      return { PouchDB: Late as never };
    };

    /** Its branch wins before the retry is durable. */
    const overtaken = async (): Promise<Scene> => {
      const scene = await failed(retriesLate);
      const { loser, third } = scene;
      before = async () => {
        await bring(third.documents, loser.documents);
        await loser.bed.until(async () => (await loser.client.listFailures()).length === 0, 1000);
      };
      return scene;
    };

    it('S2 R19 it is not done a second time, and the receipt says so', async () => {
      const { loser, bulkOperationId } = await overtaken();
      expect(await loser.client.retryFailed({ bulkOperationId })).toMatchObject({ bulkOperations: [], queued: 0 });
      await loser.heal();
      expect(await statusOf(loser, bulkOperationId)).toMatchObject({ state: 'done', applied: 1, failed: 0 });
      const [, late] = await firstValueFrom(loser.client.bulkOperations$);
      expect(late).toMatchObject({ state: 'cancelled', attempts: 0 });
      expect(await loser.client.listFailures({ resolved: true })).toEqual([]);
    });

    it('S2 R19 in a tab that has not heard of it neither', async () => {
      const { loser, bulkOperationId } = await overtaken();
      loser.bed.channels = null;
      const tab = loser.openTab({ autoStart: false });
      expect(await tab.listFailures()).toHaveLength(1);
      expect(await tab.retryFailed({ bulkOperationId })).toMatchObject({ bulkOperations: [], queued: 0 });
      await loser.heal();
      expect(await statusOf(loser, bulkOperationId)).toMatchObject({ state: 'done', applied: 1, failed: 0 });
      expect(await tab.listFailures({ resolved: true })).toEqual([]);
    });

    it('S2 R19 what the person has edited is other work, and is done', async () => {
      const { loser } = await overtaken();
      const [failure] = await loser.client.listFailures();
      const edited = { id: 'p1', to: { phone: '9' } };
      expect(await loser.client.editAndRetry(failure?.failureId ?? '', edited)).toMatchObject({ queued: 1 });
      await loser.heal();
      expect((await loser.live('p1'))[0]).toMatchObject({ phone: '9', name: 'Person 1c' });
    });
  });

  it('S2 S7 in a file that is made meanwhile it has failed or not, and is counted so', async () => {
    let before: (() => Promise<unknown>) | undefined;
    const { loser, third } = await failed(() => {
      class Read extends (memoryPouch() as unknown as new (name: string) => Record<string, unknown>) {
        constructor(name: string) {
          super(name);
          const allDocs = (this['allDocs'] as (options: { startkey?: string }) => Promise<unknown>).bind(this);
          this['allDocs'] = async (options: { startkey?: string }) => {
            // Its failures are read last of it.
            const now = options.startkey?.startsWith('f:0') === true ? before : undefined;
            if (now !== undefined) before = undefined;
            await now?.();
            return allDocs(options);
          };
        }
      }
      return { PouchDB: Read as never };
    });
    before = async () => {
      await bring(third.documents, loser.documents);
      await loser.bed.until(async () => (await loser.client.listFailures()).length === 0, 1000);
    };
    const file = await loser.client.exportPending();
    expect(before).toBeUndefined();
    const other = new Device({ autoStart: false });
    devices.push(other);
    await other.client.importPending(file);
    const open = await other.client.listFailures();
    expect(await firstValueFrom(other.client.status$)).toMatchObject({ failed: open.length });
  });

  it('S2 is healed once more when yet another branch wins', async () => {
    const { loser, winner, third, bulkOperationId, phone } = await failed();
    await bring(third.documents, loser.documents);
    await loser.heal();
    // It knows nothing of the third, and writes on: that branch is the longer one now.
    for (const name of ['x', 'y', 'z']) await winner.set('p1', { name, phone: '1' });
    await bring(winner.documents, loser.documents);
    await loser.heal();
    expect((await loser.live('p1'))[0]).toMatchObject({ phone, name: 'z' });
    expect(await statusOf(loser, bulkOperationId)).toMatchObject({ state: 'done', applied: 1, failed: 0 });
    expect(await firstValueFrom(loser.client.failures$)).toEqual([]);
  });

  it('S2 stays failed where its branch was deleted, and the document was made anew upon that', async () => {
    const { loser, third, bulkOperationId } = await failed();
    const [own = ''] = (await third.leaves('p1'))[0]?.ancestors.slice(1) ?? [];
    await third.remove('p1');
    await bring(third.documents, loser.documents);
    // Of two ends the longer one is followed: that is the end of what has lost.
    await loser.remove('p1');
    await loser.create('p1', { name: 'Person 2' });
    await loser.heal();
    const [present] = await loser.leaves('p1');
    expect(present).toMatchObject({ doc: { name: 'Person 2' }, deleted: false });
    expect(present?.ancestors).toContain(own);
    expect(await statusOf(loser, bulkOperationId)).toMatchObject({ applied: 0, failed: 1 });
    expect(await firstValueFrom(loser.client.failures$)).toHaveLength(1);
  });

  describe('and its event', () => {
    const sent: DocumentEvent[] = [];
    /** Takes nothing while it is down. */
    const place: Publisher & { isDown: boolean } = {
      name: 'place',
      needs: 'nothing',
      isDown: false,
      publish: (events) => {
        if (place.isDown) return Promise.resolve({ accepted: [] });
        sent.push(...events);
        return Promise.resolve({ accepted: events.map(({ id }) => id) });
      },
    };
    afterEach(() => {
      sent.splice(0);
      place.isDown = false;
    });
    const ofLoser = (bulkOperationId: string): DocumentEvent[] =>
      sent.filter((event) => event.bulkOperationId === bulkOperationId);
    const published = async ({ bed, client }: Device): Promise<void> => {
      const isSo = async (): Promise<boolean> => {
        const { unpublished, publishers } = await firstValueFrom(client.status$);
        return unpublished === 0 && publishers['place']?.state === 'idle';
      };
      await bed.until(isSo, 60_000);
      await bed.rest();
    };

    it('S2 O7 that was passed over while it had none is published, once, though all that came later was taken', async () => {
      place.isDown = true;
      const { loser, third, bulkOperationId } = await failed({ publishers: [place] });
      place.isDown = false;
      await loser.create('p2', { name: 'Person 2' });
      await published(loser);
      expect(sent.filter(({ documentId }) => documentId === 'p2')).toHaveLength(1);
      expect(ofLoser(bulkOperationId)).toEqual([]);
      await bring(third.documents, loser.documents);
      await loser.heal();
      await published(loser);
      expect(ofLoser(bulkOperationId)).toMatchObject([{ documentId: 'p1', changed: true }]);
      // Nothing else is sent for it.
      expect(sent.filter(({ documentId }) => documentId === 'p2')).toHaveLength(1);
      await loser.reopen({ publishers: [place] });
      await published(loser);
      expect(ofLoser(bulkOperationId)).toHaveLength(1);
    });

    it('S2 O7 that was taken before is the same one, under its name', async () => {
      const { loser, third, bulkOperationId } = await failed({ publishers: [place] });
      await published(loser);
      const [before, ...more] = ofLoser(bulkOperationId);
      expect(more).toEqual([]);
      expect(before).toMatchObject({ documentId: 'p1' });
      await bring(third.documents, loser.documents);
      await loser.heal();
      await published(loser);
      for (const event of ofLoser(bulkOperationId)) expect(event).toEqual(before);
    });

    it('S2 O8 waits for a publisher that is at work, and goes on when that is done', async () => {
      let answer: ((answer: { accepted: string[] }) => void) | undefined;
      const slow: Publisher = {
        name: 'slow',
        needs: 'nothing',
        publish: (events) =>
          events.every(({ documentId }) => documentId === 'p1')
            ? Promise.resolve({ accepted: events.map(({ id }) => id) })
            : new Promise((resolve) => (answer = resolve)),
      };
      const { loser, third, bulkOperationId } = await failed({ publishers: [slow] });
      await loser.create('p2', { name: 'Person 2' });
      await loser.bed.until(() => answer !== undefined, 1000);
      await bring(third.documents, loser.documents);
      await loser.heal();
      expect(await firstValueFrom(loser.client.failures$)).toHaveLength(1);
      const [event] = (await loser.client.listEvents()).filter(({ documentId }) => documentId === 'p2');
      answer?.({ accepted: [event?.id ?? ''] });
      await loser.bed.until(async () => (await firstValueFrom(loser.client.failures$)).length === 0, 60_000);
      expect(await statusOf(loser, bulkOperationId)).toMatchObject({ state: 'done', applied: 1, failed: 0 });
    });
  });

  it('S2 O5 a `create` whose document is the one that counts after all has no conflict in quarantine any more', async () => {
    const [a, b, third] = await three();
    await a.create('p2', { name: 'A' });
    await b.create('p2', { name: 'B' });
    const isFirst = ((await a.leaves('p2'))[0]?.rev ?? '') < ((await b.leaves('p2'))[0]?.rev ?? '');
    const [loser, winner] = isFirst ? [a, b] : [b, a];
    await bring(loser.documents, third.documents);
    await third.set('p2', { phone: '5' });
    await bring(winner.documents, loser.documents);
    await loser.heal();
    expect(await loser.client.listQuarantined()).toHaveLength(1);
    expect(await firstValueFrom(loser.client.failures$)).toMatchObject([{ code: 'conflicting_content' }]);
    await bring(third.documents, loser.documents);
    await loser.heal();
    expect((await loser.live('p2'))[0]).toMatchObject({ name: isFirst ? 'A' : 'B', phone: '5' });
    expect(await loser.client.listQuarantined()).toEqual([]);
    expect((await firstValueFrom(loser.client.status$)).quarantined).toBe(0);
    expect(await firstValueFrom(loser.client.failures$)).toEqual([]);
  });
});
