import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { couchdbPublisher, type Client } from '@afield/client';
import { TroubleBed, type Stored } from './trouble-bed.js';

const numbered = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, at) => `d${String(from + at).padStart(3, '0')}`);
const red = (ids: readonly string[]): { _id: string; colour: string }[] => ids.map((_id) => ({ _id, colour: 'red' }));

describe('S2 a server that is not the one that it was', () => {
  let bed: TroubleBed;
  beforeAll(async () => {
    bed = await TroubleBed.open();
  });
  beforeEach(() => bed.begin());
  afterEach(() => bed.end());
  afterAll(() => bed.server.close());

  it('S2 a database that was made anew gets everything again, though nothing new is to be pushed', async () => {
    const client = bed.client();
    await client.documents.bulkDocs(red(numbered(120)));
    await bed.pushed(client);
    await bed.recreate();
    await bed.arrived(numbered(120));
  });

  it('S2 a database that was made anew before the first mark says what it has gets everything again', async () => {
    const client = bed.client({ pullEveryS: 3600 });
    await client.documents.bulkDocs(red(['a']));
    await bed.pushed(client);
    await client.documents.bulkDocs(red(['b']));
    await bed.arrived(['a', 'b']);
    await bed.recreate();
    client.syncNow();
    await bed.arrived(['a', 'b']);
  });

  it('S2 a database that was made anew while the app was closed gets everything again, with a new app’s first push', async () => {
    const name = bed.newName();
    const before = bed.client({ name });
    await before.documents.bulkDocs(red(numbered(120)));
    await bed.pushed(before);
    await before.close();
    await bed.recreate();
    const client = bed.client({ name, pullEveryS: 3600 });
    await client.documents.bulkDocs(red(['new']));
    await bed.arrived([...numbered(120), 'new']);
  });

  it('S2 a database that is made anew in the middle of a push has everything afterwards', async () => {
    let writes = 0;
    bed.onRequest = async ({ path }) => {
      if (path.endsWith('/_bulk_docs') && ++writes === 8) await bed.recreate();
    };
    const client = bed.client();
    await client.documents.bulkDocs(red(numbered(250)));
    await bed.arrived(numbered(250));
    expect(writes).toBeGreaterThan(12);
  });

  it('S2 a backup of files that lies behind gets what came later, and the rest is not even asked for', async () => {
    const client = bed.client();
    await client.documents.bulkDocs(red(numbered(120)));
    await bed.pushed(client);
    await bed.marked(client);
    const backup = await bed.backUp(await bed.markOf(client));
    await client.documents.bulkDocs(red(numbered(10, 120)));
    await bed.pushed(client);
    await bed.marked(client);
    bed.sent.length = 0;
    await bed.restore(backup);
    await bed.arrived(numbered(130));
    expect(new Set(bed.named('/_revs_diff'))).toEqual(new Set(numbered(10, 120)));
    expect(bed.named('/_bulk_docs').sort()).toEqual(numbered(10, 120));
  });

  it('S2 a backup of documents that lies behind gets what it lacks, and nothing else is sent', async () => {
    const client = bed.client();
    await client.documents.bulkDocs(red(numbered(120)));
    await bed.pushed(client);
    const backup = await bed.backUp();
    await bed.paint(client, ['d003'], 'blue');
    await client.documents.bulkDocs(red(['new']));
    await bed.pushed(client);
    await bed.marked(client);
    bed.sent.length = 0;
    await bed.restore(backup);
    await bed.arrived([...numbered(120), 'new']);
    await expect.poll(() => bed.ask('/d003')).toMatchObject({ colour: 'blue' });
    expect(bed.named('/_bulk_docs').sort()).toEqual(['d003', 'new']);
  });

  it('S2 what was delivered after the last mark is not counted as there when the backup has that mark', async () => {
    const name = bed.newName();
    const before = bed.client({ name, pullEveryS: 3600 });
    await before.documents.bulkDocs(red(numbered(3)));
    await bed.pushed(before);
    const backup = await bed.backUp(await bed.markOf(before));
    await before.documents.bulkDocs(red(['late']));
    await bed.arrived([...numbered(3), 'late']);
    await before.close();
    await bed.restore({ ...backup, docs: backup.docs.slice(0, 1) });
    bed.client({ name });
    await bed.arrived([...numbered(3), 'late']);
  });

  it('S2 what was refused first and taken later is not lost with a backup from between', async () => {
    const design = {
      validate_doc_update: "function (doc) { if (doc.colour === 'black') throw { forbidden: 'no black' }; }",
    };
    await bed.ask('/_design/no-black', 'PUT', design);
    const client = bed.client();
    await client.documents.bulkDocs([{ _id: 'a', colour: 'black' }, ...red(['b'])]);
    await bed.failures(client, 1);
    await bed.marked(client, 2);
    const { _rev } = await bed.ask('/_design/no-black');
    await bed.ask(`/_design/no-black?rev=${String(_rev)}`, 'DELETE');
    const backup = await bed.backUp(await bed.markOf(client));
    await client.retryFailed({ code: 'forbidden' });
    await bed.arrived(['a', 'b']);
    const mark = await bed.markOf(client);
    await expect.poll(() => bed.ask(mark), { timeout: 10_000 }).toMatchObject({ late: 1 });
    await bed.restore(backup);
    await bed.arrived(['a', 'b']);
  });

  it('S2 a mark whose answer got lost makes the push ask again, and send nothing twice', async () => {
    bed.server.proxy.addRule({
      when: { method: 'PUT', path: '/_local/afield-push*', nth: 2 },
      do: { type: 'reset', commit: true },
    });
    const client = bed.client();
    await client.documents.bulkDocs(red(numbered(20)));
    await bed.pushed(client);
    await bed.marked(client);
    await bed.paint(client, ['d001'], 'blue');
    await bed.pushed(client);
    await bed.marked(client);
    expect(bed.named('/_bulk_docs').sort()).toEqual([...numbered(20), 'd001'].sort());
  });

  it('S2 the checkpoint survives a new build: its name and its content say nothing of code, and nothing is asked again', async () => {
    const name = bed.newName();
    const before = bed.client({ name, appVersion: 'one' });
    await before.documents.bulkDocs(red(numbered(120)));
    await bed.pushed(before);
    await bed.marked(before);
    const storeId = await before.storeId;
    const mark = await bed.ask(await bed.markOf(before));
    await before.close();
    bed.sent.length = 0;
    const client = bed.client({ name, appVersion: 'two' });
    await client.documents.bulkDocs(red(['new']));
    await bed.arrived([...numbered(120), 'new']);
    expect(new Set(bed.named('/_revs_diff'))).toEqual(new Set(['new']));
    expect(mark['_id']).toBe(`_local/afield-push-v1-${storeId}`);
    const { _id, _rev, mark: id, source, ...rest } = mark as Stored & { mark: string; source: string };
    expect([typeof _id, typeof _rev]).toEqual(['string', 'string']);
    expect(rest).toEqual({ v: 1, since: 120, late: 0 });
    expect(`${id} ${source}`).toMatch(/^[\w-]+ [\w-]+$/);
  });

  it('S2 a mark of another shape is not believed: all is asked for, and nothing is sent that is there', async () => {
    const client = bed.client();
    await client.documents.bulkDocs(red(numbered(20)));
    await bed.pushed(client);
    await bed.marked(client);
    const path = await bed.markOf(client);
    const { _rev } = await bed.ask(path);
    bed.sent.length = 0;
    await bed.ask(path, 'PUT', { _rev, v: 1, mark: 7, since: 'x' });
    await bed.marked(client);
    expect(new Set(bed.named('/_revs_diff'))).toEqual(new Set(numbered(20)));
    expect(bed.named('/_bulk_docs')).toEqual([]);
  });

  it('S2 while nothing is new, a look costs one request, and no write to the store', async () => {
    const client = bed.client();
    await client.documents.bulkDocs(red(numbered(20)));
    await bed.pushed(client);
    await bed.marked(client);
    const { push } = await bed.status(client, () => true);
    bed.sent.length = 0;
    const looks = (): Stored[] => bed.sent.filter(({ path }) => path.startsWith('/_local/afield-push'));
    await expect.poll(() => looks().length, { timeout: 10_000 }).toBeGreaterThan(2);
    expect(new Set(looks().map(({ method }) => method))).toEqual(new Set(['GET']));
    expect(bed.named('/_revs_diff')).toEqual([]);
    expect((await bed.status(client, () => true)).push.attempts).toBe(push.attempts);
  });

  it('S2 a server that takes no mark is pushed to all the same, and found out by its newest documents', async () => {
    bed.server.proxy.addRule({
      when: { method: 'PUT', path: '/_local/afield-push*' },
      do: { type: 'answer', status: 403, body: { error: 'forbidden', reason: 'made up' } },
    });
    const client = bed.client();
    await client.documents.bulkDocs(red(numbered(120)));
    await bed.pushed(client);
    await bed.arrived(numbered(120));
    expect(await bed.status(client, ({ signInRequired }) => !signInRequired)).toMatchObject({ failed: 0 });
    await bed.recreate();
    await bed.arrived(numbered(120));
  });

  describe('the database of events', () => {
    let events: string;
    const ids = numbered(30);
    beforeEach(async () => {
      const { name } = await bed.databases.create('events', { security: 'everyone' });
      events = `${bed.server.url}/${name}`;
    });
    const publishing = (name: string): Client =>
      bed.client({ name, publishers: [couchdbPublisher({ url: events })], appVersion: name });
    const published = async (client: Client, count: number): Promise<void> => {
      await bed.status(client, ({ pending, unpublished }) => pending === 0 && unpublished === 0);
      await expect.poll(() => bed.countIn(events), { timeout: 10_000 }).toBe(count);
    };

    it('O7 S2 made anew while the app was closed: the events that are still kept are published once more', async () => {
      const name = bed.newName();
      const before = publishing(name);
      await before.documents.bulkDocs(red(ids));
      await bed.paint(before, ids, 'blue');
      await published(before, 30);
      await before.close();
      await bed.recreate(events);
      await published(publishing(name), 30);
    });

    it('O7 S2 restored from a backup of files: what came after its mark is published again, and nothing before', async () => {
      const name = bed.newName();
      const before = publishing(name);
      await before.documents.bulkDocs(red(ids));
      await bed.paint(before, ids, 'blue');
      await published(before, 30);
      await before.close();
      const between = publishing(name);
      const mark = `/_local/afield-events-v1-${await between.storeId}-couchdb`;
      await expect
        .poll(async () => String((await bed.ask(mark, 'GET', undefined, events))['text']))
        .toContain('"upTo":1');
      const backup = await bed.backUp(mark, events);
      await bed.paint(between, ['d001'], 'green');
      await published(between, 31);
      await between.close();
      const after = publishing(name);
      await after.storeId;
      await expect
        .poll(async () => String((await bed.ask(mark, 'GET', undefined, events))['text']))
        .toContain('"upTo":2');
      await after.close();
      await bed.restore(backup, events);
      expect(await bed.countIn(events)).toBe(30);
      const sent: string[] = [];
      bed.server.proxy.onRequest(({ url, body }) => {
        if (url.startsWith(new URL(events).pathname) && url.endsWith('/_bulk_docs')) sent.push(body.toString());
      });
      await published(publishing(name), 31);
      expect(sent.map((text) => (JSON.parse(text) as { docs: unknown[] }).docs.length)).toEqual([1]);
    });

    it('O6 S2 while it is the same, a client that starts again publishes nothing again', async () => {
      const name = bed.newName();
      const before = publishing(name);
      await before.documents.bulkDocs(red(ids));
      await bed.paint(before, ids, 'blue');
      await published(before, 30);
      await before.close();
      const writes: string[] = [];
      bed.server.proxy.onRequest(({ url }) => {
        if (url.startsWith(new URL(events).pathname)) writes.push(url.slice(new URL(events).pathname.length));
      });
      const client = publishing(name);
      await client.storeId;
      await expect.poll(() => writes.length).toBeGreaterThan(1);
      await bed.status(client, ({ publishers }) => publishers['couchdb']?.state === 'idle');
      expect(writes.filter((url) => !url.startsWith('/_local/'))).toEqual([]);
    });
  });
});
