import { z } from 'zod/mini';
import { when, type Invariant } from './invariant.js';
import { isOverruled, type Mutation } from './stored.js';
import type { CrashWorld } from './world.js';

const eventDoc = z.looseObject({
  _id: z.string(),
  _rev: z.optional(z.string()),
  kind: z.enum(['new', 'updated', 'deleted']),
  documentId: z.string(),
  sequence: z.number(),
  index: z.number(),
  previous: z.nullable(z.string()),
  key: z.string(),
  rev: z.nullable(z.string()),
  changed: z.boolean(),
});
type StoredEvent = z.infer<typeof eventDoc>;

const nameOf = ({ header, index }: Mutation): string => `${header.key}[${String(index)}]`;
const isSuccess = ({ row }: Mutation): boolean => row?.s === 'applied' || row?.s === 'already-applied';
const isOf = ({ sequence, index }: StoredEvent, mutation: Mutation): boolean =>
  sequence === mutation.header.sequence && index === mutation.index;

function storedEvents({ events }: CrashWorld): StoredEvent[] {
  return events.ids().map((id) => eventDoc.parse(events.read(id)));
}

/** Mutations that must have an event on the server: all that succeeded, but for what the server refuses still. */
export function announced({ queue }: CrashWorld): Mutation[] {
  const refused = queue.failures().filter(({ refused: rev, resolution }) => rev !== null && resolution === undefined);
  const isRefused = ({ id }: Mutation): boolean => refused.some((failure) => failure.id === id);
  return queue.allMutations().filter((mutation) => isSuccess(mutation) && !isRefused(mutation));
}

/** Whether nothing is left to be published. */
export function isPublished(world: CrashWorld): boolean {
  if (world.options.publishers?.length === 0) return true;
  const stored = storedEvents(world);
  return announced(world).every((mutation) => stored.some((event) => isOf(event, mutation)));
}

const durableBeforePublished: Invariant = {
  name: 'durable-before-published',
  design: 1,
  published: (doc, world) => {
    const event = eventDoc.parse(doc);
    const mutation = world.queue.allMutations().find((one) => isOf(event, one));
    // What it says was so when it was read: that the operation lost may be found at the same moment.
    if (mutation === undefined || !(isSuccess(mutation) || isOverruled(mutation.row)))
      return [`${event._id} is published before its outcome is stored`];
    const isThere = world.target === 'server' || event.rev === null || hasRevision(event.documentId, event.rev, world);
    return when(!isThere, `${event._id} is published before the server has its revision`);
  },
};

function hasRevision(id: string, rev: string, { records }: CrashWorld): boolean {
  return records.tree(id)?.get(rev) !== undefined;
}

const oneEventPerMutation: Invariant = {
  name: 'one-event-per-mutation',
  design: 5,
  settled: (world) => {
    if (world.options.publishers?.length === 0) return [];
    const stored = storedEvents(world);
    const mutations = announced(world);
    const overruled = world.queue.allMutations().filter(({ row }) => isOverruled(row));
    const unknown = stored.filter((event) => ![...mutations, ...overruled].some((mutation) => isOf(event, mutation)));
    return [
      ...unknown.map(({ _id }) => `${_id} is an event of nothing that happened`),
      ...mutations.flatMap((mutation) => wrongOf(mutation, stored)),
    ];
  },
};

/** What is wrong with the events of one mutation. */
function wrongOf(mutation: Mutation, stored: readonly StoredEvent[]): readonly string[] {
  const [event, ...more] = stored.filter((one) => isOf(one, mutation));
  if (event === undefined || more.length > 0)
    return [`${nameOf(mutation)} has ${String(event ? 1 + more.length : 0)} events`];
  const kind = mutation.action === 'delete' ? 'deleted' : mutation.action === 'create' ? 'new' : 'updated';
  const { row, id, key } = mutation;
  const said = [event.documentId, event.kind, event.changed, event.rev ?? undefined, event.key];
  const wanted = [id, kind, row?.s === 'applied', row?.r, key];
  return [
    ...when(
      said.join() !== wanted.join(),
      `the event of ${nameOf(mutation)} says ${said.join()}, not ${wanted.join()}`,
    ),
    ...when(event._rev?.startsWith('1-') !== true, `the event of ${nameOf(mutation)} was written twice`),
  ];
}

const eventsInOrder: Invariant = {
  name: 'events-in-order',
  design: 5,
  published: (doc, world) => {
    const event = eventDoc.parse(doc);
    const stored = storedEvents(world);
    const isEarlier = ({ header: { sequence }, index }: Mutation): boolean =>
      sequence < event.sequence || (sequence === event.sequence && index < event.index);
    const late = announced(world).filter(
      (one) => one.id === event.documentId && isEarlier(one) && !stored.some((known) => isOf(known, one)),
    );
    return late.map((one) => `${event._id} is published before the event of ${nameOf(one)}`);
  },
  settled: (world) => {
    const last = new Map<string, StoredEvent>();
    const inOrder = storedEvents(world).sort((a, b) => a.sequence - b.sequence || a.index - b.index);
    return inOrder.flatMap((event) => {
      const before = last.get(event.documentId)?._id ?? null;
      last.set(event.documentId, event);
      return when(event.previous !== before, `${event._id} names ${String(event.previous)}, not ${String(before)}`);
    });
  },
};

/** What the server is told of what happened. */
export const eventInvariants: readonly Invariant[] = [durableBeforePublished, oneEventPerMutation, eventsInOrder];
