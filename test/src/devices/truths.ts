import type { Doc, DocumentEvent, FailedOperation } from '@afield/client';
import { ancestorsOf, isDeletion, liveBodies, sinceDeletion, type Known } from './known.js';
import { isInJoint } from './joint.js';
import { actions, isEffect, type Asked } from './operations.js';

/** An operation and what became of it. */
export interface Judged {
  readonly asked: Asked;
  readonly outcome: Outcome;
  /** Since it was asked for, the store of its device has said that there is no such document. */
  readonly sawNone: boolean;
}

/** What a device says became of an operation. */
export type Outcome =
  | { readonly is: 'applied'; readonly event: DocumentEvent }
  | { readonly is: 'already-applied' }
  | { readonly is: 'failed'; readonly failure: FailedOperation }
  | { readonly is: 'lost' };

/** An open failure has the last word: what was applied first may have failed when it was healed. */
export function outcomeOf(event: DocumentEvent | undefined, failure: FailedOperation | undefined): Outcome {
  if (failure !== undefined) return { is: 'failed', failure };
  if (event === undefined) return { is: 'lost' };
  return event.changed ? { is: 'applied', event } : { is: 'already-applied' };
}

/** Why what the device says is not true; undefined: it is. */
export function untruth(judged: Judged, known: Known, ofDocument: readonly Judged[]): string | undefined {
  const { asked, outcome } = judged;
  switch (outcome.is) {
    case 'lost':
      return 'it has no outcome';
    case 'applied':
      if (ancestorsOf(known, outcome.event.rev).length === 0)
        return `its revision ${String(outcome.event.rev)} is nowhere`;
      if (isInWinner(asked, known) || isOverruled(outcome.event, known)) return undefined;
      if (isInJoint(asked, known, ofDocument)) return undefined;
      if (isDeletion(asked.action)) return `it has deleted the document, and ${String(known.winner?.rev)} is there`;
      return `it is applied (${String(outcome.event.rev)}), and the history of the winner ${String(known.winner?.rev)} does not hold it`;
    case 'already-applied':
      return wasSo(judged, known) ? undefined : 'it is already applied, and no revision was ever so';
    case 'failed':
      if (isThere(asked, known)) return `it has failed with ${outcome.failure.code}, and its value is there`;
      return falseReason(judged, outcome.failure, known);
  }
}

function isInWinner(asked: Asked, { winner, history }: Known): boolean {
  if (winner?.deleted === true) return true; // whatever it changed, the document is gone
  return history.some((doc) => isEffect(doc, asked));
}

/** The winner goes on from a deletion that the operation did not know: what it wrote went with the document. */
function isOverruled({ rev }: DocumentEvent, known: Known): boolean {
  const before = new Set(ancestorsOf(known, rev));
  return known.history.some((doc) => doc._deleted === true && !before.has(String(doc._rev)));
}

/** Of two events of one device: which operation came later in the queue (R17). */
export function isLater(one: DocumentEvent, other: DocumentEvent): boolean {
  return one.sequence > other.sequence || (one.sequence === other.sequence && one.index > other.index);
}

function wasSo({ asked, sawNone }: Judged, known: Known): boolean {
  if (isDeletion(asked.action)) return sawNone;
  return liveBodies(known).some((doc) => isEffect(doc, asked));
}

/**
 * What each code means, held against every revision that is known:
 *
 * - `guard_mismatch`: of some revision the operation's guard says so, and neither it nor what came before it has the value
 *   that only this operation sets.
 * - `missing`: since the operation was asked for, the store of its device has said that there is no such document.
 * - `conflicting_content`: some revision is a live document with other fields.
 * - any other code has no true reason here.
 *
 * Whatever the reason was: it is not failed when its own value is in the winner's history.
 */
function falseReason({ asked, sawNone }: Judged, { code }: FailedOperation, known: Known): string | undefined {
  const others = liveBodies(known).filter((doc) => !isEffect(doc, asked) && !comesAfter(doc, asked, known));
  const isTrue =
    (code === 'guard_mismatch' &&
      others.some((doc) => actions[asked.action]?.guard?.(doc, asked.content)?.code === code)) ||
    (code === 'missing' && sawNone) ||
    (code === 'conflicting_content' && others.length > 0);
  return isTrue ? undefined : `it has failed with ${code}, and that was never so`;
}

function comesAfter({ _rev }: Doc, asked: Asked, known: Known): boolean {
  if (!asked.isUnique) return false;
  return ancestorsOf(known, _rev ?? null).some((rev) => {
    const doc = known.bodies.get(rev);
    return doc !== undefined && isEffect(doc, asked);
  });
}

/**
 * A value that only this operation sets is in the winner's history. It may have failed when it was run on the version that had
 * won then; where a branch that holds it has won after all, it is applied.
 */
function isThere(asked: Asked, known: Known): boolean {
  return asked.isUnique && sinceDeletion(known).some((doc) => isEffect(doc, asked));
}
