import type { IndexDefinition } from '../model/lookup.js';

/** Defines a local index, for `ClientOptions.indexes`. */
export function defineIndex(definition: IndexDefinition): IndexDefinition {
  return definition;
}
