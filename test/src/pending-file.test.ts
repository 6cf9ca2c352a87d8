import {
  couchdbPublisher,
  createClient,
  defineDocumentAction,
  definePlan,
  PendingFileError,
  type Client,
  type ClientOptions,
  type ClientStatus,
} from '@afield/client';
import { connectClient, serveClient } from '@afield/client/worker';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string(), from: z.optional(z.string()) }),
  guard: (doc, { from }) =>
    from === undefined || doc['colour'] === from
      ? undefined
      : { code: 'other_colour', reason: 'It has another colour.' },
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to, times: Number(doc['times'] ?? 0) + 1 }),
});
/** Paints all that are there: a pull that is not over would leave some out. */
const paintAll = definePlan({
  name: 'paint-all',
  request: z.strictObject({ to: z.string() }),
  plan: async ({ to }, { db }) => {
    const docs = await db.range('a', 'b');
    return [{ action: 'set-colour', operations: docs.map(({ _id }) => ({ id: _id, to })) }];
  },
});

/** The server takes no document of this colour. */
const rules = {
  _id: '_design/rules',
  validate_doc_update: `function (doc) { if (doc.colour === 'black') throw { forbidden: 'no black here' }; }`,
};

type Stored = Record<string, unknown> & { readonly _id: string };
let stores = 0;

/** A server of its own, with documents, results and events. */
class World {
  isDown = false;
  readonly clients: Client[] = [];
  readonly databases: TemporaryDatabases;
  records = '';
  results = '';
  events = '';

  constructor(readonly server: ServerUnderTest) {
    this.databases = temporaryDatabases(server.url, server.admin);
  }

  async begin(): Promise<this> {
    ({ url: this.records } = await this.databases.create('records', { docs: [rules] }));
    ({ url: this.results } = await this.databases.create('results'));
    ({ url: this.events } = await this.databases.create('events'));
    return this;
  }

  open(options: Partial<ClientOptions> = {}): Client {
    const client = createClient({
      name: `pending-${String(stores++)}`,
      PouchDB: MemoryPouch,
      actions: [setColour],
      plans: [paintAll],
      server: this.records,
      results: { url: this.results, content: true },
      publishers: [couchdbPublisher({ url: this.events })],
      user: this.server.admin.username,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...this.server.admin }) },
      ramp: () => 50,
      jitter: 0,
      pullEveryS: 3600,
      environment: {
        fetch: (input, init) => (this.isDown ? Promise.reject(new TypeError('gone')) : fetch(input, init)),
      },
      ...options,
    });
    this.clients.push(client);
    return client;
  }

  /** All documents of one database, without design documents. */
  async all(url: string): Promise<readonly Stored[]> {
    const authorization = `Basic ${btoa(`${this.server.admin.username}:${this.server.admin.password}`)}`;
    const answer = await fetch(`${url}/_all_docs?include_docs=true&conflicts=true&attachments=true`, {
      headers: { authorization, accept: 'application/json' },
    });
    const { rows } = (await answer.json()) as { rows: { doc: Stored }[] };
    return rows.map(({ doc }) => doc).filter(({ _id }) => !_id.startsWith('_design/'));
  }

  async close(): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close()));
    await this.databases.dispose();
  }
}

const until = (client: Client, is: (status: ClientStatus) => boolean): Promise<ClientStatus> =>
  firstValueFrom(client.status$.pipe(filter(is)));
/** Nothing goes on but what waits for the server. */
const isQuiet = async (client: Client): Promise<void> => {
  await firstValueFrom(
    client.bulkOperations$.pipe(filter((all) => all.every(({ lane, state }) => lane === 'slow' || /done/.test(state)))),
  );
};
const isSent = (client: Client, waitingEvents = 0): Promise<ClientStatus> =>
  until(
    client,
    ({ leader, pending, unpublished, unreported, unconfirmed, push, results }) =>
      leader &&
      pending + unreported + unconfirmed === 0 &&
      unpublished === waitingEvents &&
      push.state === 'idle' &&
      results.state === 'idle',
  );

/** Work of a day: some of it reaches the server, the rest is done without a network. */
async function work(world: World, client: Client): Promise<void> {
  const ids = ['a1', 'a2', 'a3'];
  const all = [...ids, 'a4', 's1'];
  await client.documents.bulkDocs(all.map((_id) => ({ _id, colour: 'red' })));
  await client.enqueue({ key: 'first', target: 'local', actions: [paint(['a1'], 'green')] });
  await isSent(client);
  world.isDown = true;
  await client.enqueue({ key: 'second', lane: 'one', target: 'local', actions: [paint(ids, 'blue')] });
  await client.enqueue({ key: 'third', lane: 'one', target: 'local', actions: [paint(['a1', 'a9'], 'white', 'blue')] });
  await client.enqueue({
    key: 'new',
    target: 'local',
    actions: [{ action: 'create', operations: [{ id: 'b1', doc: { colour: 'red' } }] }],
  });
  await client.documents.bulkDocs([
    { _id: 'b2', colour: 'red', _attachments: { photo: { content_type: 'text/plain', data: btoa('a photo') } } },
  ]);
  await client.enqueue({ key: 'refused', target: 'local', actions: [paint(['b2'], 'black')] });
  await client.enqueue({ key: 'at-server', lane: 'slow', target: 'server', actions: [paint(['s1'], 'yellow')] });
  // It waits behind that, and the server has its document: an empty device has not.
  await client.enqueue({ key: 'behind', lane: 'slow', target: 'local', actions: [paint(['a4'], 'pink', 'red')] });
  await isQuiet(client);
}
const paint = (ids: readonly string[], to: string, from?: string) => ({
  action: 'set-colour',
  operations: ids.map((id) => ({ id, to, ...(from === undefined ? {} : { from }) })),
});

/** What the server knows in the end, without the names of stores. */
async function known(world: World): Promise<object> {
  const events = await world.all(world.events);
  const results = await world.all(world.results);
  return {
    documents: await world.all(world.records),
    events: events
      .map(({ _id, name, rev, changed, sequence, index, previous }) => ({
        _id: nameOf(_id),
        name,
        changed,
        sequence,
        index,
        previous: previous === null ? null : nameOf(String(previous)),
        rev: String(rev).split('-')[0],
      }))
      .sort((a, b) => (a._id < b._id ? -1 : 1)),
    results: results
      .filter(({ _id }) => !_id.startsWith('device:'))
      .map(({ type, sequence, state, applied, alreadyApplied, failed, cursor, total, open, operations }) => ({
        ...{ type, sequence, state, applied, alreadyApplied, failed, cursor, total, open },
        codes: (operations as { code: string }[] | undefined)?.map(({ code }) => code),
      }))
      .sort((a, b) => Number(a.sequence) - Number(b.sequence) || (String(a.type) < String(b.type) ? -1 : 1)),
  };
}
const nameOf = (id: string): string => id.slice(id.indexOf(':') + 1);

describe('the work of a store as a file', () => {
  let server: ServerUnderTest;
  let worlds: World[];

  beforeAll(async () => {
    server = await serverUnderTest();
  });
  afterAll(() => server.close());
  beforeEach(() => {
    worlds = [];
  });
  afterEach(async () => {
    for (const world of worlds) await world.close();
  });
  const world = async (): Promise<World> => {
    const made = await new World(server).begin();
    worlds.push(made);
    return made;
  };

  it('S7 what one store exports and another imports ends at the server as if nothing had happened', async () => {
    const undisturbed = await world();
    const one = undisturbed.open();
    await work(undisturbed, one);
    undisturbed.isDown = false;
    one.syncNow();
    await isSent(one, 1); // that of what was refused

    const disturbed = await world();
    const wiped = disturbed.open();
    await work(disturbed, wiped);
    const file = await wiped.exportPending();
    const { username, password } = server.admin;
    const text = await file.text();
    for (const secret of [password, btoa(`${username}:${password}`)]) expect(text).not.toContain(secret);
    await wiped.close();
    const other = disturbed.open();
    // `first` too: its document was changed since, and without the server no one knows which revisions that has.
    expect(await other.importPending(file)).toEqual({
      bulkOperations: 7,
      operations: 10,
      documents: 6,
      duplicates: 0,
      paused: 0,
    });
    disturbed.isDown = false;
    other.syncNow();
    await isSent(other, 1);
    expect(await known(disturbed)).toEqual(await known(undisturbed));
    const failures = await other.listFailures();
    expect(failures.map(({ id, code }) => [id, code])).toEqual([
      ['a9', 'missing'],
      ['b2', 'forbidden'],
    ]);
  });

  it('S7 a plan that had not run waits until the pull is over, and plans from all documents', async () => {
    const one = await world();
    const client = one.open();
    await client.documents.bulkDocs(['a1', 'a2', 'a3'].map((_id) => ({ _id, colour: 'red' })));
    await isSent(client);
    one.isDown = true;
    await client.enqueue({ target: 'server', lane: 'slow', actions: [paint(['a1'], 'pink')] });
    await client.enqueue({ target: 'local', lane: 'slow', plan: 'paint-all', request: { to: 'blue' } });
    const file = await client.exportPending();
    await client.close();

    const other = one.open();
    expect(await other.importPending(file)).toMatchObject({ bulkOperations: 2, documents: 0, paused: 1 });
    one.isDown = false;
    other.syncNow();
    await until(other, ({ pull }) => pull.state === 'idle' && pull.attempts > 0 && pull.transferred >= 3);
    const [, plan] = await firstValueFrom(other.bulkOperations$);
    expect(plan).toMatchObject({ state: 'paused', plan: 'paint-all' });
    await other.resume(plan?.id ?? '');
    await isSent(other);
    expect((await one.all(one.records)).map(({ colour }) => colour)).toEqual(['blue', 'blue', 'blue']);
  });

  it('S7 through a worker, a file goes over as it is', async () => {
    const one = await world();
    const client = one.open({ name: `pending-${String(stores++)}` });
    await client.enqueue({ target: 'local', actions: [paint(['a1'], 'blue')] });
    const { port1, port2 } = new MessageChannel();
    serveClient(client, port2);
    const page = connectClient(port1);
    const file = await page.exportPending();
    expect(file).toBeInstanceOf(Blob);
    expect(await page.importPending(file)).toMatchObject({ bulkOperations: 0, duplicates: 1 });
    const refused: unknown = await page.importPending('no file').catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(PendingFileError);
    page.disconnect();
  });
});
