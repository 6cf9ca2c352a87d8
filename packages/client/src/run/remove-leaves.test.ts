import { beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineDocumentAction } from '../actions/define.js';
import { deleteAction } from '../actions/delete.js';
import { RetryableError } from '../model/errors.js';
import type { DocumentAction } from '../model/handler.js';
import type { Doc } from '../model/json.js';
import type { DocumentStore, WriteAnswer, WriteRow } from '../model/pouch.js';
import type { RowState } from '../queue/stored.js';
import { LocalDatabase } from '../store/local-database.js';
import { memoryPouch } from '../store/memory-pouch.fixture.js';
import { runDocuments, type AttemptResult } from './documents.js';
import { events } from './event-source.fixture.js';
import { leafRound, removeLeaves } from './remove-leaves.js';

const hash = (letter: string): string => letter.repeat(32);
const name = (generation: number, letter: string): string => `${String(generation)}-${hash(letter)}`;
/** A leaf beside others on the first revision. */
const leaf = (_id: string, letter: string, more: object = {}): Doc => ({
  _id,
  _rev: name(2, letter),
  _revisions: { start: 2, ids: [hash(letter), hash('0')] },
  leaf: letter,
  ...more,
});
const attachment = { 'a.txt': { content_type: 'text/plain', data: 'YQ==' } };

describe('S8 the leaves of a deleted document', () => {
  let db: LocalDatabase;
  /** Ids and revisions of each bulk write, and each time that the fence was asked. */
  let calls: (string | string[])[];
  let change: (docs: readonly Doc[], write: () => Promise<WriteAnswer>) => Promise<WriteAnswer>;
  const store: DocumentStore = {
    read: (ids) => db.read(ids),
    readRevisions: (wanted) => db.readRevisions(wanted),
    write: (docs) => {
      calls.push(docs.map(({ _id, _rev }) => `${_id} ${_rev?.slice(0, 3) ?? 'new'}`));
      return change(docs, () => db.write(docs));
    },
  };
  const fence = (): Promise<void> => {
    calls.push('fence');
    return Promise.resolve();
  };

  beforeEach(async () => {
    const PouchDB = memoryPouch();
    db = new LocalDatabase(() => new PouchDB('documents'));
    calls = [];
    change = (_docs, write) => write();
    // a has three live leaves and a deleted one, b two, c one.
    const docs = [
      leaf('a', 'e', { _attachments: attachment }),
      leaf('a', 'c', { _attachments: attachment }),
      leaf('a', 'b'),
      leaf('a', 'a', { _deleted: true }),
      leaf('b', 'e', { type: 'person' }),
      leaf('b', 'd'),
      leaf('c', 'e'),
    ];
    await db.pouch.bulkDocs(docs, { new_edits: false });
  });

  const attempt = (
    ids: readonly string[],
    {
      rows = ids.map((): RowState => ({ s: 'open' })),
      action = deleteAction as DocumentAction,
      guard = fence,
    }: { rows?: readonly RowState[]; action?: DocumentAction; guard?: () => Promise<void> } = {},
  ): Promise<AttemptResult> => {
    const operations = ids.map((id, index) => ({ index, key: `k:${String(index)}`, id, content: {} }));
    const saveIntent = (): Promise<void> => {
      calls.push('intent');
      return Promise.resolve();
    };
    return runDocuments(
      { from: 0, action: 'x', operations },
      rows,
      action,
      store,
      { fence: guard, saveIntent },
      events,
    );
  };
  const liveLeaves = async (id: string): Promise<number> => {
    const [row] = await db.read([id]);
    return row?.doc === undefined ? 0 : 1 + (row.conflicts?.length ?? 0);
  };
  const leavesOf = (...ids: string[]): Promise<number[]> => Promise.all(ids.map(liveLeaves));
  const refusing =
    (rev: string, error: string): typeof change =>
    async (docs, write) => {
      const refused = docs.find(({ _rev }) => _rev?.startsWith(rev) === true);
      const answer = refused === undefined ? await write() : await db.write(docs.filter((doc) => doc !== refused));
      const row: WriteRow[] =
        refused === undefined ? [] : [{ id: refused._id, ok: false, error, reason: 'as the server says' }];
      return { ...answer, rows: [...answer.rows, ...row] };
    };

  it('S8 go one of each document in a write, the winner last, each write behind the fence', async () => {
    const { rows, error } = await attempt(['a', 'b', 'c']);
    expect(rows.map(({ s }) => s)).toEqual(['applied', 'applied', 'applied']);
    expect(error).toBeUndefined();
    expect(calls).toEqual([
      'intent',
      'fence',
      ['a 2-b', 'b 2-d'],
      'fence',
      ['a 2-c'],
      'fence',
      ['a 2-e', 'b 2-e', 'c 2-e'],
    ]);
    expect(await leavesOf('a', 'b', 'c')).toEqual([0, 0, 0]);
    expect(await db.read(['a', 'b'])).toMatchObject([{ deleted: true }, { deleted: true }]);
  });

  it('S8 cost nothing where there are none', async () => {
    await attempt(['c']);
    expect(calls).toEqual(['intent', 'fence', ['c 2-e']]);
  });

  it('S8 go for any action that deletes, and stay for one that does not', async () => {
    const hide = defineDocumentAction({
      name: 'hide',
      operation: z.strictObject({}),
      isApplied: (doc) => doc._deleted === true || doc['hidden'] === true,
      apply: (doc) => (doc['type'] === 'person' ? { ...doc, _deleted: true } : { ...doc, hidden: true }),
    }) as DocumentAction;
    const { rows } = await attempt(['a', 'b'], { action: hide });
    expect(rows.map(({ s }) => s)).toEqual(['applied', 'applied']);
    expect(await leavesOf('a', 'b')).toEqual([3, 0]);
    expect((await db.read(['a']))[0]?.doc).toMatchObject({ hidden: true, leaf: 'e' });
  });

  it('S8 R8 that someone goes on with meanwhile are found by the next attempt, and the winner stays until then', async () => {
    change = async (_docs, write) => {
      change = (_later, then) => then();
      await db.write([{ _id: 'b', _rev: name(2, 'd'), leaf: 'd', more: true }]);
      return write();
    };
    const { rows, error } = await attempt(['a', 'b', 'c']);
    expect(rows.map(({ s }) => s)).toEqual(['applied', 'open', 'applied']);
    expect(error).toMatchObject({ class: 'conflict' });
    expect(await leavesOf('a', 'b', 'c')).toEqual([0, 2, 0]);
    const again = await attempt(['b']);
    expect(again.rows).toMatchObject([{ s: 'applied' }]);
    expect(await leavesOf('b')).toEqual([0]);
  });

  it('S8 that are gone meanwhile are no failure', async () => {
    change = async (_docs, write) => {
      change = (_later, then) => then();
      await db.write([{ _id: 'b', _rev: name(2, 'd'), _deleted: true }]);
      return write();
    };
    const first = await attempt(['b']);
    expect(first).toMatchObject({ rows: [{ s: 'open' }], failures: [] });
    const { rows, error, failures } = await attempt(['b']);
    expect({ rows, error, failures }).toMatchObject({ rows: [{ s: 'applied' }], failures: [] });
    expect(error).toBeUndefined();
    expect(await leavesOf('b')).toEqual([0]);
  });

  it('S8 R4 that are refused fail the operation with the reason of the server, and the document is as it was', async () => {
    change = refusing('2-b', 'forbidden');
    const { rows, failures, error } = await attempt(['a', 'b', 'c']);
    expect(rows.map(({ s }) => s)).toEqual(['failed', 'applied', 'applied']);
    expect(failures).toEqual([
      { index: 0, failure: { code: 'forbidden', reason: 'as the server says' }, mayHaveBeenApplied: false },
    ]);
    expect(error).toBeUndefined();
    expect(await leavesOf('a', 'b', 'c')).toEqual([3, 0, 0]);
    expect((await db.read(['a']))[0]?.rev).toBe(name(2, 'e'));
  });

  it('S8 R7 that could not be removed now are tried again, and the winner waits for them', async () => {
    change = refusing('2-c', 'internal_server_error');
    const { rows, error } = await attempt(['a', 'b']);
    expect(rows.map(({ s }) => s)).toEqual(['open', 'applied']);
    expect(error).toMatchObject({ class: 'server', code: 'internal_server_error' });
    // One is gone, one is left; no version of the document came back.
    expect((await db.read(['a']))[0]).toMatchObject({ rev: name(2, 'e'), conflicts: [name(2, 'c')] });
    change = (_docs, write) => write();
    expect((await attempt(['a'])).rows).toMatchObject([{ s: 'applied' }]);
    expect(await leavesOf('a')).toEqual([0]);
  });

  it.each([
    ['is done', true],
    ['is not done', false],
  ])('S8 R3 a write of leaves that gets no answer and %s writes no winner, and converges', async (_what, isDone) => {
    change = async (_docs, write) => {
      if (isDone) await write();
      return { rows: [], error: new RetryableError('gone', { class: 'network' }) };
    };
    const { rows, error } = await attempt(['a', 'b', 'c']);
    expect(rows.map(({ s }) => s)).toEqual(['open', 'open', 'open']);
    expect(error).toMatchObject({ class: 'network' });
    expect(calls.filter((call) => typeof call !== 'string')).toHaveLength(1);
    expect(await leavesOf('a', 'b', 'c')).toEqual(isDone ? [2, 1, 1] : [3, 2, 1]);
    change = (_docs, write) => write();
    expect((await attempt(['a', 'b', 'c'])).rows.map(({ s }) => s)).toEqual(['applied', 'applied', 'applied']);
    expect(await leavesOf('a', 'b', 'c')).toEqual([0, 0, 0]);
  });

  it.each([1, 2, 3])('S8 7 are left alone by who has lost the lead at the fence number %s', async (lost) => {
    let asked = 0;
    const guard = (): Promise<void> =>
      ++asked === lost ? Promise.reject(new RetryableError('taken over')) : Promise.resolve();
    const { rows, error } = await attempt(['a'], { guard });
    expect(rows).toEqual([{ s: 'open' }]);
    expect(error).toBeInstanceOf(RetryableError);
    expect(await leavesOf('a')).toEqual([4 - lost]);
    expect((await db.read(['a']))[0]?.deleted).toBe(false);
  });

  it('S8 R3 a failure of a leaf is kept when what follows is lost', async () => {
    let asked = 0;
    const guard = (): Promise<void> =>
      ++asked === 2 ? Promise.reject(new RetryableError('taken over')) : Promise.resolve();
    change = refusing('2-d', 'forbidden');
    const { rows, failures } = await attempt(['b', 'c'], { guard });
    // Either both or neither: a failure without its row, or the other way round, would lose the operation.
    expect(rows.map(({ s }) => s === 'failed')).toEqual([failures.length === 1, false]);
  });

  it('S8 are named by a read apart from the document, and an action gets it without them', async () => {
    const [row, other] = await db.read(['a', 'c']);
    expect(row?.conflicts).toEqual([name(2, 'b'), name(2, 'c')]);
    expect(row?.doc).not.toHaveProperty('_conflicts');
    expect(other).not.toHaveProperty('conflicts');
  });

  it('S8 R10 never go two of one document in one write', () => {
    const leaves = new Map([
      ['a', ['2-a', '2-b']],
      ['b', ['2-c']],
    ]);
    const revs = (going: string[], turn: number): unknown[] =>
      leafRound(leaves, new Set(going), turn).map(({ _rev }) => _rev);
    expect([revs(['a', 'b'], 0), revs(['a', 'b'], 1), revs(['b'], 1), revs(['a', 'b'], 2)]).toEqual([
      ['2-a', '2-c'],
      ['2-b'],
      [],
      [],
    ]);
  });

  it('S8 of a document that was not answered for count as not removed', async () => {
    change = async (_docs, write) => {
      const { rows } = await write();
      return { rows: rows.filter(({ id }) => id !== 'b') };
    };
    const answer = await removeLeaves(
      store,
      new Map([
        ['a', [name(2, 'c')]],
        ['b', [name(2, 'd')]],
      ]),
      fence,
    );
    expect(answer).toEqual({ removed: new Set(['a']), refused: [] });
  });
});
