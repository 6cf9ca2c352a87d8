// @ts-expect-error -- PouchDB's parts come without types; what we use of them is written down in model/pouch.ts
import PouchCore from 'pouchdb-core';
// @ts-expect-error -- see above
import memory from 'pouchdb-adapter-memory';
import type { PouchConstructor, PouchLike } from '../model/pouch.js';

interface Core {
  new (name: string, options: object): PouchLike;
  plugin(part: unknown): Core;
  defaults(options: object): PouchConstructor;
}

let databases = 0;

/** A real PouchDB in memory, with names of its own: databases of one constructor outlive their handles. */
export function memoryPouch(): PouchConstructor {
  return (PouchCore as unknown as Core)
    .plugin(memory)
    .defaults({ adapter: 'memory', prefix: `test${String(databases++)}-` });
}
