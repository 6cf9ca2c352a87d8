import type { OperationInput } from '@afield/client';

/** Codes of the operations of `mustFail`, in their order. */
export const mustFailCodes = ['missing', 'guard_mismatch', 'no_id', 'forbidden', 'missing'] as const;

/**
 * Five `set-parent` operations that can't work: a record that is not there (twice), one that is guarded by a parent that
 * it has not, one that names no record, and one that only the server refuses.
 * @param guarded a person; stays as it is
 * @param refused a person with a place; loses it on this device until the server has refused that
 * @param targetId the place that the operations name
 */
export function mustFail(guarded: string, refused: string, targetId: string): readonly OperationInput[] {
  const parent = { _id: targetId };
  return [
    { id: 'person:not-there-1', parent },
    { id: guarded, parent, current_parent_id: 'place:where-nobody-is' },
    { parent },
    { id: refused, parent: null },
    { id: 'person:not-there-2', parent },
  ];
}
