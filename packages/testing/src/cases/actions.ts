import { isDeepStrictEqual } from 'node:util';
import { defineDocumentAction, sameJson, type AnyAction, type OperationInput } from '@afield/client';
import { deleteUser, setContact, setParent } from '@afield/contacts';
import * as z from 'zod';
import { isObject, ownOf, setOwn, type JsonObject } from './json.js';
import type { Operation } from './schema.js';

/** `test-merge`: stands for an action of the users' own; brings the fields of `set` into the document. */
export const testMerge = defineDocumentAction({
  name: 'test-merge',
  operation: z.strictObject({ set: z.custom<JsonObject>(isObject, 'must be an object') }),
  isApplied: (doc, { set }) =>
    Object.entries(set).every(([key, value]) => Object.hasOwn(doc, key) && sameJson(doc[key], value)),
  apply: (doc, { set }) => {
    const result = { ...doc };
    for (const [key, value] of Object.entries(set)) setOwn(result, key, value);
    return result;
  },
});

/** The actions that an app would hand in; `delete` is the SDK's own. */
export const caseActions: readonly AnyAction[] = [setParent, setContact, deleteUser as AnyAction, testMerge];

/** Whether a document that was written may be what the operation made of it. */
export function showsEffect(operation: Operation, doc: JsonObject): boolean {
  switch (operation.action) {
    case 'set-parent':
      return isDeepStrictEqual(doc['parent'] ?? null, operation.to ?? null);
    case 'set-contact':
      return isDeepStrictEqual(doc['contact'] ?? null, operation.to ?? null);
    case 'delete':
      return doc['_deleted'] === true;
    case 'test-merge':
      return Object.entries(operation.set).every(([key, value]) => isDeepStrictEqual(ownOf(doc, key), value));
    default:
      return true;
  }
}

/** An operation of a case file in the words of the SDK. */
export function operationInput(operation: Operation): OperationInput {
  const common = {
    ...(Object.hasOwn(operation, 'id') ? { id: operation.id } : {}),
    ...(operation.key === undefined ? {} : { key: operation.key }),
  };
  switch (operation.action) {
    case 'set-parent':
      return { ...common, ...change(operation, 'parent') };
    case 'set-contact':
      return { ...common, ...change(operation, 'contact') };
    case 'delete-user':
      return { ...common, ...(operation.guard === undefined ? {} : { facilities: operation.guard.facility_id }) };
    case 'test-merge':
      return { ...common, set: operation.set };
    default:
      return common;
  }
}

function change(operation: { from?: unknown; to?: unknown }, field: string): JsonObject {
  return {
    ...(operation.to === undefined ? {} : { [field]: operation.to }),
    ...(operation.from === undefined ? {} : { [`current_${field}`]: operation.from }),
  };
}
