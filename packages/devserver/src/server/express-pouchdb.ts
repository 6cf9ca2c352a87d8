import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { Caller } from './answers.js';
import type { WritingDatabase } from './history.js';
import type { AskedDatabase } from './known-revisions.js';
import type { SecurityObject } from './security.js';

/** A request inside express-pouchdb, with what its own middleware puts there. */
export interface CouchRequest extends IncomingMessage {
  readonly db?: WritingDatabase & AskedDatabase & { getSecurity(): Promise<SecurityObject> };
  /** Parsed query; values that are JSON are parsed, too. */
  readonly query?: Record<string, unknown>;
  readonly PouchDB?: { allDbs(): Promise<readonly string[]> };
  readonly couchSession?: { readonly userCtx: Caller };
}

/** A step of an Express application. */
export type Middleware = (request: CouchRequest, response: ServerResponse, next: (error?: unknown) => void) => void;

/** The step that turns what earlier ones threw into an answer; Express knows it by its four parameters. */
export type ErrorMiddleware = (
  error: unknown,
  request: CouchRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

interface Layer {
  readonly route?: { readonly path: unknown; readonly methods: Record<string, boolean> };
}

/** The part of an Express 4 application that we use. */
export interface ExpressApplication {
  (request: IncomingMessage, response: ServerResponse): void;
  use(middleware: Middleware | ErrorMiddleware): void;
  readonly _router: { readonly stack: Layer[] };
}

/** Where express-pouchdb may write. */
export interface CouchFiles {
  readonly configPath: string;
  readonly logPath: string;
}

interface PouchConstructor {
  plugin(plugin: unknown): PouchConstructor;
  defaults(options: Record<string, unknown>): PouchConstructor;
}

const require = createRequire(import.meta.url);

/** Loads PouchDB with the memory store and builds the CouchDB-compatible application on it. */
export function createExpressPouch({ configPath, logPath }: CouchFiles): ExpressApplication {
  const PouchDB = load<PouchConstructor>('pouchdb-core');
  for (const plugin of ['adapter-memory', 'adapter-http', 'mapreduce', 'replication']) {
    PouchDB.plugin(load(`pouchdb-${plugin}`));
  }
  const build = load<(pouch: PouchConstructor, options: unknown) => ExpressApplication>('express-pouchdb');
  return build(PouchDB.defaults({ adapter: 'memory' }), {
    mode: 'fullCouchDB',
    configPath,
    logPath,
    overrideMode: { exclude: ['compression', 'routes/fauxton'] },
  });
}

/** CommonJS modules come either as the thing itself or with it as `default`. */
function load<T>(name: string): T {
  const loaded = require(name) as { default?: T };
  return loaded.default ?? (loaded as T);
}

/**
 * Puts a step before the first route of databases (when they are created or deleted), and another right behind the
 * step that opens the database of a request.
 * @throws Error if the application isn't built as expected
 */
export function insertDatabaseSteps(app: ExpressApplication, beforeAll: Middleware, onceOpen: Middleware): void {
  const { stack } = app._router;
  const first = stack.findIndex(({ route }) => route?.path === '/:db');
  const opener = stack.findIndex(({ route }) => route?.path === '/:db' && answersEveryMethod(route.methods));
  if (first < 0 || opener < 0)
    throw new Error('express-pouchdb has no step that opens a database; is its version 4.2?');
  insertStep(app, opener + 1, onceOpen);
  insertStep(app, first, beforeAll);
}

function insertStep(app: ExpressApplication, index: number, step: Middleware): void {
  app.use(step);
  const { stack } = app._router;
  const added = stack.pop();
  if (added !== undefined) stack.splice(index, 0, added);
}

function answersEveryMethod(methods: Record<string, boolean>): boolean {
  return methods['get'] === true && methods['delete'] === true && methods['post'] === true;
}
