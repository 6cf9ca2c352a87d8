import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  createClient,
  type AuthOptions,
  type Client,
  type ClientOptions,
  type ClientStatus,
  type PouchLike,
} from '@afield/client';
import { FakeDevice, MemoryServer, type MemoryRequest } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { build } from 'vite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

type Create = (options: ClientOptions) => Client;

describe('what is pulled', () => {
  let device: FakeDevice;
  let server: MemoryServer;
  let client: Client;
  let asked: MemoryRequest[];
  /** Sizes of the requests, and the longest address. */
  let sizes: { body: number; url: number }[];
  /** What becomes of an answer on its way. */
  let reworded: (url: string, text: string) => string;
  beforeEach(() => {
    reworded = (_url, text) => text;
    asked = [];
    sizes = [];
    server = new MemoryServer({
      users: { ann: 'x' },
      onRequest: (request) => {
        asked.push(request);
      },
    });
    server.create('records');
    const send: typeof fetch = async (input, init) => {
      const body = typeof init?.body === 'string' ? init.body.length : 0;
      const url = input instanceof Request ? input.url : String(input);
      sizes.push({ body, url: url.length });
      const answer = await server.fetch(input, init);
      const { status, headers } = answer;
      return new Response(reworded(url, await answer.text()), { status, headers });
    };
    device = new FakeDevice({ fetch: send });
  });
  afterEach(async () => {
    await device.until(client.close());
    await device.dispose();
  });

  const options = (more: Partial<ClientOptions>): ClientOptions => {
    const { PouchDB, environment } = device.process();
    const auth: AuthOptions = {
      credentials: () => Promise.resolve({ type: 'basic', username: 'ann', password: 'x' }),
    };
    return { name: 'r', PouchDB, environment, actions: [], server: server.urlOf('records'), auth, jitter: 0, ...more };
  };
  const open = (more: Partial<ClientOptions> = {}): Client => (client = createClient(options(more)));
  const status = (is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
    device.until(firstValueFrom(client.status$.pipe(filter(is))));
  const pulled = (): Promise<ClientStatus> => status(({ pull }) => pull.state === 'idle' && pull.attempts > 0);
  /** One more pull, to its end. */
  const pullAgain = async (): Promise<void> => {
    const { pull } = await firstValueFrom(client.status$);
    client.syncNow();
    await status((one) => one.pull.attempts > pull.attempts && one.pull.state === 'idle');
  };
  const there = (...ids: readonly string[]): void => {
    server.create('records').write(ids.map((_id) => ({ _id, type: _id.split('-')[0] })));
  };
  const here = async (): Promise<readonly string[]> =>
    (await client.documents.allDocs({})).rows.map((row) => (row as { id: string }).id);
  const fetched = (): readonly string[] =>
    asked
      .filter(({ resource }) => resource === '_bulk_get')
      .flatMap(({ body }) => (body as { docs: { id: string }[] }).docs.map(({ id }) => id));
  const checkpoints = (): readonly string[] => [
    // All but the push's own.
    ...new Set(asked.flatMap(({ resource }) => (/^_local\/(?!afield-push)/.test(resource) ? [resource] : []))),
  ];

  it('S2 brings what the selector fits, and nothing else', async () => {
    there('person-1', 'clinic-1', 'person-2');
    open({ pull: { selector: { type: 'person' } } });
    await pulled();
    expect(await here()).toEqual(['person-1', 'person-2']);
    expect(fetched()).toEqual(['person-1', 'person-2']);
    expect(server.unknown).toEqual([]);
  });

  it('S2 another build of the app has the same checkpoint, and reads nothing anew', { timeout: 60_000 }, async () => {
    there('person-1', 'person-2');
    const first = await builtApp("{ type: 'person', place: undefined, $or: undefined }", false);
    const second = await builtApp("(function named() { const a = 'person'; return { type: a } })()", true);
    expect(second.code.length).toBeLessThan(first.code.length / 2);
    client = first.open(options({}));
    await pulled();
    const [checkpoint, ...others] = checkpoints();
    expect(others).toEqual([]);
    await device.until(client.close());
    asked.length = 0;
    there('person-3');
    client = second.open(options({}));
    await status(({ pull }) => pull.transferred === 3);
    expect(checkpoints()).toEqual([checkpoint]);
    expect(fetched()).toEqual(['person-3']);
    const since = asked.flatMap(({ resource, query }) => (resource === '_changes' ? [query.get('since')] : []));
    expect(since).not.toContain('0');
  });

  it('S2 the order of a selector’s fields does not change the checkpoint, another selector does', async () => {
    const checkpointOf = async (selector: object): Promise<readonly string[]> => {
      asked.length = 0;
      open({ pull: { selector } });
      await pulled();
      await device.until(client.close());
      return checkpoints();
    };
    const one = await checkpointOf({ type: 'person', place: 'a' });
    expect(one).toHaveLength(1);
    expect(await checkpointOf({ place: 'a', type: 'person' })).toEqual(one);
    expect(await checkpointOf({ place: 'b', type: 'person' })).not.toEqual(one);
    expect(await checkpointOf({ place: 'a', type: 'person' })).toEqual(one);
  });

  it('S2 brings the documents of a list; who comes into it later is brought alone', async () => {
    const ids = Array.from({ length: 250 }, (_, at) => `d${String(at).padStart(3, '0')}`);
    there(...ids, 'late', 'other');
    let list: readonly string[] = ids;
    open({ pull: { docIds: () => list } });
    await pulled();
    expect(await here()).toEqual(ids);
    const before = checkpoints();
    asked.length = 0;
    list = ['late', ...ids.slice(1)];
    await pullAgain();
    expect(fetched()).toEqual(['late']);
    expect(checkpoints()).toEqual(before);
    // Of the rows, too, only the new one was read again.
    const fromStart = asked.filter(({ resource, query }) => resource === '_changes' && query.get('since') === '0');
    expect(fromStart.map(({ body }) => body)).toEqual([{ doc_ids: ['late'] }]);
    expect(await here()).toEqual([...ids, 'late']);
    // What changes there later comes, as for the others; what has left the list does not.
    const records = server.create('records');
    for (const id of ['late', 'd000', 'd001']) records.write([{ ...records.read(id), colour: 'blue' }]);
    await pullAgain();
    expect(await client.documents.get('late')).toMatchObject({ colour: 'blue' });
    expect(await client.documents.get('d001')).toMatchObject({ colour: 'blue' });
    expect(await client.documents.get('d000')).not.toHaveProperty('colour');
  });

  it('S2 a process that ends before the list is stored brings what is new in it after all', async () => {
    there('a', 'b', 'c');
    open({ pull: { docIds: ['a'] } });
    await pulled();
    await device.until(client.close());
    asked.length = 0;
    device.network.add({ when: { path: '/_bulk_get', times: 1 }, do: { type: 'network-error' } });
    open({ pull: { docIds: ['a', 'b'] } });
    await status(({ pull }) => pull.failedAttempts > 0);
    await status(({ pull }) => pull.transferred === 2);
    expect(await here()).toEqual(['a', 'b']);
  });

  it('S2 a long list goes in the bodies of requests of a bounded size, and is the same list in any order', async () => {
    const ids = Array.from({ length: 5000 }, (_, at) => `0f1e2d3c-4b5a-6978-8796-${String(at).padStart(12, '0')}`);
    there(...ids.slice(0, 300));
    open({ pull: { docIds: ids } });
    await pulled();
    expect(await here()).toHaveLength(300);
    expect(Math.max(...sizes.map(({ url }) => url))).toBeLessThan(300);
    expect(Math.max(...sizes.map(({ body }) => body))).toBeLessThan(60_000);
    const before = new Set(checkpoints());
    await device.until(client.close());
    asked.length = 0;
    open({ pull: { docIds: () => Promise.resolve([...ids].reverse()) } });
    await pulled();
    expect(new Set(checkpoints())).toEqual(before);
    expect(fetched()).toEqual([]);
  });

  it('S2 a list that the app cannot give now is asked for again', async () => {
    there('a');
    let isOffline = true;
    open({ pull: { docIds: () => (isOffline ? Promise.reject(new TypeError('offline')) : ['a']) } });
    await status(({ pull }) => pull.failedAttempts === 1);
    isOffline = false;
    await status(({ pull }) => pull.transferred === 1);
    expect(await here()).toEqual(['a']);
  });

  it('S2 a list with something else than ids in it is refused, and pulls nothing', async () => {
    there('a');
    open({ pull: { docIds: () => ['a', ''] } });
    const { pull } = await status((one) => one.pull.failedAttempts === 1);
    expect(pull.lastError).toMatchObject({ code: 'AfieldError' });
    expect(await here()).toEqual([]);
  });

  it('S2 a pull that waits for a local write without an end is given up, and begun anew', async () => {
    there('a', 'b');
    client = createClient(hanging(options({})).options);
    const before = device.clock.monotonic();
    const { pull } = await status((one) => one.pull.failedAttempts === 1);
    expect(pull.lastError).toEqual({ class: 'network', code: 'inactive' });
    expect(device.clock.monotonic() - before).toBeGreaterThanOrEqual(300_000);
    expect(device.clock.monotonic() - before).toBeLessThan(310_000);
    await status((one) => one.pull.transferred === 2);
    expect(await here()).toEqual(['a', 'b']);
  });

  it('S2 what a replication does that was given up, when its call settles after all, does no harm', async () => {
    there('a', 'b');
    const { options: given, goOn } = hanging(options({ inactivityS: 60 }));
    client = createClient(given);
    await status((one) => one.pull.lastError?.code === 'inactive');
    await status((one) => one.pull.transferred === 2);
    asked.length = 0;
    goOn();
    await device.clock.advance(500_000);
    // Only the pulls of each minute: one question for changes each.
    const changes = asked.filter(({ resource }) => resource === '_changes').length;
    expect(changes).toBeGreaterThan(5);
    expect(changes).toBeLessThan(11);
    expect(await here()).toEqual(['a', 'b']);
  });

  it('S2 a server that sends a byte a minute is given up', async () => {
    there('a');
    let isSlow = true;
    let ended = 0;
    const slow: typeof fetch = (input, init) => {
      if (!isSlow || !String(input).includes('/_changes')) return server.fetch(input, init);
      const drip = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
        if (init?.signal?.aborted === true) return;
        controller.enqueue(new TextEncoder().encode(' '));
        device.clock.setTimer(() => {
          drip(controller);
        }, 50_000);
      };
      init?.signal?.addEventListener('abort', () => (ended += 1));
      return Promise.resolve(new Response(new ReadableStream({ start: drip })));
    };
    const { environment, ...rest } = options({});
    client = createClient({ ...rest, environment: { ...environment, fetch: slow } });
    const { pull } = await status((one) => one.pull.failedAttempts === 1);
    expect(pull.lastError).toEqual({ class: 'network', code: 'inactive' });
    expect(ended).toBe(1);
    isSlow = false;
    await status((one) => one.pull.transferred === 1);
  });

  it('S2 a slow pull goes on as long as it brings something', async () => {
    there(...Array.from({ length: 1000 }, (_, at) => `d${String(at)}`));
    device.network.add({ when: { path: '/_bulk_get' }, do: { type: 'delay', ms: 50_000 } });
    open({ inactivityS: 60 });
    const { pull } = await pulled();
    expect(pull).toMatchObject({ transferred: 1000, failedAttempts: 0 });
  });

  it('S2 a push that waits for a local read without an end is given up, and taken up again', async () => {
    open();
    await pulled();
    device.store.add({ when: { call: 'bulkGet', database: 'r', times: 1 }, do: { type: 'hang' } });
    await client.documents.put({ _id: 'mine' });
    const { push } = await status((one) => one.push.failedAttempts === 1);
    expect(push.lastError).toEqual({ class: 'network', code: 'inactive' });
    await status((one) => one.push.state === 'idle');
    expect(server.create('records').read('mine')).toBeDefined();
  });

  it('S2 a push that was given up sends nothing more when its read settles after all', async () => {
    const { options: given, goOn } = hanging(options({}), 'bulkGet');
    client = createClient(given);
    await client.documents.put({ _id: 'mine' });
    await status((one) => one.push.lastError?.code === 'inactive');
    await status((one) => one.push.state === 'idle');
    const writes = (): number => asked.filter(({ resource }) => resource === '_bulk_docs').length;
    expect(writes()).toBe(1);
    goOn();
    await device.clock.advance(120_000);
    expect(writes()).toBe(1);
  });

  /** What one more pull asks, the look of the push beside it. */
  const round = async (): Promise<readonly string[]> => {
    await pullAgain();
    await status(({ push }) => push.state === 'idle');
    asked.length = 0;
    await pullAgain();
    return asked
      .map(({ method, resource }) => `${method} ${resource.replace(/^_local\/(afield-push|).*/, '_local/$1')}`)
      .sort();
  };

  it.each<[string, Partial<ClientOptions>]>([
    ['all documents', {}],
    ['a selector', { pull: { selector: { type: 'person' } } }],
    ['a list', { pull: { docIds: ['person-1', 'person-2'] } }],
  ])(
    'S2 a pull of %s that brings nothing asks twice: is it the same database, and is anything new',
    async (_what, more) => {
      there('person-1', 'person-2');
      open(more);
      await pulled();
      const changes = more.pull === undefined ? 'GET _changes' : 'POST _changes';
      expect(await round()).toEqual(['GET _local/', 'GET _local/afield-push', changes].sort());
      // The next one still brings what is new, and says how far it came.
      server.create('records').write([{ ...server.create('records').read('person-1'), colour: 'blue' }]);
      asked.length = 0;
      await pullAgain();
      expect(fetched()).toEqual(['person-1']);
      expect(
        asked.filter(({ method, resource }) => method === 'PUT' && /^_local\/(?!afield)/.test(resource)),
      ).toHaveLength(1);
    },
  );

  it('S2 a cluster that names the present in other words each time gets no checkpoint for nothing', async () => {
    there('person-1');
    let answers = 0;
    reworded = (url, text) =>
      /\/_changes/.test(url)
        ? text.replace(/"last_seq":"?(\d+)[^,}]*/, `"last_seq":"$1-g1AAAA${String(++answers)}"`)
        : text;
    open();
    await pulled();
    expect(await round()).toEqual(['GET _changes', 'GET _local/', 'GET _local/afield-push']);
    there('person-2', 'person-3');
    await pullAgain();
    expect(await here()).toEqual(['person-1', 'person-2', 'person-3']);
    expect(await round()).toEqual(['GET _changes', 'GET _local/', 'GET _local/afield-push']);
  });

  it('S2 a database that is made anew between two pulls is read from its beginning', async () => {
    there('person-1', 'person-2');
    open();
    await pulled();
    await round();
    server.databases.delete('records');
    there('clinic-1');
    await pullAgain();
    expect(await here()).toEqual(['clinic-1', 'person-1', 'person-2']);
  });

  it('V1 a long first pull shows how far it is while it runs', async () => {
    there(...Array.from({ length: 1000 }, (_, at) => `d${String(at)}`));
    open();
    const seen: number[] = [];
    client.status$.subscribe(({ pull }) => {
      if (pull.state === 'running' && pull.transferred !== seen.at(-1)) seen.push(pull.transferred);
    });
    const shown = await pulled();
    expect(shown.pull.transferred).toBe(1000);
    expect(seen).toEqual([0, 200, 400, 600, 800, 1000]);
  });
});

/**
 * The first documents that come from the server are not written (`bulkDocs`), or the first that go there not read
 * (`bulkGet`), until `goOn`: the call does not settle.
 */
function hanging(
  options: ClientOptions,
  method: 'bulkDocs' | 'bulkGet' = 'bulkDocs',
): { options: ClientOptions; goOn: () => void } {
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => (goOn = resolve));
  let isFirst = true;
  const { PouchDB, name } = options;
  function HangingPouch(database: string, how?: object): PouchLike {
    const handle = new PouchDB(database, how);
    if (database !== name) return handle;
    const call = handle[method].bind(handle) as (...given: unknown[]) => Promise<unknown>;
    return Object.assign(handle, {
      [method]: async (...given: unknown[]) => {
        const isHeld = isFirst && (method === 'bulkGet' || !Array.isArray(given[0]));
        if (isHeld) isFirst = false;
        if (isHeld) await held;
        return call(...given);
      },
    });
  }
  const replicate = PouchDB.replicate.bind(PouchDB);
  const Hanging = Object.assign(HangingPouch, { replicate }) as unknown as ClientOptions['PouchDB'];
  return {
    options: { ...options, PouchDB: Hanging },
    goOn: () => {
      goOn();
    },
  };
}

/** An app with this selector, as its own build would make it. */
async function builtApp(selector: string, minify: boolean): Promise<{ open: Create; code: string }> {
  const app = `
    import { createClient } from '@afield/client';
    export const open = (options) => createClient({ ...options, pull: { selector: ${selector} } });
  `;
  const built = await build({
    root: fileURLToPath(new URL('../', import.meta.url)),
    configFile: false,
    logLevel: 'silent',
    resolve: {
      alias: { '@afield/client': fileURLToPath(new URL('../../packages/client/src/index.ts', import.meta.url)) },
    },
    plugins: [
      {
        name: 'app',
        resolveId: (id) => (id === 'virtual:app' ? id : undefined),
        load: (id) => (id === 'virtual:app' ? app : undefined),
      },
    ],
    build: {
      write: false,
      target: 'esnext',
      minify,
      modulePreload: false,
      rollupOptions: { input: 'virtual:app', preserveEntrySignatures: 'strict' },
    },
  });
  const output = (Array.isArray(built) ? built : [built]).flatMap((one) => ('output' in one ? one.output : []));
  const entry = output.find((one) => one.type === 'chunk');
  if (entry?.type !== 'chunk') throw new Error('vite built nothing.');
  const file = join(await mkdtemp(join(tmpdir(), 'afield-build-')), 'app.mjs');
  await writeFile(file, entry.code);
  const { open } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { open: Create };
  await rm(dirname(file), { recursive: true });
  return { open, code: entry.code };
}
