import type { BulkOperationStatus, Client, ClientOptions, EnqueueReceipt } from '@afield/client';
import { FakeDevice, wrongLineages } from '@afield/testing';
import { filter, firstValueFrom, map } from 'rxjs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { town } from './contact-plans/town.js';
import { examplesOf, type Examples } from './examples.js';

describe('the examples of the README of @afield/contacts', () => {
  let examples: Examples;
  let said: Record<string, unknown>;
  let device: FakeDevice;
  let client: Client;

  beforeAll(async () => {
    examples = await examplesOf('packages/contacts/README.md');
    const modules = await Promise.all(examples.files.map((file) => import(/* @vite-ignore */ file) as Promise<object>));
    said = Object.assign({}, ...modules) as Record<string, unknown>;
  });
  afterAll(() => examples.remove());
  beforeEach(async () => {
    device = new FakeDevice();
    await device.database('contacts').bulkDocs(town({ clinics: 2, reports: 4 }));
    const { PouchDB, environment } = device.process();
    const openClient = said['openClient'] as (options: Omit<ClientOptions, 'actions'>) => Client;
    client = openClient({ name: 'contacts', PouchDB, environment });
    await device.until(client.index('contacts').build());
  });
  afterEach(async () => {
    await device.until(client.close());
    await device.dispose();
  });

  const ends = (id: string): Promise<BulkOperationStatus | undefined> =>
    device.until(
      firstValueFrom(
        client.bulkOperations$.pipe(
          map((all) => all.find((one) => one.id === id)),
          filter((one) => /^done|^failed/.test(one?.state ?? '')),
        ),
      ),
    );
  const docs = async (): Promise<Parameters<typeof wrongLineages>[0]> => {
    const { rows } = await device.database('contacts').allDocs({ include_docs: true });
    return (rows as { doc: { _id: string } }[]).map(({ doc }) => doc);
  };

  it('compile in strict mode', async () => {
    expect(examples.files).toHaveLength(6);
    expect(await examples.compile()).toBe('');
  }, 60_000);

  it('move says what it would do, and does it', async () => {
    const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
    const move = said['move'] as (client: Client, id: string, parent: string | null) => Promise<string>;
    const id = await device.until(move(client, 'h1', 'd2'));
    expect(log.mock.calls).toEqual([
      ['set-parent', 12],
      ['set-contact', 7],
    ]);
    log.mockRestore();
    expect(await ends(id)).toMatchObject({ state: 'done', total: 19 });
    expect(wrongLineages(await docs())).toEqual([]);
  });

  it('merge and remove do what they say', async () => {
    const merge = said['merge'] as (client: Client, sources: string[], target: string) => Promise<EnqueueReceipt>;
    const remove = said['remove'] as (client: Client, id: string) => Promise<EnqueueReceipt>;
    const merged = await device.until(merge(client, ['h1'], 'h2'));
    expect(await ends(merged.bulkOperationId)).toMatchObject({ state: 'done' });
    expect(wrongLineages(await docs())).toEqual([]);
    const removed = await device.until(remove(client, 'h2'));
    expect(await ends(removed.bulkOperationId)).toMatchObject({ state: 'done' });
    expect([...(await docs())].map(({ _id }) => _id)).toEqual(['d1', 'd2']);
  });
});
