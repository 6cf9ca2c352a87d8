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

/** The revision that an operation of ours has written. */
function writtenBy(world: CrashWorld, key: string, index: number): string {
  const header = world.queue.headers().find((one) => one.key === key);
  return (header === undefined ? undefined : world.queue.mutations(header)[index]?.row?.r) ?? '';
}

export const regain: Scenario = {
  name: 'regain',
  lines: 'S2 O7',
  says: 'operations fail when they are run on what has won; then others have built upon their own versions, and those win',
  targets: ['local'],
  documents: atHome('a', 'b', 'c', 'd'),
  steps: [
    (app) =>
      app.queue({
        target: 'local',
        key: 'first',
        actions: [{ action: 'set-parent', operations: [move('a'), move('b'), move('c')] }],
      }),
    async (app) => {
      await app.client.start();
      await app.becomes('first', ({ state }) => state === 'done' || state === 'done-with-failures');
    },
    async (app) => {
      const { world } = app;
      for (const id of ['a', 'b', 'c']) world.diverge(id, [{ parent: { _id: 'h3' } }, { name: `${id}3` }]);
      app.client.syncNow();
      await app.becomes('first', ({ failed }) => failed === 3);
    },
    (app) =>
      app.queue({
        target: 'local',
        key: 'second',
        actions: [{ action: 'update', operations: [{ id: 'd', patch: { note: 'd' } }] }],
      }),
    (app) => {
      const { world } = app;
      world.buildUpon('a', writtenBy(world, 'first', 0), [{ name: 'a4' }, { name: 'a5' }, { name: 'a6' }]);
      world.buildUpon('b', writtenBy(world, 'first', 1), [{ name: 'b4' }, { name: 'b5' }, { parent: { _id: 'h4' } }]);
      app.client.syncNow();
      return Promise.resolve();
    },
  ],
  expected: (world) => [
    ...outcomesAre(world, 'first', 'applied', 'applied', 'failed'),
    ...outcomesAre(world, 'second', 'applied'),
    ...codesAre(world, 'guard_mismatch'),
    ...fieldIs(world, 'a', 'parent', { _id: 'h2', parent: { _id: 'd1' } }),
    ...fieldIs(world, 'b', 'parent', { _id: 'h4' }),
    ...fieldIs(world, 'c', 'parent', { _id: 'h3' }),
    // The branches that others have made at home lose now, and nobody here has made them.
    ...liveVersions(world, { a: 2, b: 2, c: 1 }),
  ],
};
