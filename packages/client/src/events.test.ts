import { filter, firstValueFrom, map } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineAction } from './actions/define.js';
import type { Client, ClientOptions } from './model/client.js';
import { RetryableError } from './model/errors.js';
import type { DocumentEvent, PublishAnswer, Publisher } from './model/event.js';
import { paint, setColour, TestBed } from './test-bed.fixture.js';

/** A place that stores each event once, and answers as a test says. */
class Place implements Publisher {
  readonly name = 'place';
  readonly needs = 'nothing';
  readonly stored = new Map<string, DocumentEvent>();
  /** Each call: the keys that were sent. */
  readonly calls: string[][] = [];
  /** What happens before the events are stored, and after. */
  before: ((events: readonly DocumentEvent[]) => void) | undefined;
  after: ((events: readonly DocumentEvent[]) => void) | undefined;
  refuses: (event: DocumentEvent) => boolean = () => false;

  publish(events: readonly DocumentEvent[]): Promise<PublishAnswer> {
    this.calls.push(events.map(({ key }) => key));
    try {
      this.before?.(events);
      const taken = events.filter((event) => !this.refuses(event));
      for (const event of taken) {
        const known = this.stored.get(event.id);
        if (known === undefined) this.stored.set(event.id, event);
        else expect(event).toEqual(known);
      }
      this.after?.(events);
      return Promise.resolve({ accepted: taken.map(({ id }) => id) });
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  get events(): DocumentEvent[] {
    return [...this.stored.values()];
  }
}

const down = (): never => {
  throw new RetryableError('down', { class: 'network', code: 'ECONNREFUSED' });
};

describe('events of mutations', () => {
  let bed: TestBed;
  let place: Place;
  beforeEach(() => {
    bed = new TestBed();
    place = new Place();
  });
  afterEach(() => bed.close());

  const open = (options: Partial<ClientOptions> = {}): Client => bed.open({ publishers: [place], ...options });
  const published = async (client: Client, unpublished = 0): Promise<void> => {
    let isSo = false;
    const subscription = client.status$.subscribe((status) => {
      isSo = status.pending === 0 && status.unpublished === unpublished && place.stored.size > 0;
    });
    await bed.until(() => isSo, 1000);
    subscription.unsubscribe();
  };
  const made = async (client: Client, docs: readonly object[]): Promise<void> => {
    await client.documents.bulkDocs(docs);
  };

  it('O3 gives each mutation one event, with all that is known of it', async () => {
    const client = open();
    await made(client, [
      { _id: 'a', type: 'person', colour: 'red' },
      { _id: 'b', form: 'visit', colour: 'blue' },
      { _id: 'c', colour: 'red' },
    ]);
    const receipt = await client.enqueue({
      target: 'local',
      key: 'bulk',
      actions: [
        {
          action: 'set-colour',
          operations: [
            { id: 'a', to: 'blue', key: 'mine' },
            { id: 'b', to: 'blue' },
            { id: 'nowhere', to: 'blue' },
          ],
        },
        { action: 'delete', operations: [{ id: 'c' }, { id: 'never' }] },
        { action: 'create', operations: [{ id: 'd', doc: { type: 'person' } }] },
        { action: 'update', operations: [{ id: 'd', patch: { name: 'x' } }] },
      ],
    });
    await published(client);
    const store = await client.storeId;
    const rev = async (id: string): Promise<unknown> => ((await client.documents.get(id)) as { _rev: string })._rev;
    expect(place.events[0]).toEqual({
      id: `${store}:o:mine`,
      name: 'documents.updated.person',
      kind: 'updated',
      type: 'person',
      documentId: 'a',
      store,
      sequence: receipt.sequence,
      index: 0,
      previous: null,
      key: 'mine',
      rev: await rev('a'),
      changed: true,
      at: expect.any(Number) as number,
      target: 'local',
      bulkOperationId: receipt.bulkOperationId,
      action: 'set-colour',
    });
    expect(place.events.map(({ key, name, changed }) => [key, name, changed])).toEqual([
      ['mine', 'documents.updated.person', true],
      ['bulk:1', 'documents.updated.visit', false],
      ['bulk:3', 'documents.deleted.unknown', true],
      ['bulk:4', 'documents.deleted.unknown', false],
      ['bulk:5', 'documents.new.person', true],
      ['bulk:6', 'documents.updated.person', true],
    ]);
    expect(place.events[5]).toMatchObject({ previous: place.events[4]?.id, rev: await rev('d') });
    expect(await client.listEvents()).toEqual(place.events);
  });

  it('O3 takes the type that a function of the app says', async () => {
    const client = open({ typeOf: (doc) => (doc['contact_type'] as string | undefined) ?? undefined });
    await made(client, [{ _id: 'a', type: 'contact', contact_type: 'household', colour: 'red' }]);
    await client.enqueue(paint(['a'], 'blue'));
    await published(client);
    expect(place.events.map(({ name }) => name)).toEqual(['documents.updated.household']);
  });

  it.each<[string, () => unknown]>([
    ['null', () => null],
    ['a number', () => 5],
    ['an empty text', () => ''],
    ['a promise that fails', () => Promise.reject(new Error('late'))],
  ])('O3 a type that is %s is none: the event is `unknown`, and holds up no other', async (_what, typeOf) => {
    const client = open({ typeOf: typeOf as () => string });
    await made(client, [
      { _id: 'a', colour: 'red' },
      { _id: 'b', colour: 'red' },
    ]);
    await client.enqueue(paint(['a'], 'blue'));
    await client.enqueue(paint(['b'], 'blue'));
    await published(client);
    expect(place.events.map(({ name }) => name)).toEqual(['documents.updated.unknown', 'documents.updated.unknown']);
    expect(await client.listEvents()).toEqual(place.events);
  });

  it('S9 refuses by its answer what is no listing, and takes an event for the place that it is at', async () => {
    const client = open();
    await made(client, [{ _id: 'a', colour: 'red' }]);
    for (const to of ['blue', 'green']) await client.enqueue(paint(['a'], to));
    await published(client);
    const [first, second] = await client.listEvents({ limit: undefined as unknown as number });
    expect(await client.listEvents(first && { after: first })).toEqual([second]);
    for (const odd of [
      null,
      5,
      { limit: 0 },
      { limit: '3' },
      { limt: 3 },
      { after: null },
      { after: { sequence: 0.5 } },
    ]) {
      const answer = client.listEvents(odd as { limit: number });
      await expect(answer).rejects.toMatchObject({ name: 'InvalidRequestError' });
    }
  });

  it('O3 an action that handles batches has events only where it says so', async () => {
    const shape = z.looseObject({});
    const run = (): Promise<object> => Promise.resolve({});
    const silent = defineAction({ name: 'silent', operation: shape, run });
    const telling = defineAction({
      name: 'telling',
      operation: shape,
      run,
      event: ({ id }) => (id === 'quiet' ? undefined : { kind: 'deleted', id: `user:${id}`, type: 'user' }),
    });
    const client = open({ actions: [silent, telling] });
    const operations = [{ id: 'a' }, { id: 'quiet' }];
    const actions = [
      { action: 'silent', operations },
      { action: 'telling', operations },
    ];
    await client.enqueue({ target: 'local', key: 'k', actions });
    await published(client);
    expect(place.events.map(({ key, name, documentId, rev }) => [key, name, documentId, rev])).toEqual([
      ['k:2', 'documents.deleted.user', 'user:a', null],
    ]);
  });

  it('O8 names the event before, also of another bulk operation, never that of a failure or of another document', async () => {
    const client = open();
    await made(client, [
      { _id: 'a', colour: 'red' },
      { _id: 'b', colour: 'red', frozen: true },
    ]);
    await client.enqueue(paint(['a', 'b'], 'blue', { key: '1' }));
    await client.enqueue(paint(['c', 'b', 'a'], 'green', { key: '2' }));
    await client.enqueue(paint(['a'], 'white', { key: '3' }));
    await published(client);
    const store = await client.storeId;
    expect(place.events.map(({ key, previous }) => [key, previous])).toEqual([
      ['1:0', null],
      ['2:2', `${store}:b:1:0`],
      ['3:0', `${store}:b:2:2`],
    ]);
    await made(client, [{ _id: 'c', colour: 'red' }]);
    await client.enqueue(paint(['c'], 'white', { key: '4' }));
    await bed.until(() => place.stored.size === 4);
    expect(place.events[3]).toMatchObject({ key: '4:0', previous: null });
  });

  it('O8 never sends two events of one document in one publication', async () => {
    const client = open();
    await made(client, [{ _id: 'a', colour: 'red' }]);
    place.before = down;
    for (const colour of ['blue', 'green', 'white']) await client.enqueue(paint(['a'], colour, { key: colour }));
    await firstValueFrom(client.status$.pipe(filter(({ unpublished }) => unpublished === 3)));
    place.before = undefined;
    place.calls.length = 0;
    client.syncNow();
    await published(client);
    expect(place.calls).toEqual([['blue:0'], ['green:0'], ['white:0']]);
  });

  it('O9 a publication that fails after an insert, and after an update, is made good on the ramp', async () => {
    const client = open();
    place.before = down;
    await client.enqueue({
      target: 'local',
      key: '1',
      actions: [{ action: 'create', operations: [{ id: 'a', doc: { colour: 'red' } }] }],
    });
    await client.enqueue(paint(['a'], 'blue', { key: '2' }));
    await firstValueFrom(client.status$.pipe(filter(({ unpublished }) => unpublished === 2)));
    await bed.until(() => place.calls.length === 2, 1);
    const { publishers } = await firstValueFrom(
      client.status$.pipe(
        filter(({ publishers: { place: one } }) => one?.failedAttempts === 2 && one.nextAttemptAt !== undefined),
      ),
    );
    expect(publishers['place']).toMatchObject({
      lastError: { class: 'network', code: 'ECONNREFUSED' },
      unpublished: 2,
    });
    expect(publishers['place']?.nextAttemptAt).toBe(bed.clock.wall() + 60_000);
    place.before = undefined;
    await bed.until(() => place.stored.size === 2, 1000);
    expect(place.events.map(({ kind }) => kind)).toEqual(['new', 'updated']);
    await published(client);
  });

  it('O8 an event that is refused holds back only the later ones of its document, until it is taken', async () => {
    const client = open();
    await made(
      client,
      ['a', 'b', 'c'].map((_id) => ({ _id, colour: 'red' })),
    );
    place.refuses = ({ documentId, key }) => documentId === 'b' && key === '1:1';
    await client.enqueue(paint(['a', 'b', 'c'], 'blue', { key: '1' }));
    await client.enqueue(paint(['c', 'b', 'a'], 'green', { key: '2' }));
    await published(client, 2);
    expect(place.events.map(({ key }) => key)).toEqual(['1:0', '1:2', '2:0', '2:2']);
    const shown = await firstValueFrom(
      client.status$.pipe(
        map(({ publishers }) => publishers['place']),
        filter((one) => one?.nextAttemptAt !== undefined),
      ),
    );
    expect(shown).toMatchObject({ state: 'waiting-retry', lastError: { code: 'refused' } });
    // What is new goes on meanwhile.
    await client.enqueue(paint(['a'], 'white', { key: '3' }));
    await bed.until(() => place.stored.size === 5);
    place.refuses = () => false;
    await bed.until(() => place.stored.size === 7, 1000);
    expect(place.events.map(({ key }) => key).slice(5)).toEqual(['1:1', '2:1']);
    await published(client);
  });

  it('O7 a restart publishes what was durable and not published, and nothing twice', async () => {
    const { client, kill } = bed.openMortal({ publishers: [place] });
    await made(
      client,
      ['a', 'b', 'c'].map((_id) => ({ _id, colour: 'red' })),
    );
    place.before = down;
    await client.enqueue(paint(['a', 'b'], 'blue', { key: '1' }));
    await client.enqueue(paint(['c'], 'blue', { key: '2' }));
    await firstValueFrom(client.status$.pipe(filter(({ unpublished }) => unpublished === 3)));
    kill();
    place.before = undefined;
    const again = open();
    await published(again);
    expect(place.events.map(({ key }) => key)).toEqual(['1:0', '1:1', '2:0']);
  });

  it('O7 O8 an event that waits still holds back new events of its document after a restart', async () => {
    const { client, kill } = bed.openMortal({ publishers: [place] });
    await made(
      client,
      ['a', 'b'].map((_id) => ({ _id, colour: 'red' })),
    );
    place.refuses = ({ key }) => key === '1:1';
    await client.enqueue(paint(['a', 'b'], 'blue', { key: '1' }));
    await published(client, 1);
    kill();
    const again = open();
    await published(again, 1);
    await again.enqueue(paint(['b', 'a'], 'green', { key: '2' }));
    await published(again, 2);
    expect(place.events.map(({ key }) => key)).toEqual(['1:0', '2:1']);
    place.refuses = () => false;
    await published(again);
    expect(place.events.map(({ key }) => key)).toEqual(['1:0', '2:1', '1:1', '2:0']);
  });

  it('O6 an answer that is lost: the same event is sent again, with the same content', async () => {
    const client = open();
    await made(client, [{ _id: 'a', colour: 'red' }]);
    place.after = down;
    await client.enqueue(paint(['a'], 'blue', { key: '1' }));
    await bed.until(() => place.calls.length === 2);
    place.after = undefined;
    await bed.until(() => place.calls.length === 3, 1000);
    await published(client);
    expect(place.stored.size).toBe(1);
  });

  it('O8 the events of a batch that waits for one row do not wait for it', async () => {
    const client = open({ batchSize: 10, actions: [setColour] });
    await made(
      client,
      ['a', 'b', 'c'].map((_id) => ({ _id, colour: 'red' })),
    );
    const bulkDocs = client.documents.bulkDocs.bind(client.documents);
    let isStuck = true;
    Object.assign(client.documents, {
      bulkDocs: async (docs: { _id: string }[], ...more: object[]) => {
        const rows = (await bulkDocs(isStuck ? docs.filter(({ _id }) => _id !== 'b') : docs, ...more)) as object[];
        return isStuck && docs.some(({ _id }) => _id === 'b')
          ? [...rows, { id: 'b', error: 'internal_server_error', reason: 'not now' }]
          : rows;
      },
    });
    const { bulkOperationId: id } = await client.enqueue(paint(['a', 'b', 'c'], 'blue', { key: '1' }));
    await bed.until(() => place.stored.size === 2);
    expect(place.events.map(({ key }) => key)).toEqual(['1:0', '1:2']);
    isStuck = false;
    client.syncNow();
    await bed.settled(client, id);
    await bed.until(() => place.stored.size === 3);
    expect(place.events.map(({ key }) => key)).toEqual(['1:0', '1:2', '1:1']);
    await published(client);
  });

  it('O8 every tab hears of events as they become durable, whatever the publishers do; late subscribers too', async () => {
    place.before = down;
    const leader = open();
    const other = bed.open({ autoStart: false });
    await other.storeId;
    await made(
      leader,
      ['a', 'b'].map((_id) => ({ _id, colour: 'red' })),
    );
    const heard: string[] = [];
    other.events$.subscribe(({ key }) => heard.push(key));
    const { bulkOperationId: id } = await leader.enqueue(paint(['a', 'b'], 'blue', { key: '1' }));
    await bed.settled(leader, id);
    await bed.until(() => heard.length === 2);
    const late: string[] = [];
    leader.events$.subscribe(({ key }) => late.push(key));
    expect(late).toEqual(['1:0', '1:1']);
    expect(heard).toEqual(late);
    await firstValueFrom(
      leader.status$.pipe(filter(({ publishers }) => publishers['place']?.nextAttemptAt !== undefined)),
    );
  });

  it('O7 tells the page after a restart what it may not have been told', async () => {
    const { client, kill } = bed.openMortal();
    await made(
      client,
      ['a', 'b'].map((_id) => ({ _id, colour: 'red' })),
    );
    const { bulkOperationId: id } = await client.enqueue(paint(['a', 'b'], 'blue', { key: '1' }));
    await bed.settled(client, id);
    kill();
    const again = bed.open();
    const heard: string[] = [];
    again.events$.subscribe(({ key }) => heard.push(key));
    await bed.until(() => heard.length === 2);
    expect(heard).toEqual(['1:0', '1:1']);
  });

  describe('of what a person stopped in the middle of a batch', () => {
    /** A client with a write of its documents under way; `go` lets it come to its end. */
    const underWay = async (): Promise<{ client: Client; id: string; go: () => void }> => {
      const client = open();
      await made(
        client,
        ['a', 'b'].map((_id) => ({ _id, colour: 'red' })),
      );
      place.before = down;
      const bulkDocs = client.documents.bulkDocs.bind(client.documents);
      let isAsked = false;
      let go = (): void => undefined;
      const gate = new Promise<void>((resolve) => (go = resolve));
      Object.assign(client.documents, {
        bulkDocs: async (docs: object[], ...more: object[]) => {
          isAsked = true;
          await gate;
          return bulkDocs(docs, ...more);
        },
      });
      const { bulkOperationId: id } = await client.enqueue(paint(['a', 'b'], 'blue', { key: '1' }));
      await bed.until(() => isAsked);
      return { client, id, go };
    };

    it.each(['pause', 'cancel'] as const)(
      'O3 O7 counts, lists and publishes what the batch has done all the same (%s)',
      async (how) => {
        const { client, id, go } = await underWay();
        await client[how](id);
        go();
        await bed.until(async () => (await bed.now(client, id)).cursor === 2 || place.calls.length > 0);
        await firstValueFrom(client.status$.pipe(filter(({ unpublished }) => unpublished === 2)));
        expect((await client.listEvents()).map(({ key }) => key)).toEqual(['1:0', '1:1']);
        place.before = undefined;
        client.syncNow();
        await bed.until(() => place.stored.size === 2, 1000);
        await firstValueFrom(client.status$.pipe(filter(({ unpublished }) => unpublished === 0)));
      },
    );
  });
});
