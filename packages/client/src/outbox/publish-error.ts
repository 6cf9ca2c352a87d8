import type { PublishAnswer } from '../model/event.js';
import { classifyError } from '../retry/classify.js';

/** Why events were not taken. */
export type PublishError = NonNullable<PublishAnswer['error']>;

/** An error that ended a call, as a publisher answers it beside what was taken before. */
export function publishErrorOf(error: unknown): PublishError {
  const verdict = classifyError(error);
  return { ...verdict.summary, ...('notBeforeMs' in verdict ? { notBeforeMs: verdict.notBeforeMs } : {}) };
}

/** The one error of an answer: signing in, if that is it, else the first one; with the longest floor of all (R13). */
export function shown(errors: readonly PublishError[]): Pick<PublishAnswer, 'error'> {
  const error = errors.find((one) => one.class === 'auth') ?? errors[0];
  if (error === undefined) return {};
  const floor = Math.max(...errors.map(({ notBeforeMs = 0 }) => notBeforeMs));
  return { error: { ...error, ...(floor > 0 ? { notBeforeMs: floor } : {}) } };
}
