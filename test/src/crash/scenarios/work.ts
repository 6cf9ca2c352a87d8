import { Refusal } from '@afield/testing';
import type { Scenario } from '../scenario.js';
import { atHome, away, codesAre, fieldIs, home, move, outcomesAre } from './expectations.js';

const many = Array.from({ length: 260 }, (_, at) => `m${String(at).padStart(3, '0')}`);

export const enqueue: Scenario = {
  name: 'enqueue',
  lines: 'O2',
  says: 'four requests, offline and before anything runs: one of 260 operations, two at once',
  options: { autoStart: false, batchSize: 100 },
  documents: atHome('a', 'b', 'c', ...many),
  prepare: ({ connectivity }) => {
    connectivity.set(false);
  },
  steps: [
    (app) =>
      app.queue({ target: app.world.target, key: 'one', actions: [{ action: 'set-parent', operations: [move('a')] }] }),
    (app) =>
      app.queue({
        target: app.world.target,
        key: 'many',
        lane: 'slow',
        actions: [{ action: 'set-parent', operations: many.map(move) }],
      }),
    async (app) => {
      const { target } = app.world;
      const colour = { action: 'set-colour', operations: [{ id: 'b', to: 'blue' }] };
      const both = ['left', 'right'].map((key) => app.queue({ target, key, actions: [colour] }));
      await Promise.all(both);
      // Who of the two came first is nobody's promise.
      app.world.confirmed.splice(app.world.confirmed.indexOf('right'), 1);
    },
    ({ world }) => Promise.resolve(world.connectivity.set(true)),
  ],
  expected: (world) => [
    ...outcomesAre(world, 'one', 'applied'),
    ...outcomesAre(world, 'many', ...many.map(() => 'applied')),
    ...fieldIs(world, 'b', 'colour', 'blue'),
  ],
};

export const apply: Scenario = {
  name: 'apply',
  lines: 'R3 R6 R17',
  says: 'two bulk operations with a document in both; one moves, paints and deletes',
  documents: [...atHome('a', 'b', 'c', 'd', 'e'), { _id: 'there', parent: away }],
  steps: [
    (app) =>
      app.queue({
        target: app.world.target,
        key: 'first',
        actions: [
          { action: 'set-parent', operations: [move('a'), move('b'), move('there'), move('c')] },
          { action: 'set-colour', operations: [{ id: 'e', to: 'blue' }] },
          { action: 'delete', operations: [{ id: 'd' }, { id: 'never-there' }] },
        ],
      }),
    (app) =>
      app.queue({
        target: app.world.target,
        key: 'second',
        actions: [
          { action: 'set-parent', operations: [{ id: 'a', parent: home, current_parent_id: 'h2' }, move('e')] },
        ],
      }),
  ],
  expected: (world) => [
    ...outcomesAre(
      world,
      'first',
      'applied',
      'applied',
      'already-applied',
      'applied',
      'applied',
      'applied',
      'already-applied',
    ),
    ...outcomesAre(world, 'second', 'applied', 'applied'),
    ...fieldIs(world, 'a', 'parent', home),
    ...fieldIs(world, 'e', 'colour', 'blue'),
    ...fieldIs(world, 'd', '_deleted', true),
  ],
};

export const partialFailure: Scenario = {
  name: 'partial-failure',
  lines: 'R4 R9 S2',
  says: 'missing, guard mismatch, no id, bad id, refused by the server, and three that work',
  documents: [...atHome('a', 'refused', 'b', 'c'), { _id: 'elsewhere', parent: { _id: 'h9' } }],
  prepare: (world) => {
    world.refuses = (doc) => (doc['_id'] === 'refused' ? new Refusal(403, 'forbidden', 'not this one') : undefined);
  },
  steps: [
    (app) =>
      app.queue({
        target: app.world.target,
        key: 'mixed',
        actions: [
          {
            action: 'set-parent',
            operations: ['a', 'nowhere', 'elsewhere', 'refused', '', '_bad', 'b', 'c'].map(move),
          },
        ],
      }),
  ],
  expected: (world) => {
    const refused = world.target === 'local' ? 'applied' : 'failed';
    return [
      ...outcomesAre(world, 'mixed', 'applied', 'failed', 'failed', refused, 'failed', 'failed', 'applied', 'applied'),
      ...codesAre(world, 'missing', 'guard_mismatch', 'forbidden', 'no_id', 'invalid_id'),
    ];
  },
};

export const results: Scenario = {
  name: 'results',
  lines: 'S1',
  says: 'three bulk operations are reported; the answers to the first two reports get lost',
  documents: atHome('a', 'b', 'c'),
  prepare: (world) => {
    let lost = 0;
    world.refusesRequest = (method, path) =>
      method === 'POST' && path === '/results/_bulk_docs' && (lost += 1) <= 2 ? 'after' : 'never';
  },
  steps: ['a', 'b', 'c'].map(
    (id) => (app) =>
      app.queue({
        target: app.world.target,
        key: id,
        actions: [{ action: 'set-parent', operations: [move(id), move('nowhere')] }],
      }),
  ),
  expected: (world) => [
    ...['a', 'b', 'c'].flatMap((key) => outcomesAre(world, key, 'applied', 'failed')),
    ...codesAre(world, 'missing', 'missing', 'missing'),
  ],
};
