import type { Scenario } from '../scenario.js';
import type { CrashWorld } from '../world.js';
import { atHome, codesAre, fieldIs, move, outcomesAre } from './expectations.js';

/** Events of these documents in the order of their mutations, as the server has them. */
function eventsAre(world: CrashWorld, wanted: Readonly<Record<string, string>>): readonly string[] {
  const events = world.events.ids().map((id) => world.events.read(id) ?? {});
  const place = (doc: Record<string, unknown>): number => Number(doc['sequence']) * 1000 + Number(doc['index']);
  const kinds = new Map<string, string[]>();
  for (const event of events.sort((a, b) => place(a) - place(b))) {
    const id = String(event['documentId']);
    kinds.set(id, [...(kinds.get(id) ?? []), String(event['name']).replace('documents.', '')]);
  }
  const found = [...kinds].sort().map(([id, names]) => `${id}: ${names.join(' ')}`);
  const expected = Object.entries(wanted).map(([id, names]) => `${id}: ${names}`);
  return found.join() === expected.join() ? [] : [`the events are ${found.join(', ')}`];
}

export const publish: Scenario = {
  name: 'publish',
  lines: 'O3 O6 O7 O8 O9',
  says: 'an insert, updates, a delete, an update of a missing document; publications fail before and after they are stored',
  documents: atHome('a', 'b', 'c').map((doc) => ({ ...doc, type: 'person' })),
  prepare: (world) => {
    let asked = 0;
    world.refusesRequest = (method, path) => {
      if (method !== 'POST' || path !== '/events/_bulk_docs') return 'never';
      asked += 1;
      return asked % 3 === 1 ? 'before' : asked % 3 === 2 ? 'after' : 'never';
    };
  },
  steps: [
    (app) =>
      app.queue({
        target: app.world.target,
        key: 'first',
        actions: [
          { action: 'create', operations: [{ id: 'n', doc: { type: 'visit', count: 1 } }] },
          {
            action: 'update',
            operations: [
              { id: 'a', patch: { name: 'Ann' } },
              { id: 'nowhere', patch: { name: 'No one' } },
              { id: 'n', patch: { count: 2 } },
            ],
          },
          { action: 'delete', operations: [{ id: 'b' }] },
        ],
      }),
    (app) =>
      app.queue({
        target: app.world.target,
        key: 'second',
        actions: [
          {
            action: 'update',
            operations: [
              { id: 'n', patch: { count: 3 } },
              { id: 'a', patch: { name: 'Ann' } },
            ],
          },
          { action: 'set-parent', operations: [move('a'), move('c')] },
        ],
      }),
  ],
  expected: (world) => [
    ...outcomesAre(world, 'first', 'applied', 'applied', 'failed', 'applied', 'applied'),
    ...outcomesAre(world, 'second', 'applied', 'already-applied', 'applied', 'applied'),
    ...codesAre(world, 'missing'),
    ...fieldIs(world, 'n', 'count', 3),
    ...eventsAre(world, {
      a: 'updated.person updated.person updated.person',
      b: 'deleted.person',
      c: 'updated.person',
      n: 'new.visit updated.visit updated.visit',
    }),
  ],
};
