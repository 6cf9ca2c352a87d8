import { expect, it } from 'vitest';
import { stubServer } from '../http/stub-server.fixture.js';
import type { Doc } from '../model/json.js';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import type { PushData } from './checkpoint.js';
import { knownAttachments } from './known-attachments.js';
import { pushErrand } from './push.js';
import { readBounded } from './read-bounded.js';
import type { Refusals, Refused } from './refusals.js';
import { quietWatch } from './watch.fixture.js';

/** The server is always the one that it was. */
const checkpoint = { look: (data: PushData) => Promise.resolve(data) };

const bytesOf = (text: string): number => new TextEncoder().encode(text).length;

/** A local store with documents, a server that takes requests up to a size, and the push between them. */
async function pushing(docs: readonly Doc[], most: number, maxRequestBytes: number) {
  const PouchDB = memoryPouch();
  const local = new LocalDatabase(() => new PouchDB('documents'));
  await local.write(docs);
  const stored = new Set<string>();
  const writes: { bytes: number; refused: boolean }[] = [];
  const failed: { id: string; code: string }[] = [];
  const server = stubServer((path, text) => {
    const body = JSON.parse(text) as Record<string, string[]> & { docs?: Doc[] };
    if (path === '/_revs_diff') {
      const missing = Object.entries(body).map(([id, revs]) => [
        id,
        { missing: revs.filter((rev) => !stored.has(id + rev)) },
      ]);
      return {
        json: Object.fromEntries(missing.filter(([, one]) => (one as { missing: string[] }).missing.length > 0)),
      };
    }
    const refused = bytesOf(text) > most;
    writes.push({ bytes: bytesOf(text), refused });
    if (refused) return { status: 413, json: { error: 'too_large', reason: 'made up' } };
    for (const { _id, _rev } of body.docs ?? []) stored.add(_id + (_rev ?? ''));
    return { json: [] };
  }, maxRequestBytes);
  const refusals = {
    givenUp: () => Promise.resolve(new Map()),
    delivered: () => Promise.resolve(),
    refused: (refused: readonly Refused[]) => {
      failed.push(...refused.map(({ read, code }) => ({ id: read.id, code })));
      return Promise.resolve([]);
    },
  } as unknown as Refusals;
  const errand = pushErrand({ local, server, refusals, checkpoint });
  let data = errand.initial;
  for (let step = await errand.next(data); step !== undefined; step = await errand.next(data)) {
    const outcome = await errand.carry(step, data, quietWatch());
    if (outcome.error !== undefined) throw outcome.error as Error;
    data = outcome.data;
  }
  return { stored, writes, failed };
}

const docs = Array.from({ length: 60 }, (_, at) => ({ _id: `d${String(at)}`, note: 'ż'.repeat(300) }));

it('R11 the push stays under the limit in bytes of UTF-8', async () => {
  const { stored, writes } = await pushing(docs, Infinity, 4000);
  expect(stored.size).toBe(60);
  expect(Math.max(...writes.map(({ bytes }) => bytes))).toBeLessThanOrEqual(4000);
});

it('R11 the push that met a 413 sends smaller requests from then on', async () => {
  const { stored, writes, failed } = await pushing(docs, 5000, 1_000_000);
  expect(stored.size).toBe(60);
  expect(failed).toEqual([]);
  // The first page of twenty and its halves; nothing after them is refused.
  expect(writes.filter(({ refused }) => refused)).toHaveLength(3);
  expect(writes.slice(7).some(({ refused }) => refused)).toBe(false);
});

it('R11 S2 a document that the server refuses alone is `too_large`, and the push goes on in large requests', async () => {
  const large = [...docs, { _id: 'large', note: 'x'.repeat(50_000) }];
  const { stored, writes, failed } = await pushing(large, 40_000, 1_000_000);
  expect(stored.size).toBe(60);
  expect(failed).toEqual([{ id: 'large', code: 'too_large' }]);
  expect(writes.filter(({ refused }) => !refused).length).toBeLessThan(12);
});

it('R2 S2 a document that stays behind is said, and its next try is the retry', async () => {
  const PouchDB = memoryPouch();
  const local = new LocalDatabase(() => new PouchDB('behind'));
  await local.write([{ _id: 'a' }, { _id: 'b' }]);
  const stored = new Set<string>();
  const server = stubServer((path, text) => {
    const body = JSON.parse(text) as Record<string, string[]> & { docs?: Doc[] };
    if (path === '/_revs_diff') {
      const missing = Object.entries(body).filter(([id]) => !stored.has(id));
      return { json: Object.fromEntries(missing.map(([id, revs]) => [id, { missing: revs }])) };
    }
    stored.add('a');
    return { json: [{ id: 'b', error: 'internal_server_error', reason: 'made up' }] };
  }, 1_000_000);
  const refusals = {
    givenUp: () => Promise.resolve(new Map()),
    delivered: () => Promise.resolve(),
    refused: () => Promise.resolve([]),
  } as unknown as Refusals;
  const errand = pushErrand({ local, server, refusals, checkpoint });
  await errand.carry('look', errand.initial, quietWatch());
  const first = await errand.next(errand.initial);
  if (first === undefined) throw new Error('there is something to send');
  const outcome = await errand.carry(first, errand.initial, quietWatch());
  expect(outcome).toMatchObject({ transferred: 1, behind: true });
  expect(outcome.error).toBeUndefined();
  const second = await errand.next(outcome.data);
  expect(second).toMatchObject({ isRetry: true });
});

it('S8 S2 an attachment of several MB is not read together with others', async () => {
  const PouchDB = memoryPouch();
  const local = new LocalDatabase(() => new PouchDB('attachments'));
  const attached = (_id: string, bytes: number): Doc => ({
    _id,
    _attachments: {
      'a.bin': { content_type: 'application/octet-stream', data: btoa('x'.repeat(bytes)) },
    },
  });
  await local.write([
    attached('large', 3_000_000),
    attached('b', 10),
    { _id: 'plain' },
    attached('larger', 5_000_000),
    attached('c', 10),
  ]);
  const { changes } = await local.changesAfter(0, 100);
  const groups: string[][] = [];
  const read: string[] = [];
  for await (const { asked, reads } of readBounded(
    local,
    changes.flatMap(({ id, revs }) => revs.map((rev) => ({ id, rev }))),
  )) {
    groups.push(asked.map(({ id }) => id).sort());
    for (const { id, doc } of reads) {
      const { _attachments } = doc as { _attachments?: Record<string, { data?: string }> };
      read.push(`${id} ${String(_attachments?.['a.bin']?.data?.length ?? 0)}`);
    }
  }
  for (const large of ['large', 'larger']) expect(groups).toContainEqual([large]);
  expect(groups.flat().sort()).toEqual(['b', 'c', 'large', 'larger', 'plain']);
  expect(read.sort()).toEqual(['b 16', 'c 16', 'large 4000000', 'larger 6666668', 'plain 0']);
});

it('S8 S2 attachments that the server has are not read; beside one that it lacks they go as stubs', async () => {
  const PouchDB = memoryPouch();
  const local = new LocalDatabase(() => new PouchDB('known'));
  const photo = { content_type: 'image/jpeg', data: btoa('photo') };
  await local.write([
    { _id: 'same', _attachments: { 'p.jpg': photo } },
    { _id: 'more', _attachments: { 'p.jpg': photo } },
  ]);
  const [same, more] = await local.read(['same', 'more']);
  const stubs = more?.doc?.['_attachments'] as object;
  await local.write([
    { ...same?.doc, _id: 'same', note: 'new' },
    { ...more?.doc, _id: 'more', _attachments: { ...stubs, 'q.jpg': photo } },
  ]);
  const whole: string[] = [];
  const { readWhole } = local;
  local.readWhole = (wanted) => {
    whole.push(...wanted.map(({ id }) => id));
    return readWhole.call(local, wanted);
  };
  const server = stubServer(() => ({ json: { results: [] } }));
  const there = new Map([same, more].map((row) => [row?.id ?? '', [row?.rev ?? '']]));
  const now = (await local.read(['same', 'more'])).map(({ id, rev = '' }) => ({ id, rev }));
  const sent = new Map<string, unknown>();
  for await (const { reads } of readBounded(local, now, knownAttachments({ local, server }, there))) {
    for (const { id, doc } of reads) sent.set(id, doc['_attachments']);
  }
  expect(whole).toEqual(['more']);
  const stub = { stub: true, content_type: 'image/jpeg', length: 5, digest: expect.stringMatching(/^md5-/) as unknown };
  expect(sent.get('same')).toEqual({ 'p.jpg': stub });
  expect(sent.get('more')).toEqual({ 'p.jpg': stub, 'q.jpg': expect.objectContaining(photo) as unknown });
});
