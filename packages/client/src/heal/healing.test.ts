import { firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import type { ResolveConflict } from '../model/conflict.js';
import type { Doc } from '../model/json.js';
import { bring, Device, meet } from './devices.fixture.js';

describe('healing', () => {
  let devices: Device[] = [];
  afterEach(async () => {
    await Promise.all(devices.map((device) => device.close()));
    devices = [];
  });
  const two = async (doc: Record<string, unknown> = { name: 'Person 1', phone: '1' }): Promise<[Device, Device]> => {
    const [a, b] = [new Device(), new Device()];
    devices = [a, b];
    await a.documents.bulkDocs([{ _id: 'p1', ...doc }]);
    await meet(a, b);
    return [a, b];
  };
  /** The device whose revision lost, and the one whose revision won. */
  const loserFirst = async (a: Device, b: Device, winnerIsOf: (doc: Record<string, unknown>) => 'a' | 'b') => {
    const [winner] = await a.live('p1');
    return winnerIsOf(winner ?? {}) === 'b' ? { loser: a, winner: b } : { loser: b, winner: a };
  };

  it('S2 an operation that a conflict has buried is run on the version that won, and the losing version is removed', async () => {
    const [a, b] = await two();
    await a.set('p1', { phone: '2' });
    await b.set('p1', { name: 'Person 1b' });
    await meet(a, b);
    expect(await a.live('p1')).toHaveLength(2);
    const { loser, winner } = await loserFirst(a, b, (doc) => (doc['phone'] === '2' ? 'a' : 'b'));
    await loser.heal();
    await meet(a, b);
    await winner.heal();
    for (const device of [a, b]) {
      const live = await device.live('p1');
      expect(live).toMatchObject([{ phone: '2', name: 'Person 1b' }]);
    }
    expect((await firstValueFrom(a.client.failures$)).length + (await firstValueFrom(b.client.failures$)).length).toBe(
      0,
    );
  });

  it('S2 only the device that owns the operation heals it: the other one writes nothing', async () => {
    const [a, b] = await two();
    await a.set('p1', { phone: '2' });
    await b.set('p1', { name: 'Person 1b' });
    await meet(a, b);
    const { winner } = await loserFirst(a, b, (doc) => (doc['phone'] === '2' ? 'a' : 'b'));
    const before = await winner.leaves('p1');
    await winner.heal();
    expect((await winner.leaves('p1')).map(({ rev }) => rev)).toEqual(before.map(({ rev }) => rev));
    // Its own operation is in the winner; the other version is not its own, and someone must answer for it.
    expect(await firstValueFrom(winner.client.conflicts$)).toMatchObject([{ id: 'p1', winner: before[0]?.rev }]);
  });

  it('S2 that is so, too, where another device has removed the losing version before this one saw the winner', async () => {
    const [a, b] = await two();
    await a.set('p1', { phone: '2' });
    const [own] = await a.leaves('p1');
    for (const name of ['x', 'y']) await b.set('p1', { name });
    await bring(a.documents, b.documents);
    await b.documents.bulkDocs([{ _id: 'p1', _rev: own?.rev ?? '', _deleted: true }]);
    expect(await b.live('p1')).toMatchObject([{ name: 'y', phone: '1' }]);
    await bring(b.documents, a.documents);
    await a.heal();
    expect(await a.live('p1')).toMatchObject([{ name: 'y', phone: '2' }]);
  });

  it('S2 a guard that does not hold on the version that won makes the operation fail, with its content kept', async () => {
    const [a, b] = await two();
    const ids = [await a.set('p1', { phone: '2' }, { phone: '1' }), await b.set('p1', { phone: '3' }, { phone: '1' })];
    await meet(a, b);
    const { loser, winner } = await loserFirst(a, b, (doc) => (doc['phone'] === '2' ? 'a' : 'b'));
    await loser.heal();
    await meet(a, b);
    await winner.heal();
    const own = loser === a ? ids[0] : ids[1];
    const [failure] = await firstValueFrom(loser.client.failures$);
    expect(failure).toMatchObject({ code: 'guard_mismatch', bulkOperationId: own, id: 'p1', action: 'set' });
    const [status] = await firstValueFrom(loser.client.bulkOperations$);
    expect(status).toMatchObject({ state: 'done-with-failures', applied: 0, failed: 1 });
    expect(await a.live('p1')).toHaveLength(1);
    expect(await b.live('p1')).toHaveLength(1);
    expect(await firstValueFrom(winner.client.conflicts$)).toEqual([]);
  });

  it('S2 S8 a deletion that a later edit has buried deletes the document again, on every device', async () => {
    const [a, b] = await two();
    await a.remove('p1');
    await b.set('p1', { phone: '2' });
    await meet(a, b);
    expect(await a.live('p1')).toHaveLength(1);
    await a.heal();
    await meet(a, b);
    await b.heal();
    expect(await a.live('p1')).toEqual([]);
    expect(await b.live('p1')).toEqual([]);
  });

  it('S2 two operations of one device in a losing branch are healed in their order, in one revision', async () => {
    const [a, b] = await two({ phone: '1' });
    await a.set('p1', { phone: '2' }, { phone: '1' });
    await a.set('p1', { phone: '3' }, { phone: '2' });
    for (const name of ['x', 'y', 'z']) await b.set('p1', { name });
    await meet(a, b);
    const [winner] = await a.leaves('p1');
    expect(winner?.doc).toMatchObject({ name: 'z' });
    await a.heal();
    const [healed] = await a.leaves('p1');
    expect(healed).toMatchObject({ doc: { name: 'z', phone: '3' } });
    expect(healed?.ancestors[1]).toBe(winner?.rev);
  });

  it('S2 R17 a later operation that ran on the winner before an earlier one was healed has the last word', async () => {
    const [a, b] = await two({ phone: '1' });
    await a.set('p1', { phone: '2', street: 'S' });
    for (const name of ['x', 'y']) await b.set('p1', { name });
    await bring(b.documents, a.documents);
    await a.set('p1', { phone: '3' });
    await a.heal();
    expect(await a.live('p1')).toMatchObject([{ name: 'y', phone: '3', street: 'S' }]);
    expect(await a.live('p1')).toHaveLength(1);
  });

  it('S2 S8 a deletion that is healed makes no document of a later change to what had come back meanwhile', async () => {
    const [a, b] = await two();
    await a.remove('p1');
    for (const name of ['x', 'y']) await b.set('p1', { name });
    await bring(b.documents, a.documents);
    await a.set('p1', { phone: '3' });
    await a.heal();
    await meet(a, b);
    await b.heal();
    expect(await a.live('p1')).toEqual([]);
    expect(await b.live('p1')).toEqual([]);
  });

  it('S2 what is not of an operation is left alone, and shown', async () => {
    const [a, b] = await two();
    const [present] = await b.live('p1');
    await b.documents.bulkDocs([{ ...present, phone: '9', _revisions: undefined }]);
    await a.set('p1', { name: 'x' });
    await a.set('p1', { name: 'y' });
    await meet(a, b);
    await a.heal();
    await b.heal();
    const losing = (await a.leaves('p1'))[1]?.rev;
    for (const device of [a, b]) {
      expect(await device.live('p1')).toHaveLength(2);
      expect(await firstValueFrom(device.client.conflicts$)).toMatchObject([{ id: 'p1', losing: [losing] }]);
      expect((await firstValueFrom(device.client.status$)).conflicts).toBe(1);
    }
  });

  it('S2 S10 an operation whose action is not there waits, and is healed by a client that knows it', async () => {
    const [a, b] = await two({ phone: '1' });
    await a.set('p1', { phone: '2' });
    for (const name of ['x', 'y']) await b.set('p1', { name });
    await a.reopen({ actions: [] });
    await meet(a, b);
    await a.heal();
    expect(await a.live('p1')).toHaveLength(2);
    expect(await firstValueFrom(a.client.conflicts$)).toEqual([]);
    await a.reopen();
    await a.healed();
    expect(await a.live('p1')).toMatchObject([{ name: 'y', phone: '2' }]);
  });

  it('S2 S6 two tabs that heal at once do no harm: the operation is in one revision', async () => {
    const [a, b] = await two({ phone: '1' });
    await a.set('p1', { phone: '2' });
    for (const name of ['x', 'y']) await b.set('p1', { name });
    a.openTab();
    a.openTab();
    await bring(b.documents, a.documents);
    const [winner] = await a.leaves('p1');
    await a.healed();
    await a.bed.rest();
    const [healed, ...others] = await a.leaves('p1');
    expect(healed).toMatchObject({ doc: { name: 'y', phone: '2' } });
    expect(healed?.ancestors[1]).toBe(winner?.rev);
    expect(others.every(({ deleted }) => deleted)).toBe(true);
    expect(await firstValueFrom(a.client.failures$)).toEqual([]);
  });

  describe('a resolver', () => {
    const longer: ResolveConflict = ({ winner, losing }) =>
      [winner, ...losing].reduce((one, other) =>
        String(other['note']).length > String(one['note']).length ? other : one,
      );
    const edited = async (resolveConflict: ResolveConflict = () => undefined): Promise<[Device, Device]> => {
      const [a, b] = [new Device({ resolveConflict }), new Device({ resolveConflict })];
      devices = [a, b];
      await a.documents.bulkDocs([{ _id: 'p1', note: '' }]);
      await meet(a, b);
      for (const [device, note] of [
        [a, 'short'],
        [b, 'much longer'],
      ] as const) {
        const [present] = await device.live('p1');
        await device.documents.bulkDocs([{ _id: 'p1', _rev: present?._rev, note }]);
      }
      await meet(a, b);
      return [a, b];
    };

    it('S2 decides about versions that no operation has made: both devices make the same revision', async () => {
      const [a, b] = await edited(longer);
      await a.heal();
      await b.heal();
      const made = (await a.live('p1')).map(({ _rev }) => _rev);
      expect((await b.live('p1')).map(({ _rev }) => _rev)).toEqual(made);
      await meet(a, b);
      for (const device of [a, b]) {
        expect(await device.live('p1')).toMatchObject([{ note: 'much longer', _rev: made[0] }]);
        expect(await firstValueFrom(device.client.conflicts$)).toEqual([]);
      }
    });

    it.each([
      [
        'throws',
        () => {
          throw new TypeError('with patient content');
        },
      ],
      ['answers with no document', () => 'much longer' as unknown as Doc],
      ['answers with what cannot be stored', () => ({ _id: 'p1', _secret: 1 })],
    ])('S2 that %s leaves the conflict alone, and says so without any content', async (_what, resolve) => {
      const warnings: string[] = [];
      const [a] = await edited(resolve);
      await a.reopen({ resolveConflict: resolve, environment: { warn: (line) => void warnings.push(line) } });
      await a.heal();
      expect(await a.live('p1')).toHaveLength(2);
      expect(await firstValueFrom(a.client.conflicts$)).toHaveLength(1);
      expect(warnings.join()).toContain('resolveConflict');
      expect(warnings.join()).not.toContain('patient');
      expect(warnings.join()).not.toContain('longer');
    });

    it('S2 that comes with a new version of the app decides about conflicts that were found before', async () => {
      const [a] = await edited();
      await a.heal();
      expect(await firstValueFrom(a.client.conflicts$)).toHaveLength(1);
      await a.reopen({ resolveConflict: longer });
      await a.heal();
      expect(await a.live('p1')).toMatchObject([{ note: 'much longer' }]);
      expect(await firstValueFrom(a.client.conflicts$)).toEqual([]);
    });

    it('S2 that never agrees with the other device’s is not asked for ever', async () => {
      let asked = 0;
      const own =
        (name: string): ResolveConflict =>
        ({ winner }) => ({ ...winner, note: `${name} ${String(asked++)}` });
      const [a, b] = await edited();
      await a.reopen({ resolveConflict: own('a') });
      await b.reopen({ resolveConflict: own('b') });
      for (let round = 0; round < 12; round++) {
        await meet(a, b);
        await a.heal();
        await b.heal();
      }
      const before = asked;
      await meet(a, b);
      await a.heal();
      await b.heal();
      expect(asked).toBe(before);
      expect(asked).toBeLessThan(13);
    });
  });
});
