import { z } from 'zod/mini';
import type { Doc } from '../model/json.js';
import { sameJson } from '../model/same-json.js';
import { defineDocumentAction } from './define.js';
import { ownFields, type Fields } from './fields.js';

export interface CreateOperation {
  /** The fields of the new document, without `_id`, `_rev` and all others that begin with `_`. */
  readonly doc: Fields;
  /** The document is replaced if it is there at just this revision: what a person decided who has seen it. */
  readonly replaces?: string | undefined;
}

/**
 * `create`: the document exists with these fields.
 *
 * - None there, or a deleted one: it is created.
 * - There with the same fields (key order and attachments do not count): applied already, nothing is written.
 * - There with other fields: `conflicting_content`, and nothing is written, unless `replaces` names its revision: then its
 *   fields are replaced, and its attachments kept.
 *
 * Attachments cannot be given: they would be kept in the queue as text, and cannot be compared before they are written.
 * Source: O5, R3, S8.
 */
export const createAction = defineDocumentAction<CreateOperation>({
  name: 'create',
  operation: z.strictObject({ doc: ownFields, replaces: z.optional(z.string().check(z.regex(/^\d+-./))) }),
  missing: 'create',
  isApplied: (doc, { doc: fields }) => doc._deleted !== true && sameJson(fieldsOf(doc), fields),
  guard: (doc, { replaces }) =>
    replaces !== undefined && doc._rev === replaces
      ? undefined
      : {
          code: 'conflicting_content',
          reason:
            'Another document is there under this id. Compare the two: keep the one that is there, put this one in its place, or create this one under another id.',
        },
  apply: (doc, { doc: fields }) => ({
    ...fields,
    _id: doc._id,
    ...(doc['_attachments'] === undefined ? {} : { _attachments: doc['_attachments'] }),
  }),
});

function fieldsOf(doc: Doc): Fields {
  return Object.fromEntries(Object.entries(doc).filter(([field]) => !field.startsWith('_')));
}
