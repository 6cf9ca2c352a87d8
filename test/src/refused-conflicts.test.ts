import { defineDocumentAction, type Client, type ClientOptions } from '@afield/client';
import { firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { SyncedBed } from './synced-bed.js';

const set = defineDocumentAction({
  name: 'set',
  operation: z.strictObject({ to: z.record(z.string(), z.unknown()), from: z.optional(z.string()) }),
  guard: (doc, { from = doc['colour'] }) =>
    doc['colour'] === from ? undefined : { code: 'guard_mismatch', reason: 'It has another colour.' },
  isApplied: (doc, { to }) => Object.entries(to).every(([name, value]) => doc[name] === value),
  apply: (doc, { to }) => ({ ...doc, ...to }),
});

const noBlack = `if (doc.colour === 'black') throw { forbidden: 'no black here' };`;
const noDeletions = `if (doc._deleted) throw { forbidden: 'nothing is deleted here' };`;
const noMix = `if (doc.colour === 'blue' && doc.note === 'of another') throw { forbidden: 'not both' };`;

/** The name of a revision that loses against every other one of its generation. */
const least = '0'.repeat(31) + '1';

describe('conflicts of documents that the server refuses', () => {
  const bed = new SyncedBed('refused-conflicts', [set]);
  const { open, ask, pushed, pulled, failures, done, local, offline, online, looks } = bed;
  beforeAll(() => bed.start());
  afterAll(() => bed.stop());
  afterEach(() => bed.end());

  const withRule = (...rules: readonly string[]): Promise<void> => bed.begin(rules.join(' '));
  /** Someone else writes on the server, as often as it takes to win. */
  const other = async (id: string, changes: object, times = 1): Promise<void> => {
    for (let time = 1; time <= times; time++) {
      await ask(id, 'PUT', { ...(await ask(id)), ...changes, ...(time < times ? { times: time } : {}) });
    }
  };
  const run = (client: Client, id: string, to: Record<string, unknown>): Promise<unknown> =>
    client.enqueue({ target: 'local', actions: [{ action: 'set', operations: [{ id, to }] }] });
  const begun = async (options: Partial<ClientOptions> = {}): Promise<Client> => {
    const client = open(options);
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await pushed(client);
    return client;
  };
  const writes = (): number => bed.server.proxy.requests().filter(({ path }) => path.endsWith('/_bulk_docs')).length;
  it('S2 a healed version that the server refuses makes its operation fail, and nothing is tried again and again', async () => {
    await withRule(noMix);
    const client = await begun();
    offline();
    await run(client, 'a', { colour: 'blue' });
    await done(client);
    await other('a', { note: 'of another' }, 2);
    await online(client);
    await pulled(client);
    const [failure] = await failures(client, 1);
    expect(failure).toMatchObject({ id: 'a', action: 'set', code: 'forbidden', operation: { id: 'a' } });
    expect(await firstValueFrom(client.bulkOperations$)).toMatchObject([{ state: 'done-with-failures', failed: 1 }]);
    await looks(client);
    // What has changed elsewhere may be a reason to take it: once more, and not again.
    await other('a', { more: 1 }, 2);
    await looks(client);
    const sent = writes();
    await looks(client);
    expect(writes()).toBe(sent);
    expect(await failures(client, 1)).toMatchObject([{ failureId: failure?.failureId }]);
    expect(await ask('a')).toMatchObject({ note: 'of another', more: 1, colour: 'red' });
    expect(await client.revert({})).toBe(1);
    expect(await local(client, 'a')).toMatchObject({ note: 'of another', more: 1, colour: 'red' });
    await run(client, 'a', { colour: 'green' });
    await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'green', more: 1 });
    await failures(client, 0);
  });

  it('S2 S1 an operation that has failed when it was healed is counted beside one that the server refuses, for ever', async () => {
    await withRule(noBlack);
    const name = 'counted-beside';
    const client = await begun({ name });
    await client.documents.bulkDocs([{ _id: 'b', colour: 'red' }]);
    await pushed(client);
    offline();
    const operations = [
      { id: 'a', to: { colour: 'blue' }, from: 'red' },
      { id: 'b', to: { colour: 'black' } },
    ];
    await client.enqueue({ target: 'local', actions: [{ action: 'set', operations }] });
    await done(client);
    await other('a', { colour: 'white' }, 2);
    await online(client);
    await pulled(client);
    await failures(client, 2);
    await bed.closeClients();
    const again = open({ name });
    await again.documents.put({ ...(await local(again, 'b')), more: 1 });
    await looks(again);
    await failures(again, 2);
    expect(await firstValueFrom(again.bulkOperations$)).toMatchObject([{ applied: 0, failed: 2 }]);
  });

  it('S2 a server that takes no deletions: what healing has removed here is no failure, and is sent once', async () => {
    await withRule(noDeletions);
    const client = await begun();
    offline();
    await run(client, 'a', { colour: 'blue' });
    await done(client);
    await other('a', { note: 'of another' }, 2);
    await online(client);
    await pulled(client);
    await expect.poll(() => ask('a')).toMatchObject({ colour: 'blue', note: 'of another' });
    await looks(client);
    const sent = writes();
    await looks(client);
    expect(writes()).toBe(sent);
    expect(await firstValueFrom(client.failures$)).toEqual([]);
    expect(await firstValueFrom(client.status$)).toMatchObject({ failed: 0, conflicts: 0, push: { state: 'idle' } });
    expect(await client.listFailures()).toEqual([]);
    expect(await local(client, 'a')).not.toHaveProperty('_conflicts');
  });

  it('S2 where no mark can be written either, what the server did not take of healing is not missed at every look', async () => {
    await withRule(noDeletions);
    const takeNoMark = (): void => {
      bed.server.proxy.addRule({
        when: { method: 'PUT', path: '/_local/afield-push*' },
        do: { type: 'answer', status: 403, body: { error: 'forbidden', reason: 'made up' } },
      });
    };
    takeNoMark();
    const client = await begun();
    offline();
    await run(client, 'a', { colour: 'blue' });
    await done(client);
    await other('a', { note: 'of another' }, 2);
    await bed.server.proxy.reset();
    takeNoMark();
    client.syncNow();
    await pulled(client);
    await expect.poll(() => ask('a')).toMatchObject({ colour: 'blue', note: 'of another' });
    await looks(client);
    const attempts = async (): Promise<number> => (await firstValueFrom(client.status$)).push.attempts;
    const before = await attempts();
    await looks(client);
    // The newest documents are asked for at each look, which is no attempt to send anything.
    expect(await attempts()).toBe(before);
  });

  it('S2 S8 a deletion that the server refuses is one failure, also where hidden versions went with it', async () => {
    await withRule(noDeletions);
    const client = await begun();
    const rev = (await ask('a'))._rev;
    await ask('_bulk_docs', 'POST', {
      new_edits: false,
      docs: [{ _id: 'a', colour: 'white', _rev: `1-${least}`, _revisions: { start: 1, ids: [least] } }],
    });
    await pulled(client);
    await client.enqueue({ target: 'local', actions: [{ action: 'delete', operations: [{ id: 'a' }] }] });
    await done(client);
    const [failure] = await failures(client, 1);
    expect(failure).toMatchObject({ action: 'delete', code: 'forbidden' });
    await looks(client);
    expect(await failures(client, 1)).toHaveLength(1);
    expect(await client.revert({})).toBe(1);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red' });
    expect((await ask('a'))._rev).toBe(rev);
  });

  it('S2 what a resolver builds upon a refused version never takes the server’s version from the server', async () => {
    await withRule(noBlack);
    let asked = 0;
    const resolveConflict: ClientOptions['resolveConflict'] = ({ winner }) => {
      asked++;
      return winner;
    };
    const client = await begun({ resolveConflict });
    await run(client, 'a', { colour: 'black' });
    await failures(client, 1);
    await run(client, 'a', { more: 1 });
    await failures(client, 2);
    await other('a', { note: 'of another' });
    await looks(client);
    expect(await ask('a')).toMatchObject({ colour: 'red', note: 'of another' });
    expect(asked).toBe(0);
    expect(await firstValueFrom(client.conflicts$)).toMatchObject([{ id: 'a', losing: [(await ask('a'))._rev] }]);
    expect(await client.revert({})).toBe(2);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of another' });
    await looks(client);
    expect(await ask('a?conflicts=true&deleted_conflicts=true')).not.toHaveProperty('_conflicts');
  });

  it('S2 the same while nothing is known of the refusal yet', async () => {
    await withRule(noBlack);
    const resolveConflict: ClientOptions['resolveConflict'] = ({ winner }) => ({ ...winner, merged: true });
    const client = await begun({ resolveConflict });
    offline();
    for (const more of [1, 2]) await client.documents.put({ ...(await local(client, 'a')), colour: 'black', more });
    await other('a', { note: 'of another' });
    await bed.server.proxy.reset();
    bed.server.proxy.addRule({ when: { path: '/_bulk_docs' }, do: { type: 'answer', status: 503 } });
    await pulled(client);
    await expect.poll(() => local(client, 'a')).toMatchObject({ merged: true });
    await online(client);
    await failures(client, 1);
    await looks(client);
    expect(await ask('a')).toMatchObject({ colour: 'red', note: 'of another' });
    expect(await client.revert({})).toBe(1);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of another' });
    await run(client, 'a', { colour: 'green' });
    await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'green', note: 'of another' });
    expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
  });

  it('S2 a refused version that has lost meanwhile is sent again on a person’s word', async () => {
    await withRule(noBlack);
    const client = await begun();
    await run(client, 'a', { colour: 'black' });
    await failures(client, 1);
    const { _rev: refused } = await local(client, 'a');
    await other('a', { note: 'of another' }, 2);
    await pulled(client);
    expect(await local(client, 'a')).toMatchObject({ note: 'of another' });
    const rule = await ask('_design/rules');
    await ask(`_design/rules?rev=${rule._rev}`, 'DELETE');
    await client.retryFailed({});
    await failures(client, 0);
    await pulled(client);
    await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'black', note: 'of another' });
    expect(await ask(`a?rev=${refused}`)).toMatchObject({ colour: 'black' });
    await looks(client);
    expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
  });

  it('S2 what the server refuses on two branches goes back together, and is given up together', async () => {
    for (const decide of ['revert', 'discard'] as const) {
      await withRule(noBlack);
      const client = await begun();
      bed.server.proxy.addRule({ when: { path: '/_bulk_docs' }, do: { type: 'answer', status: 503 } });
      await client.documents.put({ ...(await local(client, 'a')), colour: 'black' });
      await run(client, 'a', { more: 1, colour: 'black' });
      await run(client, 'a', { more: 2 });
      await done(client);
      await other('a', { note: 'of another' }, 4);
      await pulled(client);
      await expect.poll(() => local(client, 'a')).toMatchObject({ note: 'of another', more: 2, colour: 'black' });
      expect(await local(client, 'a')).toHaveProperty('_conflicts');
      await online(client);
      await failures(client, 2);
      await looks(client);
      expect(await client[decide]({})).toBe(2);
      await looks(client);
      await other('a', { note: 'of another still' });
      await looks(client);
      const sent = writes();
      await looks(client);
      expect(writes()).toBe(sent);
      expect(await failures(client, 0)).toEqual([]);
      const shown = await local(client, 'a');
      expect(shown).toMatchObject(decide === 'revert' ? { colour: 'red', note: 'of another still' } : { _id: 'a' });
      expect(await ask('a?conflicts=true')).toMatchObject({ colour: 'red', note: 'of another still' });
      expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
      await bed.closeClients();
    }
  });

  it('S2 two versions that an app has edited, both refused, go back together', async () => {
    await withRule(noBlack);
    const client = await begun();
    await client.documents.put({ ...(await local(client, 'a')), colour: 'black' });
    await failures(client, 1);
    await other('a', { note: 'of another' }, 2);
    await pulled(client);
    await client.documents.put({ ...(await local(client, 'a')), _conflicts: undefined, colour: 'black' });
    await pushed(client);
    await looks(client);
    await failures(client, 1);
    expect(await client.revert({})).toBe(1);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of another' });
    await looks(client);
    await failures(client, 0);
    expect(await local(client, 'a')).not.toHaveProperty('_conflicts');
  });

  it('S2 a hidden version goes also while a copy of the server’s version counts here, and that version stays', async () => {
    await withRule(noBlack);
    const client = await begun();
    await other('a', { note: 'of another' });
    await pulled(client);
    const { ids } = (await ask('a?revs=true'))['_revisions'] as { ids: readonly string[] };
    const lost = { _id: 'a', lost: true, _rev: `2-${least}`, _revisions: { start: 2, ids: [least, ...ids.slice(1)] } };
    await ask('_bulk_docs', 'POST', { new_edits: false, docs: [lost] });
    await run(client, 'a', { colour: 'black' });
    await failures(client, 1);
    expect(await client.revert({})).toBe(1);
    await pulled(client);
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', _conflicts: [lost._rev] });
    await client.documents.bulkDocs([{ _id: 'a', _rev: lost._rev, _deleted: true }]);
    await expect.poll(() => ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
    expect(await ask('a')).toMatchObject({ colour: 'red', note: 'of another' });
    expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of another' });
  });
});
