import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineAction } from './actions/define.js';
import type { Client, ClientOptions } from './model/client.js';
import type { Channel } from './model/environment.js';
import { RetryableError } from './model/errors.js';
import type { AnyAction } from './model/handler.js';
import type { PouchConstructor, PouchLike } from './model/pouch.js';
import { memoryPouch } from './store/memory-pouch.fixture.js';
import { TestBed } from './test-bed.fixture.js';

/** Documents m0, m1 … : more than a header holds. */
const many = (count: number, from = 0): string[] => Array.from({ length: count }, (_, at) => `m${String(from + at)}`);

describe('the order of bulk operations', () => {
  let bed: TestBed;
  /** Names of what may not run yet. */
  let waiting: Set<string>;
  /** Names in the order in which they ended. */
  let ended: string[];
  /** Ids that were read from the queue's database. */
  let reads: string[];

  beforeEach(() => {
    bed = new TestBed(spied(memoryPouch()));
    waiting = new Set();
    ended = [];
  });

  afterEach(() => bed.close());

  const spied = (Original: PouchConstructor): PouchConstructor => {
    reads = [];
    const open = function (name: string): PouchLike {
      const pouch = new Original(name);
      const allDocs = pouch.allDocs.bind(pouch);
      pouch.allDocs = (options) => {
        reads.push(options.startkey ?? '', ...(options.keys ?? []));
        return allDocs(options);
      };
      return pouch;
    };
    return open as unknown as PouchConstructor;
  };
  const digestReads = (): number => reads.filter((id) => id.startsWith('d:')).length;
  const gated = defineAction({
    name: 'gated',
    operation: z.strictObject({ name: z.string(), last: z.boolean() }),
    run: (batch) => {
      for (const { content } of batch) {
        if (waiting.has(content.name)) return Promise.reject(new RetryableError('not yet'));
        if (content.last) ended.push(content.name);
      }
      return Promise.resolve({});
    },
  });
  const open = (options: Partial<ClientOptions> = {}): Client =>
    bed.open({ actions: [gated as AnyAction], ...options });
  const queue = async (client: Client, name: string, ids: readonly string[]): Promise<string> => {
    const operations = ids.map((id, at) => ({ id, name, last: at === ids.length - 1 }));
    return (await client.enqueue({ target: 'local', actions: [{ action: 'gated', operations }] })).bulkOperationId;
  };
  const reaches = (client: Client, states: readonly string[], ...ids: string[]): Promise<unknown> =>
    firstValueFrom(
      client.bulkOperations$.pipe(
        filter((all) => ids.every((id) => all.some((one) => one.id === id && states.includes(one.state)))),
      ),
    );
  const release = (client: Client): void => {
    waiting.clear();
    client.syncNow();
    bed.clock.advance(0);
  };

  it('R17 of a thousand, one of 1,000 documents waits for ever: what shares none of them finishes, the rest stays in order behind it', async () => {
    const client = open({ autoStart: false });
    const first = await queue(client, 'first', many(1000));
    waiting.add('first');
    const sharing: string[] = [];
    const free: string[] = [];
    for (let at = 1; at < 1000; at++) {
      const name = String(at);
      if (at % 100 === 0) sharing.push(await queue(client, name, [...many(300, 5000 + at * 10), 'm7']));
      else if (at % 10 === 0) sharing.push(await queue(client, name, [`m${String(at % 70)}`]));
      else if (at % 25 === 1) free.push(await queue(client, name, many(300, 20_000 + at * 300)));
      else free.push(await queue(client, name, [`own${name}`]));
    }
    await client.start();
    await reaches(client, ['done'], ...free);
    await reaches(client, ['waiting-retry'], first);
    expect(ended).toHaveLength(free.length);
    expect([...ended].sort((a, b) => Number(a) - Number(b))).toEqual(ended);
    ended = [];
    release(client);
    await reaches(client, ['done'], first, ...sharing);
    expect(ended).toEqual(['first', ...sharing.map((_, at) => String((at + 1) * 10))]);
  }, 120_000);

  it('R17 many documents are read from the store only when something else waits for the answer', async () => {
    const client = open();
    const one = await queue(client, 'one', many(300));
    const two = await queue(client, 'two', many(300));
    await reaches(client, ['done'], one, two);
    expect(digestReads()).toBe(0);
    waiting.add('three');
    const three = await queue(client, 'three', many(300));
    await reaches(client, ['waiting-retry'], three);
    expect(digestReads()).toBe(0);
    const four = await queue(client, 'four', ['other']);
    await reaches(client, ['done'], four);
    const five = await queue(client, 'five', ['another']);
    await reaches(client, ['done'], five);
    expect(digestReads()).toBe(1);
  });

  it('R17 the order holds after a restart', async () => {
    const before = open({ autoStart: false });
    waiting.add('one');
    const one = await queue(before, 'one', many(400));
    const two = await queue(before, 'two', ['m399']);
    const three = await queue(before, 'three', ['other']);
    await before.close();
    reads.length = 0;
    const after = open();
    await reaches(after, ['done'], three);
    await reaches(after, ['waiting-retry'], one);
    expect(ended).toEqual(['three']);
    release(after);
    await reaches(after, ['done'], one, two);
    expect(ended).toEqual(['three', 'one', 'two']);
  });

  it('R17 opening reads headers, not what stands beside them', async () => {
    const before = open({ autoStart: false });
    for (let at = 0; at < 3; at++) await queue(before, String(at), many(400));
    await before.close();
    reads.length = 0;
    await open({ autoStart: false }).storeId;
    expect(new Set(reads)).toEqual(new Set(['h']));
  });

  it('R17 the order holds across tabs that never hear of each other', async () => {
    const deaf = { channel: (): Channel => ({ announce: () => undefined, close: () => undefined }) };
    const leader = open({ environment: deaf });
    const other = open({ autoStart: false, environment: deaf });
    await Promise.all([leader.storeId, other.storeId]);
    await bed.rest(); // what the leader looks at once, when it begins, is over
    waiting.add('one');
    const one = await queue(other, 'one', many(300));
    // The number that the leader would take is taken: it learns of the other before its own may run.
    const two = await queue(leader, 'two', ['m3']);
    const three = await queue(leader, 'three', ['other']);
    await reaches(leader, ['done'], three);
    expect(ended).toEqual(['three']);
    release(leader);
    await reaches(leader, ['done'], one, two);
    expect(ended).toEqual(['three', 'one', 'two']);
  });

  it('R17 while many documents cannot be read, later ones wait, and go on when the store answers', async () => {
    const Original = bed.PouchDB;
    let broken = true;
    let refused = 0;
    const open2 = function (name: string): PouchLike {
      const pouch = new Original(name);
      const allDocs = pouch.allDocs.bind(pouch);
      pouch.allDocs = (options) => {
        if (!broken || options.startkey?.startsWith('d:') !== true) return allDocs(options);
        refused++;
        return Promise.reject(new Error('gone'));
      };
      return pouch;
    };
    bed.PouchDB = open2 as unknown as PouchConstructor;
    const client = open();
    waiting.add('one');
    const one = await queue(client, 'one', many(300));
    await reaches(client, ['waiting-retry'], one);
    const two = await queue(client, 'two', ['other']);
    await expect.poll(() => refused).toBe(1);
    expect(ended).toEqual([]);
    broken = false;
    client.syncNow();
    bed.clock.advance(0);
    await reaches(client, ['done'], two);
  });
});
