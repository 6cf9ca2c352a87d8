import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod/mini';
import { defineDocumentAction } from './actions/define.js';
import type { Client, ClientOptions } from './model/client.js';
import { defaultEnvironment } from './environment.js';
import type { PouchConstructor } from './model/pouch.js';
import { paint, setColour, TestBed } from './test-bed.fixture.js';

/** Refuses every other colour than the one before: done twice, or in another order, it fails. */
const repaint = defineDocumentAction({
  name: 'repaint',
  operation: z.strictObject({ from: z.string(), to: z.string() }),
  guard: (doc, { from }) => (doc['colour'] === from ? undefined : { code: 'other_colour', reason: 'Another colour.' }),
  isApplied: (doc, { to }) => doc['colour'] === to,
  apply: (doc, { to }) => ({ ...doc, colour: to, times: Number(doc['times'] ?? 0) + 1 }),
});
const count = 60;

describe('a file of pending work that is made while things run', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(async () => {
    // A read that is under way when another tab closes the connection that they share has no answer.
    await bed.rest();
    await bed.close();
  });

  const open = (name: string, options: Partial<ClientOptions> = {}): Client =>
    bed.open({
      name,
      server: 'http://couch.test/records',
      actions: [repaint, setColour],
      batchSize: 7,
      environment: { fetch: () => Promise.reject(new TypeError('Failed to fetch')) },
      ...options,
    });
  const over = (client: Client): Promise<void> =>
    bed.until(async () => {
      const all = await bed.list(client);
      return all.length === 2 && all.every(({ state }) => state.startsWith('done'));
    });
  const queue = async (client: Client, ids: readonly string[]): Promise<void> => {
    const colours = ['red', 'blue', 'green'];
    for (const [step, to] of [...colours.entries()].slice(1)) {
      const operations = ids.map((id) => ({ id, from: colours[step - 1], to }));
      await client.enqueue({ target: 'local', actions: [{ action: 'repaint', operations }] });
    }
  };

  it.each([...Array(12).keys()])(
    'S7 says of each operation what its document shows, however slowly it is read (%i)',
    async (trial) => {
      // Two tabs that take turns: whatever is read in one, the other goes on in between.
      const client = open('old', { PouchDB: slowed(bed.PouchDB, 4) });
      const reader = open('old', { autoStart: false, PouchDB: slowed(bed.PouchDB, trial) });
      const ids = await bed.seed(client, count);
      await reader.storeId;
      await queue(client, ids);
      const progress = async (): Promise<number> =>
        (await bed.list(client)).reduce((sum, { cursor }) => sum + cursor, 0);
      await bed.until(async () => (await progress()) >= (trial % 4) * 20);
      const before = await progress();
      const file = await reader.exportPending();
      const after = await progress();
      await over(client);

      const other = open('copy', { autoStart: false });
      await other.importPending(file);
      const imported = (await bed.list(other)).reduce((sum, { cursor }) => sum + cursor, 0);
      expect(imported).toBeLessThanOrEqual(after);
      expect(imported).toBeGreaterThanOrEqual(before);
      await other.start();
      await over(other);
      const { rows } = (await other.documents.allDocs({ include_docs: true })) as {
        rows: { doc: { colour: string; times: number } }[];
      };
      expect(rows.map(({ doc }) => [doc.colour, doc.times])).toEqual(Array(count).fill(['green', 2]));
      // Not found as they should be, but done: each has one event that says that something has changed.
      expect(await bed.list(other)).toMatchObject([{ applied: count }, { applied: count }]);
      expect(await other.listFailures()).toEqual([]);
      const events = await other.listEvents();
      expect(events.filter(({ changed }) => changed)).toHaveLength(2 * count);
    },
  );

  it('S7 an edit of the app while it is made is in it or not, and never half', async () => {
    const client = open('old');
    const ids = await bed.seed(client, count);
    const [file] = await Promise.all([
      client.exportPending(),
      client.enqueue(paint(ids, 'blue')),
      ...ids.map(async (id) => {
        const doc = (await client.documents.get(id)) as object;
        await client.documents.put({ ...doc, note: 'edited' }).catch(() => undefined);
      }),
    ]);
    const other = open('new', { autoStart: false });
    const { documents } = await other.importPending(file);
    expect(documents).toBe(count);
  });
});

const { breathe } = defaultEnvironment();

/** Each read takes so many turns of the event loop more. */
function slowed(PouchDB: PouchConstructor, turns: number): PouchConstructor {
  const slow = (db: object): object =>
    new Proxy(db, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        if (!['allDocs', 'bulkGet', 'get'].includes(String(name))) return value.bind(target) as unknown;
        return async (...args: unknown[]): Promise<unknown> => {
          for (let turn = 0; turn < turns; turn++) await breathe();
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
  return new Proxy(PouchDB, {
    construct: (target, args: [string, object?]) => slow(Reflect.construct(target, args) as object),
  });
}
