import type { Doc } from '@afield/client';
import { isAsked } from './joint.js';
import type { Known } from './known.js';
import { isEffect } from './operations.js';
import type { Place } from './places.js';
import { isLater, type Judged } from './truths.js';

/** All places have the same leaves, the same winner with the same content, and no other live leaf. */
export function* unequal(
  known: Known,
  places: readonly Place[],
  open: ReadonlyMap<string, ReadonlySet<string>>,
): Generator<string> {
  const { id, trees, winner, bodies } = known;
  const expected = shown(winner === undefined ? undefined : bodies.get(winner.rev));
  const leavesAtServer = names(known, places.at(-1)?.name);
  for (const { name } of places) {
    const tree = trees.get(name);
    const [first, ...others] = tree?.leaves ?? [];
    if (first?.rev !== winner?.rev) {
      yield `${id}: ${name} has the winner ${String(first?.rev)}, the server ${String(winner?.rev)}`;
    } else if (first !== undefined && !first.deleted && shown(tree?.bodies.get(first.rev)) !== expected) {
      yield `${id}: ${name} has another content of ${first.rev} than the server`;
    }
    if (names(known, name) !== leavesAtServer) {
      yield `${id}: ${name} has the leaves ${names(known, name)}, the server ${leavesAtServer}`;
    }
    for (const { rev, deleted } of others) {
      if (!deleted && open.get(name)?.has(`${id} ${rev}`) !== true)
        yield `${id}: ${name} has a conflict, ${rev} beside ${String(first?.rev)}`;
    }
  }
}

function names({ trees }: Known, place: string | undefined): string {
  const leaves = trees.get(place ?? '')?.leaves ?? [];
  return leaves.map(({ rev, deleted }) => `${rev}${deleted ? ' (deleted)' : ''}`).join(', ');
}

function shown(doc: Doc | undefined): string {
  if (doc === undefined) return 'nothing';
  const fields = Object.entries(doc).filter(([name]) => name !== '_revisions');
  return JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A document that a deletion has ended is gone, unless an operation has created it again. */
export function* cameBack({ id, history }: Known, ofDocument: readonly Judged[]): Generator<string> {
  const creations = ofDocument.filter(({ asked }) => asked.action === 'create');
  for (const [at, doc] of history.entries()) {
    if (history[at - 1]?._deleted !== true || doc._deleted === true) continue;
    if (creations.some(({ asked }) => isEffect(doc, asked))) continue;
    yield `${id}: it was deleted, and ${String(doc._rev)} brought it back, which no operation has created`;
  }
}

/** Each change that leads to the winner is one that an operation asks for, or several of one device that were healed together. */
export function* unasked({ id, wasThere, history }: Known, ofDocument: readonly Judged[]): Generator<string> {
  for (const [at, doc] of history.entries()) {
    const base = history[at - 1] ?? { _id: id, _deleted: true };
    if (doc._deleted === true || (at === 0 && wasThere) || isAsked(base, doc, ofDocument)) continue;
    yield `${id}: nobody has asked for what changes with ${String(doc._rev)}`;
  }
}

/** R17: a value of a device in the end is that of its last operation on the field that is applied, not an older one. */
export function* outOfOrder({ id, winner, bodies }: Known, ofDocument: readonly Judged[]): Generator<string> {
  const doc = winner === undefined || winner.deleted ? undefined : bodies.get(winner.rev);
  if (doc === undefined) return;
  const applied = ofDocument.flatMap(({ asked, outcome }) =>
    outcome.is === 'applied' && asked.isUnique && asked.field !== undefined ? { asked, event: outcome.event } : [],
  );
  const shownNow = applied.filter(({ asked }) => isEffect(doc, asked));
  for (const { asked, event } of shownNow) {
    for (const later of applied) {
      if (later.asked.device !== asked.device || later.asked.field !== asked.field) continue;
      if (!isLater(later.event, event)) continue;
      yield `${id}: ${String(asked.field)} is as ${asked.key} has set it, although ${later.asked.key} came later`;
    }
  }
}
