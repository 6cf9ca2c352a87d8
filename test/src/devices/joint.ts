import { createAction, sameJson, type Doc } from '@afield/client';
import { isDeletion, type Known } from './known.js';
import { actions, type Asked } from './operations.js';
import type { Judged } from './truths.js';

/** More operations of one device on one document are not tried in all combinations. */
const mostTried = 12;

/**
 * Whether a revision of the winner's history is what the one before it, or itself, becomes when this operation is run on
 * it, then some later ones of its device: buried operations are healed together, and the value of the last one alone can be
 * seen (R17).
 */
export function isInJoint(asked: Asked, { history }: Known, ofDocument: readonly Judged[]): boolean {
  const applied = ofDocument.filter(({ outcome }) => outcome.is === 'applied');
  const ofDevice = inOrder(applied, asked.device);
  // As many as are tried, wherever this one stands among them: the first may be healed together with all the others.
  const from = Math.min(ofDevice.indexOf(asked) - mostTried / 2, ofDevice.length - mostTried);
  const chosen = ofDevice.slice(Math.max(0, from)).slice(0, mostTried);
  return history.some((doc, place) => {
    const base = history[place - 1];
    // Where a later one of them sets what was there before, all of them together change nothing, and nothing is written.
    return canBecome(doc, doc, chosen, asked) || (base !== undefined && canBecome(base, doc, chosen, asked));
  });
}

/** Whether operations of one device make this change, one alone or some of them in their order. */
export function isAsked(base: Doc, doc: Doc, ofDocument: readonly Judged[]): boolean {
  if (ofDocument.some(({ asked }) => canBecome(base, doc, [asked], asked))) return true;
  const names = new Set(ofDocument.map(({ asked }) => asked.device));
  return [...names].some((device) => {
    const all = inOrder(ofDocument, device);
    return all.some((first, at) => canBecome(base, doc, all.slice(at, at + mostTried), first));
  });
}

/** The operations of one device as they stand in its queue; those without an event where they were asked for. */
function inOrder(ofDocument: readonly Judged[], device: string): readonly Asked[] {
  const sorted = ofDocument.filter(({ asked }) => asked.device === device);
  sorted.sort(({ outcome: a }, { outcome: b }) => {
    if (a.is !== 'applied' || b.is !== 'applied') return 0;
    return a.event.sequence - b.event.sequence || a.event.index - b.event.index;
  });
  return sorted.map(({ asked }) => asked);
}

/** Whether a document becomes another one by some of these operations, in their order, `must` among them. */
function canBecome(doc: Doc, wanted: Doc, operations: readonly Asked[], must: Asked): boolean {
  const [first, ...rest] = operations;
  if (first === undefined) return isSame(doc, wanted);
  const next = run(doc, first);
  if (next !== undefined && canBecome(next, wanted, rest, must)) return true;
  return first !== must && canBecome(doc, wanted, rest, must);
}

/** The document after an operation; undefined where the operation needs one and there is none. */
function run(doc: Doc, { action, content }: Asked): Doc | undefined {
  const isGone = doc._deleted === true;
  if (isGone && isDeletion(action)) return doc;
  if (isGone && action !== createAction.name) return undefined;
  return actions[action]?.apply(isGone ? { _id: doc._id } : doc, content);
}

function isSame(doc: Doc, wanted: Doc): boolean {
  if (doc._deleted === true || wanted._deleted === true) return doc._deleted === wanted._deleted;
  return sameJson({ ...doc, _rev: '' }, { ...wanted, _rev: '' });
}
