import type { Doc } from '@afield/client';
import { wrongLineages } from '@afield/testing';
import { z } from 'zod';
import { moveRequest, type Shown } from './messages.js';
import type { Village } from './village.js';

const allDocs = z.array(
  z.object({
    id: z.string(),
    doc: z.looseObject({ _id: z.string(), _rev: z.string(), parent: z.optional(z.unknown()) }),
  }),
);
type Stored = z.infer<typeof allDocs>[number]['doc'];

/** Device and server at one moment. */
export interface Ends {
  /** Rows of `_all_docs` with documents. */
  readonly device: unknown;
  readonly server: unknown;
  readonly bulks: Shown['bulks'];
  /** Codes of the failures. */
  readonly failures: readonly string[];
  /** Documents of the database of events, and of the one of results. */
  readonly events: readonly Record<string, unknown>[];
  readonly results: readonly Record<string, unknown>[];
}

/** What is not as it must be after the move; empty when all is well. */
export function wrongInMove({ operations, byAction, docs }: Village, ends: Ends): string[] {
  const { bulks, failures, events, results } = ends;
  const total = byAction['set-parent'] + byAction['set-contact'];
  const wrong = [...differences(ends), ...wrongLineagesOf(ends)];
  const there = byId(ends.server);
  const eventsOf = new Map<unknown, Ends['events'][number][]>();
  for (const event of events) {
    const { documentId } = event;
    eventsOf.set(documentId, [...(eventsOf.get(documentId) ?? []), event]);
  }
  if (there.size !== docs.length) wrong.push(`the server has ${String(there.size)} documents`);
  const { id, parent } = moveRequest.request;
  const isMoved = (there.get(id)?.parent as Doc | undefined)?._id === parent;
  if (!isMoved) wrong.push(`${id} is not below ${parent}`);
  for (const { _id } of docs) {
    const wanted = operations.get(_id) ?? 0;
    const doc = there.get(_id);
    // The first revision, and one for each of its operations.
    const written = Number(doc?._rev.split('-')[0] ?? 0) - 1;
    if (written !== wanted) wrong.push(`${_id} was written ${String(written)} times, not ${String(wanted)}`);
    const own = eventsOf.get(_id) ?? [];
    if (own.length !== wanted || own.some((event) => event['changed'] !== true))
      wrong.push(`${_id} has ${String(own.length)} events, not ${String(wanted)}, or others`);
    if (wanted > 0 && !own.some((event) => event['rev'] === doc?._rev))
      wrong.push(`${_id} has no event of its last revision`);
  }
  if (events.length !== total) wrong.push(`the server has ${String(events.length)} events`);
  const [first, ...more] = bulks;
  if (first?.state !== 'done' || first.total !== total || first.applied !== total)
    wrong.push(`the move ended as ${JSON.stringify(first)}`);
  for (const { key, state, total: planned } of more)
    if (state !== 'done' || planned !== 0) wrong.push(`${key} ended as ${state} with ${String(planned)} operations`);
  if (failures.length > 0) wrong.push(`${String(failures.length)} operations have failed: ${failures.join(', ')}`);
  const reported = results.filter(({ type }) => type === 'afield-result').map(({ applied }) => applied);
  const wantedResults = bulks.map((_, place) => (place === 0 ? total : 0));
  if (reported.sort(byNumber).join() !== wantedResults.sort(byNumber).join())
    wrong.push(`the results at the server say that ${reported.join(' and ') || 'nothing'} were applied`);
  return wrong;
}

/** What has changed between two moments and must not have; empty when nothing has. */
export function changesBetween(before: Ends, after: Ends): string[] {
  const changed: string[] = [];
  for (const where of ['device', 'server'] as const) {
    const [then, now] = [byId(before[where]), byId(after[where])];
    for (const id of new Set([...then.keys(), ...now.keys()])) {
      const [old, present] = [then.get(id)?._rev, now.get(id)?._rev];
      if (old !== present) changed.push(`${id} on the ${where} was ${old ?? 'not there'}, and is ${present ?? 'gone'}`);
    }
  }
  if (before.events.length !== after.events.length) changed.push('there are other events');
  return changed;
}

function differences({ device, server }: Ends): string[] {
  const [here, there] = [byId(device), byId(server)];
  const ids = new Set([...here.keys(), ...there.keys()]);
  return [...ids].flatMap((id) =>
    here.get(id)?._rev === there.get(id)?._rev ? [] : [`${id} differs between device and server`],
  );
}

function wrongLineagesOf(ends: Ends): string[] {
  return (['device', 'server'] as const).flatMap((where) =>
    wrongLineages(byId(ends[where]).values()).map(
      ({ id, field, is, should }) =>
        `${id} on the ${where}: the lineage in ${field} is ${is.join(' < ')}, not ${should.join(' < ')}`,
    ),
  );
}

function byId(rows: unknown): ReadonlyMap<string, Stored> {
  return new Map(allDocs.parse(rows).map(({ id, doc }) => [id, doc]));
}

const byNumber = (one: unknown, other: unknown): number => Number(one) - Number(other);
