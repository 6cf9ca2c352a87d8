import { actsByItself, answerError, classifyAnswer } from '../retry/classify.js';
import { notBefore } from './retry-after.js';

/** An answer of a server, read to its end. */
export interface Answer {
  readonly status: number;
  header(name: string): string | null;
  readonly text: string;
}

/**
 * The JSON of an answer that did what was asked, else the error that the table has for it (`retry/table.ts`). `shape`
 * gives the value in the shape that was asked for, or undefined. `rows`: it was a bulk write, whose rows count under any
 * status that does not act by itself.
 */
export function judge<Value>(
  answer: Answer,
  shape: (json: unknown) => Value | undefined,
  nowWall: number,
  rows = false,
): Value {
  const { status } = answer;
  const notBeforeMs = notBefore(answer.header('retry-after'), answer.header('date'), nowWall);
  const json = parse(answer.text);
  const isSuccess = status >= 200 && status < 300;
  const mayAnswer = isSuccess || (rows && status >= 400 && !actsByItself(status, notBeforeMs > 0));
  const value = mayAnswer && json !== undefined ? shape(json) : undefined;
  if (value !== undefined) return value;
  const error = couchError(json);
  const body = error === undefined ? 'other' : 'couchdb-error';
  throw answerError(classifyAnswer({ status, body, error, retryAfter: notBeforeMs > 0 }), status, notBeforeMs);
}

/** CouchDB's word where this body is its error: JSON with `error` and `reason`, both text. */
export function couchErrorOf(text: string): string | undefined {
  return couchError(parse(text));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // not JSON: judged as an answer of something else than CouchDB
  }
}

function couchError(json: unknown): string | undefined {
  if (typeof json !== 'object' || json === null) return undefined;
  const { error, reason } = json as { error?: unknown; reason?: unknown };
  return typeof error === 'string' && typeof reason === 'string' ? error : undefined;
}
