import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineDocumentAction } from '../actions/define.js';
import { deleteAction } from '../actions/delete.js';
import { RetryableError, SignInRequiredError } from '../model/errors.js';
import type { DocumentAction } from '../model/handler.js';
import type { Doc } from '../model/json.js';
import type { DocumentStore, WriteAnswer } from '../model/pouch.js';
import type { RowState } from '../queue/stored.js';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import type { Batch } from './batch.js';
import { runDocuments, type AttemptResult } from './documents.js';
import { events } from './event-source.fixture.js';

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string(), from: z.optional(z.string()) }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  guard: (doc, { from }) =>
    from === undefined || doc['colour'] === from ? undefined : { code: 'guard_mismatch', reason: 'another colour' },
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});

function batch(operations: readonly { id: unknown; content: unknown }[]): Batch {
  return {
    from: 0,
    action: 'x',
    operations: operations.map(({ id, content }, index) => ({ index, key: `k:${String(index)}`, id, content })),
  };
}

describe('an attempt at a batch of documents', () => {
  let db: LocalDatabase;
  let saved: RowState[][];
  let fences: number;
  const guards = {
    saveIntent: (rows: readonly RowState[]) => {
      saved.push(rows.map((row) => ({ ...row })));
      return Promise.resolve();
    },
    fence: () => {
      fences++;
      return Promise.resolve();
    },
  };

  beforeEach(async () => {
    const PouchDB = memoryPouch();
    db = new LocalDatabase(() => new PouchDB('documents'));
    saved = [];
    fences = 0;
    await db.write(['a', 'b', 'c'].map((id) => ({ _id: id, type: 'person', colour: 'red', note: id })));
  });

  const open = (count: number): RowState[] => Array.from({ length: count }, () => ({ s: 'open' }));
  const attempt = (
    operations: Parameters<typeof batch>[0],
    { rows = open(operations.length), action = setColour as DocumentAction, store = db as DocumentStore } = {},
  ): Promise<AttemptResult> => runDocuments(batch(operations), rows, action, store, guards, events);
  const doc = async (id: string): Promise<Doc> => {
    const [row] = await db.read([id]);
    if (row?.doc === undefined) throw new Error(`no document ${id}`);
    return row.doc;
  };
  const edit = async (id: string, fields: object): Promise<string> => {
    const answer = await db.write([{ ...(await doc(id)), ...fields }]);
    const [row] = answer.rows;
    if (row?.ok !== true) throw new Error('the edit did not work');
    return row.rev ?? '';
  };
  /** A store whose writes happen, but whose answer is `answer`. */
  const answering = (
    change: (docs: readonly Doc[], answer: WriteAnswer) => WriteAnswer | Promise<WriteAnswer>,
  ): DocumentStore => ({
    read: (ids) => db.read(ids),
    readRevisions: (wanted) => db.readRevisions(wanted),
    write: async (docs) => change(docs, await db.write(docs)),
  });
  const lost = answering(() => ({ rows: [], error: new RetryableError('gone', { class: 'network' }) }));

  it('R6 applies, and finds applied what is as it should be without a write', async () => {
    const before = await doc('b');
    await edit('b', { colour: 'blue' });
    const result = await attempt([
      { id: 'a', content: { to: 'blue' } },
      { id: 'b', content: { to: 'blue' } },
    ]);
    expect(result.rows.map(({ s }) => s)).toEqual(['applied', 'already-applied']);
    expect(await doc('a')).toMatchObject({ colour: 'blue', note: 'a' });
    expect((await doc('b'))._rev).not.toBe(before._rev);
    expect((await doc('b'))._rev?.startsWith('2-')).toBe(true);
  });

  it('R3 stores the intent with base, type and time before it writes, and asks the fence in between', async () => {
    const base = (await doc('a'))._rev;
    await attempt([{ id: 'a', content: { to: 'blue' } }]);
    expect(saved).toEqual([[{ s: 'intent', b: base, t: 'person', a: 5 }]]);
    expect(fences).toBe(1);
  });

  it('O3 keeps the type that came with an intent of another bulk operation, also where the document is gone', async () => {
    const [before] = await db.read(['a', 'b']);
    const rows: RowState[] = [{ s: 'intent', b: before?.rev, t: 'person' }, { s: 'intent' }];
    await db.write([{ _id: 'a', _rev: before?.rev, _deleted: true } as Doc]);
    const operations = [
      { id: 'a', content: {} },
      { id: 'b', content: {} },
    ];
    const result = await attempt(operations, { rows, action: deleteAction as DocumentAction });
    expect(result.rows).toMatchObject([
      { s: 'applied', t: 'person', a: 5 },
      { s: 'applied', t: 'person', a: 5 },
    ]);
  });

  it('R9 2 stores no outcome with the intent: a failure is durable only together with its content', async () => {
    await attempt([
      { id: 'nowhere', content: { to: 'blue' } },
      { id: undefined, content: { to: 'blue' } },
      { id: 'a', content: { to: 'blue' } },
    ]);
    expect(saved.map((rows) => rows.map(({ s }) => s))).toEqual([['open', 'open', 'intent']]);
  });

  it('writes nothing when the fence is down', async () => {
    const result = await runDocuments(
      batch([{ id: 'a', content: { to: 'blue' } }]),
      open(1),
      setColour as DocumentAction,
      db,
      {
        ...guards,
        fence: () => Promise.reject(new RetryableError('taken over')),
      },
      events,
    );
    expect(result.error).toBeInstanceOf(RetryableError);
    expect(result.rows).toEqual([{ s: 'open' }]);
    expect(await doc('a')).toMatchObject({ colour: 'red' });
  });

  it('R4 returns what failed for good: missing, guard, no id, bad id, a document that cannot be stored', async () => {
    const bad = defineDocumentAction({ ...setColour, apply: (d, { to }) => ({ ...d, [to]: 1 }) });
    const result = await attempt(
      [
        { id: 'nowhere', content: { to: 'x' } },
        { id: 'a', content: { to: 'x', from: 'green' } },
        { id: undefined, content: { to: 'x' } },
        { id: '', content: { to: 'x' } },
        { id: 7, content: { to: 'x' } },
        { id: '_local/x', content: { to: 'x' } },
        { id: 'b', content: { to: '_seen' } },
        { id: 'c', content: { to: 'seen' } },
      ],
      { action: bad as DocumentAction },
    );
    expect(result.failures.map(({ failure }) => failure.code)).toEqual([
      'no_id',
      'no_id',
      'invalid_id',
      'invalid_id',
      'missing',
      'guard_mismatch',
      'invalid_doc',
    ]);
    expect(result.error).toBeUndefined();
    expect(await doc('c')).toMatchObject({ seen: 1 });
  });

  it('R3 an answer that got lost: the next attempt finds its own write, also after a later edit', async () => {
    const first = await attempt([{ id: 'a', content: { to: 'blue', from: 'red' } }], { store: lost });
    expect(first.rows).toEqual([{ s: 'intent', b: expect.any(String) as string, t: 'person', a: 5 }]);
    await edit('a', { colour: 'green' });
    const second = await attempt([{ id: 'a', content: { to: 'blue', from: 'red' } }], { rows: [...first.rows] });
    expect(second.rows.map(({ s }) => s)).toEqual(['applied']);
    expect(await doc('a')).toMatchObject({ colour: 'green' });
  });

  it('R3 an answer that got lost, and the document deleted since: applied, not missing', async () => {
    const first = await attempt([{ id: 'a', content: { to: 'blue' } }], { store: lost });
    await edit('a', { _deleted: true });
    const second = await attempt([{ id: 'a', content: { to: 'blue' } }], { rows: [...first.rows] });
    expect(second.rows.map(({ s }) => s)).toEqual(['applied']);
  });

  it('R3 a failure whose history is gone is flagged', async () => {
    const blind: DocumentStore = { ...lost, readRevisions: () => Promise.resolve([]) };
    const first = await attempt([{ id: 'a', content: { to: 'blue', from: 'red' } }], { store: blind });
    await edit('a', { colour: 'green' });
    const second = await attempt([{ id: 'a', content: { to: 'blue', from: 'red' } }], {
      rows: [...first.rows],
      store: blind,
    });
    expect(second.failures).toMatchObject([{ failure: { code: 'guard_mismatch' }, mayHaveBeenApplied: true }]);
  });

  it('R3 a base stays when a late first write makes the second one a conflict', async () => {
    const base = (await doc('a'))._rev;
    const rows: RowState[] = [{ s: 'intent', b: base, t: 'person' }];
    const late: DocumentStore = {
      read: (ids) => db.read(ids),
      readRevisions: (wanted) => db.readRevisions(wanted),
      write: async (docs) => {
        await edit('a', { colour: 'blue' });
        return db.write(docs);
      },
    };
    const second = await attempt([{ id: 'a', content: { to: 'blue' } }], { rows, store: late });
    expect(second.rows).toEqual(rows);
    const third = await attempt([{ id: 'a', content: { to: 'blue' } }], { rows: [...second.rows] });
    expect(third.rows.map(({ s }) => s)).toEqual(['applied']);
  });

  it("R8 a conflict runs again on the revision that won, and keeps the other editor's fields", async () => {
    const store: DocumentStore = {
      read: (ids) => db.read(ids),
      readRevisions: (wanted) => db.readRevisions(wanted),
      write: async (docs) => {
        await edit('a', { note: 'theirs' });
        return db.write(docs);
      },
    };
    const first = await attempt(
      [
        { id: 'a', content: { to: 'blue' } },
        { id: 'b', content: { to: 'blue' } },
      ],
      { store },
    );
    expect(first.error).toMatchObject({ class: 'conflict' });
    expect(first.rows.map(({ s }) => s)).toEqual(['open', 'applied']);
    const second = await attempt(
      [
        { id: 'a', content: { to: 'blue' } },
        { id: 'b', content: { to: 'blue' } },
      ],
      { rows: [...first.rows] },
    );
    expect(second.rows.map(({ s }) => s)).toEqual(['applied', 'applied']);
    expect(await doc('a')).toMatchObject({ colour: 'blue', note: 'theirs' });
    expect((await doc('b'))._rev?.startsWith('2-')).toBe(true);
  });

  it('R9 R10 permanent and passing rows in one batch: each is judged alone', async () => {
    const store = answering((docs) => ({
      rows: docs.map(({ _id }) => ({
        id: _id,
        ok: false,
        error: _id === 'a' ? 'forbidden' : 'internal_server_error',
        reason: 'made up',
      })),
    }));
    const first = await attempt(
      [
        { id: 'a', content: { to: 'blue' } },
        { id: 'b', content: { to: 'blue' } },
      ],
      { store },
    );
    expect(first.failures.map(({ failure }) => failure.code)).toEqual(['forbidden']);
    expect(first.rows.map(({ s }) => s)).toEqual(['failed', 'intent']);
    expect(first.error).toMatchObject({ class: 'server', code: 'internal_server_error' });
    const second = await attempt(
      [
        { id: 'a', content: { to: 'blue' } },
        { id: 'b', content: { to: 'blue' } },
      ],
      { rows: [...first.rows] },
    );
    expect(second.failures).toEqual([]);
    expect(second.rows.map(({ s }) => s)).toEqual(['failed', 'applied']);
  });

  it('R10 rows in another order are matched by id; a row that is left out was not done', async () => {
    const store = answering((_docs, { rows }) => ({
      rows: [...rows].reverse().filter(({ id }) => id !== 'b'),
      error: new RetryableError('short', { class: 'network' }),
    }));
    const result = await attempt(
      ['a', 'b', 'c'].map((id) => ({ id, content: { to: 'blue' } })),
      { store },
    );
    expect(result.rows.map(({ s }) => s)).toEqual(['applied', 'intent', 'applied']);
    expect(result.rows[0]?.r).toBe((await doc('a'))._rev);
  });

  it('R12 a row `unauthorized` waits for credentials', async () => {
    const store = answering((docs) => ({
      rows: docs.map(({ _id }) => ({ id: _id, ok: false, error: 'unauthorized', reason: 'made up' })),
    }));
    const result = await attempt([{ id: 'a', content: { to: 'blue' } }], { store });
    expect(result.error).toBeInstanceOf(SignInRequiredError);
    expect(result.rows).toEqual([{ s: 'open' }]);
  });

  it('R5 an error of the handler itself is passed on as it is', async () => {
    const broken = defineDocumentAction({ ...setColour, guard: () => JSON.parse('no') as undefined });
    const result = await attempt([{ id: 'a', content: { to: 'x' } }], { action: broken as DocumentAction });
    expect(result.error).toBeInstanceOf(SyntaxError);
    expect(await doc('a')).toMatchObject({ colour: 'red' });
  });

  it.each([
    ['apply', 'nothing', { apply: () => undefined }],
    ['apply', 'a promise', { apply: (doc: Doc) => Promise.resolve(doc) }],
    ['apply', 'a list', { apply: () => [] }],
    ['isApplied', 'a promise', { isApplied: () => Promise.resolve(false) }],
    ['isApplied', 'nothing', { isApplied: () => undefined }],
    ['guard', 'true', { guard: () => true }],
    ['guard', 'a failure without a reason', { guard: () => ({ code: 'no' }) }],
    ['guard', 'a promise', { guard: () => Promise.resolve(undefined) }],
  ])('R5 %s that answers with %s is a bug of the action, and writes nothing', async (_part, _what, wrong) => {
    const action = { ...setColour, ...wrong } as unknown as DocumentAction;
    const before = await doc('a');
    const result = await attempt([{ id: 'a', content: { to: 'blue' } }], { action });
    expect(result.error).toBeInstanceOf(TypeError);
    expect(result.failures).toEqual([]);
    expect(await doc('a')).toEqual(before);
  });

  it('R6 `delete`: gone, never there and just deleted are all successes; only one is a write', async () => {
    await edit('b', { _deleted: true });
    const result = await attempt(
      ['a', 'b', 'nowhere'].map((id) => ({ id, content: {} })),
      { action: deleteAction as DocumentAction },
    );
    expect(result.rows.map(({ s }) => s)).toEqual(['applied', 'already-applied', 'already-applied']);
    expect((await db.read(['a']))[0]).toMatchObject({ deleted: true });
  });

  it('R3 `delete` whose answer got lost, and the document written anew since: applied', async () => {
    const first = await attempt([{ id: 'a', content: {} }], { action: deleteAction as DocumentAction, store: lost });
    await db.write([{ _id: 'a', colour: 'new' }]);
    const second = await attempt([{ id: 'a', content: {} }], {
      action: deleteAction as DocumentAction,
      rows: [...first.rows],
    });
    expect(second.rows.map(({ s }) => s)).toEqual(['applied']);
    expect(await doc('a')).toMatchObject({ colour: 'new' });
  });

  it('S8 a document with attachments keeps them, without sending them again', async () => {
    await db.write([
      { _id: 'photo', colour: 'red', _attachments: { 'p.png': { content_type: 'image/png', data: 'iVBORw0KGgo=' } } },
    ]);
    await attempt([{ id: 'photo', content: { to: 'blue' } }]);
    expect(await doc('photo')).toMatchObject({ _attachments: { 'p.png': { stub: true, revpos: 1 } } });
  });

  it('S8 ids that look like members of objects are plain ids', async () => {
    const ids = ['constructor', 'toString', 'hasOwnProperty', 'a/b', 'a%2Fb', 'ä', 'a\u0308'];
    await db.write(ids.map((id) => ({ _id: id, colour: 'red' })));
    const result = await attempt(ids.map((id) => ({ id, content: { to: 'blue' } })));
    expect(result.rows.every(({ s }) => s === 'applied')).toBe(true);
    for (const id of ids) expect(await doc(id)).toMatchObject({ _id: id, colour: 'blue' });
  });
});
