declare module 'pouchdb-core' {
  import type { PouchConstructor } from '@afield/client';
  const PouchDB: PouchConstructor & { plugin(plugin: unknown): typeof PouchDB };
  export { PouchDB as default };
}
declare module 'pouchdb-adapter-memory' {
  const plugin: unknown;
  export { plugin as default };
}
declare module 'pouchdb-adapter-http' {
  const plugin: unknown;
  export { plugin as default };
}
declare module 'pouchdb-replication' {
  const plugin: unknown;
  export { plugin as default };
}
