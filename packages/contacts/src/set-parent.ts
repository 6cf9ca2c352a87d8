import { defineDocumentAction } from '@afield/client';
import { z } from 'zod/mini';
import { AnyJson } from './any-json.js';
import { lineageFailure, mismatch, ownField, sameValue, withField } from './lineage.js';

/**
 * `set-parent`: the document's `parent` becomes the given lineage; null or absent removes it.
 *
 * - `parent`: the new lineage, `{ _id, parent: { _id, … } }`, kept as given.
 * - `current_parent_id`: the operation applies only when `parent` has this id; null: only when there is no parent.
 * - `current_parent`: likewise, with all of `parent`.
 *
 * Fails with `guard_mismatch`, `too_deep` (more than 50 levels) or `circular_lineage`. Source: R6, S8.
 */
export const setParent = defineDocumentAction({
  name: 'set-parent',
  operation: z.strictObject({
    parent: z.optional(AnyJson),
    current_parent_id: z.optional(z.nullable(z.string())),
    current_parent: z.optional(AnyJson),
  }),
  isApplied: (doc, operation) => sameValue(ownField(doc, 'parent'), operation.parent),
  guard: (doc, operation) =>
    lineageFailure(operation.parent, [doc._id]) ??
    mismatch(doc, { field: 'parent', id: operation.current_parent_id, whole: operation.current_parent }),
  apply: (doc, operation) => withField(doc, 'parent', operation.parent),
});
