/* The app needs of PouchDB what the client needs of it, and no more: its own types stay out. */
declare module 'pouchdb-browser' {
  const PouchDB: import('@afield/client').PouchConstructor;
  export { PouchDB as default };
}
