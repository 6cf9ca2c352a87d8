import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultEnvironment } from './environment.js';
import type { Client, EnqueueRequest } from './model/client.js';
import { IdempotencyConflictError, RetryableError } from './model/errors.js';
import type { DocumentEvent, PublishAnswer, Publisher } from './model/event.js';
import type { PouchConstructor } from './model/pouch.js';
import { endStates } from './model/states.js';
import { paint, TestBed } from './test-bed.fixture.js';

/** A turn of the event loop, not a time. */
const { breathe } = defaultEnvironment();

const ids = ['a', 'b', 'c', 'frozen', 'nowhere'];
const colours = ['red', 'blue', 'green'];
/** Given keys, some of which look like derived ones. */
const keys = ['k', 'k~1', 'k~2', 'k:0'];
const which = fc.nat(4);
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constant('paint'),
      fc.array(fc.constantFrom(...ids), { minLength: 1, maxLength: 6 }),
      fc.constantFrom(...colours),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constant('keyed'), fc.constantFrom(...ids), fc.constantFrom(...keys), fc.nat(1)),
  },
  fc.tuple(fc.constant('create'), fc.constantFrom(...ids), fc.constantFrom(...colours)),
  fc.tuple(fc.constant('delete'), fc.subarray(ids, { minLength: 1 })),
  { weight: 2, arbitrary: fc.tuple(fc.constant('retryFailed')) },
  fc.tuple(fc.constantFrom('edit', 'take-second', 'keep-first'), which),
  fc.tuple(fc.constantFrom('pause', 'resume', 'cancel', 'retryRest'), which),
  fc.tuple(fc.constant('writes'), fc.constantFrom('work', 'fail', 'lose their answer')),
  fc.tuple(fc.constant('refuse'), fc.nat(1), fc.subarray(ids)),
  fc.tuple(fc.constant('place'), fc.nat(1), fc.constantFrom('takes', 'down', 'answer lost')),
  fc.tuple(fc.constant('turns'), fc.nat(40)),
  fc.tuple(fc.constant('minutes'), fc.nat(6)),
  fc.tuple(fc.constant('kill')),
) as fc.Arbitrary<Step>;
type Step =
  | readonly ['paint', string[], string]
  | readonly ['keyed', string, string, number]
  | readonly ['create', string, string]
  | readonly ['delete', string[]]
  | readonly ['retryFailed']
  | readonly ['edit' | 'take-second' | 'keep-first', number]
  | readonly ['pause' | 'resume' | 'cancel' | 'retryRest', number]
  | readonly ['writes', 'work' | 'fail' | 'lose their answer']
  | readonly ['refuse', number, string[]]
  | readonly ['place', number, 'takes' | 'down' | 'answer lost']
  | readonly ['turns' | 'minutes', number]
  | readonly ['kill'];

/** Stores each event once, and notes what it should never be sent. */
class Place implements Publisher {
  readonly needs = 'nothing';
  readonly stored = new Map<string, DocumentEvent>();
  readonly wrong: string[] = [];
  mode: 'takes' | 'down' | 'answer lost' = 'takes';
  refused: readonly string[] = [];

  constructor(readonly name: string) {}

  publish(events: readonly DocumentEvent[]): Promise<PublishAnswer> {
    const lost = (): Promise<never> => Promise.reject(new RetryableError('x', { class: 'network', code: 'x' }));
    if (this.mode === 'down') return lost();
    if (new Set(events.map(({ documentId }) => documentId)).size < events.length)
      this.wrong.push('two of one document');
    const taken = events.filter(({ documentId }) => !this.refused.includes(documentId));
    for (const event of taken) this.#store(event);
    return this.mode === 'answer lost' ? lost() : Promise.resolve({ accepted: taken.map(({ id }) => id) });
  }

  #store(event: DocumentEvent): void {
    const known = this.stored.get(event.id);
    if (known === undefined) {
      const [last] = [...this.stored.values()].filter(({ documentId }) => documentId === event.documentId).slice(-1);
      if (last !== undefined && compare(last, event) >= 0) this.wrong.push(`out of order: ${event.key}`);
      this.stored.set(event.id, event);
    } else if (JSON.stringify(known) !== JSON.stringify(event)) this.wrong.push(`other content: ${event.key}`);
  }
}

const compare = (a: DocumentEvent, b: DocumentEvent): number => a.sequence - b.sequence || a.index - b.index;

const keyed = (id: string, key: string, to: string): EnqueueRequest => ({
  target: 'local',
  actions: [{ action: 'set-colour', operations: [{ id, key, to }] }],
});
const creating = (id: string, colour: string): EnqueueRequest => ({
  target: 'local',
  actions: [{ action: 'create', operations: [{ id, doc: { colour, type: 'person' } }] }],
});
function onlyConflicts(error: unknown): void {
  if (!(error instanceof IdempotencyConflictError)) throw error;
}

class Story {
  readonly bed = new TestBed();
  readonly places = [new Place('one'), new Place('two')] as const;
  #client: Client | undefined;
  #kill: (() => void) | undefined;
  #writes: 'work' | 'fail' | 'lose their answer' = 'work';

  /** `lingers`: who is killed writes no document any more, but goes on with the queue, as a leader that wakes late. */
  constructor(readonly lingers = false) {}

  async begin(): Promise<void> {
    let isAlive = true;
    const PouchDB = this.#mortalPouch(() => isAlive || this.lingers);
    const { client, kill } = this.bed.openMortal({
      PouchDB,
      publishers: this.places,
      batchSize: 2,
      requestTimeoutS: 1,
    });
    this.#client = client;
    await client.storeId;
    this.#kill = () => {
      isAlive = false;
      kill();
    };
    const { documents } = client;
    const bulkDocs = documents.bulkDocs.bind(documents);
    Object.assign(documents, {
      bulkDocs: async (...given: Parameters<typeof bulkDocs>) => {
        // Who is killed stops where it is.
        if (!isAlive) return new Promise(() => undefined);
        const how = this.#writes;
        if (how === 'fail') throw new Error('gone');
        const answer = await bulkDocs(...given);
        if (how === 'lose their answer') throw new Error('gone');
        return answer;
      },
    });
  }

  /** What a process that has ended wants to write never comes to the queue. */
  #mortalPouch(isAlive: () => boolean): PouchConstructor {
    const { PouchDB } = this.bed;
    return function (name: string, options: object) {
      const db = new PouchDB(name, options);
      const bulkDocs = db.bulkDocs.bind(db);
      return Object.assign(db, {
        bulkDocs: (...given: Parameters<typeof bulkDocs>) =>
          isAlive() ? bulkDocs(...given) : new Promise<never>(() => undefined),
      });
    } as unknown as PouchConstructor;
  }

  get client(): Client {
    if (this.#client === undefined) throw new Error('The story has not begun.');
    return this.#client;
  }

  async do(given: Step): Promise<void> {
    const { client, bed } = this;
    switch (given[0]) {
      case 'paint':
        await client.enqueue(paint(given[1], given[2]));
        return;
      case 'keyed':
        // Another content under a key that is known is refused.
        await client.enqueue(keyed(given[1], given[2], colours[given[3]] ?? '')).catch(onlyConflicts);
        return;
      case 'create':
        await client.enqueue(creating(given[1], given[2]));
        return;
      case 'retryFailed':
        await client.retryFailed();
        return;
      case 'edit': {
        const failure = (await client.listFailures({ action: 'set-colour' }))[given[1]];
        if (failure !== undefined) await client.editAndRetry(failure.failureId, { id: 'a', to: 'green' });
        return;
      }
      case 'take-second':
      case 'keep-first': {
        const conflict = (await client.listQuarantined())[given[1]];
        if (conflict !== undefined) await client.resolveQuarantined(conflict.quarantineId, given[0]);
        return;
      }
      case 'delete':
        await client.enqueue({
          target: 'local',
          actions: [{ action: 'delete', operations: given[1].map((id) => ({ id })) }],
        });
        return;
      case 'writes':
        this.#writes = given[1];
        return;
      case 'refuse':
        this.#place(given[1]).refused = given[2];
        return;
      case 'place':
        this.#place(given[1]).mode = given[2];
        return;
      case 'turns':
        for (let turn = 0; turn < given[1]; turn++) await Promise.resolve();
        return;
      case 'minutes':
        await this.#minutes(given[1]);
        return;
      case 'kill':
        this.#kill?.();
        await this.begin();
        return;
      default: {
        const bulk = (await bed.list(client))[given[1]];
        // What cannot be done to it is refused, and changes nothing.
        if (bulk !== undefined) await client[given[0]](bulk.id).catch(() => undefined);
      }
    }
  }

  async end(): Promise<void> {
    this.#writes = 'work';
    for (const place of this.places) {
      place.mode = 'takes';
      place.refused = [];
    }
    for (const { id, state } of await this.bed.list(this.client)) {
      // What was under way when it was paused may have been the last of it: then it is at its end by now.
      if (state === 'paused') await this.client.resume(id).catch(() => undefined);
    }
    const isOver = async (): Promise<boolean> => {
      const bulks = await this.bed.list(this.client);
      const events = await this.client.listEvents();
      return (
        bulks.every(({ state }) => endStates.has(state)) &&
        this.places.every(({ stored }) => stored.size >= events.length)
      );
    };
    for (let hour = 0; hour < 20 && !(await isOver()); hour++) await this.#minutes(3);
    await this.#minutes(2);
  }

  async check(): Promise<void> {
    const events = await this.client.listEvents();
    for (const { wrong, stored } of this.places) {
      expect(wrong).toEqual([]);
      expect([...stored.values()].sort(compare)).toEqual(events);
    }
    const last = new Map<string, string>();
    for (const { documentId, previous, id } of events) {
      expect(previous).toBe(last.get(documentId) ?? null);
      last.set(documentId, id);
    }
    for (const { id, applied, alreadyApplied, state } of await this.bed.list(this.client)) {
      expect(endStates.has(state)).toBe(true);
      expect(events.filter(({ bulkOperationId }) => bulkOperationId === id)).toHaveLength(applied + alreadyApplied);
    }
    await this.bed.close();
  }

  async #minutes(count: number): Promise<void> {
    for (let minute = 0; minute < count; minute++) {
      this.bed.clock.advance(60_000);
      for (let turn = 0; turn < 25; turn++) await breathe();
    }
  }

  #place(number: number): Place {
    return number === 0 ? this.places[0] : this.places[1];
  }
}

async function holds(steps: readonly Step[], lingers = false): Promise<void> {
  const story = new Story(lingers);
  await story.begin();
  await story.client.documents.bulkDocs([
    ...['a', 'b', 'c'].map((_id) => ({ _id, colour: 'red', type: 'person' })),
    { _id: 'frozen', colour: 'red', frozen: true },
  ]);
  for (const one of steps) await story.do(one);
  await story.end();
  await story.check();
}

describe('events of what a client does', () => {
  it('O1 O3 O6 O7 O8 R19 are one for each mutation, named and ordered, through failures, kills and what a person does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 20 }), (steps) => holds(steps)),
      {
        numRuns: 20,
      },
    );
  }, 120_000);

  it('O3 S6 stay as they were told when two runners have seen the same operation done, one of them too late', async () => {
    await holds(
      [
        ['paint', ['c', 'a', 'frozen'], 'red'],
        ['retryFailed'],
        ['paint', ['a', 'a'], 'red'],
        ['place', 1, 'down'],
        ['paint', ['a'], 'red'],
        ['paint', ['a'], 'red'],
        ['keyed', 'a', 'k~2', 0],
        ['kill'],
        ['turns', 0],
        ['keyed', 'a', 'k~2', 1],
        ['turns', 0],
      ],
      true,
    );
  });
});
