import type { Scenario } from '../scenario.js';
import type { CrashWorld } from '../world.js';
import { atHome, codesAre, fieldIs, move, outcomesAre } from './expectations.js';

/** Documents with one live version, or none, on the device and at the server. */
function liveVersions(world: CrashWorld, wanted: Readonly<Record<string, number>>): readonly string[] {
  return [world.local, world.records].flatMap((database, place) =>
    Object.entries(wanted).flatMap(([id, count]) => {
      const live =
        database
          .tree(id)
          ?.leaves()
          .filter(({ deleted }) => !deleted).length ?? 0;
      const where = place === 0 ? 'on the device' : 'at the server';
      return live === count ? [] : [`${id} has ${String(live)} live versions ${where}, not ${String(count)}`];
    }),
  );
}

export const heal: Scenario = {
  name: 'heal',
  lines: 'S2 S8',
  says: 'versions of others win over applied operations: run again, refused by a guard, deleted again; an edit of others that lost',
  targets: ['local'],
  documents: [...atHome('a', 'b', 'c', 'd'), { _id: 'e', name: 'e' }],
  steps: [
    (app) =>
      app.queue({
        target: 'local',
        key: 'first',
        actions: [
          { action: 'set-parent', operations: [move('a'), move('b')] },
          { action: 'delete', operations: [{ id: 'c' }] },
          { action: 'set-parent', operations: [move('d')] },
        ],
      }),
    async (app) => {
      await app.client.start();
      await app.becomes('first', ({ state }) => state === 'done' || state === 'done-with-failures');
    },
    (app) => {
      const { world } = app;
      world.diverge('a', [{ name: 'a2' }, { name: 'a3' }]);
      world.diverge('b', [{ parent: { _id: 'h3' } }, { name: 'b3' }]);
      world.diverge('c', [{ name: 'c2' }]);
      // Shorter than ours: it loses, and no operation has made it.
      world.diverge('e', [{ name: 'e2' }]);
      world.diverge('e', [{ name: 'e3' }, { name: 'e4' }]);
      app.client.syncNow();
      return Promise.resolve();
    },
    (app) =>
      app.queue({
        target: 'local',
        key: 'second',
        actions: [{ action: 'update', operations: [{ id: 'd', patch: { name: 'd2' } }] }],
      }),
  ],
  expected: (world) => [
    ...outcomesAre(world, 'first', 'applied', 'failed', 'applied', 'applied'),
    ...outcomesAre(world, 'second', 'applied'),
    ...codesAre(world, 'guard_mismatch'),
    ...fieldIs(world, 'a', 'name', 'a3'),
    ...fieldIs(world, 'a', 'parent', { _id: 'h2', parent: { _id: 'd1' } }),
    ...fieldIs(world, 'b', 'parent', { _id: 'h3' }),
    ...fieldIs(world, 'd', 'name', 'd2'),
    ...liveVersions(world, { a: 1, b: 1, c: 0, d: 1, e: 2 }),
  ],
};
