import { defineDocumentAction, type Failure, type Json } from '@afield/client';
import { z } from 'zod/mini';
import { AnyJson } from './any-json.js';
import { lineageFailure, mismatch, ownField, sameValue, withField } from './lineage.js';

/**
 * `set-contact`: the document's `contact` becomes the given one, with its lineage; null or absent removes it.
 *
 * - `contact`: the new contact, `{ _id, parent: { _id, … } }`, kept as given.
 * - `current_contact_id`: the operation applies only when `contact` has this id; null: only when there is no contact.
 * - `current_contact`: likewise, with all of `contact`.
 *
 * Fails with `guard_mismatch`, `too_deep` (the contact's lineage has more than 50 levels) or `circular_lineage`. That
 * the contact lives in the document itself is usual and no circle. Source: R6, S8.
 */
export const setContact = defineDocumentAction({
  name: 'set-contact',
  operation: z.strictObject({
    contact: z.optional(AnyJson),
    current_contact_id: z.optional(z.nullable(z.string())),
    current_contact: z.optional(AnyJson),
  }),
  isApplied: (doc, operation) => sameValue(ownField(doc, 'contact'), operation.contact),
  guard: (doc, operation) =>
    contactFailure(operation.contact) ??
    mismatch(doc, { field: 'contact', id: operation.current_contact_id, whole: operation.current_contact }),
  apply: (doc, operation) => withField(doc, 'contact', operation.contact),
});

function contactFailure(contact: Json | undefined): Failure | undefined {
  const id = ownField(contact, '_id');
  return lineageFailure(ownField(contact, 'parent'), typeof id === 'string' ? [id] : []);
}
