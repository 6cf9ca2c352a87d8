import type { ActionPart, OperationInput } from '@afield/client';
import { z } from 'zod/mini';

/** The id of a contact in a request. */
export const contactId = z.string('must be the id of a contact').check(z.minLength(1, 'must not be empty'));

/** Whether users go, too. */
export const optionalFlag = z.optional(z.boolean('must be true or false'));

/** The parts in their order, without those that have nothing to do: an app needs no action that is not used. */
export function partsOf(
  ...parts: readonly (readonly [action: string, operations: readonly OperationInput[]])[]
): ActionPart[] {
  return parts.flatMap(([action, operations]) => (operations.length === 0 ? [] : [{ action, operations }]));
}
