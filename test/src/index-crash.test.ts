import { createClient, defineIndex, type Client, type IndexState } from '@afield/client';
import { crashPoints, FakeDevice, type CrashProcess } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';

const size = 50;
const docs = Array.from({ length: 250 }, (_, at) => ({
  _id: `p${String(at).padStart(3, '0')}`,
  household: at < 5 ? 'early' : 'late',
}));
const byHousehold = defineIndex({
  name: 'by-household',
  version: 1,
  batchSize: size,
  keys: (doc) => doc['household'] as string | undefined,
});

type Process = Pick<CrashProcess, 'PouchDB' | 'environment'>;
const open = ({ PouchDB, environment }: Process): Client =>
  createClient({ name: 'clinic', PouchDB, environment, actions: [], indexes: [byHousehold], autoStart: false });
const early = async (client: Client): Promise<readonly string[]> =>
  (await client.index('by-household').query('early')).rows.map(({ id }) => id);
const stored = async (client: Client): Promise<IndexState> =>
  firstValueFrom(client.index('by-household').state$.pipe(filter(({ state }) => state !== 'idle')));

describe('an index whose process is killed', () => {
  it('B3 B8 at any call loses at most one batch, and the next process finds every row', async () => {
    let confirmed = 0;
    const lost: number[] = [];
    const { points } = await crashPoints(
      async (process) => {
        const client = open(process);
        const index = client.index('by-household');
        index.state$.subscribe((state) => {
          if (state.state === 'building') confirmed = state.rows;
        });
        await index.build();
        confirmed = docs.length;
        await client.close();
      },
      {
        prepare: async ({ PouchDB }) => {
          confirmed = 0;
          await new PouchDB('clinic').bulkDocs(docs);
        },
        check: async (process) => {
          const client = open(process);
          if (confirmed > 0) {
            const found = await stored(client);
            const rows = 'rows' in found ? found.rows : 0;
            lost.push(rows - confirmed);
          }
          await client.index('by-household').build();
          expect(await early(client)).toEqual(['p000', 'p001', 'p002', 'p003', 'p004']);
          expect((await client.index('by-household').query({})).rows).toHaveLength(docs.length);
          await client.close();
        },
      },
    );
    expect(points).toBeGreaterThan(20);
    // Nothing that was shown is lost; what was stored and not shown any more is one batch.
    expect(Math.min(...lost)).toBe(0);
    expect(Math.max(...lost)).toBe(size);
  }, 60_000);
});

describe('an index whose store fails', () => {
  let device: FakeDevice;
  afterEach(() => device.dispose());

  async function opened(): Promise<Client> {
    device = new FakeDevice();
    await device.database('clinic').bulkDocs(docs);
    return open(device.process());
  }

  it('B2 B6 the write of the resume point fails for good: it parks at once and says why, resumed it is whole', async () => {
    const client = await opened();
    const full = device.indexStore.add({
      when: { call: 'put', store: 'meta', fromNth: 2 },
      do: { type: 'reject', error: { name: 'QuotaExceededError', domException: true } },
    });
    const before = device.clock.elapsed;
    await expect(device.until(client.index('by-household').build())).rejects.toMatchObject({ state: 'parked' });
    expect(await stored(client)).toMatchObject({ reason: 'QuotaExceededError', rows: size });
    expect(device.clock.elapsed).toBe(before);
    await expect(device.until(early(client))).rejects.toMatchObject({ name: 'IndexNotReadyError' });
    full();
    await device.until(client.index('by-household').resume());
    expect(await device.until(early(client))).toHaveLength(5);
    await device.until(client.close());
  });

  it('B1 a row of a batch fails for a moment: its batch is written again, with the resume point', async () => {
    const client = await opened();
    device.indexStore.add({
      when: { call: 'put', store: 'rows', fromNth: 60, times: 3 },
      do: { type: 'reject', error: { name: 'UnknownError', domException: true } },
    });
    await device.until(client.index('by-household').build());
    expect(await device.until(early(client))).toHaveLength(5);
    expect(device.indexStore.calls.filter(({ call }) => call === 'put')).toHaveLength(3);
    await device.until(client.close());
  });

  it('B6 reads of it fail: it is retried, and no rejection goes unhandled', async () => {
    const client = await opened();
    device.indexStore.add({
      when: { call: 'read', times: 3 },
      do: { type: 'reject', error: { name: 'UnknownError', domException: true } },
    });
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    await device.until(client.index('by-household').build());
    device.indexStore.add({
      when: { call: 'read', nth: 1 },
      do: { type: 'reject', error: { name: 'InvalidStateError', domException: true } },
    });
    expect(await device.until(early(client))).toHaveLength(5);
    await device.inFlight.rest();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
    await device.until(client.close());
  });

  it('S3 its connection is closed by the browser: the next write and the next query open it anew', async () => {
    const client = await opened();
    device.indexStore.add({ when: { call: 'write', nth: 3 }, do: { type: 'dies' } });
    await device.until(client.index('by-household').build());
    device.indexStore.add({ when: { call: 'read', nth: 1 }, do: { type: 'dies' } });
    expect(await device.until(early(client))).toHaveLength(5);
    expect(await device.until(early(client))).toHaveLength(5);
    expect(device.indexStore.calls.filter(({ call }) => call === 'open').length).toBeGreaterThanOrEqual(3);
    await device.until(client.close());
  });

  it('B1 it cannot be opened for a while, or never answers', async () => {
    const client = await opened();
    device.indexStore.add({
      when: { call: 'open', nth: 1 },
      do: { type: 'reject', error: { name: 'UnknownError', domException: true } },
    });
    device.indexStore.add({ when: { call: 'open', nth: 2 }, do: { type: 'hang' } });
    await device.until(client.index('by-household').build());
    expect(await device.until(early(client))).toHaveLength(5);
    expect(device.clock.elapsed).toBeGreaterThan(60_000);
    await device.until(client.close());
  });
});
