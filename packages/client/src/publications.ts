import type { Publisher } from './model/event.js';
import { endStates } from './model/states.js';
import { eventDocument } from './outbox/event-document.js';
import { publishContext } from './outbox/publish-context.js';
import type { Place } from './outbox/events.js';
import type { Parts } from './parts.js';
import { failureId, sequenceOf } from './queue/stored.js';
import { eventConflict } from './queue/conflicts.js';
import { Publication } from './sync/publication.js';
import type { TransferParts } from './sync/transfer.js';

/** The publication of events to each of the app's publishers, wired together. */
export function publicationsOf(storeId: string, parts: Parts): readonly Publication[] {
  const { options, events, quarantine, transfer, requests, closed, replication, queue, failures, runner, lease } =
    parts;
  const server = options.server === undefined ? undefined : parts.databases.documents;
  // Where another tab has begun what is not at its end, it may have come further than is known here: a later event of a
  // document would be seen before an earlier one.
  const refresh = async (): Promise<void> => {
    const isForeign = queue.headers
      .all()
      .some((header) => header.lease !== null && header.lease !== lease && !endStates.has(header.state));
    const changed = isForeign ? await queue.headers.refreshOpen() : [];
    if (changed.length > 0) runner.noticed(changed);
  };
  const givenUp = {
    ready: () => failures.load(),
    has: ({ header, index }: Place): boolean => {
      const failure = failures.get(failureId(sequenceOf(header._id), index));
      return failure?.resolution !== undefined && failure.refused !== null;
    },
  };
  return (options.publishers ?? []).map(
    (publisher) =>
      new Publication({
        ...transfer,
        gate: gateFor(publisher, parts),
        publisher,
        events,
        storeId,
        newId: parts.environment.newId,
        context: (attempt) => publishContext(requests, closed, attempt),
        refresh,
        givenUp,
        missing: server === undefined ? undefined : (asked) => server.missing(asked),
        isPushed: () => replication?.isPushed() !== false,
        pushStep: async () => (await replication?.pushStep()) !== false,
        quarantine: (conflicts) =>
          quarantine.add(
            conflicts.map(({ event, stored }) => eventConflict(publisher.name, event, eventDocument(event), stored)),
          ),
      }),
  );
}

/** What a publisher needs must work before it is tried; nobody waits for what it does not need. */
function gateFor({ needs = 'server' }: Publisher, { gate }: Parts): TransferParts['gate'] {
  const failed = (): void => {
    gate.failed();
  };
  switch (needs) {
    case 'server':
      return gate;
    case 'network':
      return { state: () => gate.network(), failed };
    case 'nothing':
      return { state: () => 'open', failed: () => undefined };
  }
}
