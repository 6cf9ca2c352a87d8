import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { DevServerError } from '../errors.js';
import { temporaryFolder } from '../temporary-folder.js';
import type { ServerOrder, ServerReport } from './messages.js';
import type { DefaultSecurity } from './security.js';

/** A user name and a password. */
export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** How to start a server; everything has a default. */
export interface DevServerOptions {
  /** Port on 127.0.0.1; 0, the default, takes a free one. */
  readonly port?: number;
  /** The server's admin; `admin` with the password `secret` by default. */
  readonly admin?: Credentials;
  /** JSON bodies over this many bytes are answered 413; 8,000,000 by default, like CouchDB's documents. */
  readonly maxBodyBytes?: number;
  /** Who may use a database without a `_security` object: `admin-only` (default, as in CouchDB 3) or `everyone`. */
  readonly defaultSecurity?: DefaultSecurity;
  /** Called with errors inside the server that no request shows, such as a rejection nobody handled. */
  readonly onProblem?: (reason: string) => void;
}

/** A running server. */
export interface DevServer {
  /** Address without a slash at the end and without credentials, such as `http://127.0.0.1:5984`. */
  readonly url: string;
  readonly port: number;
  readonly admin: Credentials;
  /** Errors inside the server so far that no request shows, oldest first; the last 100. */
  problems(): readonly string[];
  /** Ends open requests, frees the port and forgets all databases. A second call does nothing. */
  close(): Promise<void>;
}

const defaultAdmin: Credentials = { username: 'admin', password: 'secret' };
const defaultMaxBodyBytes = 8_000_000;
const keptProblems = 100;

/**
 * Starts a CouchDB-compatible server (express-pouchdb) whose databases live in memory.
 *
 * It runs in a thread of its own. So instances share no databases (PouchDB keeps some state per module), a rejection
 * that express-pouchdb forgets can be survived there without hiding those of your process, fake timers of a test don't
 * stop it, and `close` leaves nothing behind.
 *
 * @throws DevServerError with code `start_failed`, for example when the port is taken
 */
export async function startDevServer(options: DevServerOptions = {}): Promise<DevServer> {
  const admin = options.admin ?? defaultAdmin;
  const { folder, remove } = await temporaryFolder('afield-devserver');
  const order: ServerOrder = {
    port: options.port ?? 0,
    folder,
    admin,
    maxBodyBytes: options.maxBodyBytes ?? defaultMaxBodyBytes,
    defaultSecurity: options.defaultSecurity ?? 'admin-only',
  };
  const thread = startThread(order);
  const end = async (): Promise<void> => {
    await thread.terminate();
    await remove();
  };
  const problems = collectProblems(thread, options.onProblem);
  const port = await listeningPort(thread).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  let closing: Promise<void> | undefined;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    port,
    admin,
    problems: () => [...problems],
    close: () => (closing ??= end()),
  };
}

function startThread(order: ServerOrder): Worker {
  // The thread's own output (a log call in a design document, for example) stays out of the output of tests.
  const options = { workerData: order, stdout: true, stderr: true, execArgv: [] };
  if (!import.meta.url.endsWith('.ts')) return new Worker(new URL('./thread.js', import.meta.url), options);
  return new Worker(typescriptThread(), { ...options, eval: true });
}

/** Only for our own tests, which run the TypeScript files as they are. */
function typescriptThread(): string {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx/package.json'));
  const loader = new URL('dist/esm/api/index.mjs', tsx).href;
  const thread = new URL('./thread.ts', import.meta.url).href;
  return `import(${JSON.stringify(loader)}).then(({ register }) => { register(); return import(${JSON.stringify(thread)}); });`;
}

function collectProblems(thread: Worker, onProblem: ((reason: string) => void) | undefined): string[] {
  const problems: string[] = [];
  thread.on('message', (report: ServerReport) => {
    if (report.type !== 'problem') return;
    problems.push(report.reason);
    if (problems.length > keptProblems) problems.shift();
    onProblem?.(report.reason);
  });
  return problems;
}

function listeningPort(thread: Worker): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string): void =>
      reject(new DevServerError('start_failed', `The server did not start: ${reason}`));
    thread.on('message', (report: ServerReport) => {
      if (report.type === 'listening') resolve(report.port);
      if (report.type === 'failed') fail(report.reason);
    });
    thread.once('error', (error: Error) => fail(error.message));
    thread.once('exit', () => fail('its thread ended'));
  });
}
