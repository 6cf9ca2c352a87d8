import { createClient, type Client } from '@afield/client';
import { MemoryPouch } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { expect, it } from 'vitest';

const count = 10_000;
const ids = Array.from({ length: count }, (_, at) => `d${String(at).padStart(5, '0')}`);

it('S7 B8 ten thousand operations go over in small pieces, and the page has its turns', async () => {
  let turns = 0;
  const open = (name: string, autoStart: boolean): Client =>
    createClient({
      name: `large-${name}`,
      PouchDB: MemoryPouch,
      actions: [],
      server: 'http://couch.test/records',
      autoStart,
      environment: {
        fetch: () => Promise.reject(new TypeError('no network')),
        breathe: () => {
          turns++;
          return new Promise((resolve) => setImmediate(resolve));
        },
      },
    });
  const running = open('old', true);
  await running.documents.bulkDocs(ids.map((_id) => ({ _id, text: 'x'.repeat(300) })));
  const operations = ids.map((id, at) => ({ id, patch: { number: at } }));
  await running.enqueue({ target: 'local', actions: [{ action: 'update', operations }] });
  await firstValueFrom(running.status$.pipe(filter(({ pending }) => pending < count / 2)));
  await running.close();

  const old = open('old', false);
  await old.storeId;
  turns = 0;
  const file = await old.exportPending();
  expect(turns).toBeGreaterThan(file.size / 250_000);
  const lines = (await file.text()).split('\n');
  // What is in memory at once, on both sides: a hundred operations or outcomes, one document.
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(20_000);

  const other = open('new', false);
  await other.storeId;
  turns = 0;
  expect(await other.importPending(file)).toEqual({
    bulkOperations: 1,
    operations: count,
    documents: count,
    duplicates: 0,
    paused: 0,
  });
  expect(turns).toBeGreaterThan((2 * file.size) / 260_000);
  const [before] = await firstValueFrom(old.bulkOperations$);
  expect(await firstValueFrom(other.bulkOperations$)).toMatchObject([
    { id: before?.id, cursor: before?.cursor, applied: before?.applied, total: count },
  ]);
  await other.start();
  await firstValueFrom(other.status$.pipe(filter(({ pending }) => pending === 0)));
  expect(await firstValueFrom(other.bulkOperations$)).toMatchObject([{ state: 'done', applied: count }]);
  await Promise.all([old.close(), other.close()]);
}, 120_000);
