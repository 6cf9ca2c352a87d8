// PouchDB as Afield needs it, assembled from its parts: smaller than `pouchdb-browser`.
// @ts-expect-error -- PouchDB's parts come without types; what we use of them is written down in model/pouch.ts
import PouchCore from 'pouchdb-core';
// @ts-expect-error -- see above
import idb from 'pouchdb-adapter-idb';
// @ts-expect-error -- see above
import http from 'pouchdb-adapter-http';
// @ts-expect-error -- see above
import replication from 'pouchdb-replication';
import type { PouchConstructor } from './model/pouch.js';

interface Pluggable {
  plugin(part: unknown): Pluggable;
}

/** PouchDB with the idb and http adapters and replication, for apps that bring no PouchDB of their own. */
export const PouchDB = (PouchCore as Pluggable)
  .plugin(idb)
  .plugin(http)
  .plugin(replication) as unknown as PouchConstructor;
