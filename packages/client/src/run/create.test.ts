import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { createAction } from '../actions/create.js';
import { defineDocumentAction } from '../actions/define.js';
import { updateAction } from '../actions/update.js';
import { RetryableError } from '../model/errors.js';
import type { DocumentAction } from '../model/handler.js';
import type { Doc } from '../model/json.js';
import type { DocRow, DocumentStore } from '../model/pouch.js';
import type { RowState } from '../queue/stored.js';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import type { Batch } from './batch.js';
import { findWritten, runDocuments, type AttemptResult } from './documents.js';
import { events } from './event-source.fixture.js';

describe('an attempt at documents that are not there', () => {
  let db: LocalDatabase;
  let saved: RowState[][];

  beforeEach(() => {
    const PouchDB = memoryPouch();
    db = new LocalDatabase(() => new PouchDB('documents'));
    saved = [];
  });

  const guards = {
    saveIntent: (rows: readonly RowState[]) => {
      saved.push(rows.map((row) => ({ ...row })));
      return Promise.resolve();
    },
    fence: () => Promise.resolve(),
  };
  const batch = (contents: Readonly<Record<string, unknown>>): Batch => ({
    from: 0,
    action: 'x',
    operations: Object.entries(contents).map(([id, content], index) => ({
      index,
      key: `k:${String(index)}`,
      id,
      content,
    })),
  });
  /** One attempt at operations, by the ids of their documents. */
  const attempt = (
    contents: Readonly<Record<string, unknown>>,
    {
      rows,
      store = db,
      action = createAction,
    }: { rows?: readonly RowState[]; store?: DocumentStore; action?: unknown } = {},
  ): Promise<AttemptResult> => {
    const open = Object.keys(contents).map((): RowState => ({ s: 'open' }));
    return runDocuments(batch(contents), rows ?? open, action as DocumentAction, store, guards, events);
  };
  const row = async (id: string): Promise<DocRow> => {
    const [found] = await db.read([id]);
    if (found === undefined) throw new Error('no row');
    return found;
  };
  const put = async (doc: Doc): Promise<string> => {
    const { rev } = await row(doc._id);
    const { rows } = await db.write([{ ...doc, ...(rev === undefined ? {} : { _rev: rev }) }]);
    if (rows[0]?.ok !== true) throw new Error('it could not be written');
    return rows[0].rev ?? '';
  };
  /** Writes, and then someone else does something; the answer is lost. */
  const losing = (then: () => Promise<unknown> = () => Promise.resolve()): DocumentStore => ({
    read: (ids) => db.read(ids),
    readRevisions: (wanted) => db.readRevisions(wanted),
    write: async (docs) => {
      await db.write(docs);
      await then();
      return { rows: [], error: new RetryableError('gone', { class: 'network' }) };
    },
  });
  /** The write does not arrive, and someone else does something. */
  const failing = (then: () => Promise<unknown>): DocumentStore => ({
    ...losing(),
    write: async () => {
      await then();
      return { rows: [], error: new RetryableError('gone', { class: 'network' }) };
    },
  });
  const blind: DocumentStore = {
    read: (ids) => db.read(ids),
    write: (docs) => db.write(docs),
    readRevisions: () => Promise.resolve([]),
  };
  const states = ({ rows }: AttemptResult): string[] => rows.map(({ s }) => s);
  const person = { type: 'person', name: 'Person 1' };

  it('O5 creates what never was, and what was deleted, and finds what is the same', async () => {
    await put({ _id: 'gone', type: 'clinic' });
    const tombstone = await put({ _id: 'gone', _deleted: true });
    await put({ _id: 'same', name: 'Person 1', type: 'person' });
    const { rev } = await row('same');
    const result = await attempt({ 'never-was': { doc: person }, gone: { doc: person }, same: { doc: person } });
    expect(states(result)).toEqual(['applied', 'applied', 'already-applied']);
    expect(result.failures).toEqual([]);
    expect((await row('never-was')).doc).toMatchObject(person);
    const revived = await row('gone');
    expect(revived.doc).toEqual({ _id: 'gone', _rev: revived.rev, ...person });
    expect(revived.rev?.startsWith('3-')).toBe(true);
    expect((await row('same')).rev).toBe(rev);
    expect(saved).toEqual([
      [
        { s: 'intent', t: 'person', a: 5 },
        { s: 'intent', b: tombstone, t: 'person', a: 5 },
        // Its outcome comes with the others: only then is it known which event of the document is the one before.
        { s: 'open' },
      ],
    ]);
  });

  it('O5 other content fails as conflicting_content, with the document as it was found; the others of the batch go on', async () => {
    await put({ _id: 'b', type: 'clinic' });
    const found = (await row('b')).doc;
    const result = await attempt({ a: { doc: person }, b: { doc: person } });
    expect(states(result)).toEqual(['applied', 'failed']);
    expect(result.failures).toEqual([
      {
        index: 1,
        failure: { code: 'conflicting_content', reason: expect.any(String) as string },
        mayHaveBeenApplied: false,
        conflict: found,
      },
    ]);
    expect((await row('b')).doc).toEqual(found);
  });

  it('O5 no other failure brings a document with it', async () => {
    await put({ _id: 'b', type: 'clinic' });
    const result = await attempt(
      { a: { patch: { n: 1 } }, b: { patch: { n: 1 }, expected: { type: 'person' } } },
      { action: updateAction },
    );
    expect(result.failures).toEqual([
      { index: 0, failure: { code: 'missing', reason: expect.any(String) as string }, mayHaveBeenApplied: false },
      {
        index: 1,
        failure: { code: 'guard_mismatch', reason: expect.any(String) as string },
        mayHaveBeenApplied: false,
      },
    ]);
    expect(await row('a')).toMatchObject({ rev: undefined, doc: undefined });
  });

  it('O5 `update` of a document that was deleted fails as missing, and does not bring it back', async () => {
    await put({ _id: 'a', n: 1 });
    await put({ _id: 'a', _deleted: true });
    const result = await attempt({ a: { patch: { n: null } } }, { action: updateAction });
    expect(result.failures).toMatchObject([{ failure: { code: 'missing' } }]);
    expect(await row('a')).toMatchObject({ deleted: true });
  });

  it('O5 `replaces` overwrites just the revision that a person has seen, and keeps its attachments', async () => {
    await db.write([{ _id: 'a', old: 1, _attachments: { n: { content_type: 'text/plain', data: 'aGk=' } } }]);
    const seen = (await row('a')).rev;
    const content = { doc: person, replaces: seen };
    const result = await attempt({ a: content });
    expect(states(result)).toEqual(['applied']);
    const { doc } = await row('a');
    expect(doc).toMatchObject({ ...person, _attachments: { n: { stub: true } } });
    expect(doc).not.toHaveProperty('old');
    expect(states(await attempt({ a: content }))).toEqual(['already-applied']);
    await put({ _id: 'a', type: 'clinic' });
    const again = await attempt({ a: content });
    expect(again.failures).toMatchObject([
      { failure: { code: 'conflicting_content' }, mayHaveBeenApplied: false, conflict: { type: 'clinic' } },
    ]);
  });

  it.each([
    ['edited it', () => put({ _id: 'a', type: 'clinic' })],
    ['deleted it', () => put({ _id: 'a', _deleted: true })],
    [
      'deleted it and made another one',
      () => put({ _id: 'a', _deleted: true }).then(() => put({ _id: 'a', type: 'x' })),
    ],
    ['did nothing', () => Promise.resolve()],
  ])('R3 O5 an answer that got lost, and someone %s: applied', async (_what, then) => {
    for (const before of ['never there', 'deleted', 'replaced'] as const) {
      if (before !== 'never there') await put({ _id: 'a', type: 'before' });
      if (before === 'deleted') await put({ _id: 'a', _deleted: true });
      const content = { doc: person, ...(before === 'replaced' ? { replaces: (await row('a')).rev } : {}) };
      const first = await attempt({ a: content }, { store: losing(then) });
      expect(states(first), before).toEqual(['intent']);
      const after = await row('a');
      const second = await attempt({ a: content }, { rows: first.rows });
      expect(states(second), before).toEqual(['applied']);
      expect(second.failures).toEqual([]);
      expect((await row('a')).rev, before).toBe(after.rev);
      const [found] = await findWritten(batch({ a: content }), first.rows, createAction as DocumentAction, db, events);
      expect(found, before).toEqual(second.rows[0]);
      const PouchDB = memoryPouch();
      db = new LocalDatabase(() => new PouchDB('documents'));
    }
  });

  it('R3 the write never arrived, and someone else made another document: surely not ours', async () => {
    const first = await attempt({ a: { doc: person } }, { store: failing(() => put({ _id: 'a', type: 'clinic' })) });
    const second = await attempt({ a: { doc: person } }, { rows: first.rows });
    expect(second.failures).toMatchObject([{ failure: { code: 'conflicting_content' }, mayHaveBeenApplied: false }]);
  });

  it('R3 the write never arrived, and someone else made a document and deleted it: it is created', async () => {
    const store = failing(async () => {
      await put({ _id: 'a', type: 'clinic' });
      await put({ _id: 'a', _deleted: true });
    });
    const first = await attempt({ a: { doc: person } }, { store });
    const second = await attempt({ a: { doc: person } }, { rows: first.rows });
    expect(states(second)).toEqual(['applied']);
    expect((await row('a')).doc).toMatchObject(person);
  });

  it('R3 where the history is gone, a conflict is flagged, and what was deleted does not come back', async () => {
    const edited = await attempt({ a: { doc: person } }, { store: losing(() => put({ _id: 'a', type: 'clinic' })) });
    const conflict = await attempt({ a: { doc: person } }, { rows: edited.rows, store: blind });
    expect(conflict.failures).toMatchObject([{ failure: { code: 'conflicting_content' }, mayHaveBeenApplied: true }]);
    const deleted = await attempt({ b: { doc: person } }, { store: losing(() => put({ _id: 'b', _deleted: true })) });
    const missing = await attempt({ b: { doc: person } }, { rows: deleted.rows, store: blind });
    expect(missing.failures).toMatchObject([{ failure: { code: 'missing' }, mayHaveBeenApplied: true }]);
    expect(await row('b')).toMatchObject({ deleted: true });
  });

  it('R8 someone else creates it at the same moment: the same is a success, another one a conflict', async () => {
    const racing = (doc: Doc): DocumentStore => ({
      ...blind,
      write: async (docs) => {
        await put(doc);
        return db.write(docs);
      },
    });
    const other = await attempt({ a: { doc: person } }, { store: racing({ _id: 'a', type: 'clinic' }) });
    expect(other.error).toMatchObject({ class: 'conflict' });
    expect(other.rows).toEqual([{ s: 'open' }]);
    const refused = await attempt({ a: { doc: person } }, { rows: other.rows });
    expect(refused.failures).toMatchObject([{ failure: { code: 'conflicting_content' }, mayHaveBeenApplied: false }]);
    const same = await attempt(
      { b: { doc: person } },
      { store: racing({ _id: 'b', name: 'Person 1', type: 'person' }) },
    );
    expect(same.rows).toEqual([{ s: 'open' }]);
    expect(states(await attempt({ b: { doc: person } }, { rows: same.rows }))).toEqual(['already-applied']);
  });

  it('R8 it is written on the deletion that was read: on a later one only after another look', async () => {
    await put({ _id: 'a', type: 'before' });
    await put({ _id: 'a', _deleted: true });
    const store: DocumentStore = {
      ...blind,
      write: async (docs) => {
        await put({ _id: 'a', type: 'between' });
        await put({ _id: 'a', _deleted: true });
        return db.write(docs);
      },
    };
    const first = await attempt({ a: { doc: person } }, { store });
    expect(first.error).toMatchObject({ class: 'conflict' });
    expect(first.rows).toEqual([{ s: 'open' }]);
    const second = await attempt({ a: { doc: person } }, { rows: first.rows });
    expect(second.rows).toEqual([{ s: 'applied', r: expect.stringMatching(/^5-/) as string, t: 'person', a: 5 }]);
  });

  it('S8 what is nested too deep fails by its name, whatever is there', async () => {
    const deep = (inner: unknown): unknown =>
      Array.from({ length: 3000 }).reduce<unknown>((value) => ({ a: value }), inner);
    await put({ _id: 'b', a: 1 });
    const created = await attempt({ a: { doc: { a: deep(1) } } });
    expect(created.failures).toMatchObject([{ failure: { code: 'too_deep' } }]);
    const updated = await attempt({ b: { patch: { a: deep(1) } } }, { action: updateAction });
    expect(updated.failures).toMatchObject([{ failure: { code: 'too_deep' } }]);
  });

  it('R6 an action of an app may make what is missing: it gets a document with nothing but its name', async () => {
    const seen: Doc[] = [];
    const count = defineDocumentAction({
      name: 'count',
      operation: z.strictObject({ to: z.number() }),
      missing: 'create',
      isApplied: (doc, { to }) => doc['count'] === to,
      guard: (doc) => (doc['count'] === undefined ? { code: 'no_count', reason: 'It has none.' } : undefined),
      apply: (doc, { to }) => {
        seen.push(doc);
        return { ...doc, count: to };
      },
    });
    await put({ _id: 'gone', old: 1 });
    const rev = await put({ _id: 'gone', _deleted: true });
    await put({ _id: 'there', old: 1 });
    const contents = { gone: { to: 1 }, new: { to: 1 }, there: { to: 1 } };
    const result = await attempt(contents, { action: count });
    expect(states(result)).toEqual(['applied', 'applied', 'failed']);
    expect(seen).toEqual([{ _id: 'gone', _rev: rev }, { _id: 'new' }]);
    expect((await row('gone')).doc).toEqual({ _id: 'gone', _rev: result.rows[0]?.r, count: 1 });
    expect(states(await attempt({ gone: { to: 1 } }, { action: count }))).toEqual(['already-applied']);
  });
});
