import { serverUnderTest, temporaryDatabases } from '@afield/devserver';
import { MemoryPouch, MemoryServer } from '@afield/testing';
import { memoryPlace, pouchPlace } from './places.js';
import type { ServerOfRun } from './world.js';

/** The embedded server over HTTP, or the CouchDB at `COUCHDB_URL`. */
export async function realServer(): Promise<ServerOfRun & { close(): Promise<void> }> {
  const server = await serverUnderTest();
  const databases = temporaryDatabases(server.directUrl, server.admin);
  const records = await databases.create('records');
  const results = await databases.create('results');
  const { username, password } = server.admin;
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const signedIn = (url: string, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set('authorization', authorization);
    return fetch(url, { ...init, headers });
  };
  const database = (url: string) => new MemoryPouch(url, { adapter: 'http', skip_setup: true, fetch: signedIn });
  const documents = database(records.url);
  return {
    records: records.url,
    results: results.url,
    fetch,
    auth: server.admin,
    place: pouchPlace('server', documents),
    write: (docs) => documents.bulkDocs(docs),
    allResults: async () => {
      const { rows } = await database(results.url).allDocs({ include_docs: true });
      return (rows as { doc: Record<string, unknown> }[]).map(({ doc }) => doc);
    },
    close: async () => {
      await databases.dispose();
      await server.close();
    },
  };
}

/** A server in memory, for runs that are quick and the same for the same seed. */
export function quickServer(): ServerOfRun {
  const server = new MemoryServer();
  const [records, results] = [server.create('records'), server.create('results')];
  return {
    records: server.urlOf('records'),
    results: server.urlOf('results'),
    fetch: server.fetch,
    auth: undefined,
    place: memoryPlace('server', records),
    write: (docs) => Promise.resolve(records.write(docs)),
    allResults: () =>
      Promise.resolve(results.ids().flatMap((id): Record<string, unknown>[] => [results.read(id) ?? []].flat())),
  };
}
