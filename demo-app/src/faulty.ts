import { defineAction, type AnyAction, type OperationInput } from '@afield/client';
import { z } from 'zod/mini';

/** How many operations are done before the fault is met. */
const soundOperations = 100;

/**
 * An action with a bug, so that the state `failed` can be looked at: it changes nothing, and throws at its 101st
 * operation. That happens once for each time the page is opened: afterwards the app counts as mended.
 */
export function faultyAction(): AnyAction {
  let isMended = false;
  return defineAction({
    name: 'meet-a-fault',
    operation: z.strictObject({}),
    run: (batch) => {
      if (isMended || !batch.some(({ index }) => index >= soundOperations)) return Promise.resolve({});
      isMended = true;
      return Promise.reject(new TypeError('A fault on purpose: this action reads what is not there.'));
    },
  });
}

/** Operations for it: the fault leaves half as many undone as it has done. */
export function faultyOperations(): readonly OperationInput[] {
  return Array.from({ length: soundOperations * 1.5 }, (_, place) => ({ id: `practice:${String(place + 1)}` }));
}
