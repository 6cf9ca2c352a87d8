import { createClient, type AuthOptions, type Client, type ClientOptions, type ClientStatus } from '@afield/client';
import { FakeDevice, MemoryServer, Refusal, type MemoryRequest } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

describe('documents that their user may no longer see', () => {
  let device: FakeDevice;
  let server: MemoryServer;
  let client: Client;
  let asked: MemoryRequest[];
  /** Ids that the server answers with `forbidden`. */
  let forbidden: Set<string>;
  let list: readonly string[];
  let told: (readonly string[])[];
  let isDown: boolean;
  beforeEach(() => {
    [asked, forbidden, list, told, isDown] = [[], new Set(), ['a', 'b', 'c'], [], false];
    server = new MemoryServer({
      users: { ann: 'x' },
      onRequest: (request) => {
        asked.push(request);
      },
    });
    server.create('records').write(list.map((_id) => ({ _id, secret: `of ${_id}` })));
    device = new FakeDevice({ fetch: withForbidden });
  });
  afterEach(async () => {
    await device.until(client.close());
    await device.dispose();
  });

  const withForbidden: typeof fetch = async (input, init) => {
    if (isDown) throw new TypeError('the server is down');
    const answer = await server.fetch(input, init);
    if (!String(input).includes('/_bulk_get')) return answer;
    const { results } = (await answer.json()) as { results: { id: string; docs: unknown[] }[] };
    const rows = results.map((row) => {
      const error = { id: row.id, rev: '1-x', error: 'forbidden', reason: 'not yours' };
      return forbidden.has(row.id) ? { id: row.id, docs: [{ error }] } : row;
    });
    return new Response(JSON.stringify({ results: rows }), { headers: { 'content-type': 'application/json' } });
  };
  const open = (more: Partial<ClientOptions> = {}): Client => {
    const { PouchDB, environment } = device.process();
    const auth: AuthOptions = {
      credentials: () => Promise.resolve({ type: 'basic', username: 'ann', password: 'x' }),
    };
    const pull = more.replication === undefined ? { pull: { docIds: () => list } } : {};
    const fixed = {
      name: 'r',
      PouchDB,
      environment,
      actions: [],
      server: server.urlOf('records'),
      auth,
      jitter: 0,
      ...pull,
    };
    client = createClient({
      ...fixed,
      outOfSight: (ids) => {
        told.push(ids);
        return ids;
      },
      ...more,
    });
    return client;
  };
  const status = (is: (one: ClientStatus) => boolean): Promise<ClientStatus> =>
    device.until(firstValueFrom(client.status$.pipe(filter(is))));
  const pulled = (): Promise<ClientStatus> => status(({ pull }) => pull.state === 'idle' && pull.attempts > 0);
  const pullAgain = async (): Promise<void> => {
    const { pull } = await firstValueFrom(client.status$);
    client.syncNow();
    await status((one) => one.pull.attempts > pull.attempts && one.pull.state === 'idle');
  };
  const here = async (): Promise<readonly string[]> =>
    (await client.documents.allDocs({})).rows.map((row) => (row as { id: string }).id);
  const winner = (id: string): unknown => server.create('records').read(id);
  const rest = (): Promise<void> => device.clock.advance(600_000);

  it('S2 what has left the list leaves the device, and nothing of it is deleted at the server', async () => {
    open();
    await pulled();
    const before = winner('b');
    list = ['a', 'c'];
    await pullAgain();
    await rest();
    expect(told).toEqual([['b']]);
    expect(await here()).toEqual(['a', 'c']);
    expect(winner('b')).toEqual(before);
    expect(await status(({ push }) => push.state === 'idle')).toMatchObject({ push: { left: 0 } });
    // Its content is gone, from its past, too.
    await expect(client.documents.get('b', { rev: (before as { _rev: string })._rev })).rejects.toMatchObject({
      status: 404,
    });
    const stored = await client.documents.get('b', { open_revs: 'all' });
    expect(JSON.stringify(stored)).not.toContain('secret');
  });

  it('S2 what comes back into the list is here again, under the server’s revision, also after it has changed', async () => {
    open();
    await pulled();
    list = ['a'];
    await pullAgain();
    await rest();
    expect(await here()).toEqual(['a']);
    const records = server.create('records');
    records.write([{ ...records.read('c'), secret: 'new' }]);
    list = ['a', 'b', 'c'];
    await pullAgain();
    expect(await client.documents.get('b')).toEqual(winner('b'));
    expect(await client.documents.get('c')).toEqual(winner('c'));
    // It can be edited, and leave, and come once more.
    await client.documents.put({ ...(await client.documents.get('b')), note: 'mine' });
    await status(({ push }) => push.state === 'idle' && push.transferred > 0);
    expect(winner('b')).toMatchObject({ note: 'mine', secret: 'of b' });
    expect(records.tree('b')?.leaves()).toHaveLength(1);
    list = ['a'];
    await pullAgain();
    await rest();
    list = ['a', 'b'];
    await pullAgain();
    expect(await client.documents.get('b')).toMatchObject({ note: 'mine', secret: 'of b' });
    expect(records.tree('b')?.leaves()).toHaveLength(1);
  });

  it('S2 a document that the server forbids does not stop the pull, and is told', async () => {
    open();
    await pulled();
    const records = server.create('records');
    for (const id of ['a', 'b', 'c']) records.write([{ ...records.read(id), secret: 'newer' }]);
    forbidden.add('b');
    await pullAgain();
    expect(told).toEqual([['b']]);
    expect(await here()).toEqual(['a', 'c']);
    expect(await client.documents.get('c')).toMatchObject({ secret: 'newer' });
    expect(winner('b')).toMatchObject({ secret: 'newer' });
  });

  it('S2 what holds work that is nowhere else is kept, and told again until it may go', async () => {
    open();
    await pulled();
    isDown = true;
    await client.documents.put({ ...(await client.documents.get('b')), note: 'mine' });
    expect(await client.forgetDocuments(['a', 'b', 'nowhere'])).toEqual({
      forgotten: ['a'],
      kept: [{ id: 'b', why: 'not_sent' }],
    });
    list = ['a', 'c'];
    isDown = false;
    server.create('records').validate = ({ note }) =>
      note === 'mine' ? new Refusal(403, 'forbidden', 'no notes here') : undefined;
    await pullAgain();
    await status(({ push }) => push.state === 'idle');
    expect(await client.forgetDocuments(['b'])).toEqual({ forgotten: [], kept: [{ id: 'b', why: 'failed' }] });
    await pullAgain();
    expect(told.length).toBeGreaterThan(1);
    server.create('records').validate = undefined;
    await client.retryFailed();
    await status(({ push }) => push.state === 'idle');
    await device.until(firstValueFrom(client.failures$.pipe(filter((open) => open.length === 0))));
    await pullAgain();
    expect(await here()).toEqual(['c']);
    expect(winner('b')).toMatchObject({ note: 'mine' });
    const count = told.length;
    await pullAgain();
    expect(told).toHaveLength(count);
  });

  it('S2 a document that an operation waits for is kept', async () => {
    open();
    await pulled();
    const request = {
      target: 'local',
      actions: [{ action: 'update', operations: [{ id: 'b', patch: { n: 1 } }] }],
    } as const;
    device.store.add({
      when: { call: 'bulkDocs', database: 'r' },
      do: { type: 'reject', error: { name: 'AbortError' } },
    });
    const { bulkOperationId } = await client.enqueue(request);
    await client.pause(bulkOperationId);
    device.store.clear();
    expect(await client.forgetDocuments(['a', 'b'])).toEqual({
      forgotten: ['a'],
      kept: [{ id: 'b', why: 'queued' }],
    });
  });

  it('S2 a hook that throws is called again, and holds up no document', async () => {
    let isBroken = true;
    open({
      outOfSight: (ids) => {
        told.push(ids);
        if (isBroken) throw new TypeError('not now');
        return ids;
      },
    });
    await pulled();
    list = ['a', 'c'];
    client.syncNow();
    await status(({ pull }) => pull.failedAttempts > 0);
    expect(await here()).toEqual(['a', 'b', 'c']);
    isBroken = false;
    await status(({ pull }) => pull.state === 'idle');
    expect(await here()).toEqual(['a', 'c']);
    expect(new Set(told.map((ids) => ids.join()))).toEqual(new Set(['b']));
  });

  it('S2 without a hook, and where it answers nothing, they stay', async () => {
    open({ outOfSight: (ids) => void told.push(ids) });
    await pulled();
    list = ['a'];
    await pullAgain();
    expect(told).toEqual([['b', 'c']]);
    await pullAgain();
    expect(told).toHaveLength(1);
    expect(await here()).toEqual(['a', 'b', 'c']);
  });

  it('S2 is refused where the client does not replicate itself: another push would send deletions', async () => {
    open({ replication: 'external' });
    await expect(client.forgetDocuments(['a'])).rejects.toMatchObject({ code: 'not_managed' });
    await expect(client.forgetDocuments([''])).rejects.toMatchObject({ code: 'invalid_doc_ids' });
  });
});
