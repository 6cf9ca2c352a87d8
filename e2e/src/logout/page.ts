/* The page: one tab of a person's store, in the browser's own storage. `?` names the user, and `pending` makes work that waits. */
import { createClient, defineDocumentAction, defineIndex, UnsyncedWorkError, type Client } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { filter, firstValueFrom } from 'rxjs';
import { z } from 'zod/mini';

const user = new URLSearchParams(location.search).get('user') ?? 'amber';
const client: Client = createClient({
  name: 'visits',
  user,
  PouchDB,
  actions: [
    defineDocumentAction({
      name: 'set-colour',
      operation: z.strictObject({ to: z.string() }),
      isApplied: (doc, { to }) => doc['colour'] === to,
      apply: (doc, { to }) => ({ ...doc, colour: to }),
    }),
  ],
  indexes: [
    defineIndex({ name: 'by-colour', version: 2, keys: (doc) => doc['colour'] as string | undefined }),
    defineIndex({ name: 'by-note', version: 1, keys: (doc) => doc['note'] as string | undefined }),
  ],
});
const enqueue = (id: string): ReturnType<Client['enqueue']> =>
  client.enqueue({
    target: 'local',
    actions: [{ action: 'set-colour', operations: [{ id, to: 'blue' }] }],
  });

const app = {
  open: (): Promise<string> => client.storeId,
  async work(): Promise<void> {
    await client.documents.bulkDocs([{ _id: 'a', colour: 'red', note: 'mine' }]);
    const { bulkOperationId } = await enqueue('a');
    await firstValueFrom(
      client.bulkOperations$.pipe(
        filter((all) => all.some((one) => one.id === bulkOperationId && one.state === 'done')),
      ),
    );
    for (const name of ['by-colour', 'by-note']) {
      await firstValueFrom(client.index(name).state$.pipe(filter(({ state }) => state === 'ready')));
    }
  },
  async fail(): Promise<void> {
    await enqueue('nowhere');
    await firstValueFrom(client.status$.pipe(filter(({ failed }) => failed === 1)));
  },
  logout: (force: boolean): Promise<unknown> =>
    client.logout({ force }).then(
      () => 'left',
      (error: unknown) => (error instanceof UnsyncedWorkError ? error.counts : String(error)),
    ),
  enqueue: (id: string): Promise<string> =>
    enqueue(id).then(
      () => 'queued',
      (error: unknown) => (error as { code: string }).code,
    ),
  shown: async (): Promise<number> => {
    await client.storeId;
    return (await firstValueFrom(client.bulkOperations$)).length;
  },
  /** All that the browser keeps for this origin. */
  left: async (): Promise<{ databases: string[]; notes: string[] }> => ({
    databases: (await indexedDB.databases()).flatMap(({ name }) => name ?? []),
    // PouchDB itself notes this in every page that loads it, to see whether it can: nothing of a store is in it.
    notes: Object.keys(localStorage).filter((name) => name !== '_pouch_check_localstorage'),
  }),
};
declare global {
  interface Window {
    logout: typeof app;
  }
}
window.logout = app;
