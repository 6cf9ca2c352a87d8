import { defineDocumentAction, type Client } from '@afield/client';
import { MemoryPouch } from '@afield/testing';
import { firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { SyncedBed } from './synced-bed.js';

const set = defineDocumentAction({
  name: 'set',
  operation: z.strictObject({ to: z.record(z.string(), z.unknown()) }),
  isApplied: (doc, { to }) => Object.entries(to).every(([name, value]) => doc[name] === value),
  apply: (doc, { to }) => ({ ...doc, ...to }),
});

type Attached = { readonly _attachments: Record<string, { readonly data: string }> };

describe('conflicts in real trees of revisions', () => {
  const bed = new SyncedBed('odd-trees', [set]);
  const { open, ask, pushed, pulled, failures, done, local, offline, online, looks } = bed;
  beforeAll(() => bed.start());
  afterAll(() => bed.stop());
  beforeEach(() => bed.begin());
  afterEach(() => bed.end());

  const other = async (id: string, changes: object, times = 1): Promise<void> => {
    for (let time = 1; time <= times; time++) {
      await ask(encodeURIComponent(id), 'PUT', { ...(await ask(encodeURIComponent(id))), ...changes, times: time });
    }
  };
  const run = (client: Client, id: string, to: Record<string, unknown>): Promise<unknown> =>
    client.enqueue({ target: 'local', actions: [{ action: 'set', operations: [{ id, to }] }] });
  const text = (data: string): object => ({ content_type: 'text/plain', data: btoa(data) });

  it.each([false, true])('S2 S8 attachments survive healing, compacted at once: %s', async (auto_compaction) => {
    class Compacting extends MemoryPouch {
      constructor(name: string, options: object = {}) {
        super(name, { auto_compaction, ...options });
      }
    }
    const client = open({ PouchDB: auto_compaction ? Compacting : MemoryPouch });
    await client.documents.bulkDocs([{ _id: 'a', _attachments: { 'n.txt': text('first') } }]);
    await pushed(client);
    offline();
    await run(client, 'a', { colour: 'blue' });
    await done(client);
    await run(client, 'a', { colour: 'green' });
    await done(client);
    const there = await ask('a');
    const { rev } = (await ask('a/n.txt?rev=' + there._rev, 'PUT', {})) as unknown as { rev: string };
    expect(rev).toMatch(/^2-/);
    await other('a', { note: 'of another' }, 3);
    await online(client);
    await pulled(client);
    await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'green', note: 'of another' });
    await looks(client);
    expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
    const back = (await client.documents.get('a', { attachments: true })) as unknown as Attached;
    expect(atob(back._attachments['n.txt']?.data ?? '')).toBe('{}');
    expect(atob(((await ask('a?attachments=true')) as unknown as Attached)._attachments['n.txt']?.data ?? '')).toBe(
      '{}',
    );
    expect(await firstValueFrom(client.failures$)).toEqual([]);
  });

  it('S2 S8 an attachment that has changed at the server arrives; one that is here already is not fetched again', async () => {
    const client = open();
    await ask('a', 'PUT', { _attachments: { 'p.png': { content_type: 'image/png', data: btoa('first') } } });
    await pulled(client);
    const data = async (): Promise<string> => {
      const doc = (await client.documents.get('a', { attachments: true })) as unknown as Attached;
      return atob(doc._attachments['p.png']?.data ?? '');
    };
    const fetched = (): number => bed.server.proxy.requests().filter(({ path }) => path.endsWith('/a')).length;
    expect(await data()).toBe('first');
    const before = fetched();
    await other('a', { note: 'of another' });
    await pulled(client);
    expect(await local(client, 'a')).toMatchObject({ note: 'of another' });
    expect(await data()).toBe('first');
    expect(fetched()).toBe(before);
    const there = await ask('a');
    await ask('a', 'PUT', { ...there, _attachments: { 'p.png': { content_type: 'image/png', data: btoa('second') } } });
    await pulled(client);
    expect(await data()).toBe('second');
  });

  it.each(['a/b', 'constructor', 'toString', 'a?b#c%d+e', 'ä', 'a\u0308', 'design/x', 'hasOwnProperty'])(
    'S2 S8 %s is a plain id: healed, refused and brought back',
    async (id) => {
      await ask('_design/rules', 'PUT', {
        validate_doc_update: `function (doc) { if (doc.colour === 'black') throw { forbidden: 'no black' }; }`,
      });
      const client = open();
      await client.documents.bulkDocs([{ _id: id, colour: 'red' }]);
      await pushed(client);
      offline();
      await run(client, id, { colour: 'blue' });
      await done(client);
      await other(id, { note: 'of another' }, 2);
      await online(client);
      await pulled(client);
      const path = encodeURIComponent(id);
      await expect.poll(() => ask(path)).toMatchObject({ colour: 'blue', note: 'of another' });
      await run(client, id, { colour: 'black' });
      await failures(client, 1);
      expect(await client.revert({})).toBe(1);
      expect(await local(client, id)).toMatchObject({ colour: 'blue' });
      await run(client, id, { colour: 'grey' });
      await expect.poll(() => ask(`${path}?conflicts=true`)).toMatchObject({ colour: 'grey' });
      await looks(client);
      expect(await ask(`${path}?conflicts=true`)).not.toHaveProperty('_conflicts');
    },
  );

  it('S2 a conflict with fifty versions, of operations and of others, is healed and comes to an end', async () => {
    const client = open();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await pushed(client);
    const base = await ask('a');
    offline();
    await run(client, 'a', { colour: 'blue' });
    await done(client);
    const [, hash = ''] = base._rev.split('-');
    const docs = Array.from({ length: 50 }, (_, at) => {
      const name = String(at).padStart(32, 'f');
      return { ...base, note: at, _rev: `2-${name}`, _revisions: { start: 2, ids: [name, hash] } };
    });
    await ask('_bulk_docs', 'POST', { new_edits: false, docs });
    await online(client);
    await pulled(client);
    await looks(client);
    const there = await ask('a?conflicts=true');
    expect(there).toMatchObject({ colour: 'blue' });
    expect(there._conflicts).toHaveLength(49);
    const [conflict] = await firstValueFrom(client.conflicts$);
    expect(conflict?.losing).toHaveLength(49);
    await bed.closeClients();
    const again = open({ documents: client.documents.name, resolveConflict: ({ winner }) => winner });
    await expect.poll(async () => (await local(again, 'a'))._conflicts, { timeout: 10_000 }).toBeUndefined();
    await expect.poll(async () => (await ask('a?conflicts=true'))._conflicts, { timeout: 10_000 }).toBeUndefined();
  });

  it('S2 O5 a document that was created on both devices is a conflict of contents, kept and shown once', async () => {
    const [a, b] = [open(), open()];
    const create = (client: Client, doc: object): Promise<unknown> =>
      client.enqueue({ target: 'local', actions: [{ action: 'create', operations: [{ id: 'new', doc }] }] });
    offline();
    await create(a, { name: 'A' });
    await create(b, { name: 'B' });
    await Promise.all([done(a), done(b)]);
    await online(a);
    await pushed(a);
    await online(b);
    for (const client of [a, b, a, b]) await looks(client);
    const there = await ask('new?conflicts=true');
    expect(there).not.toHaveProperty('_conflicts');
    const failed = [...(await firstValueFrom(a.failures$)), ...(await firstValueFrom(b.failures$))];
    expect(failed).toMatchObject([{ id: 'new', code: 'conflicting_content' }]);
  });

  it('S2 a resolver that answers with a deletion: the document is gone everywhere', async () => {
    const client = open({ resolveConflict: ({ winner }) => ({ _id: 'a', _rev: winner._rev ?? '', _deleted: true }) });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await pushed(client);
    offline();
    await client.documents.put({ ...(await local(client, 'a')), colour: 'blue' });
    await other('a', { note: 'of another' });
    await online(client);
    await pulled(client);
    await expect.poll(() => ask('a')).toMatchObject({ error: 'not_found' });
    await looks(client);
    expect(await ask('a')).toMatchObject({ error: 'not_found' });
    expect(await firstValueFrom(client.conflicts$)).toEqual([]);
  });

  it('S2 R3 with few revisions kept, an operation that may be in the winner’s past is never run again', async () => {
    class Short extends MemoryPouch {
      constructor(name: string, options: object = {}) {
        super(name, { revs_limit: 4, ...options });
      }
    }
    const client = open({ PouchDB: Short });
    await client.enqueue({
      target: 'local',
      actions: [{ action: 'create', operations: [{ id: 'a', doc: { n: 0 } }] }],
    });
    await expect.poll(() => ask('a')).toMatchObject({ n: 0 });
    const base = await ask('a');
    const name = 'f'.repeat(32);
    const losing = { _id: 'a', n: 'x', _rev: `2-${name}`, _revisions: { start: 2, ids: [name, base._rev.slice(2)] } };
    await other('a', { note: 'of another' }, 12);
    await pulled(client);
    await ask('_bulk_docs', 'POST', { new_edits: false, docs: [losing] });
    await looks(client);
    expect(await firstValueFrom(client.failures$)).toEqual([]);
    expect(await firstValueFrom(client.conflicts$)).toMatchObject([{ id: 'a', losing: [losing._rev] }]);
    expect(await firstValueFrom(client.bulkOperations$)).toMatchObject([{ state: 'done', applied: 1 }]);
  });

  it('S2 a forgotten document that comes back with a conflict is healed, and nothing is deleted at the server', async () => {
    let list = ['a', 'z'];
    const client = open({ pull: { docIds: () => list }, outOfSight: (ids) => ids });
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red' }]);
    await pushed(client);
    const base = await ask('a');
    await run(client, 'a', { colour: 'blue' });
    await expect.poll(() => ask('a')).toMatchObject({ colour: 'blue' });
    await pulled(client);
    list = ['z'];
    await looks(client);
    await expect.poll(() => local(client, 'a').catch(() => 'gone')).toBe('gone');
    const names = ['e', 'd'].map((one) => one.repeat(32));
    const doc = { ...base, note: 'of another', _rev: `3-${names[0] ?? ''}` };
    await ask('_bulk_docs', 'POST', {
      new_edits: false,
      docs: [{ ...doc, _revisions: { start: 3, ids: [...names, base._rev.slice(2)] } }],
    });
    list = ['a', 'z'];
    await looks(client);
    await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'blue', note: 'of another' });
    await looks(client);
    expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
    expect(await local(client, 'a')).toMatchObject({ colour: 'blue', note: 'of another' });
  });
});
