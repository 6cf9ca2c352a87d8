import type { PouchConstructor, PouchLike } from '@afield/client';
import { describe, expect, it } from 'vitest';
import { MemoryPouch } from './cases/memory-pouch.js';
import { MemoryServer } from './memory-server.js';
import { MemoryStore } from './memory-store.js';

let names = 0;

/** What the SDK asks of a local database; each answers with what is to be compared. */
const questions: readonly [string, (db: PouchLike, revs: Map<string, string>) => Promise<unknown>][] = [
  ['new documents', (db) => db.bulkDocs(['a', 'b', 'c', 'h:1', 'h:2', 'hs'].map((_id) => ({ _id, n: 1 })))],
  [
    'an update and conflicts',
    (db, revs) =>
      db.bulkDocs([
        { _id: 'a', _rev: revs.get('a'), n: 2 },
        { _id: 'b', n: 2 },
        { _id: 'c', _rev: '1-00000000000000000000000000000000', n: 2 },
      ]),
  ],
  ['a deletion', (db, revs) => db.bulkDocs([{ _id: 'b', _rev: revs.get('b'), _deleted: true }])],
  ['a read by keys', (db) => db.allDocs({ keys: ['b', 'nowhere', 'a'], include_docs: true })],
  ['a range', (db) => db.allDocs({ startkey: 'h', endkey: 'h\uffff', include_docs: true })],
  ['the last of a range', (db) => db.allDocs({ startkey: 'h:', endkey: 'h:\uffff', limit: 1 })],
  ['a deleted one made anew', (db) => db.bulkDocs([{ _id: 'b', n: 3 }])],
  ['a field that no document may have', (db) => rejected(db.bulkDocs([{ _id: 'z', _odd: 1 }]))],
  ['an id that no document may have', (db) => rejected(db.bulkDocs([{ _id: '_z' }]))],
  [
    'revisions as they are',
    (db) =>
      db.bulkDocs([{ _id: 'f', _rev: '2-bb', _revisions: { start: 2, ids: ['bb', 'aa'] }, n: 2 }], {
        new_edits: false,
      }),
  ],
  [
    'revisions with their history',
    (db, revs) =>
      db.bulkGet({
        docs: [
          { id: 'a', rev: revs.get('a') ?? '' },
          { id: 'f', rev: '2-bb' },
          { id: 'x', rev: '1-00' },
        ],
        revs: true,
      }),
  ],
  ['changes', async (db) => db.changes({ since: 0, limit: 3, style: 'all_docs', return_docs: true })],
  ['changes after them', async (db) => db.changes({ since: 9, style: 'all_docs', return_docs: true })],
  ['one document', async (db) => db.get('a')],
  ['a deleted revision', (db) => rejected(db.get('nowhere'))],
  ['a write of one', (db, revs) => rejected(db.put({ _id: 'a', _rev: revs.get('c') }))],
  [
    'losing branches, one of them deleted',
    (db) =>
      db.bulkDocs(
        [
          { _id: 'f', _rev: '1-0b', n: 3 },
          { _id: 'f', _rev: '2-0c', _revisions: { start: 2, ids: ['0c', 'aa'] }, _deleted: true },
          { _id: 'f', _rev: '2-0d', _revisions: { start: 2, ids: ['0d', 'aa'] }, n: 4 },
        ],
        { new_edits: false },
      ),
  ],
  [
    'a read with the conflicts',
    (db) => db.allDocs({ keys: ['f', 'a', 'nowhere', 'b'], include_docs: true, conflicts: true }),
  ],
  ['a losing leaf that goes', (db) => db.bulkDocs([{ _id: 'f', _rev: '2-0d', _deleted: true }])],
  ['what is left of the conflicts', (db) => db.allDocs({ keys: ['f'], include_docs: true, conflicts: true })],
];

describe('a store in memory', () => {
  it('answers what the SDK asks as PouchDB does', async () => {
    const name = `memory-store-${String(names++)}`;
    const ours = new (new MemoryStore().constructorFor())(name);
    const theirs = new MemoryPouch(name, { adapter: 'memory' });
    const revs = [new Map<string, string>(), new Map<string, string>()] as const;
    for (const [title, question] of questions) {
      const mine = await question(ours, revs[0]);
      const pouch = await question(theirs, revs[1]);
      for (const [place, answer] of [mine, pouch].entries()) note(answer, revs[place] ?? new Map());
      expect(comparable(mine), title).toEqual(comparable(pouch));
    }
    await theirs.destroy();
  });

  it('is shared by its clients, tells each of changes, and ends with close', async () => {
    const store = new MemoryStore();
    const Pouch: PouchConstructor = store.constructorFor();
    const [one, other] = [new Pouch('x'), new Pouch('x')];
    const seen: string[] = [];
    const feed = other.changes({ live: true, since: 'now' });
    feed.on('change', ({ id }: { id: string }) => seen.push(id));
    await one.put({ _id: 'a' });
    feed.cancel();
    await one.put({ _id: 'b' });
    expect(seen).toEqual(['a']);
    await one.close();
    await expect(one.info()).rejects.toThrow('closed');
    expect(store.database('x').ids()).toEqual(['a', 'b']);
  });

  it('lets its calls be failed, before and after they are done', async () => {
    const store = new MemoryStore();
    const Pouch = store.constructorFor(async (call, run) => {
      if (call.kind === 'write') await run();
      throw new Error(`${call.database} ${call.method}`);
    });
    await expect(new Pouch('x').put({ _id: 'a' })).rejects.toThrow('x put');
    expect(store.database('x').ids()).toEqual(['a']);
  });

  it('pulls from a server, and goes on where it ended', async () => {
    const asked: string[] = [];
    const server = new MemoryServer({ onRequest: ({ resource }) => asked.push(resource) });
    server.create('records').write([{ _id: 'a', n: 1 }]);
    const store = new MemoryStore();
    const Pouch = store.constructorFor();
    const pull = (): PromiseLike<unknown> =>
      Pouch.replicate(new Pouch(server.urlOf('records'), { fetch: server.fetch }), new Pouch('x'));
    expect(await pull()).toEqual({ ok: true, docs_written: 1 });
    expect(await pull()).toEqual({ ok: true, docs_written: 0 });
    expect(asked).toEqual(['_changes', '_bulk_get', '_changes']);
    expect(store.database('x').read('a')).toEqual(server.databases.get('records')?.read('a'));
  });
});

async function rejected(call: Promise<unknown>): Promise<unknown> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  const { name, status } = (error ?? {}) as { name?: string; status?: number };
  return { rejected: name, status };
}

function note(answer: unknown, revs: Map<string, string>): void {
  if (!Array.isArray(answer)) return;
  for (const row of answer as { id?: string; rev?: string }[]) {
    if (row.id !== undefined && row.rev !== undefined) revs.set(row.id, row.rev);
  }
}

/** Revisions by their generation; without what is left open. */
function comparable(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(/^(\d+-)?[0-9a-f]{32}$/, '$1own');
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  const open = new Set(['offset', 'total_rows', 'message', 'reason', 'stack', 'docId']);
  const entries = Object.entries(value).filter(([field, one]) => !open.has(field) && one !== undefined);
  return Object.fromEntries(entries.map(([field, one]) => [field, comparable(one)]));
}
