import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { AnyAction } from '../model/handler.js';
import type { EnqueueRequest, OperationInput, PlanRequest } from '../model/client.js';
import { InvalidRequestError, type RequestIssue } from '../model/errors.js';
import type { StoredOperation } from './stored.js';

const mostOperations = 1_000_000;
const longestKey = 256;
const fields = new Set(['target', 'actions', 'key', 'lane']);
/** Operations that are checked before the page gets a turn. */
const perTurn = 500;

/** A request that may be queued: its operations as they are stored. */
export interface CheckedRequest {
  readonly parts: readonly { readonly action: string; readonly count: number }[];
  readonly operations: readonly StoredOperation[];
}

/**
 * Checks a whole request before anything of it is stored (S9). Issues name the operation's place over all parts.
 * The id is not checked here: an operation with a bad id is queued and fails by itself.
 */
export async function checkRequest(
  request: EnqueueRequest,
  actions: ReadonlyMap<string, AnyAction>,
  hasServer: boolean,
  breathe: () => Promise<void>,
): Promise<CheckedRequest> {
  const issues = new Issues();
  checkCommon(request, fields, hasServer, issues);
  return checkActions(request.actions, actions, hasServer, breathe, issues);
}

/** Checks the operations of a request, or of a plan: only that one may have none. */
export async function checkActions(
  list: unknown,
  actions: ReadonlyMap<string, AnyAction>,
  hasServer: boolean,
  breathe: () => Promise<void>,
  issues = new Issues(),
  mayBeEmpty = false,
): Promise<CheckedRequest> {
  const given = partsOf(list, actions, issues, mayBeEmpty);
  for (const [place, { action }] of given.entries()) {
    if (hasServer || action.kind !== 'batch' || action.runsAt !== 'server') continue;
    issues.request(`actions.${String(place)}.action`, 'runs at the server, but the client has no `server`');
  }
  issues.throwIfAny();
  const parts: { action: string; count: number }[] = [];
  const operations: StoredOperation[] = [];
  for (const { action, list } of given) {
    const before = operations.length;
    for (const operation of list) {
      operations.push(await checkOperation(operation, action, operations.length, issues));
      if (operations.length % perTurn === 0) await breathe();
    }
    // What was stored is counted, not what the list holds by now.
    if (operations.length > before) parts.push({ action: action.name, count: operations.length - before });
  }
  issues.throwIfAny();
  return { parts, operations };
}

/** What every request has, whatever it is that it wants to be done. */
export function checkCommon(
  request: EnqueueRequest | PlanRequest,
  known: ReadonlySet<string>,
  hasServer: boolean,
  issues: Issues,
): void {
  if (typeof request !== 'object' || (request as unknown) === null) {
    issues.request('', 'the request must be an object { target, actions }');
    issues.throwIfAny();
  }
  for (const field of Object.keys(request)) {
    if (!known.has(field)) issues.request(field, `is not a field of a request (${[...known].join(', ')})`);
  }
  if (request.target !== 'local' && request.target !== 'server')
    issues.request('target', 'must be "local" or "server"');
  if (request.target === 'server' && !hasServer)
    issues.request('target', 'is "server", but the client has no `server`');
  checkKey(request.key, (message) => {
    issues.request('key', message);
  });
  if (request.lane !== undefined && (typeof request.lane !== 'string' || request.lane === '')) {
    issues.request('lane', 'must be a text that is not empty');
  }
}

function partsOf(
  given: unknown,
  actions: ReadonlyMap<string, AnyAction>,
  issues: Issues,
  mayBeEmpty: boolean,
): { action: AnyAction; list: readonly OperationInput[] }[] {
  if (!Array.isArray(given)) {
    issues.request('actions', 'must be a list of { action, operations }');
    return [];
  }
  const parts: { action: AnyAction; list: readonly OperationInput[] }[] = [];
  let total = 0;
  let isSound = true;
  for (const [place, part] of (given as unknown[]).entries()) {
    const { action: name, operations: list } = (part ?? {}) as { action?: unknown; operations?: unknown };
    const action = typeof name === 'string' ? actions.get(name) : undefined;
    if (action === undefined) {
      const known = [...actions.keys()].join(', ');
      const message = `names the action "${String(name)}", which is not defined (createClient knows: ${known})`;
      issues.request(`actions.${String(place)}.action`, message);
    }
    if (!Array.isArray(list)) issues.request(`actions.${String(place)}.operations`, 'must be a list');
    if (action === undefined || !Array.isArray(list)) {
      isSound = false;
      continue;
    }
    total += list.length;
    parts.push({ action, list: list as readonly OperationInput[] });
  }
  if (isSound && total === 0 && !mayBeEmpty) issues.request('actions', 'has no operations');
  if (total > mostOperations) {
    issues.request('actions', `has ${String(total)} operations, more than ${String(mostOperations)}`);
  }
  return parts;
}

async function checkOperation(
  input: OperationInput,
  action: AnyAction,
  index: number,
  issues: Issues,
): Promise<StoredOperation> {
  if (typeof input !== 'object' || (input as unknown) === null || Array.isArray(input)) {
    issues.operation(index, '', 'must be an object');
    return { c: null };
  }
  const { id, key, ...content } = input;
  checkKey(key, (message) => {
    issues.operation(index, 'key', message);
  });
  const result = await validated(action.operation, content);
  if (result.issues !== undefined) {
    for (const issue of result.issues) issues.operation(index, pathOf(issue.path), `${saidBy(issue)} (${action.name})`);
    return { c: null };
  }
  const wrong = firstNotJson({ id, fields: result.value });
  if (wrong !== undefined) issues.operation(index, wrong.replace(/^fields\.?/, ''), 'cannot be stored as JSON');
  return { ...(id === undefined ? {} : { i: id }), ...(key === undefined ? {} : { k: key }), c: result.value };
}

export async function validated(
  schema: StandardSchemaV1<unknown, unknown>,
  value: unknown,
): Promise<StandardSchemaV1.Result<unknown>> {
  try {
    return await schema['~standard'].validate(value);
  } catch (error) {
    return { issues: [{ message: `its schema threw ${error instanceof Error ? error.name : 'something'}` }] };
  }
}

/**
 * Schemas without texts (zod/mini) say no more than "Invalid input": what they know beside it is said instead, if anything.
 * A message with words of its own says it already.
 */
export function saidBy(issue: StandardSchemaV1.Issue): string {
  if (issue.message !== 'Invalid input') return issue.message;
  const { code, expected, keys } = issue as { code?: unknown; expected?: unknown; keys?: unknown };
  const named = Array.isArray(keys) ? [keys.join(', ')] : [];
  const known = [
    typeof code === 'string' && code !== 'custom' ? [code.replace(/_/g, ' '), ...named].join(' ') : undefined,
    typeof expected === 'string' ? `expected ${expected}` : undefined,
  ].filter((one) => one !== undefined);
  return known.length === 0 ? issue.message : `${issue.message}: ${known.join(', ')}`;
}

function checkKey(key: unknown, report: (message: string) => void): void {
  if (key === undefined) return;
  if (typeof key !== 'string' || key === '') report('must be a text that is not empty');
  else if (key.length > longestKey) report(`has ${String(key.length)} characters, more than ${String(longestKey)}`);
  // A store would take two such keys for one.
  else if (/[\ud800-\udfff]/u.test(key)) report('has half of a character (a lone surrogate)');
}

export function pathOf(path: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined): string {
  return (path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
}

/** The path of the first value that JSON would change or lose; undefined when all is well. */
export function firstNotJson(root: unknown): string | undefined {
  const open: { value: unknown; path: Path }[] = [{ value: root, path: undefined }];
  // A value that contains itself would never end: JSON finds that out, and nesting that it cannot follow.
  if (!isSerializable(root)) return 'fields';
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, path } = next;
    if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') continue;
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) return named(path);
      continue;
    }
    if (typeof value !== 'object' || !isPlain(value)) return named(path);
    for (const [name, inner] of Object.entries(value)) open.push({ value: inner, path: { name, above: path } });
  }
  return undefined;
}

type Path = { readonly name: string; readonly above: Path } | undefined;

/** The first steps of a path are enough to find the place. */
function named(path: Path): string {
  const steps: string[] = [];
  for (let step = path; step !== undefined; step = step.above) steps.unshift(step.name);
  return steps.length > 10 ? `${steps.slice(0, 10).join('.')}.…` : steps.join('.');
}

function isSerializable(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false; // circular, too deep, or a BigInt
  }
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.prototype.toString.call(value) === '[object Object]';
}

/** Collects what is wrong: the first 20 are kept, all are counted. */
export class Issues {
  readonly #kept: RequestIssue[] = [];
  #count = 0;

  request(field: string, message: string): void {
    this.operation(-1, field, message);
  }

  operation(index: number, field: string, message: string): void {
    this.#count++;
    if (this.#kept.length < 20) this.#kept.push({ index, field, message });
  }

  throwIfAny(): void {
    if (this.#count > 0) throw this.error();
  }

  error(): InvalidRequestError {
    return new InvalidRequestError(this.#kept, this.#count);
  }
}
