import type { Await } from '../mortal-process.js';
import type { App, Scenario } from '../scenario.js';
import { atHome, away, codesAre, fieldIs, home, move, outcomesAre } from './expectations.js';

const queueMoves =
  (key: string, ...ids: readonly string[]) =>
  (app: App): Promise<void> =>
    app.queue({ target: app.world.target, key, actions: [{ action: 'set-parent', operations: ids.map(move) }] });

/** The call, and from then on nothing. */
function once(call: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    call();
  };
}

export const conflict: Scenario = {
  name: 'conflict',
  lines: 'R3 R8',
  says: 'another editor comes between read and write, and one right after the write',
  documents: atHome('a', 'b', 'c'),
  prepare: (world) => {
    world.onDocuments = {
      before: once(() => {
        world.edit('a', (doc) => ({ ...doc, edits: 1 }));
      }),
      after: once(() => {
        world.edit('b', (doc) => ({ ...doc, parent: { _id: 'h7' } }));
      }),
    };
  },
  steps: [queueMoves('moves', 'a', 'b', 'c')],
  expected: (world) => [
    ...outcomesAre(world, 'moves', 'applied', 'applied', 'applied'),
    ...fieldIs(world, 'a', 'parent', away),
    ...fieldIs(world, 'a', 'edits', 1),
    ...fieldIs(world, 'b', 'parent', { _id: 'h7' }),
  ],
};

export const silence: Scenario = {
  name: 'silence',
  lines: 'R3 R7',
  says: 'a write is done and its answer gets lost; of the next answer only the first row arrives',
  documents: atHome('a', 'b', 'c', 'd'),
  prepare: (world) => {
    let answers = 0;
    world.onDocuments = {
      after: once(() => {
        throw world.target === 'server' ? new TypeError('Failed to fetch') : new DOMException('lost', 'AbortError');
      }),
    };
    world.rowsArrive = (rows) => ((answers += 1) === 1 ? rows.slice(0, 1) : rows);
  },
  steps: [queueMoves('moves', 'a', 'b', 'c', 'd')],
  expected: (world) => outcomesAre(world, 'moves', 'applied', 'applied', 'applied', 'applied'),
};

const ids = ['a', 'b', 'c', 'd', 'e'];

export const cancel: Scenario = {
  name: 'cancel',
  lines: 'R19',
  says: 'a person cancels in the middle of the work',
  documents: atHome(...ids),
  steps: [
    queueMoves('moves', ...ids),
    (app) => app.becomes('moves', ({ cursor }) => cursor > 0),
    (app) => app.cancel('moves'),
  ],
  // What was done counts, and nothing else: that is what the invariants ask.
  expected: () => [],
};

export const redrive: Scenario = {
  name: 'redrive',
  lines: 'R19 R5',
  says: 'a failed operation and the rest after a bug are queued anew',
  documents: atHome('a', 'b', 'c', 'd'),
  prepare: (world) => {
    world.appIsBroken = true;
  },
  steps: [
    queueMoves('moves', 'a', 'late'),
    (app) => app.becomes('moves', ({ state }) => state === 'done-with-failures'),
    ({ world }) => {
      world.add(atHome('late'));
      return Promise.resolve();
    },
    ({ client }) => client.retryFailed(),
    (app) =>
      app.queue({
        target: app.world.target,
        key: 'painted',
        actions: [
          { action: 'set-parent', operations: [move('b')] },
          { action: 'set-colour', operations: ['b', 'c', 'd'].map((id) => ({ id, to: 'blue' })) },
        ],
      }),
    (app) => app.becomes('painted', ({ state }) => state === 'failed'),
    async (app) => {
      app.world.appIsBroken = false;
      const { id = '' } = (await app.find('painted')) ?? {};
      await app.client.retryRest(id).catch((error: unknown) => {
        // An app that was not told asks again.
        if ((error as { code?: unknown }).code !== 'already_retried') throw error;
      });
    },
  ],
  expected: (world) => [
    ...outcomesAre(world, 'moves', 'applied', 'failed'),
    ...outcomesAre(world, 'painted', 'applied', 'not done', 'not done', 'not done'),
    ...codesAre(world),
    ...fieldIs(world, 'late', 'parent', away),
    ...['b', 'c', 'd'].flatMap((id) => fieldIs(world, id, 'colour', 'blue')),
  ],
};

export const takeOver: Scenario = {
  name: 'take-over',
  lines: 'S6 R17',
  says: 'the leader freezes anywhere, another tab does all of its work, and the leader wakes late',
  how: 'freeze',
  documents: atHome('a', 'b', 'c'),
  steps: [
    queueMoves('moves', 'a', 'b', 'c'),
    (app) =>
      app.queue({
        target: app.world.target,
        key: 'back',
        actions: [{ action: 'set-parent', operations: [{ id: 'a', parent: home, current_parent_id: 'h2' }] }],
      }),
  ],
  expected: (world) => [
    ...outcomesAre(world, 'moves', 'applied', 'applied', 'applied'),
    ...outcomesAre(world, 'back', 'applied'),
    ...fieldIs(world, 'a', 'parent', home),
  ],
};

/** After the fence was answered nothing can stop the write: the design promises this for who froze before. */
const isBeforeTheFence = ({ what }: Await, when: 'before' | 'after'): boolean =>
  when === 'before' ? !/^(bulkDocs device|POST \/records\/_bulk_docs)$/.test(what) : !/^allDocs .*-queue$/.test(what);

export const lateLeader: Scenario = {
  name: 'late-leader',
  lines: 'S6 R19',
  says: 'the leader freezes before its fence, a person cancels in another tab, and the leader wakes late',
  how: 'freeze',
  // Nothing but the runner: else it may stand between fence and write while the point is one of the push, or of the results.
  mayEnd: (point, when) => isBeforeTheFence(point, when) && !point.what.includes(' /results/'),
  options: { replication: false, publishers: [] },
  documents: atHome(...ids),
  steps: [queueMoves('moves', ...ids)],
  meanwhile: async (app) => {
    if ((await app.find('moves')) !== undefined) await app.cancel('moves');
  },
  expected: () => [],
};
