import { z } from 'zod/mini';
import { failureCode, type Failure } from '../model/failure.js';
import type { BatchAction, DocumentAction, HandlerResult, OperationEvent, OperationOf } from '../model/handler.js';
import type { Doc } from '../model/json.js';

/*
 * What the functions of an action answer, checked: one that forgets to return, or is async where it must not be, would
 * otherwise wipe documents, or be taken for a success. A wrong answer is a bug of the action (R5).
 */

const failure = z.strictObject({ code: z.string().check(z.regex(failureCode)), reason: z.string() });
const index = z.int().check(z.nonnegative());
const handlerResult = z.strictObject({
  failed: z.optional(z.array(z.extend(failure, { index }))),
  alreadyApplied: z.optional(z.array(index)),
  again: z.optional(
    z.strictObject({
      indexes: z.array(index).check(z.minLength(1)),
      error: z.custom<Error>((value) => value instanceof Error),
    }),
  ),
});

const resultShape =
  '{ failed: [{ index, code, reason }], alreadyApplied: [index], again: { indexes: [index], error: an Error } }';

const operationEvent = z.strictObject({
  kind: z.enum(['new', 'updated', 'deleted']),
  id: z.optional(z.string().check(z.minLength(1))),
  type: z.optional(z.string()),
});

/** The event of an operation, as a batch action says it; undefined: it has none. */
export function eventOf(action: BatchAction, operation: OperationOf<unknown>): OperationEvent | undefined {
  const answer: unknown = action.event?.(operation);
  if (answer === undefined || answer === null) return undefined;
  const parsed = operationEvent.safeParse(answer);
  if (!parsed.success) throw wrongAnswer(action.name, 'event', 'undefined, or { kind, id, type }', answer);
  const { kind, id, type } = parsed.data;
  return { kind, ...(id === undefined ? {} : { id }), ...(type === undefined || type === '' ? {} : { type }) };
}

export function isApplied(action: DocumentAction, doc: Doc, content: unknown): boolean {
  const answer: unknown = action.isApplied(doc, content);
  if (typeof answer !== 'boolean') throw wrongAnswer(action.name, 'isApplied', 'true or false', answer);
  return answer;
}

export function guardOf(action: DocumentAction, doc: Doc, content: unknown): Failure | undefined {
  const answer: unknown = action.guard?.(doc, content);
  if (answer === undefined || answer === null) return undefined;
  const parsed = failure.safeParse(answer);
  if (!parsed.success)
    throw wrongAnswer(action.name, 'guard', 'undefined, or a failure { code, reason } of two texts', answer);
  return parsed.data;
}

export function appliedTo(action: DocumentAction, doc: Doc, content: unknown): Doc {
  const answer: unknown = action.apply(doc, content);
  const isPlain = Object.prototype.toString.call(answer) === '[object Object]' && !('then' in Object(answer));
  if (!isPlain)
    throw wrongAnswer(action.name, 'apply', 'the changed document (it must return it, and not be async)', answer);
  return answer as Doc;
}

/** Each index must be one of the batch, and named once. */
export function resultOf(name: string, answer: unknown, indexes: ReadonlySet<number>): HandlerResult {
  const parsed = handlerResult.safeParse(answer);
  if (!parsed.success) throw wrongAnswer(name, 'run', resultShape);
  const { failed = [], alreadyApplied = [], again } = parsed.data;
  const named = [...failed.map((one) => one.index), ...alreadyApplied, ...(again?.indexes ?? [])];
  if (new Set(named).size !== named.length || named.some((one) => !indexes.has(one))) {
    throw wrongAnswer(name, 'run', 'indexes of its batch, each once');
  }
  return { failed, alreadyApplied, ...(again === undefined ? {} : { again }) };
}

/** A function of an action answered in another shape: its bug, whatever its own `classify` says. */
export class WrongAnswerError extends TypeError {}

/** A promise that came as the answer is heard out: when it fails later, that is no second error of the page. */
export function wrongAnswer(action: string, part: string, what: string, answer?: unknown): WrongAnswerError {
  if (answer instanceof Promise) answer.catch(() => undefined);
  return new WrongAnswerError(`${part} of the action "${action}" must answer with ${what}.`);
}
