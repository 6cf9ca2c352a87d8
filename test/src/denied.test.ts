import {
  createClient,
  defineAction,
  defineDocumentAction,
  type AuthOptions,
  type Client,
  type ClientOptions,
  type Clock,
  type FailedOperation,
  type Publisher,
} from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';

const setColour = defineDocumentAction({
  name: 'set-colour',
  operation: z.strictObject({ to: z.string() }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to }),
});

/** The server takes no document of this colour, and no deletion of what is kept. */
const rules = {
  _id: '_design/rules',
  validate_doc_update: `function (doc, old) {
    if (doc.colour === 'black') throw { forbidden: 'no black here' };
    if (doc._deleted && old && old.keep) throw { forbidden: 'this is kept' };
  }`,
};

type Stored = Record<string, unknown> & { readonly _rev: string };
let stores = 0;

describe('documents that the server refuses', () => {
  let server: ServerUnderTest;
  let databases: TemporaryDatabases;
  let url: string;
  let clients: Client[];

  beforeAll(async () => {
    server = await serverUnderTest();
  });
  afterAll(async () => {
    await server.close();
  });
  beforeEach(async () => {
    databases = temporaryDatabases(server.url, server.admin);
    ({ url } = await databases.create('records', { docs: [rules] }));
    clients = [];
  });
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.proxy.reset();
    await databases.dispose();
  });

  const open = (options: Partial<ClientOptions> = {}): Client => {
    const client = createClient({
      name: `denied-${String(stores++)}`,
      PouchDB: MemoryPouch,
      actions: [setColour],
      server: url,
      auth: { credentials: () => Promise.resolve({ type: 'basic', ...server.admin }) },
      ramp: () => 1000,
      jitter: 0,
      pullEveryS: 3600,
      ...options,
    });
    clients.push(client);
    return client;
  };
  const ask = async (path: string, method = 'GET', body?: object): Promise<Stored> => {
    const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
    const init = { method, headers: { authorization, 'content-type': 'application/json' } };
    const answer = await fetch(`${url}/${path}`, {
      ...init,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await answer.json()) as Stored;
  };
  const pushed = (client: Client): Promise<unknown> =>
    firstValueFrom(
      client.status$.pipe(filter(({ push, pending }) => push.state === 'idle' && push.attempts > 0 && pending === 0)),
    );
  const pulled = async (client: Client): Promise<void> => {
    const { pull } = await firstValueFrom(client.status$);
    client.syncNow();
    await firstValueFrom(
      client.status$.pipe(filter((now) => now.pull.attempts > pull.attempts && now.pull.state === 'idle')),
    );
  };
  const failures = (client: Client, count: number): Promise<readonly FailedOperation[]> =>
    firstValueFrom(client.failures$.pipe(filter((list) => list.length === count)));
  const paint = (client: Client, ids: readonly string[], to: string): Promise<unknown> =>
    client.enqueue({ target: 'local', actions: [{ action: 'set-colour', operations: ids.map((id) => ({ id, to })) }] });
  const local = (client: Client, id: string): Promise<Stored> => client.documents.get(id) as Promise<Stored>;
  const isHere = (client: Client, id: string): Promise<boolean> =>
    local(client, id).then(
      () => true,
      () => false,
    );
  /** Two documents of the server, and a client that has them. */
  const begun = async (options: Partial<ClientOptions> = {}): Promise<Client> => {
    const client = open(options);
    await client.documents.bulkDocs(['a', 'b'].map((_id) => ({ _id, colour: 'red', note: `of ${_id}` })));
    await pushed(client);
    return client;
  };
  /** Writes of documents that reached the server so far. */
  const writes = (): number => server.proxy.requests().filter(({ path }) => path.endsWith('/_bulk_docs')).length;
  const black = async (client: Client, ...ids: readonly string[]): Promise<void> => {
    await paint(client, ids, 'black');
    await failures(client, ids.length);
    await pushed(client);
  };

  describe('going back to the server’s version', () => {
    it('S2 the app sees the server’s version again, and the local one is kept in the failure', async () => {
      const client = await begun();
      await black(client, 'a');
      expect(await client.revert({ code: 'forbidden' })).toBe(1);
      expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of a' });
      expect(await failures(client, 0)).toEqual([]);
      expect(await client.listFailures({ resolved: true })).toMatchObject([
        { id: 'a', code: 'forbidden', resolution: { how: 'reverted' }, localDocument: { _id: 'a', colour: 'black' } },
      ]);
      expect(await client.revert({})).toBe(0);
    });

    it('S2 nothing of it is sent to the server, also when the document changes later or all is pushed anew', async () => {
      const client = await begun();
      const before = await ask('a');
      await black(client, 'a');
      const sent = writes();
      await client.revert({ id: 'a' });
      await client.documents.put({ ...(await local(client, 'b')), note: 'new' });
      await expect.poll(() => ask('b')).toMatchObject({ note: 'new' });
      await pushed(client);
      expect(await ask('a')).toEqual(before);
      expect(writes()).toBe(sent + 1);
      // The queue is lost, and with it all that is remembered beside the documents.
      const again = open({ documents: client.documents.name });
      await pushed(again);
      expect(await failures(again, 0)).toEqual([]);
      expect(await ask('a?revs=true&conflicts=true&deleted_conflicts=true')).toEqual(await ask('a?revs=true'));
      expect(await ask('a')).toEqual(before);
    });

    it('S2 a later edit is pushed upon the server’s version, and can be refused and brought back again', async () => {
      const client = await begun();
      await black(client, 'a');
      await client.revert({ id: 'a' });
      await black(client, 'a');
      expect(await client.revert({ id: 'a' })).toBe(1);
      expect(await local(client, 'a')).toMatchObject({ colour: 'red' });
      await paint(client, ['a'], 'blue');
      await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'blue' });
      expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
      expect(await client.listFailures()).toEqual([]);
      expect(await client.listFailures({ resolved: true })).toHaveLength(2);
    });

    it('S2 later changes of others are seen here, their deletion too', async () => {
      const client = await begun();
      await black(client, 'a', 'b');
      await client.revert({});
      await ask('a', 'PUT', { ...(await ask('a')), colour: 'green' });
      await ask(`b?rev=${(await ask('b'))._rev}`, 'DELETE');
      await pulled(client);
      await expect.poll(() => local(client, 'a')).toMatchObject({ colour: 'green' });
      await expect.poll(() => isHere(client, 'b')).toBe(false);
      const { _conflicts } = (await client.documents.get('a', { conflicts: true })) as { _conflicts?: unknown };
      expect(_conflicts).toBeUndefined();
      expect(await firstValueFrom(client.conflicts$)).toEqual([]);
      await paint(client, ['a'], 'blue');
      await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'blue' });
      expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
    });

    it('S2 what others have written since then is the server’s version, and comes from there', async () => {
      const client = await begun();
      await black(client, 'a');
      await ask('a', 'PUT', { ...(await ask('a')), colour: 'green' });
      const there = await ask('a', 'PUT', { ...(await ask('a')), colour: 'yellow' });
      await client.revert({ id: 'a' });
      expect(await local(client, 'a')).toMatchObject({ colour: 'yellow', _rev: (there as { rev?: string }).rev });
    });

    it('S2 a document that the server never had is here no more, and its content is kept', async () => {
      const client = await begun();
      await client.documents.bulkDocs([{ _id: 'mine', colour: 'black' }]);
      await failures(client, 1);
      expect(await client.revert({ id: 'mine' })).toBe(1);
      expect(await isHere(client, 'mine')).toBe(false);
      expect(await client.listFailures({ resolved: true })).toMatchObject([
        { id: 'mine', bulkOperationId: undefined, localDocument: { colour: 'black' } },
      ]);
      await pushed(client);
      expect(await ask('mine')).toMatchObject({ error: 'not_found', reason: 'missing' });
      await client.documents.bulkDocs([{ _id: 'mine', colour: 'red' }]);
      await expect.poll(() => ask('mine')).toMatchObject({ colour: 'red' });
    });

    it('S2 S8 a deletion that the server refuses is undone, with the attachments', async () => {
      const client = open();
      const attachments = { 'n.txt': { content_type: 'text/plain', data: 'aGk=' } };
      await client.documents.bulkDocs([{ _id: 'kept', keep: true, _attachments: attachments }]);
      await pushed(client);
      await client.enqueue({ target: 'local', actions: [{ action: 'delete', operations: [{ id: 'kept' }] }] });
      await failures(client, 1);
      expect(await isHere(client, 'kept')).toBe(false);
      expect(await client.revert({})).toBe(1);
      const back = (await client.documents.get('kept', { attachments: true })) as {
        _attachments: Record<string, { data: string }>;
      };
      expect(back._attachments['n.txt']?.data).toBe('aGk=');
      await client.documents.put({ ...(await local(client, 'kept')), note: 'later' });
      await expect.poll(() => ask('kept')).toMatchObject({ keep: true, note: 'later' });
    });

    it('S2 several failures of one document end together, and no others', async () => {
      const client = await begun();
      await black(client, 'a');
      await client.enqueue({
        target: 'local',
        actions: [{ action: 'update', operations: [{ id: 'a', patch: { note: 'still black' } }] }],
      });
      await paint(client, ['b'], 'black');
      const all = await failures(client, 3);
      expect(await client.revert({ failureId: all[0]?.failureId ?? '' })).toBe(2);
      expect((await failures(client, 1)).map(({ id }) => id)).toEqual(['b']);
      expect(await local(client, 'a')).toMatchObject({ colour: 'red', note: 'of a' });
    });

    it('S2 what is pending on the document goes on upon the server’s version', async () => {
      let release: (() => void) | undefined;
      const wait = defineAction({
        name: 'wait',
        operation: z.strictObject({}),
        run: () =>
          new Promise<object>((resolve) => {
            release = () => {
              resolve({});
            };
          }),
      });
      const client = await begun({ actions: [setColour, wait] });
      await black(client, 'a');
      const lane = { target: 'local', lane: 'one by one' } as const;
      await client.enqueue({ ...lane, actions: [{ action: 'wait', operations: [{ id: 'x' }] }] });
      await client.enqueue({ ...lane, actions: [{ action: 'set-colour', operations: [{ id: 'a', to: 'blue' }] }] });
      expect(await client.revert({ id: 'a' })).toBe(1);
      expect(await local(client, 'a')).toMatchObject({ colour: 'red' });
      await expect.poll(() => release).toBeDefined();
      release?.();
      await expect.poll(() => ask('a?conflicts=true')).toMatchObject({ colour: 'blue', note: 'of a' });
      expect(await ask('a?conflicts=true')).not.toHaveProperty('_conflicts');
      await failures(client, 0);
    });

    it('S2 a server that was set up anew gets the version that counts here, never the refused one', async () => {
      const client = await begun();
      await black(client, 'a');
      await client.revert({ id: 'a' });
      await client.close();
      clients = [];
      ({ url } = await databases.create('anew', { docs: [rules] }));
      const anew = open({ documents: client.documents.name });
      await expect.poll(() => ask('a')).toMatchObject({ colour: 'red', note: 'of a' });
      await pushed(anew);
      expect(await failures(anew, 0)).toEqual([]);
    });

    it('S2 a document with a later edit that the server was not asked about stays as it is', async () => {
      const client = await begun();
      await black(client, 'a');
      server.proxy.addRule({ when: { path: '/_bulk_docs' }, do: { type: 'answer', status: 503 } });
      await client.documents.put({ ...(await local(client, 'a')), colour: 'green' });
      expect(await client.revert({ id: 'a' })).toBe(0);
      expect(await local(client, 'a')).toMatchObject({ colour: 'green' });
      await server.proxy.reset();
      client.syncNow();
      await failures(client, 0);
      expect(await ask('a')).toMatchObject({ colour: 'green' });
    });

    it('S2 a call that was cut off anywhere is made again, and comes to the same end', async () => {
      /** The writes of a revert, in their order. */
      const cuts: ((docs: readonly Record<string, unknown>[], isAsIs: boolean) => boolean)[] = [
        ([doc]) => doc?.['local'] !== undefined && doc['resolution'] === undefined,
        (_docs, isAsIs) => isAsIs,
        ([doc]) => doc?.['resolution'] !== undefined,
      ];
      for (const [place, isCut] of cuts.entries()) {
        const id = `cut-${String(place)}`;
        let isArmed = false;
        class Cut extends MemoryPouch {
          constructor(name: string, options?: object) {
            super(name, options);
            const whole = this.bulkDocs.bind(this);
            this.bulkDocs = (docs, more) => {
              const isNow = isArmed && isCut(docs as Record<string, unknown>[], more?.new_edits === false);
              return isNow ? Promise.reject(new Error('the process has ended')) : whole(docs, more);
            };
          }
        }
        const client = open({ PouchDB: Cut });
        await client.documents.bulkDocs([{ _id: id, colour: 'red' }]);
        await pushed(client);
        await black(client, id);
        isArmed = true;
        await expect(client.revert({ id })).rejects.toThrow();
        isArmed = false;
        expect(await client.revert({ id })).toBe(1);
        expect(await local(client, id)).toMatchObject({ colour: 'red' });
        expect(await client.listFailures({ resolved: true })).toMatchObject([{ localDocument: { colour: 'black' } }]);
        await failures(client, 0);
        await pushed(client);
        expect(await ask(`${id}?conflicts=true&deleted_conflicts=true`)).toEqual(await ask(id));
        await paint(client, [id], 'blue');
        await expect.poll(() => ask(id)).toMatchObject({ colour: 'blue' });
      }
    });

    it('S2 without the server it changes nothing and says so', async () => {
      const client = await begun();
      await black(client, 'a');
      server.proxy.addRule({ when: { path: '/_revs_diff' }, do: { type: 'answer', status: 503 } });
      await expect(client.revert({ id: 'a' })).rejects.toMatchObject({ name: 'RetryableError' });
      expect(await local(client, 'a')).toMatchObject({ colour: 'black' });
      expect(await client.listFailures()).toHaveLength(1);
    });
  });

  describe('what a person has given up', () => {
    /** A place for events that remembers what it has. */
    const placeOf = (sent: string[]): Publisher => ({
      name: 'place',
      publish: (events) => {
        sent.push(...events.map(({ documentId, sequence }) => `${documentId}@${String(sequence)}`));
        return Promise.resolve({ accepted: events.map(({ id }) => id) });
      },
    });
    const published = (client: Client): Promise<unknown> =>
      firstValueFrom(client.status$.pipe(filter(({ unpublished, pending }) => unpublished === 0 && pending === 0)));

    it('S2 O8 its event is never published, and later ones of its document do not wait for it', async () => {
      for (const decide of ['discard', 'revert'] as const) {
        const sent: string[] = [];
        const client = await begun({ publishers: [placeOf(sent)] });
        const id = 'a';
        await paint(client, [id, 'b'], 'black');
        await failures(client, 2);
        await paint(client, [id], 'grey');
        await failures(client, 1);
        await expect.poll(() => sent).toEqual(['a@1', 'a@2']);
        await paint(client, [id], 'black');
        await failures(client, 2);
        await client[decide]({});
        await published(client);
        expect(sent).toEqual(['a@1', 'a@2']);
        await paint(client, [id], 'blue');
        await published(client);
        expect(sent).toEqual(['a@1', 'a@2', 'a@4']);
        await client.close();
        clients = [];
        ({ url } = await databases.create('records', { docs: [rules] }));
      }
    });

    it('S2 R19 it stays given up when a later edit with it in its past is refused, or taken', async () => {
      const client = await begun();
      await black(client, 'a');
      expect(await client.discard({ id: 'a' })).toBe(1);
      await client.documents.put({ ...(await local(client, 'a')), note: 'still black' });
      expect(await failures(client, 1)).toMatchObject([{ id: 'a', bulkOperationId: undefined }]);
      expect(await client.listFailures({ resolved: true })).toMatchObject([{ resolution: { how: 'discarded' } }]);
      await client.documents.put({ ...(await local(client, 'a')), colour: 'green' });
      await failures(client, 0);
      expect(await ask('a')).toMatchObject({ colour: 'green' });
      expect(await client.listFailures({ resolved: true })).toMatchObject([{ resolution: { how: 'discarded' } }]);
      expect(await firstValueFrom(client.bulkOperations$)).toMatchObject([{ state: 'done', failed: 0, resolved: 1 }]);
    });

    it('S2 nothing more is sent for it, also when its document changes at the server', async () => {
      const client = await begun();
      await black(client, 'a');
      await client.discard({ id: 'a' });
      const sent = writes();
      await ask('a', 'PUT', { ...(await ask('a')), note: 'of another' });
      await pulled(client);
      await client.documents.put({ ...(await local(client, 'b')), note: 'new' });
      await expect.poll(() => ask('b')).toMatchObject({ note: 'new' });
      await pushed(client);
      expect(writes()).toBe(sent + 1);
    });
  });

  describe('after a new sign-in', () => {
    const withoutRule = async (): Promise<void> => {
      await ask(`_design/rules?rev=${(await ask('_design/rules'))._rev}`, 'DELETE');
    };

    it('S2 R12 what was forbidden is sent once more by itself, as the same revision', async () => {
      const client = await begun();
      await black(client, 'a');
      const { _rev: rev } = await local(client, 'a');
      await withoutRule();
      client.signedIn();
      await failures(client, 0);
      expect(await ask('a')).toMatchObject({ colour: 'black', _rev: rev });
      expect(await firstValueFrom(client.bulkOperations$)).toMatchObject([{ state: 'done', applied: 1, failed: 0 }]);
    });

    it('S2 R12 once for each sign-in: what is refused again waits for the next one', async () => {
      const client = await begun();
      await black(client, 'a', 'b');
      const [before] = await failures(client, 2);
      const sent = writes();
      client.signedIn();
      await expect.poll(writes).toBe(sent + 1);
      await pushed(client);
      const [after] = await failures(client, 2);
      expect(after).toMatchObject({ failureId: before?.failureId, key: before?.key, index: before?.index });
      client.syncNow();
      await client.documents.put({ _id: 'other' });
      await expect.poll(() => ask('other')).toMatchObject({ _id: 'other' });
      expect(writes()).toBe(sent + 2);
      client.signedIn();
      await expect.poll(writes).toBe(sent + 3);
    });

    describe('with a token that is renewed every few minutes', () => {
      let passedMs: number;
      let wentBackMs: number;
      let isExpired: boolean;
      let roles: readonly string[];
      let given: number;
      beforeEach(() => {
        [passedMs, wentBackMs, isExpired, roles, given] = [0, 0, false, ['clinic'], 0];
      });
      const renewed = (): Promise<Client> => begun({ auth, environment: { clock, fetch: send } });
      const auth: AuthOptions = {
        credentials: () => {
          isExpired = false;
          const authorization = `Basic ${btoa(`${server.admin.username}:${server.admin.password}`)}`;
          return Promise.resolve({ type: 'headers', headers: { authorization, 'x-token': String(++given) } });
        },
      };
      const clock: Clock = {
        wall: () => Date.now() + passedMs - wentBackMs,
        monotonic: () => performance.now() + passedMs,
        setTimer: (run, delayMs) => setTimeout(run, delayMs),
        clearTimer: (timer) => {
          clearTimeout(timer as NodeJS.Timeout);
        },
      };
      const send: typeof fetch = async (input, init) => {
        const address = input instanceof Request ? input.url : String(input);
        if (isExpired) return Response.json({ error: 'unauthorized', reason: 'It has expired.' }, { status: 401 });
        const answer = await fetch(input, init);
        if (!address.endsWith('/_session')) return answer;
        return Response.json({ ok: true, userCtx: { name: server.admin.username, roles } });
      };
      /** After so long a request is refused, and the app brings another token. Resolves when all is quiet again. */
      const expires = async (client: Client, afterMs: number): Promise<void> => {
        passedMs += afterMs;
        const before = given;
        isExpired = true;
        await pulled(client);
        expect(given).toBe(before + 1);
        await pushed(client);
      };
      const minute = 60_000;

      it('S2 R12 what was forbidden is not sent for it, but once an hour', async () => {
        const client = await renewed();
        await black(client, 'a');
        const sent = writes();
        for (let count = 0; count < 5; count++) await expires(client, 10 * minute);
        expect(writes()).toBe(sent);
        await withoutRule();
        await expires(client, 10 * minute);
        await failures(client, 0);
        expect(writes()).toBe(sent + 1);
      });

      it('S2 R18 the hour begins anew with each refusal, and a clock that went back ends it', async () => {
        const client = await renewed();
        await black(client, 'a');
        const sent = writes();
        await expires(client, 61 * minute);
        await expect.poll(writes).toBe(sent + 1);
        await pushed(client);
        await expires(client, 30 * minute);
        expect(writes()).toBe(sent + 1);
        wentBackMs = 365 * 24 * 60 * minute;
        await expires(client, 2 * minute);
        await expect.poll(writes).toBe(sent + 2);
        await pushed(client);
        await expires(client, 2 * minute);
        expect(writes()).toBe(sent + 2);
      });

      it('S2 R12 other roles of the same person, and the word of the app, send it at once', async () => {
        const client = await renewed();
        await black(client, 'a');
        const sent = writes();
        roles = ['clinic', 'chief'];
        await expires(client, 2 * minute);
        await expect.poll(writes).toBe(sent + 1);
        await pushed(client);
        await expires(client, 2 * minute);
        expect(writes()).toBe(sent + 1);
        client.signedIn();
        await expect.poll(writes).toBe(sent + 2);
      });
    });

    it('S2 R18 the next run of the app sends what was refused an hour ago: rights may have changed while it was closed', async () => {
      let passedMs = 0;
      const clock: Clock = {
        wall: () => Date.now() + passedMs,
        monotonic: () => performance.now() + passedMs,
        setTimer: (run, delayMs) => setTimeout(run, delayMs),
        clearTimer: (timer) => {
          clearTimeout(timer as NodeJS.Timeout);
        },
      };
      const run = { name: `denied-runs-${String(stores++)}`, environment: { clock } };
      const first = await begun(run);
      await black(first, 'a');
      await first.close();
      await withoutRule();
      const sent = writes();
      passedMs = 59 * 60_000;
      const second = open(run);
      await pulled(second);
      await second.documents.put({ _id: 'other' });
      await expect.poll(() => ask('other')).toMatchObject({ _id: 'other' });
      for (let look = 0; look < 5; look++) {
        await pulled(second);
        await pushed(second);
      }
      expect(await second.listFailures()).toHaveLength(1);
      expect(await ask('a')).toMatchObject({ colour: 'red' });
      expect(writes()).toBe(sent + 1);
      await second.close();
      passedMs = 61 * 60_000;
      const third = open(run);
      await failures(third, 0);
      expect(writes()).toBe(sent + 2);
      expect(await ask('a')).toMatchObject({ colour: 'black' });
    });

    it('S2 nothing that a person has given up is sent again, and nothing that failed for another reason', async () => {
      const client = await begun();
      await black(client, 'a', 'b');
      await client.discard({ id: 'a' });
      await client.revert({ id: 'b' });
      const sent = writes();
      await withoutRule();
      client.signedIn();
      await client.documents.put({ _id: 'other' });
      await expect.poll(() => ask('other')).toMatchObject({ _id: 'other' });
      await pushed(client);
      expect(writes()).toBe(sent + 1);
      expect(await ask('a')).toMatchObject({ colour: 'red' });
    });

    it('S2 thousands of refused documents go in requests of a bounded size, each once', async () => {
      const client = open();
      const ids = Array.from({ length: 1200 }, (_, at) => `many-${String(at).padStart(4, '0')}`);
      await client.documents.bulkDocs(ids.map((_id) => ({ _id, colour: 'black' })));
      await failures(client, ids.length);
      await pushed(client);
      await withoutRule();
      const sent = writes();
      client.signedIn();
      await failures(client, 0);
      // Twenty documents at a time, because of their attachments.
      expect(writes() - sent).toBe(ids.length / 20);
    }, 60_000);
  });
});
