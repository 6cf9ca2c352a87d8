import { readFile } from 'node:fs/promises';
import { createClient, type AnyAction, type AnyPlan, type Client, type PouchLike } from '@afield/client';
import { setParent } from '@afield/contacts';
import { memoryIndexedDB, MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { examplesOf, type Examples } from './examples.js';

describe('the examples of the README', () => {
  let examples: Examples;
  let files: readonly string[];

  beforeAll(async () => {
    examples = await examplesOf('README.md');
    ({ files } = examples);
  });
  afterAll(() => examples.remove());

  const actionIn = async (text: string): Promise<AnyAction> => (await exportedBy(text)) as AnyAction;
  const exportedBy = async (text: string): Promise<unknown> => {
    const [exported] = Object.values((await moduleWith(text)) as Record<string, unknown>);
    return exported;
  };
  /** The example that has this text, and exports something. */
  const moduleWith = async (text: string): Promise<unknown> => {
    for (const file of files) {
      if (!(await readFile(file, 'utf8')).includes(text)) continue;
      const module = (await import(/* @vite-ignore */ file)) as Record<string, unknown>;
      if (Object.values(module)[0] !== undefined) return module;
    }
    throw new Error(`no example has ${text}`);
  };

  it('compile in strict mode', async () => {
    expect(files.length).toBeGreaterThanOrEqual(3);
    expect(await examples.compile()).toBe('');
  }, 60_000);

  it('what PouchDB’s own replication is denied is reported', async () => {
    const { connectSync } = (await moduleWith('function connectSync')) as {
      connectSync(client: Pick<Client, 'sync'>, sync: unknown): void;
    };
    const reported: unknown[] = [];
    const report = (seen: unknown): Promise<void> => Promise.resolve(void reported.push(seen));
    const [here, there] = [new MemoryPouch('readme-sync-here'), new MemoryPouch('readme-sync-there')];
    await here.bulkDocs([{ _id: 'p1' }]);
    const denied = { id: 'p1', error: 'forbidden', name: 'forbidden', reason: 'not yours' };
    there.bulkDocs = () => Promise.resolve([denied]);
    const sync = (MemoryPouch as unknown as { sync(a: PouchLike, b: PouchLike): PromiseLike<unknown> }).sync(
      here,
      there,
    );
    connectSync({ sync: { report } }, sync);
    await sync;
    expect(reported).toMatchObject([{ denied: [{ id: 'p1', reason: 'not yours' }] }]);
  });

  it('what is done with failures does what it says', async () => {
    const { decide } = (await moduleWith('function decide')) as { decide(client: Client): Promise<string[]> };
    const client = createClient({
      name: 'readme-failures',
      PouchDB: MemoryPouch,
      actions: [await actionIn("name: 'set-phone'")],
    });
    await client.documents.bulkDocs([{ _id: 'p2', name: 'Person 2' }]);
    const settled = (id: string | undefined): Promise<unknown> =>
      firstValueFrom(
        client.bulkOperations$.pipe(filter((all) => all.some((one) => one.id === id && one.state.startsWith('done')))),
      );
    const { bulkOperationId } = await client.enqueue({
      target: 'local',
      actions: [{ action: 'set-phone', operations: ['p1', 'p8', 'p9'].map((id) => ({ id, phone: '1' })) }],
    });
    await settled(bulkOperationId);
    const [retried] = await decide(client);
    await settled(retried);
    expect(await client.documents.get('p2')).toMatchObject({ phone: '2' });
    expect(await client.listFailures()).toMatchObject([{ id: 'p8', bulkOperationId: retried }]);
    expect(await client.listFailures({ resolved: true })).toMatchObject([
      { id: 'p1', resolution: { how: 'retried' } },
      { id: 'p8', resolution: { how: 'retried' } },
      { id: 'p9', resolution: { how: 'discarded' } },
    ]);
    await client.close();
  });

  it('O4 what is said of the same request twice is so', async () => {
    const functionIn = async (text: string): Promise<Record<string, unknown>> => {
      for (const file of files) {
        if ((await readFile(file, 'utf8')).includes(`function ${text}`)) {
          return (await import(/* @vite-ignore */ file)) as Record<string, unknown>;
        }
      }
      throw new Error(`no example has ${text}`);
    };
    const { saveVisit } = (await functionIn('saveVisit')) as {
      saveVisit(client: Client, visitId: string, phone: string): Promise<string>;
    };
    const { takeNewest } = (await functionIn('takeNewest')) as { takeNewest(client: Client): Promise<string[]> };
    const client = createClient({
      name: 'readme-keys',
      PouchDB: MemoryPouch,
      actions: [await actionIn("name: 'set-phone'")],
    });
    await client.documents.bulkDocs([{ _id: 'p1', name: 'Person 1' }]);
    expect(await saveVisit(client, 'v1', '1')).toBe('saved');
    expect(await saveVisit(client, 'v1', '1')).toBe('saved before');
    expect(await saveVisit(client, 'v1', '2')).toMatch(/^look at u:/);
    const [queued] = await takeNewest(client);
    await firstValueFrom(
      client.bulkOperations$.pipe(filter((all) => all.some(({ id, state }) => id === queued && state === 'done'))),
    );
    expect(await client.documents.get('p1')).toMatchObject({ phone: '2' });
    expect(await client.listQuarantined()).toEqual([]);
    await client.close();
  });

  it('events go to both places, named as the app says', async () => {
    const { openWithEvents } = (await moduleWith('function openWithEvents')) as {
      openWithEvents(constructor: typeof MemoryPouch, fetch: typeof globalThis.fetch): Client;
    };
    const sent: string[] = [];
    const client = openWithEvents(MemoryPouch, (input, init) => {
      const url = input instanceof Request ? input.url : String(input);
      // Asked before anything is sent: whose credentials these are (S7).
      if (url.endsWith('/_session')) return Promise.resolve(Response.json({ userCtx: { name: null } }));
      sent.push(`${init?.method ?? ''} ${url} ${new Headers(init?.headers).get('x-app') ?? ''}`);
      const body = JSON.parse(typeof init?.body === 'string' ? init.body : '{}') as { docs?: { _id: string }[] };
      const rows = body.docs?.map(({ _id }) => ({ id: _id, ok: true, rev: '1-a' })) ?? [];
      return Promise.resolve(new Response(JSON.stringify(rows), { status: 201 }));
    });
    const heard = firstValueFrom(client.events$);
    await client.enqueue({
      target: 'local',
      actions: [{ action: 'create', operations: [{ id: 'h1', doc: { contact_type: 'household' } }] }],
    });
    expect(await heard).toMatchObject({ name: 'documents.new.household', documentId: 'h1', previous: null });
    await firstValueFrom(
      client.status$.pipe(
        filter(({ publishers: { couchdb, http } }) => couchdb?.transferred === 1 && http?.transferred === 1),
      ),
    );
    // The mark of the database of events is looked for, too.
    expect(sent.filter((line) => !line.includes('/_local/')).sort()).toEqual([
      'POST http://127.0.0.1:5984/afield-events/_bulk_docs ',
      'POST http://127.0.0.1:8080/events clinic',
    ]);
    await client.close();
  });

  it('set-phone and send-message do what they say', async () => {
    const sent: string[] = [];
    const client = createClient({
      name: 'readme',
      PouchDB: MemoryPouch,
      actions: [await actionIn("name: 'set-phone'"), await actionIn("name: 'send-message'")],
      environment: {
        fetch: (_url, init) => {
          sent.push(init?.body as string);
          return Promise.resolve(new Response('{}'));
        },
      },
    });
    const documents: PouchLike = client.documents;
    await documents.bulkDocs([{ _id: 'p1', name: 'Person 1' }]);
    await client.enqueue({
      target: 'local',
      actions: [
        { action: 'set-phone', operations: [{ id: 'p1', phone: '1' }] },
        { action: 'send-message', operations: [{ id: 'p1', key: 'm1', text: 'hello' }] },
      ],
    });
    await firstValueFrom(client.bulkOperations$.pipe(filter(([one]) => one?.state === 'done')));
    expect(await documents.get('p1')).toMatchObject({ name: 'Person 1', phone: '1' });
    expect(sent).toEqual([JSON.stringify([{ id: 'p1', key: 'm1', text: 'hello' }])]);
    await client.close();
  });

  it('create, update and delete do what they say', async () => {
    const { register } = (await moduleWith('function register')) as { register(client: Client): Promise<void> };
    const client = createClient({ name: 'readme-built-in', PouchDB: MemoryPouch, actions: [] });
    await client.documents.bulkDocs([{ _id: 'p1', phone: '1', address: { street: 'a', town: 'b' } }, { _id: 'p2' }]);
    await register(client);
    await firstValueFrom(client.bulkOperations$.pipe(filter(([one]) => one?.state === 'done')));
    expect(await client.documents.get('p3')).toMatchObject({ type: 'person', name: 'Person 3' });
    const { address, phone } = (await client.documents.get('p1')) as Record<string, unknown>;
    expect({ address, phone }).toEqual({ address: { town: 'b' }, phone: '2' });
    await expect(client.documents.get('p2')).rejects.toMatchObject({ status: 404 });
    await client.close();
  });

  it('move-children does what it says', async () => {
    const client = createClient({
      name: 'readme-plan',
      PouchDB: MemoryPouch,
      actions: [setParent],
      plans: [(await exportedBy("name: 'move-children'")) as AnyPlan],
    });
    const child = (id: string, parent: string): object => ({ _id: id, parent: { _id: parent } });
    await client.documents.bulkDocs([child('person-1', 'c1'), child('person-2', 'c2'), child('clinic-1', 'c1')]);
    const request = { target: 'local', plan: 'move-children', request: { from: 'c1', to: 'c3' } } as const;
    expect(await client.dryRun(request)).toMatchObject({ total: 1 });
    await client.enqueue(request);
    await firstValueFrom(client.bulkOperations$.pipe(filter(([one]) => one?.state === 'done')));
    expect(await client.documents.get('person-1')).toMatchObject({ parent: { _id: 'c3' } });
    expect(await client.documents.get('clinic-1')).toMatchObject({ parent: { _id: 'c1' } });
    await client.close();
  });

  it('an index answers what the documents say, also of what was written a moment ago', async () => {
    vi.stubGlobal('indexedDB', memoryIndexedDB());
    const { openWithIndex, childrenOf } = (await moduleWith('function childrenOf')) as {
      openWithIndex(constructor: typeof MemoryPouch): Client;
      childrenOf(client: Client, id: string): Promise<unknown[]>;
    };
    const client = openWithIndex(MemoryPouch);
    const person = (id: string, parent: string): object => ({ _id: id, name: `Person ${id}`, parent: { _id: parent } });
    await client.documents.bulkDocs([person('1', 'h1'), person('2', 'h1'), person('3', 'h2')]);
    await client.index('by-parent').build();
    expect(await childrenOf(client, 'h1')).toEqual(['Person 1', 'Person 2']);
    await client.documents.bulkDocs([person('4', 'h1')]);
    expect(await childrenOf(client, 'h1')).toEqual(['Person 1', 'Person 2', 'Person 4']);
    await client.close();
    vi.unstubAllGlobals();
  });
});
