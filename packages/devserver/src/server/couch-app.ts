import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerPreflight, corsHeaders, isPreflight } from '../cors.js';
import { isRecord, likeCouchDB, type Caller } from './answers.js';
import {
  createExpressPouch,
  insertDatabaseSteps,
  type CouchFiles,
  type CouchRequest,
  type ErrorMiddleware,
  type Middleware,
} from './express-pouchdb.js';
import { keepSentHistory } from './history.js';
import { knowAncestors } from './known-revisions.js';
import { databaseNameError, isInternalDatabase, pathSegments, type CouchError } from './names.js';
import {
  isServerAdmin,
  membershipError,
  securityInForce,
  type DefaultSecurity,
  type SecurityObject,
} from './security.js';

/** What the application needs to be built. */
export interface CouchAppOptions extends CouchFiles {
  readonly defaultSecurity: DefaultSecurity;
}

/** Lists of the whole server, which CouchDB 3 shows to admins only. */
const adminLists = new Set(['_all_dbs', '_dbs_info']);

const noDatabase: CouchError = { status: 404, error: 'not_found', reason: 'Database does not exist.' };

const nobody: Caller = { name: null, roles: [] };

/** Builds the handler of a CouchDB-compatible server: express-pouchdb, with what it lacks in front and behind. */
export function createCouchApp(options: CouchAppOptions): (request: IncomingMessage, response: ServerResponse) => void {
  const app = createExpressPouch(options);
  const welcome = welcomeBody();
  insertDatabaseSteps(app, serverAdminGate, databaseGate(options.defaultSecurity));
  app.use(answerError);
  return (request, response) => {
    for (const [name, value] of Object.entries(corsHeaders(request.headers.origin))) response.setHeader(name, value);
    if (isPreflight(request)) return answerPreflight(request, response);
    response.setHeader('cache-control', 'must-revalidate');
    const segments = pathSegments(request.url ?? '/');
    const refusal = refusalBeforeRouting(request.method ?? 'GET', segments);
    if (refusal !== undefined) return sendJson(response, refusal.status, errorBody(refusal));
    const own = ownAnswer(request, segments, welcome);
    if (own !== undefined) return sendJson(response, 200, own);
    preferJson(request);
    rewriteAnswer(request, response, segments);
    app(request, response);
  };
}

/** CouchDB answers JSON to whoever takes anything; express-pouchdb would answer plain text. */
function preferJson({ headers }: IncomingMessage): void {
  const accepted = headers.accept ?? '*/*';
  if (accepted.includes('*/*')) headers.accept = 'application/json';
}

function refusalBeforeRouting(method: string, segments: readonly string[]): CouchError | undefined {
  const name = segments[0];
  if (name === undefined) return undefined;
  if (method === 'PUT' && segments.length === 1) return databaseNameError(name);
  const isDatabase = !name.startsWith('_');
  if (isInternalDatabase(name) || (isDatabase && databaseNameError(name) !== undefined)) {
    return noDatabase;
  }
  return undefined;
}

function ownAnswer({ method }: IncomingMessage, segments: readonly string[], welcome: unknown): unknown {
  if (method !== 'GET' && method !== 'HEAD') return undefined;
  if (segments.length === 0) return welcome;
  if (segments.length === 1 && segments[0] === '_up') return { status: 'ok', seeds: {} };
  return undefined;
}

/** `GET /` in CouchDB's shape; the vendor tells the two apart. */
function welcomeBody(): unknown {
  return {
    couchdb: 'Welcome',
    version: '3.5.0',
    git_sha: 'embedded',
    uuid: randomUUID().replaceAll('-', ''),
    features: [],
    vendor: { name: 'Afield development server', version: '4.2.0' },
  };
}

/** An error that no route handled is answered in JSON; Express would answer a page. */
const answerError: ErrorMiddleware = (error, _request, response, next) => {
  if (response.headersSent) return next(error);
  const status = isRecord(error) && typeof error['status'] === 'number' ? error['status'] : 500;
  const reason = error instanceof Error ? error.message : String(error);
  sendJson(response, status, { error: status === 400 ? 'bad_request' : 'unknown_error', reason });
};

/**
 * Creating and deleting databases is for server admins; express-pouchdb never answers who is none. And it deletes what
 * doesn't exist.
 */
const serverAdminGate: Middleware = (request, response, next) => {
  const { method, PouchDB } = request;
  const [name = '', ...rest] = pathSegments(request.url ?? '/');
  if (rest.length > 0 || (method !== 'PUT' && method !== 'DELETE')) return next();
  if (!isServerAdmin(callerOf(request))) return sendJson(response, notServerAdmin.status, notServerAdmin.body);
  if (method === 'PUT' || PouchDB === undefined) return next();
  PouchDB.allDbs().then((names) => {
    if (names.includes(name)) return next();
    sendJson(response, noDatabase.status, errorBody(noDatabase));
  }, next);
};

/** Runs once the database of a request is open: who may not use it goes no further. */
function databaseGate(defaultSecurity: DefaultSecurity): Middleware {
  return (request, response, next) => {
    const { db } = request;
    if (db === undefined) return next();
    keepSentHistory(db);
    knowAncestors(db);
    db.getSecurity().then((stored) => {
      const security = securityInForce(stored, defaultSecurity);
      const refusal = databaseRefusal(request, security);
      if (refusal !== undefined) return sendJson(response, refusal.status, errorBody(refusal));
      takeDocumentIds(request);
      if (isSecurityRead(request)) return sendJson(response, 200, security);
      next();
    }, next);
  };
}

function databaseRefusal(request: CouchRequest, security: SecurityObject): CouchError | undefined {
  const segments = pathSegments(request.url ?? '/');
  // The database of users has rules of its own, document by document.
  if (segments[0] !== '_users') {
    const refusal = membershipError(callerOf(request), security);
    if (refusal !== undefined) return refusal;
  }
  if (segments[1] === '_changes' && request.query?.['filter'] === '_selector') {
    return {
      status: 400,
      error: 'bad_request',
      reason: 'filter=_selector is not supported by this development server.',
    };
  }
  return undefined;
}

/** The list of ids is a filter of its own in PouchDB; it would look for a design document of that name. */
function takeDocumentIds({ query }: CouchRequest): void {
  if (query?.['filter'] === '_doc_ids') delete query['filter'];
}

function isSecurityRead(request: CouchRequest): boolean {
  const segments = pathSegments(request.url ?? '/');
  return request.method === 'GET' && segments.length === 2 && segments[1] === '_security';
}

function callerOf(request: CouchRequest): Caller {
  return request.couchSession?.userCtx ?? nobody;
}

/** Lets the last step of an answer look at it, see `likeCouchDB`. Only whole JSON answers are looked at, no feeds. */
function rewriteAnswer(request: CouchRequest, response: ServerResponse, segments: readonly string[]): void {
  const end = response.end.bind(response) as (...given: unknown[]) => ServerResponse;
  response.end = ((...given: unknown[]) => {
    const [chunk] = given;
    tidyCookies(request, response, segments);
    const answer = parseAnswer(response, chunk);
    if (answer === undefined) return end(...given);
    const caller = callerOf(request);
    const hidden = isAdminList(segments) && !isServerAdmin(caller);
    const changed = hidden ? notServerAdmin : likeCouchDB(answer, { segments, caller });
    if (changed === answer) return end(...given);
    const body = Buffer.from(`${JSON.stringify(changed.body)}\n`);
    response.statusCode = changed.status;
    response.removeHeader('etag');
    response.setHeader('content-length', body.length);
    return end(body);
  }) as ServerResponse['end'];
}

/**
 * Only signing in and out sets a cookie. express-pouchdb renews it with every answer, so that one which was on its way
 * during a sign-out would sign in again.
 */
function tidyCookies({ method }: CouchRequest, response: ServerResponse, segments: readonly string[]): void {
  const cookies = response.headersSent ? undefined : response.getHeader('set-cookie');
  if (cookies === undefined) return;
  response.removeHeader('set-cookie');
  const signsInOrOut = segments[0] === '_session' && (method === 'POST' || method === 'DELETE');
  const last = [cookies].flat().at(-1);
  if (signsInOrOut && last !== undefined) response.setHeader('set-cookie', last);
}

const notServerAdmin = { status: 401, body: { error: 'unauthorized', reason: 'You are not a server admin.' } };

function isAdminList(segments: readonly string[]): boolean {
  return segments.length === 1 && adminLists.has(segments[0] ?? '');
}

function parseAnswer(response: ServerResponse, chunk: unknown): { status: number; body: unknown } | undefined {
  if (response.headersSent || !(typeof chunk === 'string' || Buffer.isBuffer(chunk))) return undefined;
  if (response.statusCode !== 401 && response.statusCode !== 201 && response.statusCode !== 200) return undefined;
  const text = chunk.toString();
  if (!text.startsWith('{"error"') && !text.startsWith('[')) return undefined;
  try {
    const body = JSON.parse(text) as unknown;
    return isRecord(body) || Array.isArray(body) ? { status: response.statusCode, body } : undefined;
  } catch {
    return undefined;
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = Buffer.from(`${JSON.stringify(body)}\n`);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': text.length });
  response.end(response.req.method === 'HEAD' ? undefined : text);
}

function errorBody({ error, reason }: CouchError): unknown {
  return { error, reason };
}
