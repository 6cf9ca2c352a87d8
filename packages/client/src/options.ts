import { createAction } from './actions/create.js';
import { deleteAction } from './actions/delete.js';
import { updateAction } from './actions/update.js';
import { wrongInIndexes } from './lookup/check-definition.js';
import { wrongInAddress } from './model/address.js';
import { wrongInDocIds } from './model/doc-ids.js';
import type { ClientOptions, ReplicationMode, ResultsOptions } from './model/client.js';
import type { Environment } from './model/environment.js';
import { AfieldError } from './model/errors.js';
import type { AnyAction, BatchAction, DocumentAction } from './model/handler.js';
import type { IndexDefinition } from './model/lookup.js';
import type { AnyPlan } from './model/plan.js';
import { wrongInPublisherName } from './outbox/publisher-options.js';

/** What every client knows without being told. */
const builtIn: readonly AnyAction[] = [createAction, updateAction, deleteAction];
/** Smaller requests would be nothing but overhead. */
const leastRequestBytes = 1000;

const known = new Set<string>([
  'name',
  'PouchDB',
  'actions',
  'plans',
  'indexes',
  'documents',
  'server',
  'user',
  'results',
  'redact',
  'auth',
  'replication',
  'pull',
  'outOfSight',
  'inactivityS',
  'pullEveryS',
  'batchSize',
  'requestTimeoutS',
  'maxRequestBytes',
  'appVersion',
  'publishers',
  'typeOf',
  'rememberDays',
  'resolveConflict',
  'autoStart',
  'ramp',
  'jitter',
  'environment',
] satisfies (keyof ClientOptions)[]);

/** Checks what an app hands to `createClient`; throws `AfieldError` with the code `invalid_option` and the option's name. */
export function checkOptions(options: ClientOptions): ClientOptions {
  if (typeof options !== 'object' || (options as unknown) === null) throw wrong('the options must be an object');
  for (const name of Object.keys(options)) if (!known.has(name)) throw wrong(`there is no option \`${name}\``);
  if (typeof options.name !== 'string' || options.name === '') throw wrong('`name` must be a text that is not empty');
  if (typeof options.PouchDB !== 'function') {
    throw wrong('`PouchDB` must be a constructor: `pouchdb-browser`, or `PouchDB` of `@afield/client/pouchdb`');
  }
  if (!Array.isArray(options.actions)) throw wrong('`actions` must be a list');
  if (options.plans !== undefined && !Array.isArray(options.plans)) throw wrong('`plans` must be a list');
  if (options.auth !== undefined && typeof options.auth.credentials !== 'function') {
    throw wrong('`auth.credentials` must be a function that resolves with credentials');
  }
  const {
    batchSize = 100,
    inactivityS = 300,
    jitter = 0.2,
    pullEveryS = 60,
    rememberDays = 30,
    requestTimeoutS = 60,
    maxRequestBytes = leastRequestBytes,
  } = options;
  if (!Number.isInteger(batchSize) || batchSize < 1 || batchSize > 100)
    throw wrong('`batchSize` must be from 1 to 100');
  if (!(jitter >= 0 && jitter <= 1)) throw wrong('`jitter` must be from 0 to 1');
  if (!(inactivityS >= 1)) throw wrong('`inactivityS` must be 1 or more');
  if (!(pullEveryS >= 1)) throw wrong('`pullEveryS` must be 1 or more');
  if (!Number.isFinite(rememberDays) || rememberDays < 0) throw wrong('`rememberDays` must be a number, 0 or more');
  if (!(requestTimeoutS >= 1)) throw wrong('`requestTimeoutS` must be 1 or more');
  if (!Number.isSafeInteger(maxRequestBytes) || maxRequestBytes < leastRequestBytes) {
    throw wrong(`\`maxRequestBytes\` must be a whole number, ${String(leastRequestBytes)} or more`);
  }
  if (options.appVersion !== undefined && (typeof options.appVersion !== 'string' || options.appVersion === '')) {
    throw wrong('`appVersion` must be a text that is not empty');
  }
  if (options.typeOf !== undefined && typeof options.typeOf !== 'function') throw wrong('`typeOf` must be a function');
  checkReplication(options);
  if (options.user !== undefined && (typeof options.user !== 'string' || options.user === '')) {
    throw wrong('`user` must be a text that is not empty');
  }
  if (options.resolveConflict !== undefined && typeof options.resolveConflict !== 'function') {
    throw wrong('`resolveConflict` must be a function');
  }
  const inIndexes = wrongInIndexes(options.indexes);
  if (inIndexes !== undefined) throw wrong(inIndexes);
  checkPublishers(options.publishers);
  checkAddress('server', options.server);
  checkResults(options);
  return options;
}

/** How the app's documents are replicated, whichever way the app has said it. Without a server they are not. */
export function replicationMode({ server, replication = 'managed' }: ClientOptions): ReplicationMode {
  if (server === undefined || replication === false) return 'off';
  return replication === true ? 'managed' : replication;
}

/** Checks what an app hands to `logout`: a misspelt `force` must not pass for none. */
export function checkLogoutOptions(options: { readonly force?: boolean }): { readonly force?: boolean } {
  const { force, ...unknown } = options as Partial<Record<string, unknown>>;
  const [other] = Object.keys(unknown);
  if (other !== undefined) throw new AfieldError('invalid_option', `logout: there is no option \`${other}\`.`);
  if (force !== undefined && typeof force !== 'boolean') {
    throw new AfieldError('invalid_option', 'logout: `force` must be true or false.');
  }
  return force === undefined ? {} : { force };
}

/** The actions by their names, the built-in ones among them. */
export function actionsByName(actions: readonly AnyAction[]): ReadonlyMap<string, AnyAction> {
  const byName = new Map<string, AnyAction>(builtIn.map((action) => [action.name, action]));
  for (const action of actions) {
    checkAction(action);
    if (byName.has(action.name)) throw wrong(`the action "${action.name}" is defined twice`);
    byName.set(action.name, action);
  }
  return byName;
}

/** Indexes are stored, so there must be something to store them in. */
export function checkIndexedDB({ indexes = [] }: ClientOptions, { indexedDB }: Pick<Environment, 'indexedDB'>): void {
  if (indexes.length === 0 || indexedDB !== undefined) return;
  throw wrong('`indexes` need IndexedDB, which is not there: hand one in as `environment.indexedDB`');
}

/** The plans by their names. `indexes` are those of the client: a plan that asks another one could never run. */
export function plansByName(
  plans: readonly AnyPlan[],
  indexes: readonly IndexDefinition[],
): ReadonlyMap<string, AnyPlan> {
  const known = new Set(indexes.map(({ name }) => name));
  const byName = new Map<string, AnyPlan>();
  for (const plan of plans) {
    checkPlan(plan, known);
    if (byName.has(plan.name)) throw wrong(`the plan "${plan.name}" is defined twice`);
    byName.set(plan.name, plan);
  }
  return byName;
}

const planFields = new Set<string>(['name', 'request', 'plan', 'indexes', 'subjects'] satisfies (keyof AnyPlan)[]);

function checkPlan(plan: AnyPlan, indexes: ReadonlySet<string>): void {
  const given = plan as unknown as Partial<Record<string, unknown>> | undefined;
  if (typeof given?.['name'] !== 'string' || given['name'] === '') throw wrong('a plan has no `name`');
  const name = given['name'];
  checkSchema(given['request'], `the \`request\` of the plan "${name}"`);
  if (typeof given['plan'] !== 'function') throw wrong(`the plan "${name}" has no function \`plan\``);
  const unknown = Object.keys(given).find((field) => !planFields.has(field));
  if (unknown !== undefined) {
    throw wrong(`the plan "${name}" has the unknown field \`${unknown}\` (it may have ${[...planFields].join(', ')})`);
  }
  if (given['subjects'] !== undefined && typeof given['subjects'] !== 'function') {
    throw wrong(`\`subjects\` of the plan "${name}" must be a function`);
  }
  const asked: unknown = given['indexes'] ?? [];
  if (!Array.isArray(asked)) throw wrong(`\`indexes\` of the plan "${name}" must be a list of names`);
  for (const index of asked as unknown[]) {
    if (typeof index === 'string' && indexes.has(index)) continue;
    throw wrong(`the plan "${name}" names the index "${String(index)}", which is not in \`indexes\``);
  }
}

function checkPublishers(given: ClientOptions['publishers']): void {
  if (given === undefined) return;
  if (!Array.isArray(given)) throw wrong('`publishers` must be a list');
  const names = new Set<string>();
  for (const [place, publisher] of (given as unknown[]).entries()) {
    const which = `publishers.${String(place)}`;
    if (typeof publisher !== 'object' || publisher === null) {
      throw wrong(`\`${which}\` must be an object { name, publish }`);
    }
    const { name, publish, needs } = publisher as Partial<Record<string, unknown>>;
    const inName = wrongInPublisherName(name);
    if (typeof name !== 'string' || inName !== undefined) throw wrong(`\`${which}.name\` ${String(inName)}`);
    if (names.has(name)) {
      throw wrong(`the publisher "${name}" is listed twice (\`${which}\`): give one of them another \`name\``);
    }
    names.add(name);
    if (typeof publish !== 'function') {
      throw wrong(`the publisher "${name}" has no function \`publish\` (\`${which}.publish\`)`);
    }
    if (!['server', 'network', 'nothing', undefined].includes(needs as string | undefined)) {
      throw wrong(`\`needs\` of the publisher "${name}" must be "server", "network" or "nothing"`);
    }
  }
}

function checkSchema(given: unknown, what: string): void {
  const schema = given as { '~standard'?: { validate?: unknown } } | undefined;
  if (typeof schema?.['~standard']?.validate !== 'function') {
    throw wrong(`${what} must be a Standard Schema (zod, valibot, arktype …)`);
  }
}

const documentFields = new Set<string>([
  'kind',
  'name',
  'operation',
  'isApplied',
  'apply',
  'guard',
  'missing',
  'classify',
  'classifyRow',
] satisfies (keyof DocumentAction)[]);
const batchFields = new Set<string>([
  'kind',
  'name',
  'operation',
  'run',
  'runsAt',
  'event',
  'classify',
] satisfies (keyof BatchAction)[]);

function checkAction(action: AnyAction): void {
  const given = action as unknown as Partial<Record<string, unknown>> | undefined;
  if (typeof given?.['name'] !== 'string' || given['name'] === '') throw wrong('an action has no `name`');
  const name = given['name'];
  checkSchema(given['operation'], `the \`operation\` of the action "${name}"`);
  const isBatch = given['kind'] === 'batch';
  if (!isBatch && given['kind'] !== 'document') {
    throw wrong(`the action "${name}" has no kind: make it with defineDocumentAction or defineAction`);
  }
  const fields = isBatch ? batchFields : documentFields;
  for (const field of Object.keys(given)) {
    if (fields.has(field)) continue;
    throw wrong(`the action "${name}" has the unknown field \`${field}\` (it may have ${[...fields].join(', ')})`);
  }
  if (!['failed', 'applied', 'create', undefined].includes(given['missing'] as string | undefined)) {
    throw wrong(`\`missing\` of the action "${name}" must be "failed", "applied" or "create"`);
  }
  if (given['runsAt'] !== undefined && (given['runsAt'] !== 'server' || !isBatch)) {
    throw wrong(`\`runsAt\` of the action "${name}" can only be "server", and only in an action that has \`run\``);
  }
  const needed = isBatch ? ['run'] : ['isApplied', 'apply'];
  for (const part of needed) {
    if (typeof given[part] !== 'function') throw wrong(`the action "${name}" has no function \`${part}\``);
  }
  for (const part of ['classify', 'classifyRow', 'guard', 'event']) {
    if (!['function', 'undefined'].includes(typeof given[part])) {
      throw wrong(`\`${part}\` of the action "${name}" must be a function`);
    }
  }
}

function checkReplication(options: ClientOptions): void {
  const { server, replication } = options;
  if (!['managed', 'external', 'off', true, false, undefined].includes(replication)) {
    throw wrong('`replication` must be "managed", "external" or "off"');
  }
  if (server === undefined && (replication === 'managed' || replication === 'external')) {
    throw wrong(`\`replication: '${replication}'\` needs a \`server\``);
  }
  if (options.outOfSight !== undefined && typeof options.outOfSight !== 'function') {
    throw wrong('`outOfSight` must be a function');
  }
  if (options.pull === undefined) return;
  if (replicationMode(options) !== 'managed') throw wrong('`pull` is only for `replication: "managed"`');
  const inPull = wrongInPull(options.pull);
  if (inPull !== undefined) throw wrong(inPull);
}

/** A filter that is a function would be a part of the checkpoint's name: every new build would begin from the start. */
function wrongInPull(pull: unknown): string | undefined {
  const one = '`pull` must be { selector } or { docIds }; a function cannot be a filter';
  if (typeof pull !== 'object' || pull === null || Object.keys(pull).length !== 1) return one;
  const { selector, docIds } = pull as Partial<Record<string, unknown>>;
  if (selector !== undefined) {
    return isJsonObject(selector) ? undefined : '`pull.selector` must be a CouchDB selector: an object of JSON';
  }
  if (docIds === undefined) return one;
  const why = typeof docIds === 'function' ? undefined : wrongInDocIds(docIds);
  return why === undefined ? undefined : `\`pull.docIds\` ${why}`;
}

/** Nothing in it would be lost in JSON text, such as a function or a date. */
function isJsonObject(value: unknown): boolean {
  try {
    return !Array.isArray(value) && typeof value === 'object' && value !== null && isJson(value);
  } catch {
    return false; // it leads back to itself
  }
}

function isJson(value: unknown): boolean {
  if (typeof value !== 'object')
    return ['string', 'boolean', 'undefined'].includes(typeof value) || Number.isFinite(value);
  if (value === null) return true;
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  return isPlain && Object.values(value).every(isJson);
}

const resultsFields = new Set<string>(['url', 'content'] satisfies (keyof ResultsOptions)[]);

function checkResults({ results, redact }: ClientOptions): void {
  if (redact !== undefined && typeof redact !== 'function') throw wrong('`redact` must be a function');
  if (typeof results !== 'object' || (results as unknown) === null) {
    checkAddress('results', results);
    return;
  }
  const unknown = Object.keys(results).find((field) => !resultsFields.has(field));
  if (unknown !== undefined) throw wrong(`\`results\` has the unknown field \`${unknown}\` (it may have url, content)`);
  if (!['boolean', 'undefined'].includes(typeof results.content))
    throw wrong('`results.content` must be true or false');
  const why = wrongInAddress(results.url, 'database');
  if (why !== undefined) throw wrong(`\`results.url\` ${why}`);
}

/** Where results go, and whether content goes with them; undefined: nowhere. */
export function resultsOf({ results }: ClientOptions): Required<ResultsOptions> | undefined {
  if (results === undefined) return undefined;
  return typeof results === 'string' ? { url: results, content: false } : { content: false, ...results };
}

function checkAddress(option: string, url: unknown): void {
  const why = url === undefined ? undefined : wrongInAddress(url, 'database');
  if (why !== undefined) throw wrong(`\`${option}\` ${why}`);
}

function wrong(what: string): AfieldError {
  return new AfieldError('invalid_option', `createClient: ${what}.`);
}
