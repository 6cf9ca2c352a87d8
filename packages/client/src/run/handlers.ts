import { idFailure } from '../actions/subject.js';
import { DivisibleError, RetryableError } from '../model/errors.js';
import type { Failure } from '../model/failure.js';
import type { BatchAction, HandlerContext, OperationOf } from '../model/handler.js';
import { isOutcome, type RowState } from '../queue/stored.js';
import { classifyError } from '../retry/classify.js';
import { eventOf, resultOf } from './answers.js';
import type { Batch } from './batch.js';
import type { AttemptResult } from './documents.js';
import { thrownBy } from './own-lines.js';
import { LeaseLostError } from './transitions.js';

/**
 * One attempt at a batch of an action that handles it as a whole. What its handler does not name is applied. When the
 * server refuses a request of the handler for something in it, the batch is halved down to the one operation (R11). What
 * it names as not done runs again; the others keep their outcome (R9).
 */
export async function runHandler(
  batch: Batch,
  before: readonly RowState[],
  action: BatchAction,
  context: HandlerContext,
): Promise<AttemptResult> {
  const rows = [...before];
  const failures: { index: number; failure: Failure; mayHaveBeenApplied: boolean }[] = [];
  const todo: OperationOf<unknown>[] = [];
  const fail = (index: number, failure: Failure): void => {
    rows[index - batch.from] = { s: 'failed' };
    failures.push({ index, failure, mayHaveBeenApplied: false });
  };
  batch.operations.forEach(({ index, id, key, content }, place) => {
    if (isOutcome(rows[place])) return;
    const failure = idFailure(id);
    if (failure !== undefined) fail(index, failure);
    else todo.push({ id: id as string, key, index, content });
  });
  let eventRows: ReadonlyMap<number, Pick<RowState, 't' | 'a' | 'e'>>;
  try {
    eventRows = eventsOf(action, todo, () => context.now());
  } catch (error) {
    return { rows, failures, error: thrownBy(action, error) };
  }
  let passing: unknown;
  const run = async (part: readonly OperationOf<unknown>[]): Promise<void> => {
    if (part.length === 0) return;
    let answer: unknown;
    try {
      answer = await untilAborted(action.run(part, context), context.signal);
    } catch (error) {
      if (!(error instanceof DivisibleError)) throw error;
      return divide(part, part, error);
    }
    const result = resultOf(action.name, answer, new Set(part.map(({ index }) => index)));
    const already = new Set(result.alreadyApplied);
    const again = new Set(result.again?.indexes);
    for (const { index } of part) {
      if (again.has(index)) continue;
      rows[index - batch.from] = { s: already.has(index) ? 'already-applied' : 'applied', ...eventRows.get(index) };
    }
    for (const { index, code, reason } of result.failed ?? []) {
      fail(index, { code, reason });
    }
    if (result.again === undefined) return;
    const { error } = result.again;
    if (error instanceof DivisibleError) {
      const rest = part.filter(({ index }) => again.has(index));
      return divide(rest, part, error);
    }
    if (endsAttempt(action, error)) throw error;
    passing ??= error;
  };
  /** Runs `rest` in halves; `asked` is what was refused together. */
  const divide = async (
    rest: readonly OperationOf<unknown>[],
    asked: readonly OperationOf<unknown>[],
    error: DivisibleError,
  ): Promise<void> => {
    const [only] = rest;
    if (only !== undefined && asked.length === 1) {
      fail(only.index, { code: error.code, reason: error.message });
      return;
    }
    const middle = Math.ceil(rest.length / 2);
    await run(rest.slice(0, middle));
    await run(rest.slice(middle));
  };
  try {
    await run(todo);
    return { rows, failures, ...(passing === undefined ? {} : { error: thrownBy(action, passing) }) };
  } catch (error) {
    return { rows, failures, error: thrownBy(action, error) };
  }
}

/** What the events of these operations are made of. */
function eventsOf(
  action: BatchAction,
  operations: readonly OperationOf<unknown>[],
  now: () => number,
): ReadonlyMap<number, Pick<RowState, 't' | 'a' | 'e'>> {
  const found = new Map<number, Pick<RowState, 't' | 'a' | 'e'>>();
  if (action.event === undefined) return found;
  const at = now();
  for (const operation of operations) {
    const event = eventOf(action, operation);
    if (event === undefined) continue;
    const { kind, id = operation.id, type } = event;
    found.set(operation.index, { ...(type === undefined ? {} : { t: type }), a: at, e: [kind, id] });
  }
  return found;
}

/** Whether the other halves of a batch have to wait too: for a sign-in, a floor, another tab, or because of a bug. */
function endsAttempt(action: BatchAction, error: unknown): boolean {
  const verdict = classifyError(thrownBy(action, error));
  return verdict.kind !== 'passing' || verdict.notBeforeMs > 0 || error instanceof LeaseLostError;
}

/** A handler or a plan that never ends must not keep a client from closing. */
export function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      reject(new RetryableError('The client was closed.', { code: 'closed' }));
    };
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => {
        signal.removeEventListener('abort', stop);
      });
  });
}
