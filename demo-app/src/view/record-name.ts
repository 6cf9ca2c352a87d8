import type { ViewState } from './state.js';

/** The name of the record that an operation is about, as a person knows it. */
export function nameOf({ id }: { readonly id: string | undefined }, { catalogue }: ViewState): string {
  return id === undefined ? 'No record named' : (catalogue.get(id)?.name ?? id);
}
