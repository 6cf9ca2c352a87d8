import { createAction, sameJson, type Doc } from '@afield/client';
import { isDeletion, type Known } from './known.js';
import { actions, type Asked } from './operations.js';
import type { Judged } from './truths.js';

/** More operations of one device on one document are not tried in all combinations. */
const mostTried = 12;

/**
 * Whether a revision of the winner's history is what the one before it becomes when this operation is run on it, then some
 * later ones of its device: buried operations are healed together, and the value of the last one alone can be seen (R17).
 */
export function isInJoint(asked: Asked, { history }: Known, ofDocument: readonly Judged[]): boolean {
  const ofDevice = ofDocument
    .filter(({ asked: one, outcome }) => one.device === asked.device && outcome.is === 'applied')
    .sort((a, b) => placeOf(a) - placeOf(b))
    .map((one) => one.asked);
  const at = ofDevice.indexOf(asked);
  const chosen = ofDevice.slice(Math.max(0, at - mostTried / 2), at + mostTried / 2);
  return history.some((doc, place) => {
    const base = history[place - 1];
    return base !== undefined && canBecome(base, doc, chosen, asked);
  });
}

function placeOf({ outcome }: Judged): number {
  return outcome.is === 'applied' ? outcome.event.sequence * 1000 + outcome.event.index : 0;
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
