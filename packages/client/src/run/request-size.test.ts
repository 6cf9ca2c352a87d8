import { expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineDocumentAction } from '../actions/define.js';
import { stubServer } from '../http/stub-server.fixture.js';
import type { Doc } from '../model/json.js';
import type { RowState } from '../queue/stored.js';
import { runDocuments } from './documents.js';
import { events } from './event-source.fixture.js';

const setNote = defineDocumentAction({
  name: 'set-note',
  operation: z.strictObject({ note: z.string() }),
  isApplied: (doc, { note }) => doc['note'] === note,
  apply: (doc, { note }) => ({ ...doc, note }),
});
const guards = { saveIntent: () => Promise.resolve(), fence: () => Promise.resolve() };
const note = 'दस्तावेज़'.repeat(10);

it('R8 R9 R11 a batch that is cut into several requests records what was answered once, and sends the rest again', async () => {
  const stored = new Map<string, Doc>();
  const written: string[] = [];
  let requests = 0;
  const server = stubServer((path, text) => {
    const body = JSON.parse(text) as { keys: string[]; docs: Doc[] };
    if (path.startsWith('/_all_docs')) {
      const rows = body.keys.map((key) => {
        const doc = stored.get(key) ?? { _id: key, _rev: '1-x', note: '' };
        return { key, id: key, value: { rev: doc._rev }, doc };
      });
      return { json: { rows } };
    }
    expect(new TextEncoder().encode(text).length).toBeLessThanOrEqual(5000);
    if (++requests === 3) return 'reset';
    return {
      json: body.docs.map((doc) => {
        written.push(doc._id);
        if (doc._id === 'd3') return { id: doc._id, error: 'missing_stub', reason: 'made up' };
        stored.set(doc._id, { ...doc, _rev: '2-x' });
        return { id: doc._id, ok: true, rev: '2-x' };
      }),
    };
  }, 5000);
  const operations = Array.from({ length: 60 }, (_, index) => ({
    index,
    key: `k${String(index)}`,
    id: `d${String(index)}`,
    content: { note },
  }));
  const batch = { from: 0, action: 'set-note', operations };
  const open: RowState[] = operations.map(() => ({ s: 'open' }));

  const first = await runDocuments(batch, open, setNote, server, guards, events);
  expect(first.error).toMatchObject({ class: 'network' });
  const done = first.rows.filter(({ s }) => s === 'applied').length;
  expect(done).toBe(written.length - 1);
  expect(done).toBeGreaterThan(10);
  expect(first.failures.map(({ index, failure }) => [index, failure.code])).toEqual([[3, 'missing_stub']]);
  expect(first.rows.filter(({ s }) => s === 'intent')).toHaveLength(60 - written.length);

  const second = await runDocuments(batch, first.rows, setNote, server, guards, events);
  expect(second.error).toBeUndefined();
  expect(second.failures).toEqual([]);
  expect(second.rows.filter(({ s }) => s === 'applied')).toHaveLength(59);
  expect([...written].sort()).toEqual(operations.map(({ id }) => id).sort());
});
