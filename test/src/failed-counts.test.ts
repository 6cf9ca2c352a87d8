import { NotDrainedError, UnsyncedWorkError, type Client, type FailedOperation } from '@afield/client';
import { Refusal } from '@afield/testing';
import { filter, firstValueFrom } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ResultsBed } from './results-bed.js';

/** How many failures there are is said in many places: one number. */
describe('the counts of what has failed', () => {
  let bed: ResultsBed;
  beforeEach(() => {
    bed = new ResultsBed();
    bed.records.validate = (doc) =>
      doc['black'] === true ? new Refusal(403, 'forbidden', 'no black here') : undefined;
  });
  afterEach(() => bed.dispose());

  const listed = (client: Client, count: number): Promise<readonly FailedOperation[]> =>
    bed.device.until(firstValueFrom(client.failures$.pipe(filter(({ length }) => length === count))));
  const countsOf = async (call: Promise<unknown>): Promise<unknown> => {
    const error: unknown = await bed.device.until(call.catch((thrown: unknown) => thrown));
    if (error instanceof UnsyncedWorkError || error instanceof NotDrainedError) return error.counts;
    throw error;
  };
  /** An operation that failed here, one that the server has refused, and two edits of the app that it has refused. */
  const four = async (client: Client): Promise<void> => {
    await client.documents.bulkDocs([{ _id: 'own-1', black: true }, { _id: 'own-2', black: true }, { _id: 'a' }]);
    await bed.fail(client, [
      { id: 'nowhere', patch: { black: false } },
      { id: 'a', patch: { black: true } },
    ]);
    const list = await listed(client, 4);
    expect(list.filter(({ bulkOperationId }) => bulkOperationId === undefined)).toHaveLength(2);
  };

  it('V1 S2 status$, failures$, drained(), logout() and the device document say the same of refused edits of the app', async () => {
    const client = bed.open();
    await four(client);
    expect(await bed.becomes(client, ({ failed, unreported }) => failed === 4 && unreported === 0)).toMatchObject({
      pending: 0,
    });
    expect(await countsOf(client.drained())).toMatchObject({ failed: 4 });
    expect(await countsOf(client.logout())).toMatchObject({ failed: 4 });
    await bed.becomes(client, ({ results }) => results.state === 'idle');
    expect(await bed.deviceDoc(client)).toMatchObject({ failed: 4, drained: false });
    const ofBulkOperations = await firstValueFrom(client.bulkOperations$);
    expect(ofBulkOperations.reduce((sum, { failed }) => sum + failed, 0)).toBe(2);
  });

  it('V1 S2 another tab, and the next start, count refused edits of the app before anyone lists them', async () => {
    const client = bed.open();
    const other = bed.open({ autoStart: false });
    await bed.device.until(other.storeId);
    await four(client);
    await bed.becomes(other, ({ failed }) => failed === 4);
    await bed.device.until(Promise.all([client.close(), other.close()]));
    const next = bed.open({ autoStart: false });
    await bed.device.until(next.storeId);
    await bed.becomes(next, ({ failed }) => failed === 4);
    expect(await countsOf(next.drained())).toMatchObject({ failed: 4 });
  });

  it('V1 S2 R19 a refused edit that is discarded, or that the server takes after all, does not count any more', async () => {
    const client = bed.open();
    await four(client);
    await bed.device.until(client.discard({ id: 'own-1' }));
    await bed.becomes(client, ({ failed }) => failed === 3);
    const doc = await client.documents.get('own-2');
    await client.documents.put({ ...doc, black: false });
    await bed.becomes(client, ({ failed }) => failed === 2);
    expect(await listed(client, 2)).toMatchObject([{ id: 'nowhere' }, { id: 'a' }]);
  });
});
