import type { Client } from '@afield/client';
import type { ServerUnderTest } from '@afield/devserver';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { creating, deleting, PublicationBed, updating } from './publication-bed.js';

const red = { type: 'person', colour: 'red' };

describe('events of local documents wait until the server has the revision', () => {
  let server: ServerUnderTest;
  let bed: PublicationBed;
  beforeAll(async () => {
    server = await PublicationBed.start();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    bed = await PublicationBed.on(server);
  });
  afterEach(async () => {
    const errors = server.proxy.errors();
    await bed.dispose();
    expect(errors).toEqual([]);
    expect(bed.early).toEqual([]);
  });

  const keys = async (): Promise<string[]> => (await bed.stored()).map(({ key }) => key);
  const refused = (client: Client, count: number): Promise<unknown> =>
    bed.until(firstValueFrom(client.failures$.pipe(filter((all) => all.length === count))));

  it('O8 S2 an event is sent only after the revision it tells of has arrived, whatever happens to the push', async () => {
    const when = { method: 'POST', path: '/_bulk_docs', database: bed.records.name };
    server.proxy.addRule({ when: { ...when, nth: 1 }, do: { type: 'reset' } });
    server.proxy.addRule({ when: { ...when, nth: 2 }, do: { type: 'answer', status: 503 } });
    const { client } = bed.open();
    const heard: string[] = [];
    client.events$.subscribe(({ key }) => heard.push(key));
    await bed.until(bed.run(client, 'local', [creating('a', red), creating('b', red)], '1'));
    const failed = await bed.status(client, ({ push }) => push.failedAttempts === 2);
    // The page hears of it at once; the server has neither the documents nor the events.
    expect(failed.unpublished).toBe(2);
    expect(heard).toEqual(['1:0', '1:1']);
    expect(await keys()).toEqual([]);
    await bed.published(client);
    expect(await keys()).toEqual(['1:0', '1:1']);
    const writes = server.proxy
      .requests()
      .filter(({ method, path }) => method === 'POST' && path.endsWith('/_bulk_docs'));
    const sentTo = writes.map(({ database }) => (database === bed.events.name ? 'events' : 'records'));
    expect(sentTo).toEqual(['records', 'records', 'records', 'events']);
  });

  it('O8 S2 a document that the server refuses holds back its own events only; a later revision that it takes lets them go', async () => {
    const { client } = bed.open();
    await bed.until(
      bed.run(
        client,
        'local',
        ['a', 'b'].map((id) => creating(id, red)),
        '1',
      ),
    );
    await bed.published(client);
    await bed.until(bed.run(client, 'local', [updating('a', { colour: 'black' }), updating('b', { n: 1 })], '2'));
    await refused(client, 1);
    await bed.until(bed.run(client, 'local', [updating('a', { n: 1 }), updating('b', { n: 2 })], '3'));
    await bed.published(client, 2);
    expect(await keys()).toEqual(['1:0', '1:1', '2:1', '3:1']);
    expect((await client.listEvents()).map(({ key }) => key)).toEqual(['1:0', '1:1', '2:0', '2:1', '3:0', '3:1']);
    // Nothing of this is forgotten by a restart.
    await bed.until(client.close());
    const { client: again } = bed.open();
    await bed.published(again, 2);
    expect(await keys()).toHaveLength(4);
    await bed.until(bed.run(again, 'local', [updating('a', { colour: 'green' })], '4'));
    await bed.published(again);
    const ofA = ['1:0', '2:0', '3:0', '4:0'];
    expect((await bed.stored()).filter(({ documentId }) => documentId === 'a').map(({ key }) => key)).toEqual(ofA);
    expect(bed.arrived.filter((id) => ofA.some((key) => id.endsWith(`:${key}`)))).toHaveLength(4);
    expect((await bed.read()).filter(({ documentId }) => documentId === 'a').map(({ key }) => key)).toEqual(ofA);
    expect(await bed.document('a')).toMatchObject({ colour: 'green', n: 1 });
  });

  it('O8 R15 what waits is asked about again, even if the push was not quite over when it was asked about last', async () => {
    let isRefused = false;
    let asked = 0;
    let noteSettled = (): void => undefined;
    const settled = new Promise<void>((resolve) => (noteSettled = resolve));
    const { client } = bed.open({
      request: async ({ method, path }, send) => {
        const answer = await send();
        if (method === 'POST' && path.endsWith(`/${bed.records.name}/_bulk_docs`)) isRefused = true;
        if (isRefused && path.endsWith('/_revs_diff')) asked++;
        return answer;
      },
      // What the push has done is noted only after the outbox has looked at what that brought.
      call: async ({ database, kind, ids }, run) => {
        const isNote = database === 'clinic-afield-queue' && kind === 'write' && isRefused;
        if (isNote && ids.some((id) => id.endsWith(':push'))) await settled;
        const answer = await run();
        // The push asks twice, then the outbox does.
        if (isNote && asked === 3 && ids.some((id) => id.endsWith(':publish:couchdb'))) noteSettled();
        return answer;
      },
    });
    await bed.until(bed.run(client, 'local', [creating('a', { colour: 'black' })], '1'));
    await refused(client, 1);
    await bed.status(
      client,
      ({ publishers }) => publishers['couchdb']?.state === 'waiting-retry' && publishers['couchdb'].unpublished === 1,
    );
    expect(bed.arrived).toEqual([]);
  });

  it('O3 O8 a device without network tells the server nothing early: changed, deleted, made anew, then all in order', async () => {
    bed.device.connectivity.set(false);
    const { client } = bed.open();
    await bed.until(bed.run(client, 'local', [creating('a', red), updating('a', { n: 1 }), deleting('a')], '1'));
    await bed.until(bed.run(client, 'local', [creating('a', red), updating('nowhere', { n: 1 })], '2'));
    await bed.status(client, ({ unpublished }) => unpublished === 4);
    expect(bed.arrived).toEqual([]);
    bed.device.connectivity.set(true);
    await bed.published(client);
    const store = await client.storeId;
    const ids = ['1:0', '1:1', '1:2', '2:0'].map((key) => `${store}:b:${key}`);
    expect(bed.arrived).toEqual(ids);
    expect((await bed.stored()).map(({ name, previous }) => [name, previous])).toEqual([
      ['documents.new.person', null],
      ['documents.updated.person', ids[0]],
      ['documents.deleted.person', ids[1]],
      ['documents.new.person', ids[2]],
    ]);
  });
});
