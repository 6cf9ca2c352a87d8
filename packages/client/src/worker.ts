/* The entry `@afield/client/worker`: a client that runs in a Web Worker, and the page that uses it. */
export { connectClient, type ConnectOptions, type RemoteClient } from './worker/connect.js';
export { pageAuth } from './worker/page-auth.js';
export { pagePresence } from './worker/page-presence.js';
export { serveClient } from './worker/serve.js';
export type { Endpoint } from './worker/endpoint.js';
export type { OwnPresence } from './tabs/own-presence.js';
