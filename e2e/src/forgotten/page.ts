/* The page: a client that pulls a list of documents from a server, in the browser's own storage. */
import { createClient, type Client } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { filter, firstValueFrom } from 'rxjs';

const { server, username, password } = Object.fromEntries(new URLSearchParams(location.search)) as Record<
  string,
  string
>;
let list: readonly string[] = ['a', 'b'];
const client: Client = createClient({
  name: 'forgotten',
  PouchDB,
  actions: [],
  server: server ?? '',
  auth: { credentials: () => Promise.resolve({ type: 'basic', username: username ?? '', password: password ?? '' }) },
  pull: { docIds: () => list },
  outOfSight: (ids) => ids,
});

/** The next pull, to its end. */
const pulled = async (): Promise<void> => {
  const { pull } = await firstValueFrom(client.status$);
  client.syncNow();
  await firstValueFrom(
    client.status$.pipe(filter((now) => now.pull.attempts > pull.attempts && now.pull.state === 'idle')),
  );
};

/** All that the browser's database of the documents holds, as text. */
const stored = async (): Promise<string> => {
  const database = await new Promise<IDBDatabase>((resolve, reject) => {
    const opening = indexedDB.open('_pouch_forgotten');
    opening.onsuccess = () => {
      resolve(opening.result);
    };
    opening.onerror = () => {
      reject(opening.error ?? new Error('It cannot be opened.'));
    };
  });
  const all: unknown[] = [];
  for (const name of database.objectStoreNames) {
    all.push(
      await new Promise((resolve, reject) => {
        const reading = database.transaction(name).objectStore(name).getAll();
        reading.onsuccess = () => {
          resolve([name, reading.result]);
        };
        reading.onerror = () => {
          reject(reading.error ?? new Error('It cannot be read.'));
        };
      }),
    );
  }
  database.close();
  return JSON.stringify(all);
};

const app = {
  pulled,
  stored,
  async pullOf(ids: readonly string[]): Promise<void> {
    list = ids;
    await pulled();
  },
  get: (id: string): Promise<object | string> =>
    client.documents
      .get(id, { attachments: true })
      .catch((error: unknown) => String((error as { reason?: string }).reason)),
  async edit(id: string): Promise<void> {
    await client.documents.put({ ...(await client.documents.get(id)), note: 'mine' });
  },
};
declare global {
  interface Window {
    forgotten: typeof app;
  }
}
window.forgotten = app;
