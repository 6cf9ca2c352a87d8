import { apply as mergePatch } from 'tiny-merge-patch';
import { z } from 'zod/mini';
import type { Doc } from '../model/json.js';
import { sameJson } from '../model/same-json.js';
import { defineDocumentAction } from './define.js';
import { isFields, ownField, ownFields, sameValue, type Fields } from './fields.js';

export interface UpdateOperation {
  /** A JSON merge patch (RFC 7396): null removes a field, an object is merged, all else replaces what is there. */
  readonly patch: Fields;
  /** Applied only to a document whose fields are so; null: that has no such field. */
  readonly expected?: Fields | undefined;
}

/** A field that is `undefined` would not be stored: the operation would have lost its guard. */
const expectedFields = ownFields.check((context) => {
  const fields: unknown = context.value;
  if (!isFields(fields)) return;
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined) continue;
    const message = 'must not be undefined: null says that there must be none';
    context.issues.push({ code: 'custom', path: [field], message, input: context.value });
  }
});

/**
 * `update`: the document is as the patch wants it (R6). Where the patch would change nothing, it is applied already.
 *
 * Fails with `missing` when there is no live document: it is never created by accident (O5); with `guard_mismatch` when a
 * field of `expected` is another one (null, undefined and absent all mean none).
 */
export const updateAction = defineDocumentAction<UpdateOperation>({
  name: 'update',
  operation: z.strictObject({ patch: ownFields, expected: z.optional(expectedFields) }),
  isApplied: (doc, { patch }) => doc._deleted !== true && sameJson(patched(doc, patch), doc),
  guard: (doc, { expected = {} }) => {
    const other = Object.keys(expected).find((field) => !sameValue(ownField(doc, field), expected[field]));
    if (other === undefined) return undefined;
    return { code: 'guard_mismatch', reason: `The field "${other}" is not as the operation expects it.` };
  },
  apply: (doc, { patch }) => patched(doc, patch),
});

function patched(doc: Doc, patch: Fields): Doc {
  return mergePatch<unknown, unknown>(doc, patch) as Doc;
}
