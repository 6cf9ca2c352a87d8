import { temporaryDatabases, serverUnderTest, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemoryPouch } from './cases/memory-pouch.js';
import { MemoryServer } from './memory-server.js';
import { Refusal } from './memory/memory-database.js';

type Answer = { status: number; body: unknown };
/** Asks one server: the path comes after the database; `revs` knows revisions by names that both servers share. */
type Ask = (method: string, path: string, body?: unknown) => Promise<Answer>;
interface Side {
  readonly ask: Ask;
  /** The revision that this server gave a document at a step. */
  readonly revs: Map<string, string>;
}

const attachment = { content_type: 'text/plain', data: Buffer.from('hello').toString('base64') };
const foreign = {
  _id: 'foreign',
  _rev: '3-cccccccccccccccccccccccccccccccc',
  _revisions: {
    start: 3,
    ids: ['cccccccccccccccccccccccccccccccc', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'],
  },
  n: 3,
};
const noBlack = {
  _id: '_design/no-black',
  validate_doc_update: "function (doc) { if (doc.colour === 'black') throw { forbidden: 'no black here' }; }",
};
const odd = ['a/b%c#d?e+f', 'ü', 'u\u0308', 'constructor', 'toString', ' '];

/** What the SDK asks, one question after another. `rev` names a revision of an earlier answer. */
const questions: readonly [string, (ask: Ask, rev: (name: string) => string) => Promise<Answer>][] = [
  ['an empty read by keys', (ask) => ask('POST', '/_all_docs?include_docs=true', { keys: ['x', 'y'] })],
  ['new documents', (ask) => ask('POST', '/_bulk_docs', { docs: ['a', 'b', 'c'].map((_id) => ({ _id, n: 1 })) })],
  ['odd ids', (ask) => ask('POST', '/_bulk_docs', { docs: odd.map((_id) => ({ _id, n: 1 })) })],
  [
    'updates, a conflict without a revision, a conflict with an old one',
    (ask, rev) =>
      ask('POST', '/_bulk_docs', {
        docs: [
          { _id: 'a', _rev: rev('a'), n: 2 },
          { _id: 'b', n: 2 },
          { _id: 'c', _rev: '1-00000000000000000000000000000000', n: 2 },
        ],
      }),
  ],
  ['a deletion', (ask, rev) => ask('POST', '/_bulk_docs', { docs: [{ _id: 'b', _rev: rev('b'), _deleted: true }] })],
  ['a read by keys', (ask) => ask('POST', '/_all_docs?include_docs=true', { keys: ['a', 'b', 'nowhere', ...odd] })],
  ['a deleted document made anew', (ask) => ask('POST', '/_bulk_docs', { docs: [{ _id: 'b', n: 3 }] })],
  [
    'a field that no document may have',
    async (ask) => {
      const { body } = await ask('POST', '/_bulk_docs', { docs: [{ _id: 'z', _odd: 1 }] });
      return { status: 0, body }; // 400 of CouchDB is 500 of the embedded server
    },
  ],
  ['revisions as they are', (ask) => ask('POST', '/_bulk_docs', { new_edits: false, docs: [foreign] })],
  ['the same again', (ask) => ask('POST', '/_bulk_docs', { new_edits: false, docs: [foreign] })],
  [
    'a losing branch',
    (ask) =>
      ask('POST', '/_bulk_docs', {
        new_edits: false,
        docs: [
          { _id: 'foreign', _rev: '2-0d', _revisions: { start: 2, ids: ['0d', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'] } },
        ],
      }),
  ],
  [
    'a read with the conflicts',
    (ask) => ask('POST', '/_all_docs?conflicts=true&include_docs=true', { keys: ['foreign', 'a', 'nowhere', 'b'] }),
  ],
  [
    'a losing leaf that goes',
    (ask) => ask('POST', '/_bulk_docs', { docs: [{ _id: 'foreign', _rev: '2-0d', _deleted: true }] }),
  ],
  [
    'what is left of the conflicts',
    (ask) => ask('POST', '/_all_docs?conflicts=true&include_docs=true', { keys: ['foreign'] }),
  ],
  [
    'what is missing',
    async (ask) => {
      const asked = { foreign: ['3-cccccccccccccccccccccccccccccccc', '3-dd'], nowhere: ['1-aa'] };
      const { status, body } = await ask('POST', '/_revs_diff', asked);
      const rows = Object.entries(body as Record<string, { missing: unknown }>);
      // Servers differ in `possible_ancestors`: where they are not named, the SDK sends attachments whole.
      return { status, body: Object.fromEntries(rows.map(([id, { missing }]) => [id, missing])) };
    },
  ],
  [
    'revisions with their history',
    (ask, rev) =>
      ask('POST', '/_bulk_get?revs=true', {
        docs: [
          { id: 'a', rev: rev('a') },
          { id: 'foreign', rev: foreign._rev },
        ],
      }),
  ],
  [
    'an attachment',
    (ask) => ask('POST', '/_bulk_docs', { docs: [{ _id: 'att', _attachments: { 'a.txt': attachment } }] }),
  ],
  ['its stub', (ask) => ask('POST', '/_all_docs?include_docs=true', { keys: ['att'] })],
  ['the attachment with the document', (ask, rev) => ask('GET', `/att?attachments=true&rev=${rev('att')}`)],
  ['a checkpoint that is not there', (ask) => ask('GET', '/_local/point')],
  ['a checkpoint', (ask) => ask('PUT', '/_local/point', { _id: '_local/point', at: 1 })],
  ['the checkpoint again', (ask) => ask('GET', '/_local/point')],
  ['the changes', (ask) => ask('GET', '/_changes?style=all_docs')],
  [
    'the database',
    async (ask) => {
      const { status, body } = await ask('GET', '');
      return { status, body: (body as { doc_count: number }).doc_count };
    },
  ],
];

describe('a server in memory', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;

  beforeAll(async () => {
    server = await serverUnderTest();
    databases = temporaryDatabases(server.directUrl, server.admin);
  });
  afterAll(async () => {
    await databases.dispose();
    await server.close();
  });

  it('answers what the SDK asks as the server for development does', async () => {
    const { username, password } = server.admin;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const memory = new MemoryServer({ users: { [username]: password } });
    const records = memory.create('records');
    records.write([noBlack]);
    records.validate = (doc) =>
      doc['colour'] === 'black' ? new Refusal(403, 'forbidden', 'no black here') : undefined;
    const { url } = await databases.create('memory', { docs: [noBlack] });
    const ours = side(memory.fetch, memory.urlOf('records'), authorization);
    const theirs = side(fetch, url, authorization);
    for (const [title, question] of questions) {
      const answers = [];
      for (const { ask, revs } of [ours, theirs]) {
        const answer = await question(ask, (name) => revs.get(name) ?? '');
        note(answer.body, revs);
        answers.push({ status: answer.status, body: comparable(answer.body) });
      }
      expect(answers[0], title).toEqual(answers[1]);
    }
    expect(memory.unknown).toEqual([]);
  });

  it("serves PouchDB's replicator both ways", async () => {
    const memory = new MemoryServer();
    memory.create('records').write([
      { _id: 'a', n: 1 },
      { _id: 'b', n: 1 },
    ]);
    const remote = new MemoryPouch(memory.urlOf('records'), { fetch: memory.fetch });
    const local = new MemoryPouch('memory-server-test', { adapter: 'memory' });
    await MemoryPouch.replicate(remote, local);
    expect((await local.allDocs({})).rows).toHaveLength(2);
    await local.put({ _id: 'c', n: 1 });
    await MemoryPouch.replicate(local, remote);
    expect(memory.databases.get('records')?.ids()).toEqual(['a', 'b', 'c']);
    expect(memory.unknown).toEqual([]);
  });

  // As CouchDB does; the embedded server takes such a write.
  it('refuses a write that names the revision of a deletion', () => {
    const records = new MemoryServer().create('records');
    const rev = (doc: object): unknown => {
      const [row] = records.write([{ _id: 'a', ...doc }]);
      return row?.ok === true ? row.rev : row?.refusal.error;
    };
    const gone = rev({ _rev: rev({ n: 1 }), _deleted: true });
    expect([rev({ _rev: gone, n: 2 }), rev({ _rev: gone, _deleted: true })]).toEqual(['conflict', 'conflict']);
    expect(rev({ n: 2 })).toMatch(/^3-/);
  });

  it('knows who signs in, and what it does not know', async () => {
    const seen: string[] = [];
    const memory = new MemoryServer({
      users: { ann: 'one' },
      onRequest: ({ method, path, user }) => seen.push(`${String(user)}: ${method} ${path}`),
    });
    memory.create('records');
    const as = (password: string): RequestInit => ({ headers: { authorization: `Basic ${btoa(`ann:${password}`)}` } });
    const session = `${memory.url}/_session`;
    expect(await (await memory.fetch(session, as('one'))).json()).toMatchObject({ userCtx: { name: 'ann' } });
    expect((await memory.fetch(memory.urlOf('records'))).status).toBe(401);
    memory.setPassword('ann', 'two');
    expect((await memory.fetch(session, as('one'))).status).toBe(401);
    expect((await memory.fetch(memory.urlOf('nowhere'), as('two'))).status).toBe(404);
    expect((await memory.fetch(`${memory.urlOf('records')}/_find`, { ...as('two'), method: 'POST' })).status).toBe(404);
    expect((await memory.fetch(memory.urlOf('records'), { ...as('two'), method: 'DELETE' })).status).toBe(405);
    expect(memory.unknown).toEqual(['POST /records/_find', 'DELETE /records']);
    expect(seen[0]).toBe('ann: GET /_session');
  });
});

function side(send: typeof fetch, url: string, authorization: string): Side {
  return {
    revs: new Map(),
    ask: async (method, path, body) => {
      const headers = { authorization, 'content-type': 'application/json', accept: 'application/json' };
      const answer = await send(url + path, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.status, body: await answer.json() };
    },
  };
}

/** Keeps the revisions that rows of a write name. */
function note(body: unknown, revs: Map<string, string>): void {
  if (!Array.isArray(body)) return;
  for (const row of body as { id?: string; rev?: string }[]) {
    if (row.id !== undefined && row.rev !== undefined) revs.set(row.id, row.rev);
  }
}

/** Lists as sets; revisions by the generation where each server makes its own names; nothing that CouchDB leaves open. */
function comparable(value: unknown): unknown {
  // Names of revisions are each server's own; what the test gave (one letter, many times) is the same on both.
  if (typeof value === 'string') return value.replace(/(?!(.)\1{31}$)[0-9a-f]{32}$/, 'own');
  if (Array.isArray(value)) {
    return value.map((one) => comparable(one)).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  if (typeof value !== 'object' || value === null) return value;
  const open = new Set(['seq', 'last_seq', 'update_seq', 'pending', 'offset', 'total_rows', 'reason', 'rev_pos']);
  open.add('digest'); // CouchDB compresses text before it makes it
  const entries = Object.entries(value).filter(([field]) => !open.has(field));
  return Object.fromEntries(entries.map(([field, one]) => [field, comparable(one)] as const).sort());
}
