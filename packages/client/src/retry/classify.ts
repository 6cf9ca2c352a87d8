import {
  DivisibleError,
  RetryableError,
  type ErrorClass,
  type ErrorSummary,
  SignInRequiredError,
} from '../model/errors.js';

/**
 * What a row of a bulk write means (R4, R7, R10, R12).
 * - `conflict`: surely not written, the batch runs again on the refreshed revision;
 * - `passing`: the server's own trouble, no one knows whether it was written;
 * - `auth`: we are not signed in any more, surely not written;
 * - `failed`: refused for good.
 */
export type RowVerdict =
  | { readonly kind: 'conflict' | 'passing' | 'auth'; readonly code: string }
  | { readonly kind: 'failed'; readonly code: string };

/** Words of rows for the server's own trouble (R7). */
const passingRows = new Set(['internal_server_error', 'timeout', 'service_unavailable', 'unknown_error']);
/** Words of rows that have a failure code of their own. */
const rowCodes = new Map([
  ['forbidden', 'forbidden'],
  ['too_large', 'too_large'],
  ['document_too_large', 'too_large'],
  ['attachment_too_large', 'too_large'],
  ['missing_stub', 'missing_stub'],
  ['doc_validation', 'invalid_doc'],
  ['illegal_docid', 'invalid_id'],
  ['invalid_doc', 'invalid_doc'],
]);

/** Judges a refused row by its word alone, never by a status: PouchDB invents statuses for rows. */
export function classifyRow(error: string): RowVerdict {
  if (error === 'conflict') return { kind: 'conflict', code: 'conflict' };
  if (error === 'unauthorized') return { kind: 'auth', code: 'unauthorized' };
  if (passingRows.has(error)) return { kind: 'passing', code: error };
  return { kind: 'failed', code: rowCodes.get(error) ?? 'unexpected' };
}

/** What an error that ended an attempt means for the whole batch (R5). */
export type ErrorVerdict =
  | { readonly kind: 'passing'; readonly summary: ErrorSummary; readonly notBeforeMs: number }
  | { readonly kind: 'auth'; readonly summary: ErrorSummary }
  | { readonly kind: 'bug'; readonly summary: ErrorSummary };

/** Judges by type and code, never by the words of a message. What no wrapper of ours marked is a bug (R5). */
export function classifyError(error: unknown): ErrorVerdict {
  if (error instanceof SignInRequiredError) return { kind: 'auth', summary: { class: 'auth', code: error.code } };
  if (error instanceof RetryableError) {
    return { kind: 'passing', summary: { class: error.class, code: error.code }, notBeforeMs: error.notBeforeMs };
  }
  if (error instanceof DivisibleError) {
    return { kind: 'passing', summary: { class: 'server', code: error.code }, notBeforeMs: 0 };
  }
  return { kind: 'bug', summary: { class: 'bug', code: nameOf(error) } };
}

/** The class of a row that makes the batch run again. */
export function classOfRow(verdict: RowVerdict): ErrorClass {
  if (verdict.kind === 'conflict') return 'conflict';
  return verdict.kind === 'auth' ? 'auth' : 'server';
}

/** PouchDB's names for a document that it will never take: found by halving, as a refused row. */
const refusedByPouch = new Set(['doc_validation', 'bad_request', 'illegal_docid']);

/**
 * Marks what a local PouchDB threw. Everything that the local store throws may pass (R7), but for a document that
 * PouchDB refuses. The code is the name of the DOMException where there is one, also inside `indexed_db_went_bad`.
 */
export function localStoreError(error: unknown): Error {
  if (error instanceof RetryableError || error instanceof DivisibleError) return error;
  const name = nameOf(error);
  if (name === 'missing_stub') return new DivisibleError('missing_stub', 412);
  if (refusedByPouch.has(name)) return new DivisibleError('unexpected', 400);
  return new RetryableError('The local store did not answer as it should. It is tried again.', {
    class: 'storage',
    code: name === 'indexed_db_went_bad' ? (textOf(error, 'reason') ?? name) : name,
    cause: error,
  });
}

function nameOf(error: unknown): string {
  return textOf(error, 'name') ?? 'Error';
}

function textOf(error: unknown, field: string): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const value = (error as Record<string, unknown>)[field];
  return typeof value === 'string' && /^[\w-]{1,64}$/.test(value) ? value : undefined;
}
