import { describe, expect, it } from 'vitest';
import { CrashPointError, crashPoints, type CrashProcess } from './crash-points.js';

/** Writes two documents one after the other, with a request in between. */
const threeCalls = async ({ PouchDB, fetch }: CrashProcess): Promise<void> => {
  const db = new PouchDB('records');
  await db.put({ _id: 'first' });
  await fetch('http://server.test/note', { method: 'POST' });
  await db.put({ _id: 'second' });
};

describe('crashPoints', () => {
  it('dies before and after each call, one a time, on a fresh device', async () => {
    const seen: string[] = [];
    let requests = 0;
    const { points, calls } = await crashPoints(threeCalls, {
      fetch: () => {
        requests += 1;
        return Promise.resolve(new Response('{}'));
      },
      prepare: ({ PouchDB }) => {
        requests = 0;
        return new PouchDB('records').put({ _id: 'prepared' });
      },
      check: async ({ PouchDB }, { when, what }) => {
        const { rows } = await new PouchDB('records').allDocs({});
        const ids = rows.map((row) => (row as { id: string }).id.slice(0, 1)).join('');
        seen.push(`${when} ${what}: ${ids} ${String(requests)}`);
      },
    });
    expect(seen).toEqual([
      'end : fps 1',
      'before put records: p 0',
      'after put records: fp 0',
      'before POST /note: fp 0',
      'after POST /note: fp 1',
      'before put records: fp 1',
      'after put records: fps 1',
    ]);
    expect({ points, calls }).toEqual({ points: 6, calls: 3 });
  });

  it('lets nothing of the dead process reach a store or the server, not even what did not wait', async () => {
    let requests = 0;
    await crashPoints(
      async ({ PouchDB, fetch }) => {
        const db = new PouchDB('records');
        const atOnce = [1, 2, 3].map((n) => db.put({ _id: `doc${String(n)}` }));
        void fetch('http://server.test/').catch(() => undefined);
        await Promise.allSettled(atOnce);
        await db.put({ _id: 'last' });
      },
      {
        prepare: () => Promise.resolve((requests = 0)),
        fetch: () => {
          requests += 1;
          return Promise.resolve(new Response('{}'));
        },
        check: async ({ PouchDB }, { call, when }) => {
          const { rows } = await new PouchDB('records').allDocs({});
          const carriedOut = rows.length + requests;
          // Calls that were made before the death may be on their way; none that came later is.
          if (when === 'before' && carriedOut >= 5) throw new Error(`${String(carriedOut)} calls after death`);
          if (call === 1 && when === 'before' && carriedOut > 0) throw new Error('the dead process went on');
        },
      },
    );
  });

  it('says at which point a check failed', async () => {
    const failing = crashPoints(threeCalls, {
      fetch: () => Promise.resolve(new Response('{}')),
      check: async ({ PouchDB }) => {
        const { rows } = await new PouchDB('records').allDocs({});
        if (rows.length === 1) throw new Error('half is there');
      },
    });
    await expect(failing).rejects.toThrow(CrashPointError);
    await expect(failing).rejects.toMatchObject({
      message: 'after call 1 (put records): half is there',
      point: { call: 1, when: 'after', what: 'put records' },
    });
  });

  it('says when the scenario itself fails, or waits for ever', async () => {
    const check = (): Promise<void> => Promise.resolve();
    await expect(crashPoints(() => Promise.reject(new Error('no')), { check })).rejects.toThrow(
      'without any death: no',
    );
    await expect(crashPoints(() => new Promise(() => undefined), { check })).rejects.toThrow('does not come');
  });
});
