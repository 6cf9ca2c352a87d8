import { bytesPerDocument, rowsPerDocument } from '@afield/client/results';
import { Refusal } from '@afield/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { minute, ResultsBed } from './results-bed.js';

const bytesOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length;
const missing = (count: number, more: object = {}): { id: string; patch: object }[] =>
  Array.from({ length: count }, (_, at) => ({
    id: `m${String(at).padStart(5, '0')}`,
    patch: { to: 'secret', ...more },
  }));

describe('what is on the server of results and failures', () => {
  let bed: ResultsBed;
  beforeEach(() => {
    bed = new ResultsBed();
  });
  afterEach(() => bed.dispose());

  const reported = (client: ReturnType<ResultsBed['open']>): Promise<unknown> =>
    bed.becomes(client, ({ pending, unreported, results }) => pending + unreported === 0 && results.state === 'idle');

  it('S1 a failures document shows its codes and times at the top, where one index finds them', async () => {
    const client = bed.open({ user: 'ann' });
    const bulkOperation = await bed.fail(client, [...missing(2), { patch: {} }, { id: '_wrong', patch: {} }]);
    await reported(client);
    await bed.device.until(client.discard({ code: 'no_id' }));
    await reported(client);
    const [doc] = bed.failureDocs();
    const store = await client.storeId;
    expect(doc).toMatchObject({
      _id: `failures:${store}:${bulkOperation}:0`,
      store,
      bulkOperation,
      sequence: 1,
      chunk: 0,
    });
    expect(doc).toMatchObject({
      codes: ['invalid_id', 'missing', 'no_id'],
      openCodes: ['invalid_id', 'missing'],
      open: 3,
    });
    for (const one of bed.all('')) expect(one).toMatchObject({ v: 1, store, user: 'ann' });
    const times = doc?.operations.map(({ at }) => at) ?? [];
    expect([doc?.firstAt, doc?.lastAt]).toEqual([Math.min(...times), Math.max(...times)]);
    expect(bed.resultDocs()).toMatchObject([{ state: 'done-with-failures', failed: 3, resolved: 1, store }]);
  });

  it('S1 a shared database gets no reason and no content, whatever `redact` would let through', async () => {
    const client = bed.open({ redact: ({ content }) => content });
    await bed.fail(client, missing(1));
    await reported(client);
    expect(bed.failureDocs()[0]?.operations).toMatchObject([{ id: 'm00000', code: 'missing', fields: ['patch'] }]);
    const text = JSON.stringify(bed.all(''));
    for (const secret of ['secret', 'reason', '"content"']) expect(text).not.toContain(secret);
  });

  it('S1 a database of this user alone gets the reason, and what `redact` leaves of the content', async () => {
    const results = { url: bed.server.urlOf('results'), content: true };
    const client = bed.open({
      results,
      redact: ({ action, id }) => (id === 'm00000' ? { of: action, id } : undefined),
    });
    await bed.fail(client, missing(2));
    await reported(client);
    const [first, second] = bed.failureDocs()[0]?.operations ?? [];
    expect(first).toMatchObject({ content: { of: 'update', id: 'm00000' } });
    expect(first?.reason).not.toBe('');
    expect(first?.reason).toBeDefined();
    expect(second).not.toHaveProperty('content');
    expect(second).not.toHaveProperty('withheld');
    expect(JSON.stringify(bed.all(''))).not.toContain('secret');
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('secret');
      },
    ],
    ['answers with a promise', () => Promise.resolve('secret')],
    [
      'answers with what contains itself',
      () => {
        const own: Record<string, unknown> = { secret: 1 };
        return (own['own'] = own);
      },
    ],
  ])(
    'S1 when `redact` %s nothing of that content is sent, and one warning without content says so',
    async (_what, redact) => {
      const client = bed.open({ results: { url: bed.server.urlOf('results'), content: true }, redact });
      await bed.fail(client, missing(3));
      await reported(client);
      expect(bed.failureDocs()[0]?.operations.map(({ withheld }) => withheld)).toEqual(Array(3).fill('redact_failed'));
      expect(JSON.stringify(bed.all(''))).not.toContain('secret');
      expect(bed.warnings).toHaveLength(1);
      expect(bed.warnings[0]).toContain('`redact`');
      expect(bed.warnings[0]).not.toContain('secret');
    },
  );

  it('S1 a failures document has at most 100 rows and 500 kB in bytes; one content that is larger is left out', async () => {
    const client = bed.open({ results: { url: bed.server.urlOf('results'), content: true } });
    // Three bytes each in UTF-8: by characters four of these would go into one document.
    const notes = [...missing(8, { note: '€'.repeat(40_000) }), { id: 'huge', patch: { note: '€'.repeat(170_000) } }];
    await bed.fail(client, [...missing(205).map(({ id, patch }) => ({ id: `x${id}`, patch })), ...notes]);
    await reported(client);
    const docs = bed.failureDocs();
    for (const doc of docs) expect(bytesOf(doc)).toBeLessThanOrEqual(bytesPerDocument);
    expect(Math.max(...docs.map(({ operations }) => operations.length))).toBe(rowsPerDocument);
    const rows = docs.flatMap(({ operations }) => operations);
    expect(rows).toHaveLength(214);
    expect(rows.filter(({ withheld }) => withheld === 'too_large').map(({ id }) => id)).toEqual(['huge']);
    expect(rows.filter(({ content }) => content !== undefined)).toHaveLength(213);
  });

  it('S1 requests stay within maxRequestBytes, and a document that the server finds too large goes without contents', async () => {
    const most = 20_000;
    bed.around = (path, body) =>
      path === '/results/_bulk_docs' && bytesOf(body) > most
        ? Response.json({ error: 'too_large', reason: 'x' }, { status: 413 })
        : undefined;
    const client = bed.open({ maxRequestBytes: most, results: { url: bed.server.urlOf('results'), content: true } });
    await bed.fail(client, missing(5, { note: 'x'.repeat(10_000) }));
    await bed.create(client, 'a');
    await reported(client);
    expect(bed.resultDocs()).toHaveLength(2);
    expect(bed.failureDocs()[0]?.operations.map(({ withheld }) => withheld)).toEqual(Array(5).fill('too_large'));
  });

  it('S1 a failures document that is no longer needed is emptied', async () => {
    bed.records.validate = () => new Refusal(403, 'forbidden', 'not now');
    const client = bed.open();
    await bed.create(client, 'a');
    await bed.becomes(client, ({ failed, unreported }) => failed === 1 && unreported === 0);
    await reported(client);
    expect(bed.failureDocs()[0]).toMatchObject({
      codes: ['forbidden'],
      open: 1,
      operations: [{ id: 'a', refused: true }],
    });
    bed.records.validate = undefined;
    await bed.device.until(client.retryFailed());
    await bed.becomes(client, ({ failed, unreported }) => failed + unreported === 0);
    await reported(client);
    expect(bed.failureDocs()[0]).toMatchObject({ codes: [], openCodes: [], open: 0, lastAt: null, operations: [] });
    expect(bed.resultDocs()).toMatchObject([{ state: 'done', applied: 1, failed: 0 }]);
  });

  it('S1 an edit of the app that the server refused is a failure of its own there, and goes when it is taken', async () => {
    bed.records.validate = () => new Refusal(403, 'forbidden', 'not now');
    const client = bed.open();
    await client.documents.put({ _id: 'own', note: 'secret' });
    const store = await client.storeId;
    await expect.poll(async () => (await bed.device.clock.advance(1000), bed.failureDocs().length)).toBe(1);
    expect(bed.failureDocs()[0]).toMatchObject({
      _id: `failures:${store}:edits:0`,
      bulkOperation: null,
      sequence: null,
      codes: ['forbidden'],
      operations: [{ id: 'own', index: null, action: null, code: 'forbidden' }],
    });
    expect(await bed.deviceDoc(client)).toMatchObject({ failed: 1, drained: false });
    bed.records.validate = undefined;
    await bed.device.until(client.retryFailed());
    await expect.poll(async () => (await bed.device.clock.advance(1000), bed.failureDocs()[0]?.open)).toBe(0);
    await reported(client);
    expect(await bed.deviceDoc(client)).toMatchObject({ failed: 0, drained: true });
  });

  it('S1 a bulk operation that waits reports with its cause and its failures so far, at most every five minutes', async () => {
    let isServing = false;
    bed.around = (path) =>
      path.startsWith('/records') && !isServing
        ? Response.json({ error: 'x', reason: 'x' }, { status: 503 })
        : undefined;
    const client = bed.open();
    const queuedAt = bed.device.clock.wall();
    await bed.device.until(
      client.enqueue({ target: 'server', actions: [{ action: 'create', operations: [{ id: 'a', doc: {} }] }] }),
    );
    await bed.device.clock.advance(4 * minute);
    expect(bed.resultDocs()).toEqual([]);
    await bed.device.clock.advance(2 * minute);
    const waiting = { state: 'waiting-retry', cursor: 0, total: 1, notDone: 1, queuedAt };
    expect(bed.resultDocs()).toMatchObject([{ ...waiting, lastError: { class: 'server', code: '503' } }]);
    expect(await bed.deviceDoc(client)).toMatchObject({
      pending: 1,
      asOf: 0,
      oldestUnsentAt: queuedAt,
      drained: false,
    });
    const sent = bed.seen.length;
    // Nothing new: nothing is sent again.
    await bed.device.clock.advance(60 * minute);
    expect(bed.seen.length).toBe(sent);
    isServing = true;
    client.syncNow();
    await reported(client);
    expect(bed.resultDocs()).toMatchObject([{ state: 'done', applied: 1 }]);
    expect(bed.resultDocs()[0]).not.toHaveProperty('lastError');
  });

  it('S1 a bulk operation that changes all the time reports no more than once in five minutes', async () => {
    const client = bed.open({ batchSize: 1, ramp: () => 20_000 });
    let calls = 0;
    bed.around = (path) => {
      if (!path.startsWith('/records/_bulk_docs')) return undefined;
      calls++;
      return calls % 3 === 0 ? undefined : Response.json({ error: 'x', reason: 'x' }, { status: 503 });
    };
    const operations = Array.from({ length: 100 }, (_, at) => ({ id: `d${String(at)}`, doc: {} }));
    await bed.device.until(client.enqueue({ target: 'server', actions: [{ action: 'create', operations }] }));
    for (let passed = 0; passed < 30; passed++) await bed.device.clock.advance(minute);
    const writes = bed.seen.filter(
      ({ path, ids }) => path.endsWith('_bulk_docs') && ids.some((id) => id.startsWith('result:')),
    );
    expect(bed.resultDocs()[0]?.cursor).toBeGreaterThan(10);
    expect(writes.length).toBeGreaterThanOrEqual(4);
    expect(writes.length).toBeLessThanOrEqual(6);
  });

  it('S1 an older tab does not write an older result over a newer one, and its other results go there', async () => {
    const client = bed.open();
    await bed.fail(client, missing(1));
    await reported(client);
    const [doc] = bed.all('result:');
    const newer = { ...doc, changes: 1000, applied: 77 };
    bed.results.write([newer]);
    await bed.device.until(client.discard({}));
    await bed.create(client, 'a');
    await bed.becomes(client, ({ pending, unreported, results }) => {
      return pending === 0 && unreported === 1 && results.failedAttempts > 0;
    });
    const bySequence = [...bed.resultDocs()].sort((one, other) => one.sequence - other.sequence);
    expect(bySequence).toMatchObject([{ applied: 77 }, { state: 'done', applied: 1 }]);
    expect(bed.failureDocs()[0]).toMatchObject({ open: 1 });
  });

  it('S1 a results document that is refused holds up no other', async () => {
    let refuses = true;
    bed.results.validate = (doc) =>
      refuses && doc['sequence'] === 1 ? new Refusal(403, 'forbidden', 'not this one') : undefined;
    const client = bed.open();
    for (const id of ['a', 'b', 'c']) await bed.create(client, id);
    await bed.becomes(client, ({ unreported, results }) => unreported === 1 && results.state === 'waiting-retry');
    expect(
      bed
        .resultDocs()
        .map(({ sequence }) => sequence)
        .sort(),
    ).toEqual([2, 3]);
    refuses = false;
    client.syncNow();
    await reported(client);
    expect(
      bed
        .resultDocs()
        .map(({ sequence }) => sequence)
        .sort(),
    ).toEqual([1, 2, 3]);
  });

  it('S1 what the server has already as it is is not written again', async () => {
    let isLost = true;
    const client = bed.open();
    bed.around = (path, body) => {
      if (path !== '/results/_bulk_docs' || !body.includes('result:') || !isLost) return undefined;
      isLost = false;
      bed.results.write((JSON.parse(body) as { docs: object[] }).docs);
      return Response.json({ error: 'gone', reason: 'the answer got lost' }, { status: 502 });
    };
    await bed.create(client, 'a');
    await reported(client);
    expect(isLost).toBe(false);
    expect(bed.all('result:')).toMatchObject([{ _rev: expect.stringMatching(/^1-/) as string }]);
  });

  it.each([
    ['100 bulk operations of 100', 100, 100, 25],
    ['200 bulk operations of one', 200, 1, 4],
  ])('S1 the results of %s failed operations take at most so many requests', async (_what, bulks, each, most) => {
    bed.isDown = true;
    const client = bed.open({ replication: 'off' });
    for (let bulk = 0; bulk < bulks; bulk++) {
      const operations = missing(each);
      await client.enqueue({ target: 'local', actions: [{ action: 'update', operations }] });
    }
    await bed.becomes(client, ({ pending }) => pending === 0);
    bed.isDown = false;
    client.syncNow();
    await reported(client);
    expect(bed.resultDocs()).toHaveLength(bulks);
    expect(bed.failureDocs().reduce((sum, { open }) => sum + open, 0)).toBe(bulks * each);
    expect(Math.max(...bed.seen.map(({ bytes }) => bytes))).toBeLessThanOrEqual(1_000_000);
    expect(bed.seen.length).toBeLessThanOrEqual(most);
  });
});
