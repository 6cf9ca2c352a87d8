import type { EnqueueRequest } from '@afield/client';
import type { App, Scenario } from '../scenario.js';
import type { CrashWorld } from '../world.js';
import { atHome, away, fieldIs, move, outcomesAre } from './expectations.js';

type Keyed = EnqueueRequest & { readonly key: string };

/** Moves whose keys the app gives: `a` under the key `move-a`. */
const moves = ({ world: { target } }: App, key: string, ...ids: readonly string[]): Keyed => ({
  target,
  key,
  actions: [{ action: 'set-parent', operations: ids.map((id) => ({ ...move(id), key: `move-${id}` })) }],
});

export const duplicate: Scenario = {
  name: 'duplicate',
  lines: 'O4 O9',
  says: 'a request is delivered again, twice at once, and with some operations that were queued before',
  documents: atHome('a', 'b', 'c', 'd'),
  steps: [
    (app) => app.queue(moves(app, 'first', 'a', 'b')),
    (app) => app.deliverAgain(moves(app, 'first', 'a', 'b')),
    (app) => app.queue(moves(app, 'second', 'b', 'c')),
    (app) => Promise.all([1, 2].map(() => app.queue(moves(app, 'third', 'd')))),
    (app) => app.settled(),
    // Also when all of it has long been done.
    (app) => app.deliverAgain(moves(app, 'second', 'b', 'c')),
  ],
  expected: (world) => [
    ...outcomesAre(world, 'first', 'applied', 'applied'),
    ...outcomesAre(world, 'second', 'applied'),
    ...outcomesAre(world, 'third', 'applied'),
    ...quarantinedAre(world),
  ],
};

export const conflictingDuplicate: Scenario = {
  name: 'conflicting-duplicate',
  lines: 'O4 O9',
  says: 'a key of an operation, and of a whole request, comes again with other content',
  documents: atHome('a', 'b', 'c'),
  steps: [
    (app) => app.queue(moves(app, 'first', 'a', 'b')),
    (app) => {
      const other = { id: 'a', parent: { _id: 'elsewhere' }, key: 'move-a' };
      const { target } = app.world;
      const actions = [{ action: 'set-parent', operations: [{ ...move('c'), key: 'move-c' }, other] }];
      return app.deliverConflicting({ target, key: 'second', actions });
    },
    (app) => app.deliverConflicting(moves(app, 'first', 'a', 'c')),
    (app) => app.queue(moves(app, 'third', 'c')),
  ],
  expected: (world) => [
    ...outcomesAre(world, 'first', 'applied', 'applied'),
    ...outcomesAre(world, 'third', 'applied'),
    ...fieldIs(world, 'a', 'parent', away),
    ...quarantinedAre(world, 'first', 'move-a'),
  ],
};

/** The keys in quarantine: each conflict is kept once, however often it comes. */
function quarantinedAre(world: CrashWorld, ...keys: readonly string[]): readonly string[] {
  const found = world.queue.documents('u:').map((doc) => String(doc['key']));
  return found.sort().join() === [...keys].sort().join() ? [] : [`in quarantine are ${found.join()}`];
}
