import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { writeConfigFile } from './config-file.js';
import { createCouchApp } from './couch-app.js';
import type { ServerOrder, ServerReport } from './messages.js';

/*
 * The server's own thread: see `dev-server.ts` for why there is one.
 * A rejection that express-pouchdb forgets to handle is reported and survived here, and only here.
 */
process.on('unhandledRejection', (cause) => report({ type: 'problem', reason: describe(cause) }));
process.on('uncaughtException', (cause) => report({ type: 'problem', reason: describe(cause) }));

function start(order: ServerOrder): void {
  const files = writeConfigFile(order);
  const server = createServer({ noDelay: true, requestTimeout: 0 });
  server.on('request', createCouchApp({ ...files, defaultSecurity: order.defaultSecurity }));
  server.on('error', (error: NodeJS.ErrnoException) => {
    report({ type: 'failed', code: error.code, reason: error.message });
  });
  server.listen(order.port, '127.0.0.1', () => {
    report({ type: 'listening', port: (server.address() as AddressInfo).port });
  });
}

function report(message: ServerReport): void {
  parentPort?.postMessage(message);
}

function describe(cause: unknown): string {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
}

try {
  start(workerData as ServerOrder);
} catch (error) {
  report({ type: 'failed', reason: describe(error) });
}
