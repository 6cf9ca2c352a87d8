import type { AnyAction } from '../model/handler.js';
import type { EnqueueRequest, OperationInput } from '../model/client.js';
import { InvalidRequestError, type RequestIssue } from '../model/errors.js';
import type { StoredOperation } from './stored.js';

const mostOperations = 1_000_000;
const longestKey = 256;
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
  const parts: { action: string; count: number }[] = [];
  const operations: StoredOperation[] = [];
  if (!Array.isArray(request.actions)) issues.request('actions', 'must be a list');
  else {
    const total = request.actions.reduce(
      (sum, part) => sum + (Array.isArray(part.operations) ? part.operations.length : 0),
      0,
    );
    if (total === 0) issues.request('actions', 'has no operations');
    if (total > mostOperations) {
      issues.request('actions', `has ${String(total)} operations, more than ${String(mostOperations)}`);
      issues.throwIfAny();
    }
    for (const part of request.actions) {
      const action = actions.get(part.action);
      if (action === undefined)
        issues.request('actions', `names the action "${String(part.action)}", which is not defined`);
      if (!Array.isArray(part.operations))
        issues.request('actions', `has no list of operations for "${String(part.action)}"`);
      if (action === undefined || !Array.isArray(part.operations)) continue;
      for (const operation of part.operations) {
        operations.push(await checkOperation(operation, action, operations.length, issues));
        if (operations.length % perTurn === 0) await breathe();
      }
      if (part.operations.length > 0) parts.push({ action: part.action, count: part.operations.length });
    }
  }
  issues.throwIfAny();
  return { parts, operations };
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
  const { id, key, ...fields } = input;
  checkKey(key, (message) => {
    issues.operation(index, 'key', message);
  });
  const checking = action.operation['~standard'].validate(fields);
  const result = checking instanceof Promise ? await checking : checking;
  if (result.issues !== undefined) {
    for (const issue of result.issues) issues.operation(index, pathOf(issue.path), issue.message);
    return { c: null };
  }
  const wrong = firstNotJson({ id, fields: result.value });
  if (wrong !== undefined) issues.operation(index, wrong.replace(/^fields\.?/, ''), 'cannot be stored as JSON');
  return { ...(id === undefined ? {} : { i: id }), ...(key === undefined ? {} : { k: key }), c: result.value };
}

function checkKey(key: unknown, report: (message: string) => void): void {
  if (key === undefined) return;
  if (typeof key !== 'string' || key === '') report('must be a text that is not empty');
  else if (key.length > longestKey) report(`has ${String(key.length)} characters, more than ${String(longestKey)}`);
}

function pathOf(path: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined): string {
  return (path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
}

/** The path of the first value that JSON would change or lose; undefined when all is well. */
function firstNotJson(root: unknown): string | undefined {
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
class Issues {
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
    if (this.#count > 0) throw new InvalidRequestError(this.#kept, this.#count);
  }
}
