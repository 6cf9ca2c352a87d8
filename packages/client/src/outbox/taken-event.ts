import { z } from 'zod/mini';
import { AfieldError, RetryableError } from '../model/errors.js';
import type { PublishContext, Publisher } from '../model/event.js';
import type { Doc } from '../model/json.js';
import type { StoredQuarantine } from '../queue/stored.js';
import { readEventDocument } from './event-document.js';

const secondVersion = z.object({
  publisher: z.string(),
  event: z.custom<Doc>((value) => typeof (value as { _id?: unknown } | null)?._id === 'string'),
});

/**
 * Publishes our version of an event whose id was taken, under an id derived from the old one. Asked again it publishes the
 * same. Throws `AfieldError` (`unknown_publisher`), and `RetryableError` when the place does not take it now.
 */
export async function publishTaken(
  { second, hash }: StoredQuarantine,
  publishers: readonly Publisher[],
  context: PublishContext,
): Promise<void> {
  const { publisher: name, event: doc } = secondVersion.parse(JSON.parse(second ?? 'null'));
  const publisher = publishers.find((one) => one.name === name);
  if (publisher === undefined) {
    throw new AfieldError('unknown_publisher', `This client has no publisher "${name}": the event cannot go there.`);
  }
  const reading = readEventDocument(doc);
  if (reading.kind !== 'event') throw new AfieldError('store_unreadable', 'The event in quarantine is damaged.');
  const event = { ...reading.event, id: `${reading.event.id}~${hash.slice(0, 8)}` };
  const { accepted, error } = await publisher.publish([event], context);
  if (accepted.includes(event.id)) return;
  throw new RetryableError(`The publisher "${name}" did not take the event. Decide again later.`, {
    class: error?.class ?? 'server',
    code: error?.code ?? 'refused',
  });
}
