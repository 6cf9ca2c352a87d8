import type { ServerUnderTest } from '@afield/devserver';
import { eventDocument, IdempotencyConflictError, type Target } from '@afield/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { creating, deleting, PublicationBed, updating } from './publication-bed.js';

const person = { type: 'person', colour: 'red' };

describe.each<Target>(['local', 'server'])('events on their way to the server, target %s', (target) => {
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

  /** Each way in which one publication can fail: the first two change nothing, the last two lose the answer. */
  const fail = (from: number): void => {
    const faults = [
      { type: 'reset' },
      { type: 'answer', status: 503, body: { error: 'service_unavailable', reason: 'x' } },
      { type: 'captive-portal' },
      { type: 'reset', commit: true },
      { type: 'cut', share: 0.5 },
    ] as const;
    for (const [at, fault] of faults.entries()) {
      server.proxy.addRule({
        when: { method: 'POST', path: '/_bulk_docs', database: bed.events.name, nth: from + at },
        do: fault,
      });
    }
  };

  it('O9 O6 a publication that is forced to fail after an insert is made good, and stored once', async () => {
    const { client } = bed.open();
    fail(1);
    await bed.until(bed.run(client, target, [creating('a', person)], 'k'));
    const failed = await bed.status(client, ({ publishers }) => publishers['couchdb']?.failedAttempts === 3);
    expect(failed).toMatchObject({ unpublished: 1, pending: 0 });
    expect(await bed.document('a')).toMatchObject(person);
    expect(await bed.stored()).toEqual([]);
    await bed.published(client);
    const store = await client.storeId;
    expect(await bed.stored()).toMatchObject([
      { id: `${store}:b:k:0`, name: 'documents.new.person', documentId: 'a', changed: true, previous: null },
    ]);
    expect(bed.arrived).toEqual(Array.from({ length: 3 }, () => `${store}:b:k:0`));
    // What is found there is ours, and no conflict.
    expect(await client.listQuarantined()).toEqual([]);
  });

  it('O9 O6 a publication that is forced to fail after an update is made good, and stored once', async () => {
    const { client } = bed.open();
    await bed.until(bed.run(client, target, [creating('a', person)], '1'));
    await bed.published(client);
    fail(1);
    await bed.until(bed.run(client, target, [updating('a', { colour: 'blue' })], '2'));
    const failed = await bed.status(client, ({ publishers }) => publishers['couchdb']?.failedAttempts === 3);
    expect(failed).toMatchObject({ unpublished: 1, pending: 0 });
    expect(await bed.document('a')).toMatchObject({ colour: 'blue' });
    expect(await bed.stored()).toHaveLength(1);
    await bed.published(client);
    const [first, second] = await bed.stored();
    expect(second).toMatchObject({ name: 'documents.updated.person', documentId: 'a', previous: first?.id });
    expect(bed.arrived).toEqual([first?.id, second?.id, second?.id, second?.id]);
  });

  it('O9 the update of a missing document fails, and makes neither a document nor an event', async () => {
    const { client } = bed.open();
    const heard: string[] = [];
    client.events$.subscribe(({ id }) => heard.push(id));
    await bed.until(bed.run(client, target, [updating('nowhere', { colour: 'blue' }), creating('a', person)]));
    await bed.published(client);
    expect(await client.listFailures()).toMatchObject([{ id: 'nowhere', code: 'missing' }]);
    expect(await bed.document('nowhere')).toBeUndefined();
    expect((await bed.stored()).map(({ documentId }) => documentId)).toEqual(['a']);
    expect(heard).toHaveLength(1);
    expect(await client.listEvents()).toHaveLength(1);
  });

  /** The moments between a write and the mark that its event is published. */
  const moments = ['written', 'unsaved', 'persisted', 'stored', 'answered', 'marked'] as const;

  it.each(moments)(
    'O9 O7 O3 a crash when the mutation is %s leaves exactly one event after a restart',
    async (moment) => {
      const { client: before } = bed.open();
      await bed.published(before);
      await bed.until(before.close());
      const { client, process, died } = bed.openDying(moment, target);
      const heard: string[] = [];
      client.events$.subscribe(({ key }) => heard.push(key));
      await bed.until(client.enqueue({ target, key: 'k', actions: [creating('a', person)] }));
      await bed.until(died);
      expect(process.alive).toBe(false);
      const [triedAt, arrived] = [bed.device.clock.wall(), bed.arrived.length];
      expect(arrived).toBe(['written', 'unsaved', 'persisted'].includes(moment) ? 0 : 1);
      // The page, too, hears of nothing that is not durable.
      expect(heard).toEqual(moment === 'written' || moment === 'unsaved' ? [] : ['k:0']);
      await bed.device.clock.advance(3_600_000);
      const { client: again } = bed.open();
      await bed.published(again);
      expect(await bed.document('a')).toMatchObject(person);
      expect(await bed.stored()).toMatchObject([
        {
          id: `${await again.storeId}:b:k:0`,
          name: 'documents.new.person',
          documentId: 'a',
          changed: true,
          at: triedAt,
          rev: expect.stringMatching(/^1-/) as string,
        },
      ]);
      // What was marked is not sent again; what was not is, and no more often than that.
      expect(bed.arrived.length - arrived).toBe(moment === 'marked' ? 0 : 1);
    },
  );

  it('O9 O8 the order is kept through an outage, two crashes and a restart', async () => {
    const rule = server.proxy.addRule({ when: { database: bed.events.name }, do: { type: 'reset' } });
    const first = bed.open();
    await bed.until(
      bed.run(
        first.client,
        target,
        ['a', 'b', 'c'].map((id) => creating(id, person)),
        '1',
      ),
    );
    await bed.until(
      bed.run(first.client, target, [updating('b', { colour: 'blue' }), updating('a', { colour: 'blue' })], '2'),
    );
    await bed.status(first.client, ({ unpublished }) => unpublished === 5);
    first.process.kill();
    const second = bed.open();
    const more = [updating('c', { n: 1 }), updating('c', { n: 2 }), deleting('a'), updating('b', { n: 1 })];
    await bed.until(bed.run(second.client, target, more, '3'));
    await bed.until(bed.run(second.client, target, [creating('a', person), deleting('b')], '4'));
    await bed.status(second.client, ({ unpublished }) => unpublished === 11);
    second.process.kill();
    expect(await bed.stored()).toEqual([]);
    server.proxy.removeRule(rule);
    const third = bed.open();
    await bed.published(third.client);

    const store = await third.client.storeId;
    const stored = await bed.stored();
    expect(stored.map(({ key, kind }) => [key, kind])).toEqual([
      ...['1:0', '1:1', '1:2'].map((key) => [key, 'new']),
      ...['2:0', '2:1', '3:0', '3:1'].map((key) => [key, 'updated']),
      ['3:2', 'deleted'],
      ['3:3', 'updated'],
      ['4:0', 'new'],
      ['4:1', 'deleted'],
    ]);
    const mutations = {
      a: ['1:0', '2:1', '3:2', '4:0'],
      b: ['1:1', '2:0', '3:3', '4:1'],
      c: ['1:2', '3:0', '3:1'],
    };
    const read = await bed.read();
    expect(read).toHaveLength(11);
    for (const [id, keys] of Object.entries(mutations)) {
      const ids = keys.map((key) => `${store}:b:${key}`);
      const own = new Map(stored.filter(({ documentId }) => documentId === id).map((event) => [event.id, event]));
      expect(ids.map((one) => own.get(one)?.previous)).toEqual([null, ...ids.slice(0, -1)]);
      expect(bed.arrived.filter((one) => own.has(one))).toEqual(ids);
      expect(read.filter(({ documentId }) => documentId === id).map((event) => event.id)).toEqual(ids);
    }
  });

  it('O9 O6 an event id that is there with other content goes to quarantine, and is never taken for ours', async () => {
    const { client } = bed.open();
    await bed.published(client);
    const store = await client.storeId;
    const foreign = { _id: `${store}:o:mine`, note: 'not ours' };
    await bed.write([foreign]);
    const first = [{ action: 'create', operations: [{ id: 'a', key: 'mine', doc: person }] }, creating('b', person)];
    await bed.until(bed.run(client, target, first, '1'));
    await bed.until(bed.run(client, target, [updating('b', { n: 1 }), updating('a', { n: 1 })], '2'));
    await bed.published(client);
    // What is there is not touched; both versions are kept for a person to decide.
    expect((await bed.stored()).map(({ key }) => key)).toEqual(['1:1', '2:0', '2:1']);
    expect(await bed.eventDocument(foreign._id)).toMatchObject(foreign);
    const [ours] = await client.listEvents({ limit: 1 });
    if (ours === undefined) throw new Error('the event is not kept');
    expect(await client.listQuarantined()).toMatchObject([
      {
        kind: 'event',
        key: 'mine',
        first: foreign,
        second: { publisher: 'couchdb', event: eventDocument(ours) },
        resolution: undefined,
      },
    ]);
  });

  it('O9 O4 a request that is delivered twice, also after a restart, is one bulk operation and one event', async () => {
    const request = { target, key: 'k', actions: [creating('a', person)] };
    const { client } = bed.open();
    const first = await bed.until(client.enqueue(request));
    const second = await bed.until(client.enqueue(request));
    expect(second).toMatchObject({ bulkOperationId: first.bulkOperationId, duplicate: true });
    await bed.published(client);
    await bed.until(client.close());
    const { client: again } = bed.open();
    const third = await bed.until(again.enqueue(request));
    expect(third).toMatchObject({ bulkOperationId: first.bulkOperationId, duplicate: true });
    await bed.published(again);
    expect((await bed.document('a'))?.['_rev']).toMatch(/^1-/);
    expect(bed.arrived).toHaveLength(1);
    expect(await again.listQuarantined()).toEqual([]);
  });

  it('O9 O4 O5 other content under a known key, and another document under a known id, are refused and kept', async () => {
    const { client } = bed.open();
    const other = { ...person, colour: 'blue' };
    await bed.until(bed.run(client, target, [creating('a', person)], 'k'));
    const refused = await bed.until(
      client.enqueue({ target, key: 'k', actions: [creating('a', other)] }).catch((error: unknown) => error),
    );
    expect(refused).toBeInstanceOf(IdempotencyConflictError);
    await bed.until(bed.run(client, target, [creating('a', other)], 'l'));
    await bed.published(client);
    expect(await client.listFailures()).toMatchObject([{ id: 'a', code: 'conflicting_content' }]);
    expect((await client.listQuarantined()).map(({ kind }) => kind)).toEqual(['bulk-operation', 'create']);
    expect(await bed.document('a')).toMatchObject(person);
    expect((await bed.stored()).map(({ key }) => key)).toEqual(['k:0']);
  });

  it('O9 O6 two clients of one store publish the same event: both are told that it is there, and it is there once', async () => {
    // As in an engine without locks: both lead. The first stands still when it is about to publish.
    const locks = { request: <T>(_name: string, _signal: AbortSignal, whileHeld: () => Promise<T>) => whileHeld() };
    const [standsStill, goesOn] = [signal(), signal()];
    const one = bed.open(
      {
        request: async ({ path }, send) => {
          if (!path.endsWith(`/${bed.events.name}/_bulk_docs`)) return send();
          standsStill.give();
          await goesOn.given;
          return send();
        },
      },
      { environment: { locks } },
    );
    await bed.until(bed.run(one.client, target, [creating('a', person)], 'k'));
    await bed.until(standsStill.given);
    const two = bed.open({}, { environment: { locks } });
    await bed.published(two.client);
    const id = `${await one.client.storeId}:b:k:0`;
    expect(bed.arrived).toEqual([id]);
    goesOn.give();
    await bed.published(one.client);
    expect(bed.arrived).toEqual([id, id]);
    expect((await bed.stored()).map((event) => event.id)).toEqual([id]);
    expect((await bed.eventDocument(id))['_rev']).toMatch(/^1-/);
    expect(await two.client.listQuarantined()).toEqual([]);
  });
});

function signal(): { readonly given: Promise<void>; give(): void } {
  let give = (): void => undefined;
  const given = new Promise<void>((resolve) => (give = resolve));
  return { given, give: () => give() };
}
