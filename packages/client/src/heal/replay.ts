import { documentFailure } from '../actions/document.js';
import { RetryableError } from '../model/errors.js';
import type { Failure } from '../model/failure.js';
import type { DocumentAction } from '../model/handler.js';
import type { Doc } from '../model/json.js';
import { sameJson } from '../model/same-json.js';
import { appliedTo, guardOf, isApplied } from '../run/answers.js';
import { called } from '../run/own-lines.js';

/** An operation of ours on one document. */
export interface ReplayedOperation {
  readonly action: DocumentAction;
  readonly content: unknown;
  /** Whether the winner lacks it. The others are later ones that it has. */
  readonly isBuried: boolean;
}

/** What became of a buried operation: it is in what is to be written, was there, or failed for good. */
export type Replayed =
  | { readonly kind: 'written' }
  | { readonly kind: 'there' }
  | { readonly kind: 'failed'; readonly failure: Failure; readonly conflict?: Doc };

export interface Replay {
  /** What is to be written on the winner; undefined: nothing. */
  readonly doc: Doc | undefined;
  /** Of the buried operations, by their places. */
  readonly outcomes: ReadonlyMap<number, Replayed>;
}

/**
 * Runs operations on the version of a document that has won, in the order of the queue, from the first buried one on
 * (S2, R17). A later one that the winner has already is applied once more where an earlier one has undone it: otherwise
 * healing would turn their order round. Throws `RetryableError` where an action says that its error may pass.
 */
export function replay(winner: Doc, operations: readonly ReplayedOperation[]): Replay {
  let present: Doc = winner;
  const outcomes = new Map<number, Replayed>();
  operations.forEach((operation, place) => {
    if (operation.isBuried) {
      const { next, outcome } = run(present, operation);
      present = next;
      outcomes.set(place, outcome);
    } else if (outcomes.size > 0 && isDone(winner, operation) && !isDone(present, operation)) {
      // On what is deleted now there is nothing to change: it would become a document of this one change.
      if (present._deleted !== true || operation.action.missing === 'create') present = change(present, operation);
    }
  });
  const isChanged = !sameJson(present, winner);
  if (isChanged) return { doc: present, outcomes };
  const there: Replayed = { kind: 'there' };
  return {
    doc: undefined,
    outcomes: new Map([...outcomes].map(([place, one]) => [place, one.kind === 'written' ? there : one])),
  };
}

function run(present: Doc, operation: ReplayedOperation): { next: Doc; outcome: Replayed } {
  const isLive = present._deleted !== true;
  const failed = (failure: Failure): { next: Doc; outcome: Replayed } => {
    const conflict = failure.code === 'conflicting_content' && isLive ? { conflict: present } : {};
    return { next: present, outcome: { kind: 'failed', failure, ...conflict } };
  };
  try {
    if (isDone(present, operation)) return { next: present, outcome: { kind: 'written' } };
    const { action, content } = operation;
    if (!isLive && action.missing !== 'create') {
      return failed({ code: 'missing', reason: 'The document is not there.' });
    }
    const guarded = isLive ? called(action, () => guardOf(action, present, content)) : undefined;
    if (guarded !== undefined) return failed(guarded);
    const next = change(present, operation);
    const wrong = documentFailure(next);
    return wrong === undefined ? { next, outcome: { kind: 'written' } } : failed(wrong);
  } catch (error) {
    if (error instanceof RetryableError) throw error;
    // Its bulk operation is over: a bug that shows only now cannot stop it. A person can retry the operation.
    const name = error instanceof Error ? error.name : 'error';
    return failed({
      code: 'unexpected',
      reason: `The action "${operation.action.name}" threw a ${name} when the operation was run on the version that has won.`,
    });
  }
}

function isDone(doc: Doc, { action, content }: ReplayedOperation): boolean {
  if (doc._deleted === true) return action.missing === 'applied';
  return called(action, () => isApplied(action, doc, content));
}

function change(doc: Doc, { action, content }: ReplayedOperation): Doc {
  const names = { _id: doc._id, ...(doc._rev === undefined ? {} : { _rev: doc._rev }) };
  return { ...called(action, () => appliedTo(action, doc._deleted === true ? names : doc, content)), ...names };
}
