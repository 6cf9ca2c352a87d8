import { when, type Invariant, type QueueWrite } from './invariant.js';
import { headerOf, isOutcome, isOverruled, recordOf, sequenceOf, type StoredHeader, type StoredRow } from './stored.js';
import type { CrashWorld } from './world.js';

const endStates = new Set(['done', 'done-with-failures', 'failed', 'cancelled']);
const isHeader = ({ doc }: QueueWrite): boolean => String(doc['_id']).startsWith('h:');
const nameOf = (header: StoredHeader, index?: number): string =>
  index === undefined ? header.key : `${header.key}[${String(index)}]`;

const durableBeforeAcknowledged: Invariant = {
  name: 'durable-before-acknowledged',
  design: 1,
  confirmed: (key, { queue }) => {
    const header = queue.headers().find((one) => one.key === key);
    if (header === undefined) return [`${key} was confirmed and is not stored`];
    const found = queue.mutations(header).length;
    return when(found !== header.total, `${key} was confirmed with ${String(found)} operations`);
  },
  stored: ({ doc }, { queue, results }) => {
    if (!String(doc['_id']).startsWith('hr:') || typeof doc['delivered'] !== 'string') return [];
    const header = queue.header(sequenceOf(String(doc['_id'])));
    const isThere = results.ids().some((id) => id.startsWith('result:') && id.endsWith(`:${header?.id ?? ''}`));
    return when(!isThere, 'a result counts as delivered before the server has it');
  },
  settled: ({ confirmed, cancelled, queue }) => {
    const headers = queue.headers();
    const lost = confirmed.filter((key) => !headers.some((header) => header.key === key));
    const alive = headers.filter(({ key, state }) => cancelled.has(key) && state !== 'cancelled');
    return [
      ...lost.map((key) => `${key} was confirmed and is gone`),
      ...alive.map(({ key, state }) => `the cancel of ${key} was confirmed, and it is ${state}`),
    ];
  },
};

const noOperationLost: Invariant = {
  name: 'no-operation-lost',
  design: 2,
  stored: (write, { queue }) => {
    const { doc, before } = write;
    const id = String(doc['_id']);
    if (doc['_deleted'] === true) return when(id.startsWith('h:') || isNamed(id, queue), `${id} was removed`);
    if (!isHeader(write)) return [];
    const header = headerOf(doc);
    const found = queue.mutations(header).length;
    if (found !== header.total) return [`${nameOf(header)} counts with ${String(found)} of its operations`];
    const known = before === undefined ? undefined : headerOf(before);
    const isPlanned = header.plan !== undefined;
    return when(
      known !== undefined && !isPlanned && (known.payload !== header.payload || known.total !== header.total),
      `${nameOf(header)} has other operations than before`,
    );
  },
  settled: ({ queue }) => queue.headers().flatMap((header) => lostOf(header, queue)),
};

/**
 * Whether content belongs to something: a bulk operation, or a second version in quarantine. What a process left that died
 * before its header is no one's, and may be removed when its tab has been gone for a day; a header that named it later would
 * count without its operations.
 */
function isNamed(id: string, queue: CrashWorld['queue']): boolean {
  return queue.namedContent().some((prefix) => id.startsWith(prefix));
}

/** At the end each operation has an outcome, or was given up with all that follow it; the counts say the same. */
function lostOf(header: StoredHeader, queue: CrashWorld['queue']): string[] {
  if (!endStates.has(header.state)) return [`${nameOf(header)} is ${header.state}`];
  const mutations = queue.mutations(header);
  const count = (state: string): number => mutations.filter(({ row }) => row?.s === state).length;
  const overruled = mutations.filter(({ row }) => isOverruled(row)).length;
  const counted = [count('applied') + overruled, count('already-applied'), count('failed') - overruled];
  const said = [header.applied, header.alreadyApplied, header.failed];
  const failures = queue.failures().filter((one) => one.bulkOperationId === header.id && one.refused === null);
  const lost = mutations.filter(
    ({ index, row }) => row?.s === 'failed' && !failures.some((failure) => failure.index === index),
  );
  const isWhole = header.state === 'cancelled' || header.state === 'failed' || header.cursor === header.total;
  return [
    ...when(!isWhole, `${nameOf(header)} is ${header.state} at ${String(header.cursor)}`),
    ...when(counted.join() !== said.join(), `${nameOf(header)} counts ${said.join()}, its rows say ${counted.join()}`),
    ...when(failures.length !== count('failed'), `${nameOf(header)} has ${String(failures.length)} failures`),
    ...lost.map(({ index }) => `${nameOf(header, index)} failed without its content`),
  ];
}

const cursorNeverPasses: Invariant = {
  name: 'cursor-never-passes',
  design: 3,
  stored: (write, { queue }) => (isHeader(write) ? passedOf(headerOf(write.doc), queue) : []),
  settled: ({ queue }) => queue.headers().flatMap((header) => passedOf(header, queue)),
};

/** Operations before the cursor that have no durable outcome. */
function passedOf(header: StoredHeader, queue: CrashWorld['queue']): string[] {
  if (header.cursor === 0) return [];
  const passed = queue.mutations(header).filter(({ index, row }) => index < header.cursor && !isOutcome(row));
  return passed.map(({ index, row }) => `the cursor is past ${nameOf(header, index)}, which is ${row?.s ?? 'unknown'}`);
}

const outcomesStay: Invariant = {
  name: 'outcomes-stay',
  design: 4,
  stored: ({ doc, before }, world) => {
    if (!String(doc['_id']).startsWith('b:') || before === undefined) return [];
    const { sequence, from, rows: next } = recordOf(doc);
    const header = world.queue.header(sequence);
    const mutations = header === undefined ? [] : world.queue.mutations(header);
    const isHealed = (row: StoredRow, place: number): boolean =>
      row.s === 'applied'
        ? isOverruled(next[place])
        : isOverruled(row) && next[place]?.s === 'applied' && isInWinner(mutations[from + place]?.id, row, world);
    return recordOf(before).rows.flatMap((row, place) =>
      when(
        isOutcome(row) && next[place]?.s !== row.s && !isHealed(row, place),
        `${String(doc['_id'])}[${String(place)}] was ${row.s} and is ${next[place]?.s ?? 'gone'}`,
      ),
    );
  },
};

/** A revision of the operation is in the history of the version that counts on the device. */
function isInWinner(id: unknown, { r, h = [] }: StoredRow, { local }: CrashWorld): boolean {
  const tree = typeof id === 'string' ? local.tree(id) : undefined;
  const won = tree?.path(tree.winner?.rev ?? '') ?? [];
  return [r, ...h].some((rev) => rev !== undefined && won.includes(rev));
}

const oneForEachKey: Invariant = {
  name: 'one-for-each-key',
  design: 6,
  settled: ({ queue, confirmed }) => {
    const headers = queue.headers().filter(({ withdrawn }) => withdrawn !== true);
    const count = (key: string): number => headers.filter((header) => header.key === key).length;
    const own = headers.flatMap((header) => queue.mutations(header)).filter(({ isOwnKey }) => isOwnKey);
    const keys = own.map(({ key }) => key);
    const twice = [...new Set(keys)].filter((key) => keys.indexOf(key) !== keys.lastIndexOf(key));
    return [
      ...confirmed.flatMap((key) => when(count(key) !== 1, `${key} was queued ${String(count(key))} times`)),
      ...twice.map((key) => `the operation of the key ${key} was queued twice`),
    ];
  },
};

/** What the stored queue says of itself. */
export const queueInvariants = [
  durableBeforeAcknowledged,
  noOperationLost,
  cursorNeverPasses,
  outcomesStay,
  oneForEachKey,
];
