import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RetryableError } from './model/errors.js';
import type { Client, ClientOptions } from './model/client.js';
import { handAction, paint, setColour, TestBed } from './test-bed.fixture.js';

/*
 * A process that is killed in the middle of an attempt: the handler never answers, its timers end, and what it would
 * note after that is lost. The next client finds what is stored.
 */
describe('an operation that stops the process', () => {
  let bed: TestBed;
  beforeEach(() => {
    bed = new TestBed();
  });
  afterEach(() => bed.close());

  const ids = ['a', 'b', 'killer', 'd'];

  /** Runs once: answers for every batch without the killer; true when the killer was met and the process killed. */
  const runOnce = async (options: Partial<ClientOptions> = {}, before?: () => void): Promise<string[][]> => {
    const { action, calls } = handAction('work');
    const { client, kill } = bed.openMortal({ actions: [action, setColour], ...options });
    const seen: string[][] = [];
    for (let at = 0; ; at++) {
      // Due now or on the ramp: the clock goes on until the next batch comes, or nothing is left.
      await bed.until(async () => calls.length > at || (await isOver(client)), 30_000);
      const call = calls[at];
      if (call === undefined) {
        await client.close();
        return seen;
      }
      seen.push(call.ids);
      if (!call.ids.includes('killer')) call.answer({});
      else {
        before?.();
        kill();
        return seen;
      }
    }
  };
  const isOver = async (client: Client): Promise<boolean> => {
    const all = await bed.list(client);
    return all.length > 0 && all.every(({ state }) => state.startsWith('done'));
  };
  const enqueue = async (): Promise<string> => {
    const client = bed.open({ actions: [handAction('work').action], autoStart: false });
    const { bulkOperationId } = await client.enqueue({
      target: 'local',
      actions: [{ action: 'work', operations: ids.map((id) => ({ id })) }],
    });
    await client.close();
    return bulkOperationId;
  };

  it('R16 fails alone as `crashed` after five stops of its batch and five of its own; all others are done', async () => {
    const id = await enqueue();
    const runs: string[][][] = [];
    for (let run = 0; run < 10; run++) runs.push(await runOnce());
    expect(runs.slice(0, 5)).toEqual(Array(5).fill([ids]));
    // Then alone: the others first come through, and only the killer is left.
    expect(runs.slice(5)).toEqual([
      [['a'], ['b'], ['killer']],
      ...Array<string[][]>(4)
        .fill([['d'], ['killer']])
        .map((one, at) => (at === 0 ? one : [['killer']])),
    ]);
    expect(await runOnce()).toEqual([]);
    const client = bed.open({ autoStart: false });
    expect(await bed.now(client, id)).toMatchObject({ state: 'done-with-failures', applied: 3, failed: 1 });
    expect(await client.listFailures()).toMatchObject([{ id: 'killer', code: 'crashed', mayHaveBeenApplied: false }]);
  });

  it('R16 kills of a page in the background never lead there, however often', async () => {
    const id = await enqueue();
    for (let run = 0; run < 30; run++) {
      bed.presence.isVisible = true;
      const seen = await runOnce({}, () => {
        bed.presence.set(false);
      });
      expect(seen).toEqual([ids]);
    }
    const client = bed.open({ autoStart: false });
    expect(await bed.now(client, id)).toMatchObject({ cursor: 0, failed: 0 });
    expect(await client.listFailures()).toEqual([]);
  });

  it('R16 a client that was closed in the middle of an attempt has not been stopped by it', async () => {
    const id = await enqueue();
    for (let run = 0; run < 12; run++) {
      const { action, calls } = handAction('work');
      const client = bed.open({ actions: [action] });
      await bed.until(() => calls.length === 1);
      expect(calls[0]?.ids).toEqual(ids);
      await client.close();
    }
    const client = bed.open({ autoStart: false });
    expect(await bed.now(client, id)).toMatchObject({ cursor: 0, failed: 0 });
  });

  it('R16 progress ends the count: a batch that succeeds is not suspect, nor is the next one', async () => {
    const { action, calls } = handAction('work');
    await enqueue();
    for (let run = 0; run < 4; run++) await runOnce();
    const client = bed.open({ actions: [action], batchSize: 4 });
    await bed.until(() => calls.length === 1);
    calls[0]?.answer({});
    await bed.until(() => isOver(client));
    await client.close();
    await enqueue();
    for (let run = 0; run < 5; run++) expect(await runOnce()).toEqual([ids]);
  });

  it('R16 progress ends the count within a bulk operation too: the next batch begins at none', async () => {
    await enqueue();
    const meet = async (answers: number): Promise<string[]> => {
      const { action, calls } = handAction('work');
      const { kill } = bed.openMortal({ actions: [action], batchSize: 2 });
      for (let at = 0; at < answers; at++) {
        await bed.until(() => calls.length > at, 30_000);
        calls[at]?.answer({});
      }
      await bed.until(() => calls.length > answers, 30_000);
      kill();
      return calls[answers]?.ids ?? [];
    };
    for (let run = 0; run < 4; run++) expect(await meet(0)).toEqual(['a', 'b']);
    expect(await meet(1)).toEqual(['killer', 'd']);
    for (let run = 0; run < 4; run++) expect(await meet(0)).toEqual(['killer', 'd']);
    expect(await meet(0)).toEqual(['killer']);
  });

  it('R16 failures that may pass are no stops', async () => {
    const id = await enqueue();
    const { action, calls } = handAction('work');
    const client = bed.open({ actions: [action] });
    for (let attempt = 0; attempt < 12; attempt++) {
      await bed.until(() => calls.length === attempt + 1, 300_000);
      expect(calls[attempt]?.ids).toEqual(ids);
      calls[attempt]?.fail(new RetryableError('not yet'));
      await bed.becomes(client, id, ({ failedAttempts }) => failedAttempts === attempt + 1);
    }
  });

  it('R16 a suspect runs while nothing else does', async () => {
    const local = await enqueue();
    for (let run = 0; run < 5; run++) await runOnce();
    const { action, calls } = handAction('work');
    const options = {
      actions: [action],
      server: 'http://127.0.0.1:9/records',
      replication: false,
    } as const;
    const client = bed.open({ ...options, autoStart: false });
    const other = await client.enqueue({ target: 'server', actions: [{ action: 'work', operations: [{ id: 'z' }] }] });
    await client.start();
    // The ramp holds the suspect back, so that the other one is under way when it becomes due.
    await bed.until(() => calls.length === 1);
    expect(calls[0]?.ids).toEqual(['z']);
    bed.clock.advance(600_000);
    await bed.rest();
    expect(calls).toHaveLength(1);
    calls[0]?.answer({});
    await bed.settled(client, other.bulkOperationId);
    await bed.until(() => calls.length === 2);
    expect(calls[1]?.ids).toEqual(['a']);
    const late = await client.enqueue({ target: 'server', actions: [{ action: 'work', operations: [{ id: 'y' }] }] });
    expect(await bed.now(client, late.bulkOperationId)).toMatchObject({ state: 'queued' });
    for (const [at, id] of ['a', 'b', 'killer', 'd'].entries()) {
      await bed.until(() => calls.length === 2 + at);
      expect(calls[1 + at]?.ids).toEqual([id]);
      calls[1 + at]?.answer({});
    }
    await bed.until(() => calls.length === 6);
    expect(calls[5]?.ids).toEqual(['y']);
    calls[5]?.answer({});
    await bed.settled(client, late.bulkOperationId);
    expect(await bed.settled(client, local)).toMatchObject({ state: 'done', applied: 4 });
  });

  it('R16 a suspect batch of a document action keeps its intents, and the killer is flagged when it may have written', async () => {
    const client = bed.open({ autoStart: false });
    const docs = await bed.seed(client, 3);
    const { bulkOperationId: id } = await client.enqueue(paint(docs, 'blue'));
    await client.close();
    // The process ends each time a write with the second document begins.
    for (let run = 0; run < 10; run++) {
      let isDead = false;
      const Base = bed.PouchDB as unknown as new (name: string) => Record<string, unknown>;
      class Mortal extends Base {
        constructor(name: string) {
          super(name);
          for (const call of ['bulkDocs', 'allDocs', 'bulkGet'] as const) {
            const real = (this[call] as (...args: unknown[]) => Promise<unknown>).bind(this);
            this[call] = (...args: unknown[]) => {
              if (isDead) return new Promise(() => undefined);
              const written = call === 'bulkDocs' ? (args[0] as { _id: string }[]) : [];
              if (written.some(({ _id }) => _id === 'd0001')) {
                isDead = true;
                return new Promise(() => undefined);
              }
              return real(...args);
            };
          }
        }
      }
      const { kill } = bed.openMortal({ PouchDB: Mortal as never });
      await bed.until(() => isDead, 30_000);
      kill();
    }
    const after = bed.open();
    await bed.until(() => isOver(after));
    expect(await bed.settled(after, id)).toMatchObject({ state: 'done-with-failures', applied: 2, failed: 1 });
    expect(await after.listFailures()).toMatchObject([{ id: 'd0001', code: 'crashed', mayHaveBeenApplied: true }]);
    expect(await bed.colours(after)).toEqual(['blue', 'red', 'blue']);
  });

  it('R16 another version of the app tries it again, the same one does not', async () => {
    await enqueue();
    for (let run = 0; run < 10; run++) await runOnce({ appVersion: '1' });
    expect(await runOnce({ appVersion: '1' })).toEqual([]);
    expect(await runOnce({ appVersion: '1' })).toEqual([]);
    const { action, calls } = handAction('work');
    const client = bed.open({ actions: [action], appVersion: '2' });
    await bed.until(() => calls.length === 1);
    expect(calls[0]?.ids).toEqual(['killer']);
    calls[0]?.answer({});
    await bed.until(() => isOver(client));
    expect(await client.listFailures()).toEqual([]);
  });
});
