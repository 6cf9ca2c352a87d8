import { z } from 'zod/mini';
import { AfieldError, RetryableError } from '../model/errors.js';
import { failureCode, type Failure } from '../model/failure.js';
import type { AnyAction, DocumentAction, RefusedRow } from '../model/handler.js';
import { nameOf } from '../retry/classify.js';
import { clampFloor } from '../retry/ramp.js';
import { WrongAnswerError, wrongAnswer } from './answers.js';

/*
 * An action's own lines of the table (`classify`, `classifyRow`). They are asked only where the table says `bug` or
 * `failed`: what is our own (signing in, the lease, the store, the network) keeps its meaning. The ramp applies, so a
 * hook can never make a loop without delay. A hook that throws or answers in another shape is the action's bug (R5).
 */

const code = z.string().check(z.regex(failureCode));
const passing = z.strictObject({
  kind: z.literal('passing'),
  class: z.optional(z.enum(['network', 'server', 'storage', 'conflict', 'throttled'])),
  code: z.optional(code),
  notBeforeMs: z.optional(z.number()),
});
const failed = z.strictObject({ kind: z.literal('failed'), code, reason: z.optional(z.string()) });
const rowAnswer = z.discriminatedUnion('kind', [passing, failed]);

const passingShape = '{ kind: "passing", class, code, notBeforeMs }';

/** What a function of the action threw, as the action's own `classify` sees it. */
export function thrownBy(action: AnyAction, error: unknown): unknown {
  if (action.classify === undefined || error instanceof AfieldError || error instanceof WrongAnswerError) return error;
  try {
    const answer: unknown = action.classify(error);
    if (answer === undefined || answer === null) return error;
    const parsed = passing.safeParse(answer);
    if (!parsed.success) return wrongAnswer(action.name, 'classify', `undefined, or ${passingShape}`, answer);
    return passingError(parsed.data, nameOf(error), error);
  } catch (thrown) {
    return ownBug(action.name, 'classify', thrown);
  }
}

/** Calls a function of the action. */
export function called<Value>(action: AnyAction, call: () => Value): Value {
  try {
    return call();
  } catch (error) {
    throw thrownBy(action, error);
  }
}

/**
 * What the action says of a row that the table calls refused for good: another failure, an error that makes the batch
 * run again, or undefined. Throws when the hook is wrong.
 */
export function refusedRow(action: DocumentAction, row: RefusedRow): Failure | RetryableError | undefined {
  if (action.classifyRow === undefined) return undefined;
  let answer: unknown;
  try {
    answer = action.classifyRow(row);
  } catch (thrown) {
    throw ownBug(action.name, 'classifyRow', thrown);
  }
  if (answer === undefined || answer === null) return undefined;
  const parsed = rowAnswer.safeParse(answer);
  if (!parsed.success) {
    throw wrongAnswer(
      action.name,
      'classifyRow',
      `undefined, { kind: "failed", code, reason }, or ${passingShape}`,
      answer,
    );
  }
  if (parsed.data.kind === 'passing') return passingError(parsed.data, 'refused', undefined);
  return { code: parsed.data.code, reason: parsed.data.reason ?? row.reason };
}

function passingError(answer: z.infer<typeof passing>, fallback: string, cause: unknown): RetryableError {
  return new RetryableError('The action says that this may pass. It is tried again.', {
    class: answer.class ?? 'server',
    code: answer.code ?? fallback,
    notBeforeMs: clampFloor(answer.notBeforeMs ?? 0),
    cause,
  });
}

/** A hook that throws one of our errors does not get what that error means. */
function ownBug(action: string, part: string, thrown: unknown): unknown {
  return thrown instanceof AfieldError ? wrongAnswer(action, part, 'a value, and not throw') : thrown;
}
