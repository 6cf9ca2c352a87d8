import type { PouchConstructor } from '@afield/client';
import http from 'pouchdb-adapter-http';
import memory from 'pouchdb-adapter-memory';
import Core from 'pouchdb-core';
import replication from 'pouchdb-replication';

/** PouchDB as the tests use it: local databases live in the memory of this process, shared by name. */
export const MemoryPouch: PouchConstructor = Core.plugin(memory).plugin(http).plugin(replication);
