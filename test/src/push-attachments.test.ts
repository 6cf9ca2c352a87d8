import type { Client, ClientOptions } from '@afield/client';
import { MemoryPouch } from '@afield/testing';
import { randomBytes } from 'node:crypto';
import { firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SyncedBed, type Stored } from './synced-bed.js';

interface Attachment {
  readonly content_type: string;
  readonly data?: string;
  readonly stub?: true;
}
type Attachments = Record<string, Attachment>;
type Document = Stored & { readonly _id: string; readonly _attachments?: Attachments };

const photoBytes = 40_000;
const picture = (data = randomBytes(photoBytes).toString('base64')): Attachment => ({
  content_type: 'image/jpeg',
  data,
});

/** A store that keeps the bodies of leaves only. */
class Compacting extends MemoryPouch {
  constructor(name: string, options: object = {}) {
    super(name, { auto_compaction: true, ...options });
  }
}

describe('attachments that the server has', () => {
  const bed = new SyncedBed('push-attachments', []);
  const { open, ask, pushed, pulled, local, offline, online } = bed;
  /** What was sent since the last look: documents as they went over the wire, and the bytes of their requests. */
  let requests: { readonly bytes: number; readonly docs: readonly Document[] }[];
  beforeAll(() => bed.start());
  afterAll(() => bed.stop());
  beforeEach(async () => {
    await bed.begin();
    watch();
  });
  afterEach(() => bed.end());

  const watch = (): void => {
    requests = [];
    bed.server.proxy.onRequest(({ path, body, json }) => {
      if (path.endsWith('/_bulk_docs')) requests.push({ bytes: body.length, ...(json() as { docs: Document[] }) });
    });
  };
  const bytes = (): number => requests.reduce((sum, one) => sum + one.bytes, 0);
  /** What went with its bytes, in order: `document/attachment`. */
  const whole = (): string[] =>
    requests.flatMap(({ docs }) =>
      docs.flatMap(({ _id, _attachments = {} }) =>
        Object.entries(_attachments).flatMap(([name, { data }]) => (data === undefined ? [] : [`${_id}/${name}`])),
      ),
    );
  /** Writes locally, and waits until it is sent. */
  const send = async (client: Client, docs: readonly object[], options?: object): Promise<void> => {
    await client.documents.bulkDocs(docs, options);
    await pushed(client);
  };
  const opened = async (docs: readonly object[], options: Partial<ClientOptions> = {}): Promise<Client> => {
    const client = open(options);
    await send(client, docs);
    await expect.poll(() => requests.flatMap((one) => one.docs).length).toBe(docs.length);
    await pushed(client);
    requests = [];
    return client;
  };
  const there = async (path: string): Promise<Attachments> => {
    const mark = path.includes('?') ? '&' : '?';
    return ((await ask(`${path}${mark}attachments=true`)) as Document)._attachments ?? {};
  };
  const noted = (doc: Stored, note: string): object => ({ ...doc, note });
  /** Rewrites a document, and waits until the server has it. */
  const note = async (client: Client, id: string, text: string): Promise<void> => {
    await send(client, [noted(await local(client, id), text)]);
    await expect.poll(() => ask(id)).toMatchObject({ note: text });
    await pushed(client);
  };
  const child = (doc: Stored, hash: string, more: object): object => ({
    ...doc,
    ...more,
    _rev: `${String(Number.parseInt(doc._rev, 10) + 1)}-${hash}`,
    _revisions: { start: Number.parseInt(doc._rev, 10) + 1, ids: [hash, doc._rev.slice(doc._rev.indexOf('-') + 1)] },
  });
  const [x, y, z] = ['1', '2', '3'].map((one) => one.repeat(32)) as [string, string, string];

  it('S2 S8 a new document goes with its attachments, once', async () => {
    const client = open();
    const photo = picture();
    await send(client, [{ _id: 'a', _attachments: { 'p.jpg': photo } }]);
    await expect.poll(() => there('a')).toMatchObject({ 'p.jpg': photo });
    expect(whole()).toEqual(['a/p.jpg']);
    expect(requests).toHaveLength(1);
  });

  it.each([
    ['a store that keeps old bodies', MemoryPouch],
    ['a store that is compacted at once', Compacting],
  ])('S2 S8 what is rewritten here goes without the bytes that the server has: %s', async (_, PouchDB) => {
    const photo = picture();
    const client = await opened([{ _id: 'a', _attachments: { 'p.jpg': photo } }], { PouchDB });
    await note(client, 'a', 'moved');
    await note(client, 'a', 'moved again');
    expect(bytes()).toBeLessThan(2000);
    expect(await there('a')).toMatchObject({ 'p.jpg': photo });
  });

  it('S2 S8 so it goes where the document came by a pull, long after its attachment was made', async () => {
    const photo = picture();
    await ask('a', 'PUT', {
      _attachments: { 'p.jpg': photo, 'n.txt': { content_type: 'text/plain', data: btoa('n') } },
    });
    for (const text of ['one', 'two']) await ask('a', 'PUT', noted(await ask('a'), text));
    const client = open();
    await pulled(client);
    await note(client, 'a', 'moved');
    await note(client, 'a', 'moved again');
    expect(whole()).toEqual([]);
    expect(bytes()).toBeLessThan(2000);
    expect(await there('a')).toMatchObject({ 'p.jpg': photo, 'n.txt': { data: btoa('n') } });
  });

  it('S2 S8 several revisions that wait go as one, without the bytes', async () => {
    const photo = picture();
    const client = await opened([{ _id: 'a', _attachments: { 'p.jpg': photo } }]);
    offline();
    for (const text of ['one', 'two']) await client.documents.bulkDocs([noted(await local(client, 'a'), text)]);
    await online(client);
    watch();
    await expect.poll(() => ask('a')).toMatchObject({ note: 'two' });
    await pushed(client);
    expect(whole()).toEqual([]);
    expect(await there('a')).toMatchObject({ 'p.jpg': photo });
  });

  it('S2 S8 what is changed, new, of another type or of another name goes whole', async () => {
    const [same, before, after, typed] = [picture(), picture(), picture(), picture()];
    const client = await opened([
      { _id: 'a', _attachments: { 'same.jpg': same, 'p.jpg': before, 'type.jpg': typed, 'name.jpg': before } },
    ]);
    const doc = (await local(client, 'a')) as Document;
    const stubs = doc._attachments ?? {};
    await send(client, [
      {
        ...doc,
        note: 'changed',
        _attachments: {
          'same.jpg': stubs['same.jpg'],
          'p.jpg': after,
          'new.jpg': after,
          'renamed.jpg': stubs['name.jpg'],
          'type.jpg': { ...stubs['type.jpg'], content_type: 'image/png' },
        },
      },
    ]);
    await expect.poll(() => ask('a')).toMatchObject({ note: 'changed' });
    expect(whole().sort()).toEqual(['a/new.jpg', 'a/p.jpg', 'a/renamed.jpg', 'a/type.jpg']);
    const now = await there('a');
    expect(Object.keys(now)).toHaveLength(5);
    expect(now).toMatchObject({
      'same.jpg': same,
      'p.jpg': after,
      'new.jpg': after,
      'renamed.jpg': before,
      'type.jpg': { content_type: 'image/png', data: typed.data },
    });
  });

  it('S2 S8 two attachments that have changed places by their names alone go whole', async () => {
    const [one, other] = [picture(), picture()];
    const client = await opened([{ _id: 'a', _attachments: { 'one.jpg': one, 'other.jpg': other } }]);
    const doc = (await local(client, 'a')) as Document;
    const stubs = doc._attachments ?? {};
    await send(client, [
      { ...doc, note: 'changed', _attachments: { 'one.jpg': stubs['other.jpg'], 'other.jpg': stubs['one.jpg'] } },
    ]);
    await expect.poll(() => ask('a')).toMatchObject({ note: 'changed' });
    expect(await there('a')).toMatchObject({ 'one.jpg': other, 'other.jpg': one });
  });

  it('S2 S8 one that was changed and changed back goes whole: what lay between may come to the server first', async () => {
    const [photo, between] = [picture(), picture()];
    const client = await opened([{ _id: 'a', _attachments: { 'p.jpg': photo } }]);
    offline();
    await client.documents.bulkDocs([{ ...(await local(client, 'a')), _attachments: { 'p.jpg': between } }]);
    const middle = await client.documents.get('a', { attachments: true, revs: true });
    await client.documents.bulkDocs([{ ...(await local(client, 'a')), _attachments: { 'p.jpg': photo } }]);
    const { _rev } = await local(client, 'a');
    await online(client);
    watch();
    // As a request would that was given up before the server had read it.
    bed.server.proxy.intercept(async ({ path }) => {
      if (path.endsWith('/_bulk_docs')) await ask('_bulk_docs', 'POST', { new_edits: false, docs: [middle] });
      return undefined;
    });
    client.syncNow();
    await expect.poll(() => there(`a?rev=${_rev}`)).toMatchObject({ 'p.jpg': photo });
    expect(whole()).toEqual(['a/p.jpg']);
  });

  it('S2 S8 both branches of a conflict keep their own attachments', async () => {
    const [photo, changed] = [picture(), picture()];
    const client = await opened([{ _id: 'a', _attachments: { 'p.jpg': photo } }]);
    const doc = (await local(client, 'a')) as Document;
    await send(
      client,
      [child(doc, x, { side: 'kept' }), child(doc, y, { side: 'changed', _attachments: { 'p.jpg': changed } })],
      { new_edits: false },
    );
    await expect.poll(() => there(`a?rev=2-${x}`)).toMatchObject({ 'p.jpg': photo });
    await expect.poll(() => there(`a?rev=2-${y}`)).toMatchObject({ 'p.jpg': changed });
    await pushed(client);
    expect(whole()).toEqual(['a/p.jpg']);
    const [left, right] = [await ask(`a?rev=2-${x}`), await ask(`a?rev=2-${y}`)];
    requests = [];
    const history = (rev: string, hash: string): object => ({
      start: 3,
      ids: [rev === '3' ? z : rev, hash, doc._rev.slice(2)],
    });
    const more = (await Promise.all(
      [left, right].map(({ _rev }) => client.documents.get('a', { rev: _rev })),
    )) as Document[];
    await send(
      client,
      more.map((one, at) => ({
        ...one,
        _rev: `3-${z.slice(1)}${String(at)}`,
        _revisions: history(`${z.slice(1)}${String(at)}`, at === 0 ? x : y),
      })),
      { new_edits: false },
    );
    await expect.poll(() => there(`a?rev=3-${z.slice(1)}0`)).toMatchObject({ 'p.jpg': photo });
    await expect.poll(() => there(`a?rev=3-${z.slice(1)}1`)).toMatchObject({ 'p.jpg': changed });
    expect(whole()).toEqual([]);
  });

  it('S2 S8 what the server has on another branch only goes whole', async () => {
    const photo = picture();
    const client = await opened([{ _id: 'a' }]);
    const base = await ask('a');
    await ask('_bulk_docs', 'POST', { new_edits: false, docs: [child(base, x, { _attachments: { 'p.jpg': photo } })] });
    offline();
    await client.documents.bulkDocs([{ ...base, _attachments: { 'p.jpg': photo } }]);
    await client.documents.bulkDocs([noted(await local(client, 'a'), 'here')]);
    const { _rev } = await local(client, 'a');
    await online(client);
    watch();
    await expect.poll(() => there(`a?rev=${_rev}`)).toMatchObject({ 'p.jpg': photo });
    expect(whole()).toEqual(['a/p.jpg']);
  });

  it('S2 R11 what the server does not have after all is sent whole in the same attempt, and is no failure', async () => {
    const photos = [picture(), picture(), picture()] as const;
    const client = await opened(
      photos.map((photo, at) => ({ _id: `d${String(at)}`, _attachments: { 'p.jpg': photo } })),
    );
    const { push: before } = await firstValueFrom(client.status$);
    const docs = await Promise.all(photos.map((_, at) => local(client, `d${String(at)}`)));
    // Between the question and the write another branch comes and the body of the ancestor goes.
    let isRaced = false;
    bed.server.proxy.intercept(async ({ path }) => {
      if (!path.endsWith('/_bulk_docs') || isRaced) return undefined;
      isRaced = true;
      await ask('_bulk_docs', 'POST', { new_edits: false, docs: [child(await ask('d1'), z, { _attachments: {} })] });
      await ask('_compact', 'POST', {});
      await expect.poll(() => ask(`d1?rev=${String(docs[1]?._rev)}`)).toMatchObject({ error: 'not_found' });
      return undefined;
    });
    await send(client, [...docs.map((doc) => noted(doc, 'moved')), { _id: 'plain' }]);
    await expect.poll(() => ask('plain')).toMatchObject({ _id: 'plain' });
    await pushed(client);
    for (const [at, photo] of photos.entries()) {
      const id = `d${String(at)}`;
      const { _rev } = await local(client, id);
      expect(await there(`${id}?rev=${_rev}`)).toMatchObject({ 'p.jpg': photo });
    }
    expect(bed.server.proxy.errors()).toEqual([]);
    expect(whole()).toContain('d1/p.jpg');
    expect(requests.length).toBeLessThanOrEqual(4);
    expect(await firstValueFrom(client.failures$)).toEqual([]);
    const { push: after } = await firstValueFrom(client.status$);
    expect(after.attempts - before.attempts).toBeLessThanOrEqual(2);
    expect(after).toMatchObject({ failedAttempts: 0 });
    expect(after.lastError).toBeUndefined();
  });

  it('S2 R11 so is what a server refuses for a stub in a row of its own', async () => {
    const photo = picture();
    const client = await opened([{ _id: 'a', _attachments: { 'p.jpg': photo } }]);
    let refusals = 0;
    bed.server.proxy.intercept(({ path, json }) => {
      if (!path.endsWith('/_bulk_docs')) return undefined;
      const { docs } = json() as { docs: Document[] };
      const lacking = docs.filter(({ _attachments = {} }) => Object.values(_attachments).some(({ stub }) => stub));
      if (lacking.length === 0) return undefined;
      refusals++;
      const body = lacking.map(({ _id: id }) => ({ id, error: 'missing_stub', reason: 'made up' }));
      return { status: 201, body };
    });
    await send(client, [noted(await local(client, 'a'), 'moved')]);
    await expect.poll(() => ask('a')).toMatchObject({ note: 'moved' });
    await pushed(client);
    expect(refusals).toBe(1);
    expect(whole()).toEqual(['a/p.jpg']);
    expect(await there('a')).toMatchObject({ 'p.jpg': photo });
    expect(await firstValueFrom(client.failures$)).toEqual([]);
  });

  it('R11 requests are as large as what they send: many rewritten documents with a photo go in one', async () => {
    const photos = Array.from({ length: 8 }, () => picture());
    const client = await opened(
      photos.map((photo, at) => ({ _id: `d${String(at)}`, _attachments: { 'p.jpg': photo } })),
      { maxRequestBytes: 60_000 },
    );
    const docs = await Promise.all(photos.map((_, at) => local(client, `d${String(at)}`)));
    await send(
      client,
      docs.map((doc) => noted(doc, 'moved')),
    );
    await expect.poll(() => ask('d7')).toMatchObject({ note: 'moved' });
    await pushed(client);
    expect(requests).toHaveLength(1);
    expect(await there('d7')).toMatchObject({ 'p.jpg': photos[7] });
  });
});
