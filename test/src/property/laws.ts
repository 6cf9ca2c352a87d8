import type { BulkOperationStatus, FailedOperation } from '@afield/client';
import type { MemoryDatabase, StoredDocument } from '@afield/testing';
import { firstDocuments, kindOf } from './documents.js';
import { Model, writersOf, type Expected, type Queued } from './model.js';
import { LawBroken, World } from './world.js';
import type { Script } from './script.js';

/** Runs a script and checks everything that must be true at the end. Throws `LawBroken`, with the story, when it is not. */
export async function holds(script: Script): Promise<void> {
  const world = new World(script);
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  try {
    await world.run();
    const { bulkOperations, failures } = await world.shown();
    check(world, bulkOperations, failures);
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (unhandled.length > 0) throw new LawBroken(`an unhandled rejection: ${String(unhandled[0])}`);
  } catch (error) {
    const story = process.env['AFIELD_TRACE'] === undefined ? '' : `\n${world.trace.join('\n')}`;
    throw error instanceof LawBroken ? new LawBroken(error.message + story) : error;
  } finally {
    process.off('unhandledRejection', note);
  }
}

type Bulk = BulkOperationStatus & { readonly queued: Queued };

function check(world: World, shown: readonly BulkOperationStatus[], failures: readonly FailedOperation[]): void {
  demand(world.server.unknown.length === 0, `the client asked ${world.server.unknown.join(', ')}`);
  for (const key of world.confirmed) {
    demand(shown.filter((bulk) => bulk.key === key).length === 1, `O2 ${key} was confirmed, and is not there once`);
  }
  const bulks = shown.map((bulk): Bulk => {
    const queued = world.asked.get(bulk.key);
    if (queued === undefined) throw new LawBroken(`${bulk.key} was never asked for`);
    return { ...bulk, queued };
  });
  demand(new Set(bulks.map(({ key }) => key)).size === bulks.length, 'O4 a bulk operation is there twice');
  const model = new Model();
  for (const bulk of bulks) {
    const contested = contestedOutcomes(world, bulks, bulk);
    const expected = model
      .run(bulk.queued)
      .map((one, index) => one ?? contested.get(index) ?? ({ is: 'applied' } as const));
    checkBulk(
      bulk,
      expected,
      failures.filter(({ bulkOperationId }) => bulkOperationId === bulk.id),
    );
  }
  const ids = new Set(bulks.map(({ id }) => id));
  const stray = failures.find(({ bulkOperationId }) => !ids.has(bulkOperationId ?? ''));
  demand(stray === undefined, `a failure that no operation had: ${String(stray?.id)} ${String(stray?.code)}`);
  checkDocuments(world, model);
  checkResults(world, bulks);
}

function checkBulk(bulk: Bulk, expected: readonly Expected[], failures: readonly FailedOperation[]): void {
  const where = `bulk operation ${bulk.key} (${bulk.state})`;
  demand(bulk.cursor === bulk.total && bulk.total === expected.length, `${where}: cursor ${String(bulk.cursor)}`);
  const sum = bulk.applied + bulk.alreadyApplied + bulk.failed;
  demand(sum === bulk.total, `R9 ${where}: outcomes of ${String(sum)} of ${String(bulk.total)}`);
  const codes = new Map(failures.map(({ index, code }) => [index, code]));
  demand(codes.size === failures.length, `R9 ${where}: a failure is listed twice`);
  demand(
    failures.length === bulk.failed,
    `R9 ${where}: ${String(bulk.failed)} failed, ${String(failures.length)} listed`,
  );
  expected.forEach((one, index) => {
    const wanted = one.is === 'failed' ? one.code : undefined;
    const found = codes.get(index);
    const { action, id } = bulk.queued.changes[index] ?? {};
    demand(
      found === wanted,
      `R4 ${where}: ${String(action)} ${String(id)} at ${String(index)} is ${String(found)}, not ${String(wanted)}`,
    );
  });
  const uncertain = failures.find(({ mayHaveBeenApplied }) => mayHaveBeenApplied);
  demand(
    uncertain === undefined,
    `R3 ${where}: ${String(uncertain?.index)} is uncertain, and the whole history is there`,
  );
  const count = (is: Expected['is']): number => expected.filter((one) => one.is === is).length;
  const [least, most] = [count('applied'), count('applied') + count('done')];
  demand(
    bulk.applied >= least && bulk.applied <= most,
    `R3 ${where}: ${String(bulk.applied)} applied, not ${String(least)} to ${String(most)}`,
  );
}

/** A contested document's history says who wrote it: each operation once, in their order, or it failed on its guard. */
function contestedOutcomes(world: World, bulks: readonly Bulk[], bulk: Bulk): Map<number, Expected> {
  const outcomes = new Map<number, Expected>();
  const database = bulk.target === 'local' ? world.local : world.records;
  bulk.queued.changes.forEach(({ id, mark, content }, index) => {
    if (typeof id !== 'string' || kindOf(id) !== 'contested') return;
    const writers = contestedWriters(world, bulks, database, id);
    if (writers.includes(mark)) return void outcomes.set(index, { is: 'applied' });
    demand(
      content['current_parent_id'] !== undefined && (world.edits.get(id) ?? 0) > 0,
      `R1 ${mark} on ${id} was never written`,
    );
    outcomes.set(index, { is: 'failed', code: 'guard_mismatch' });
  });
  return outcomes;
}

function contestedWriters(world: World, bulks: readonly Bulk[], database: MemoryDatabase, id: string): string[] {
  const tree = database.tree(id);
  if (tree === undefined) throw new LawBroken(`${id} is gone`);
  const writers = writersOf(tree, world.foreign);
  const order = bulks.flatMap(({ queued }) => queued.changes.filter((one) => one.id === id).map(({ mark }) => mark));
  demand(
    JSON.stringify(writers) === JSON.stringify(order.filter((mark) => writers.includes(mark))),
    `R3 R17 ${id} was written by ${writers.join(', ')}; queued were ${order.join(', ')}`,
  );
  return writers;
}

function checkDocuments(world: World, model: Model): void {
  for (const target of ['local', 'server'] as const) {
    const database = target === 'local' ? world.local : world.records;
    for (const { _id: id } of firstDocuments(target)) {
      const tree = database.tree(id);
      demand(tree?.leaves().length === 1, `${id} has conflicts`);
      const kind = kindOf(id);
      if (kind !== 'contested') checkDocument(world, model, id, database.read(id), tree?.path(tree.winner?.rev ?? ''));
      const other = target === 'local' ? world.records : world.local;
      if (target === 'server' || kind === 'plain' || kind === 'contested') {
        demand(other.read(id)?.['_rev'] === tree?.winner?.rev, `${id} differs between device and server`);
      } else {
        demand(other.tree(id)?.path(other.tree(id)?.winner?.rev ?? '').length === 1, `${id} was changed on the server`);
      }
    }
  }
  for (const id of ['local-missing-0', 'server-missing-0']) {
    demand(world.local.tree(id) === undefined && world.records.tree(id) === undefined, `${id} was made`);
  }
}

function checkDocument(
  world: World,
  model: Model,
  id: string,
  doc: StoredDocument | undefined,
  path: readonly string[] = [],
): void {
  const wanted = model.documents.get(id);
  const own = path.slice(0, -1).filter((rev) => !world.foreign.has(rev)).length;
  demand(
    own === (wanted?.writes ?? 0),
    `R6 ${id} was written ${String(own)} times, not ${String(wanted?.writes ?? 0)}`,
  );
  if (wanted?.isLive === false) return demand(doc?.['_deleted'] === true, `${id} is not deleted`);
  const found = {
    parent: (doc?.['parent'] as { _id?: string } | undefined)?._id,
    contact: (doc?.['contact'] as { _id?: string } | undefined)?._id,
    marks: doc?.['marks'],
    edits: doc?.['edits'],
  };
  const expected = {
    parent: wanted?.parent ?? 'home',
    contact: wanted?.contact,
    marks: wanted?.marks ?? [],
    edits: world.edits.get(id) ?? 0,
  };
  demand(
    JSON.stringify(found) === JSON.stringify(expected),
    `R8 ${id} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`,
  );
}

/** The server knows the same of each bulk operation as the device does (S1). */
function checkResults(world: World, bulks: readonly Bulk[]): void {
  const docs = world.results.ids().map((id) => world.results.read(id) ?? {});
  for (const { id, key, state, failed } of bulks) {
    const ours = docs.filter((doc) => doc['bulkOperation'] === id);
    const results = ours.filter((doc) => doc['type'] === 'afield-result');
    demand(results.length === 1, `S1 ${key} has ${String(results.length)} results`);
    demand(
      results[0]?.['state'] === state && results[0]['failed'] === failed,
      `S1 the result of ${key} is another one`,
    );
    const listed = ours.flatMap((doc) => (doc['operations'] ?? []) as { index: number }[]);
    demand(
      listed.length === failed && new Set(listed.map(({ index }) => index)).size === failed,
      `S1 ${key}: the server lists ${String(listed.length)} failures of ${String(failed)}`,
    );
  }
}

function demand(isTrue: boolean, otherwise: string): void {
  if (!isTrue) throw new LawBroken(otherwise);
}
