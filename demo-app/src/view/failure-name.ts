import type { FailedOperation } from '@afield/client';
import type { ViewState } from './state.js';

/** The name of the record that a failure is about, as a person knows it. */
export function nameOf({ id }: FailedOperation, { catalogue }: ViewState): string {
  return id === undefined ? 'No record named' : (catalogue.get(id)?.name ?? id);
}
