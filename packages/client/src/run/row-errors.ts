import { RetryableError, SignInRequiredError } from '../model/errors.js';
import { classifyError, classOfRow } from '../retry/classify.js';
import type { RowMeaning } from '../retry/table.js';

/** The error for a row that makes the batch run again. */
export function rowError(meaning: Exclude<RowMeaning, { kind: 'failed' }>): Error {
  if (meaning.kind === 'auth') return new SignInRequiredError('unauthorized');
  return new RetryableError('Some documents could not be written now.', {
    class: classOfRow(meaning),
    code: meaning.code,
  });
}

/**
 * The one error that decides for a batch: a bug of the action, else signing in, else what ended the write, else the row
 * that asks for the longest floor. Undefined when there is none.
 */
export function gravest(rows: readonly Error[], ended: unknown): unknown {
  const ofKind = (kind: string): Error | undefined => rows.find((error) => classifyError(error).kind === kind);
  const [first, ...others] = rows;
  return (
    ofKind('bug') ??
    ofKind('auth') ??
    ended ??
    others.reduce((longest, error) => (floorOf(error) > floorOf(longest) ? error : longest), first)
  );
}

function floorOf(error: Error | undefined): number {
  return error instanceof RetryableError ? error.notBeforeMs : 0;
}
