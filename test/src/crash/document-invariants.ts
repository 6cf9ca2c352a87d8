import { deviceDocument } from '@afield/client/results';
import type { StoredDocument } from '@afield/testing';
import { when, type Invariant } from './invariant.js';
import { recordOf, type Mutation } from './stored.js';
import type { CrashWorld } from './world.js';

const nameOf = ({ header, index }: Mutation): string => `${header.key}[${String(index)}]`;

/** The operations whose intent is stored and may be what writes this document now. */
function intentsOf(doc: StoredDocument, { queue, documents }: CrashWorld): Mutation[] {
  const id = String(doc['_id']);
  const base = typeof doc['_rev'] === 'string' ? doc['_rev'] : undefined;
  // After a write without an answer the base stays, while the revision that is written on moves on.
  const path = base === undefined ? [] : (documents.tree(id)?.path(base) ?? []);
  return queue
    .allMutations()
    .filter(
      ({ id: subject, row }) =>
        subject === id &&
        ((row?.s === 'intent' && (row.b === undefined ? base === undefined : path.includes(row.b))) ||
          (row?.g !== undefined && row.g === base)),
    );
}

/** A losing version is removed: no operation of ours writes there. */
function isRemoval(doc: StoredDocument, { documents }: CrashWorld): boolean {
  return doc['_deleted'] === true && documents.tree(String(doc['_id']))?.winner?.rev !== doc['_rev'];
}

const winnerFirst: Invariant = {
  name: 'winner-first',
  design: 2,
  written: (doc, world) => {
    const id = String(doc['_id']);
    const tree = world.documents.tree(id);
    if (tree === undefined || !isRemoval(doc, world)) return [];
    const won = tree.path(tree.winner?.rev ?? '');
    const branch = tree.path(String(doc['_rev'])).filter((rev) => !won.includes(rev));
    return world.queue.allMutations().flatMap((mutation) => {
      const { id: subject, row, action } = mutation;
      if (subject !== id || row?.s !== 'applied' || action === 'delete') return [];
      const isHere = branch.includes(row.r ?? '');
      const isSafe = (row.h ?? []).some((rev) => won.includes(rev));
      return when(isHere && !isSafe, `${id} loses the version of ${nameOf(mutation)}, which is nowhere else`);
    });
  },
  settled: (world) =>
    world.queue.allMutations().flatMap((mutation) => {
      const { id, row, header } = mutation;
      const tree = typeof id === 'string' && header.target === 'local' ? world.local.tree(id) : undefined;
      if (tree?.winner === undefined || tree.winner.deleted || row?.s !== 'applied' || row.r === undefined) return [];
      if (world.queue.failures().some((one) => one.refused === row.r)) return [];
      const won = tree.path(tree.winner.rev);
      return when(
        ![row.r, ...(row.h ?? [])].some((rev) => won.includes(rev)),
        `${nameOf(mutation)} counts as applied, and is buried`,
      );
    }),
};

const intentBeforeWrite: Invariant = {
  name: 'intent-before-write',
  design: 1,
  written: (doc, world) =>
    when(
      intentsOf(doc, world).length === 0 && !isRemoval(doc, world),
      `${String(doc['_id'])} is written, and no intent is stored`,
    ),
};

/** What an operation wrote, or found, is there as it wanted it. */
function isTrue({ id, action: name, content, row }: Mutation, { documents, actions }: CrashWorld): boolean {
  const action = actions.get(name);
  if (typeof id !== 'string' || action === undefined) return false;
  const tree = documents.tree(id);
  if (tree === undefined) return action.missing === 'applied' && row?.s === 'already-applied';
  const revs = row?.r === undefined ? tree.path(tree.winner?.rev ?? '') : [row.r];
  return revs.some((rev) => {
    const doc = documents.read(id, rev);
    return doc !== undefined && action.isApplied({ ...doc, _id: id }, content);
  });
}

const silenceIsNotSuccess: Invariant = {
  name: 'silence-is-not-success',
  design: 8,
  stored: ({ doc }, world) => {
    if (!String(doc['_id']).startsWith('b:')) return [];
    const { sequence, from, rows } = recordOf(doc);
    const header = world.queue.header(sequence);
    if (header === undefined) return [`${String(doc['_id'])} is stored before its bulk operation`];
    const mutations = world.queue.mutations(header);
    return rows.flatMap((row, place) => {
      const mutation = mutations[from + place];
      const isSuccess = row.s === 'applied' || row.s === 'already-applied';
      const isThere = mutation !== undefined && isTrue({ ...mutation, row }, world);
      return when(isSuccess && !isThere, `${header.key}[${String(from + place)}] counts as ${row.s}, and is not there`);
    });
  },
  settled: (world) => [...differences(world), ...unknownResults(world)],
};

/** With the target `local` the server has what the device has, but for what it refused. */
function differences({ target, local, records, queue, options }: CrashWorld): string[] {
  if (target !== 'local' || options.replication === false) return [];
  const refused = new Set(queue.failures().flatMap(({ id, refused: rev }) => (rev === null ? [] : [id])));
  const revOf = (id: string, database: typeof local): string | undefined => database.tree(id)?.winner?.rev;
  const different = local.ids().filter((id) => !refused.has(id) && revOf(id, local) !== revOf(id, records));
  return different.map((id) => `${id} is not on the server as it is on the device`);
}

/** The device document says that nothing is on its way, but events of what the server has refused: that comes last. */
export function isToldOfDevice({ queue, results }: CrashWorld): boolean {
  const docs = results
    .ids()
    .flatMap((id) => (id.startsWith('device:') ? [deviceDocument.parse(results.read(id))] : []));
  const last = Number(queue.headers().at(-1)?._id.slice('h:'.length) ?? 0);
  const refused = queue.failures().filter((one) => one.refused !== null).length;
  return docs.some(
    ({ lastSequence, pending, unpublished, unreported, unconfirmed }) =>
      lastSequence === last && pending + unreported + unconfirmed === 0 && unpublished <= refused,
  );
}

/** The server has one result of each bulk operation, and it says what the device says. */
function unknownResults({ queue, results }: CrashWorld): string[] {
  const stored = results.ids().map((id) => results.read(id) ?? {});
  return queue.headers().flatMap((header) => {
    const own = stored.filter((doc) => doc['bulkOperation'] === header.id);
    const [result, ...more] = own.filter((doc) => doc['type'] === 'afield-result');
    const failures = queue.failures().filter((one) => one.bulkOperationId === header.id);
    const refused = failures.filter(({ refused: rev, buried }) => rev !== null || buried !== undefined).length;
    const rows = own.flatMap((doc) => (doc['operations'] ?? []) as unknown[]);
    return [
      ...when(result === undefined || more.length > 0, `${header.key} has ${String(own.length)} results`),
      ...when(result?.['applied'] !== header.applied - refused, `the result of ${header.key} is another one`),
      ...when(rows.length !== failures.length, `the server knows ${String(rows.length)} failures of ${header.key}`),
    ];
  });
}

/** The revisions of a document that operations made, oldest first. */
function ownRevisions(id: string, { documents, foreign }: CrashWorld): string[] {
  const tree = documents.tree(id);
  const path = [...(tree?.path(tree.winner?.rev ?? '') ?? [])].reverse();
  return path.filter((rev) => !foreign.has(rev));
}

const runningAgainConverges: Invariant = {
  name: 'running-again-converges',
  design: 4,
  settled: (world) =>
    world.documents.ids().flatMap((id) => {
      const applied = world.queue.allMutations().filter((one) => one.id === id && one.row?.s === 'applied');
      const writes = ownRevisions(id, world).length;
      return when(
        writes !== applied.length,
        `${id} was written ${String(writes)} times, and ${String(applied.length)} operations count as applied`,
      );
    }),
};

const orderBySequence: Invariant = {
  name: 'order-by-sequence',
  design: 6,
  settled: (world) => {
    const headers = world.queue.headers();
    const numbers = world.confirmed.flatMap((key) => headers.find((header) => header.key === key)?.sequence ?? []);
    const applied = world.queue.allMutations().filter(({ row }) => row?.s === 'applied');
    const byRevision = new Map(applied.map((one) => [`${String(one.id)} ${one.row?.r ?? ''}`, one]));
    return [
      ...when(!isRising(numbers), `confirmed in another order than ${numbers.join()}`),
      ...world.documents.ids().flatMap((id) => {
        const writers = ownRevisions(id, world).flatMap((rev) => byRevision.get(`${id} ${rev}`) ?? []);
        const places = writers.map(({ header, index }) => header.sequence * 1_000_000 + index);
        return when(!isRising(places), `${id} was changed in the order ${writers.map(nameOf).join()}`);
      }),
    ];
  },
};

function isRising(numbers: readonly number[]): boolean {
  return numbers.every((number, place) => place === 0 || number > (numbers[place - 1] ?? 0));
}

const noSingleLeader: Invariant = {
  name: 'no-single-leader',
  design: 7,
  written: (doc, world) => {
    const intents = intentsOf(doc, world);
    const isAllowed = intents.some(({ header, lease }) => {
      const isOver = header.state === 'cancelled' && header.unsettled === undefined;
      return !isOver && (header.lease === null || header.lease === lease);
    });
    return when(intents.length > 0 && !isAllowed, `${String(doc['_id'])} is written by who does not lead any more`);
  },
};

/** What the documents say of what the queue says. */
export const documentInvariants = [
  intentBeforeWrite,
  runningAgainConverges,
  orderBySequence,
  noSingleLeader,
  silenceIsNotSuccess,
  winnerFirst,
];
