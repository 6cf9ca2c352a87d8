import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PendingFileError } from './model/errors.js';
import type { Client, ClientOptions } from './model/client.js';
import { paint, TestBed } from './test-bed.fixture.js';

const server = 'http://couch.test/records';
/** No server answers in these tests. */
const noServer = { fetch: (): Promise<never> => Promise.reject(new TypeError('Failed to fetch')) };

describe('a file of pending work', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(() => bed.close());

  const open = (name: string, options: Partial<ClientOptions> = {}): Client =>
    bed.open({ name, server, user: 'amber', environment: noServer, ...options });
  /** Two operations done and one failed, a bulk operation that is paused, and an edit. */
  const worked = async (name = 'old'): Promise<Client> => {
    const client = open(name);
    await bed.seed(client, 3);
    const done = await client.enqueue(paint(['d0000', 'd0001', 'nowhere'], 'blue', { key: 'done' }));
    await bed.settled(client, done.bulkOperationId);
    const { bulkOperationId } = await client.enqueue(paint(['d0002'], 'green', { lane: 'slow', target: 'server' }));
    await client.pause(bulkOperationId);
    return client;
  };
  const textOf = async (): Promise<string> => (await (await worked()).exportPending()).text();
  const refusal = async (client: Client, text: string): Promise<PendingFileError> => {
    const error: unknown = await client.importPending(text).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(PendingFileError);
    return error as PendingFileError;
  };
  const isEmpty = async (client: Client): Promise<void> => {
    expect(await bed.list(client)).toEqual([]);
    expect((await client.documents.allDocs({})).rows).toEqual([]);
    expect(await client.listFailures()).toEqual([]);
  };

  it('S7 brings bulk operations as they stood, failures and documents, and says what it holds', async () => {
    const client = await worked();
    const file = await client.exportPending();
    const [head] = (await file.text()).split('\n');
    expect(JSON.parse(head ?? '')).toMatchObject({
      format: 'afield-pending',
      version: 1,
      store: await client.storeId,
      user: 'amber',
      server,
      counts: { bulkOperations: 2, operations: 4, documents: 3 },
    });
    const other = open('new');
    expect(await other.importPending(file)).toEqual({
      bulkOperations: 2,
      operations: 4,
      documents: 3,
      duplicates: 0,
      paused: 1,
    });
    const shown = (all: Awaited<ReturnType<TestBed['list']>>): unknown[] =>
      all.map(({ id, key, state, cursor, total, applied, failed, lane }) => ({
        id,
        key,
        state,
        cursor,
        total,
        applied,
        failed,
        lane,
      }));
    expect(shown(await bed.list(other))).toEqual(shown(await bed.list(client)));
    expect(await bed.colours(other)).toEqual(['blue', 'blue', 'red']);
    expect(await other.listFailures()).toEqual(await client.listFailures());
  });

  it('S7 the same file twice brings nothing twice, nor what was queued under the same key since', async () => {
    const file = await (await worked()).exportPending();
    const other = open('new');
    await other.importPending(file);
    const nothing = { bulkOperations: 0, operations: 0, documents: 0, duplicates: 2, paused: 0 };
    expect(await other.importPending(file)).toEqual(nothing);
    expect(await bed.list(other)).toHaveLength(2);
    expect(await other.enqueue(paint(['d0000', 'd0001', 'nowhere'], 'blue', { key: 'done' }))).toMatchObject({
      duplicate: true,
    });
    const third = open('third');
    const { bulkOperationId } = await third.enqueue(paint(['d0000', 'd0001', 'nowhere'], 'blue', { key: 'done' }));
    expect(await third.importPending(file)).toMatchObject({ bulkOperations: 1, duplicates: 1 });
    expect((await bed.list(third)).map(({ id }) => id)).toContain(bulkOperationId);
  });

  it('S7 R19 in a store that was used before, failures are those that they were', async () => {
    const failed = async (name: string, id: string): Promise<Client> => {
      const client = open(name);
      const { bulkOperationId } = await client.enqueue(paint([id], 'blue'));
      await bed.settled(client, bulkOperationId);
      await bed.rest();
      await client.close();
      return open(name, { autoStart: false });
    };
    const old = await failed('old', 'theirs');
    await old.retryFailed();
    await old.documents.put({ _id: 'theirs', colour: 'red' });
    const other = await failed('new', 'own');
    expect(await other.importPending(await old.exportPending())).toMatchObject({ bulkOperations: 2 });
    await other.start();
    await bed.until(async () => (await bed.list(other)).every(({ state }) => state.startsWith('done')));
    expect((await other.listFailures()).map(({ id }) => id)).toEqual(['own']);
    expect(await other.listFailures({ resolved: true })).toMatchObject([
      { id: 'theirs', resolution: { how: 'retried' } },
    ]);
    expect(await bed.colours(other)).toEqual(['blue']);
  });

  it('S7 O8 events are listed page by page, also those that come from another store', async () => {
    const file = await (await worked()).exportPending();
    const other = open('new');
    await bed.seed(other, 1);
    const own = await other.enqueue(paint(['d0000'], 'pink'));
    await bed.settled(other, own.bulkOperationId);
    await other.importPending(file);
    const last = await other.enqueue(paint(['d0000', 'd0001'], 'white'));
    await bed.settled(other, last.bulkOperationId);
    const all = await other.listEvents();
    expect(all).toHaveLength(5);
    const paged = [];
    for (let after = all[0]; after !== undefined;) {
      paged.push(after);
      [after] = await other.listEvents({ after, limit: 1 });
    }
    expect(paged).toEqual(all);
    // Each names the event before it on its document, whichever store has made that.
    const [, brought, second, ...rest] = all;
    expect(rest.map(({ previous }) => previous)).toEqual([brought?.id, second?.id]);
    expect(new Set(all.map(({ store }) => store)).size).toBe(2);
  });

  it('S7 O4 a key that stands for other content here: nothing is imported', async () => {
    const text = await textOf();
    const other = open('new', { autoStart: false });
    await other.enqueue(paint(['elsewhere'], 'blue', { key: 'done' }));
    expect(await refusal(other, text)).toMatchObject({ code: 'key_conflict' });
    expect(await bed.list(other)).toHaveLength(1);
  });

  it.each([
    ['another user', { user: 'birch' }, 'other_user'],
    ['another server', { server: 'http://couch.test/others' }, 'other_server'],
  ])('S7 is refused in a store of %s', async (_what, options, code) => {
    const text = await textOf();
    const other = open('new', options);
    expect(await refusal(other, text)).toMatchObject({ code });
    await isEmpty(other);
  });

  it('S7 a store that is for nobody yet is for the person whose work it takes in', async () => {
    const file = await (await worked()).exportPending();
    const other = bed.open({ name: 'new', environment: noServer });
    await other.importPending(file);
    await other.close();
    await expect(open('new', { user: 'birch' }).storeId).rejects.toMatchObject({ code: 'other_user' });
  });

  it('S9 a file that was cut off is refused, wherever it ends', async () => {
    const text = await textOf();
    const other = open('new');
    for (let end = 0; end < text.length; end += 97) {
      expect((await refusal(other, text.slice(0, end))).code).toMatch(/not_a_pending_file|file_cut/);
    }
    expect(await refusal(other, text.slice(0, -1))).toMatchObject({ code: 'file_cut' });
    await isEmpty(other);
  });

  it('S9 a changed line is refused, with its number and its field where that is what is wrong', async () => {
    const lines = (await textOf()).split('\n');
    const other = open('new');
    const changed = (number: number, from: string | RegExp, to: string): string =>
      lines.map((line, at) => (at === number - 1 ? line.replace(from, to) : line)).join('\n');
    const at = (kind: string): number => lines.findIndex((line) => line.startsWith(`{"kind":"${kind}"`)) + 1;
    const wrong: [number, string | RegExp, string, object][] = [
      [at('standing'), '"cursor":3', '"cursor":"3"', { code: 'file_invalid', field: 'standing.cursor' }],
      [at('standing'), '"cursor":3', '"cursor":4', { code: 'file_invalid' }],
      [at('operations'), '"operations":[', '"operations":', { code: 'file_invalid' }],
      [at('operations'), '"from":0', '"from":100', { code: 'file_invalid' }],
      [at('batch'), '"s":"applied"', '"s":"done"', { code: 'file_invalid', field: 'rows.0.s' }],
      [at('document'), '"_revisions"', '"revisions"', { code: 'file_invalid', field: 'doc' }],
      [at('bulk-operation'), '"kind":"bulk-operation"', '"kind":"other"', { code: 'file_invalid', field: 'kind' }],
    ];
    for (const [number, from, to, expected] of wrong) {
      const error = await refusal(other, changed(number, from, to));
      expect(error).toMatchObject({ ...expected, line: number });
      expect(error.message).toContain(`Line ${String(number)}`);
    }
    expect(await refusal(other, changed(at('document'), '"colour":"blue"', '"colour":"pink"'))).toMatchObject({
      code: 'file_changed',
    });
    expect(await refusal(other, `${lines.join('\n')}{}\n`)).toMatchObject({ code: 'file_changed' });
    await isEmpty(other);
  });

  it('S10 a file of a later version is refused politely, and what is no such file at all', async () => {
    const text = await textOf();
    const other = open('new');
    expect(await refusal(other, text.replace('"version":1', '"version":2'))).toMatchObject({
      code: 'file_too_new',
      message: expect.stringContaining('Update the app') as unknown,
    });
    for (const none of ['', '\n', 'hello\n', '{}\n', '{"format":"other"}\n']) {
      expect((await refusal(other, none)).code).toBe('not_a_pending_file');
    }
    expect(await refusal(other, 7 as never)).toMatchObject({ code: 'not_a_pending_file' });
    await isEmpty(other);
  });
});
