import { z } from 'zod/mini';
import type { DocumentEvent } from '../model/event.js';
import type { Doc } from '../model/json.js';

/** The version of events as they are stored and sent. */
export const eventVersion = 1;

/** The fields of an event but for its id. Fields that this version does not know are passed over (S10). */
const eventFields = z.object({
  name: z.string(),
  kind: z.enum(['new', 'updated', 'deleted']),
  type: z.string(),
  documentId: z.string(),
  store: z.string(),
  sequence: z.number(),
  index: z.number(),
  previous: z.nullable(z.string()),
  key: z.string(),
  rev: z.nullable(z.string()),
  changed: z.boolean(),
  at: z.number(),
  target: z.enum(['local', 'server']),
  bulkOperationId: z.string(),
  action: z.string(),
});

/** What says that a document is meant as an event, also when the rest of it is damaged. */
const eventLike = z.object({ name: z.string().check(z.startsWith('documents.')), v: z.optional(z.unknown()) });

/** An event as a CouchDB document: the event's id is its `_id`, so that no database has it twice (O6). */
export function eventDocument(event: DocumentEvent): Doc {
  return { _id: event.id, v: eventVersion, ...fieldsOf(event) };
}

/** An event as JSON text. The same event is always the same text. */
export function eventJson(event: DocumentEvent): string {
  return JSON.stringify({ v: eventVersion, id: event.id, ...fieldsOf(event) });
}

/**
 * What a document of a database of events is:
 * `event`; `other` (of another kind: a design document, a result); `damaged` (meant as an event, but without its shape);
 * `too-new` (an event written by a newer Afield, with the version `v`).
 */
export type EventReading =
  | { readonly kind: 'event'; readonly event: DocumentEvent }
  | { readonly kind: 'other' }
  | { readonly kind: 'damaged' }
  | { readonly kind: 'too-new'; readonly v: number };

/** Reads an event from a document. Unknown fields are passed over. */
export function readEventDocument(doc: Doc): EventReading {
  const mark = eventLike.safeParse(doc);
  if (!mark.success) return { kind: 'other' };
  const { v } = mark.data;
  if (typeof v === 'number' && v > eventVersion) return { kind: 'too-new', v };
  const fields = eventFields.safeParse(doc);
  return v === eventVersion && fields.success
    ? { kind: 'event', event: { id: doc._id, ...fields.data } }
    : { kind: 'damaged' };
}

/** Field by field: what an event does not have by its type does not leave the device. */
function fieldsOf(event: DocumentEvent): Omit<DocumentEvent, 'id'> {
  const { name, kind, type, documentId, store, sequence, index, previous, key } = event;
  const { rev, changed, at, target, bulkOperationId, action } = event;
  return {
    name,
    kind,
    type,
    documentId,
    store,
    sequence,
    index,
    previous,
    key,
    rev,
    changed,
    at,
    target,
    bulkOperationId,
    action,
  };
}
