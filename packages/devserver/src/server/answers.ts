/** Who sent a request, as far as the server knows. */
export interface Caller {
  /** `null` when nobody is signed in. */
  readonly name: string | null;
  readonly roles: readonly string[];
}

/** What an answer is judged by. */
export interface AnswerContext {
  /** Decoded segments of the path. */
  readonly segments: readonly string[];
  readonly caller: Caller;
}

/** An answer with a JSON body. */
export interface JsonAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** What the security plugin says whoever was refused and for whatever reason. */
const refusedByPlugin = 'You are not authorized to access this db.';
const notDatabaseAdmin = 'You are not a db or server admin.';

/**
 * Turns an answer of express-pouchdb into the one that CouchDB 3 gives: 403 instead of 401 when somebody is signed in
 * and lacks a right, and the reason that names the right. What a validation function said is never changed.
 */
export function likeCouchDB(answer: JsonAnswer, context: AnswerContext): JsonAnswer {
  if (context.caller.name === null) return answer;
  if (answer.status === 401 && isRefusal(answer.body)) {
    return { status: 403, body: { error: 'forbidden', reason: notDatabaseAdmin } };
  }
  if (Array.isArray(answer.body) && context.segments[1] === '_bulk_docs') {
    return { status: answer.status, body: answer.body.map(refusedRow) };
  }
  return answer;
}

function refusedRow(row: unknown): unknown {
  if (!isRecord(row) || row['error'] !== 'unauthorized' || !isRefusal(row)) return row;
  return { ...row, error: 'forbidden', reason: notDatabaseAdmin };
}

function isRefusal(body: unknown): boolean {
  const reason = isRecord(body) ? body['reason'] : undefined;
  return typeof reason === 'string' && (reason === refusedByPlugin || reason.startsWith('Only admins can access '));
}

/** Whether a value is an object with fields, not a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
