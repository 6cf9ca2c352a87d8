/* A SharedWorker: one client for all pages of a browser. */
import { createClient } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { serveClient, type Endpoint } from '@afield/client/worker';

const client = createClient({ name: 'in-shared-worker', PouchDB, actions: [] });
addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports;
  if (port !== undefined) serveClient(client, port satisfies Endpoint);
});
