import type { Failure } from '../model/failure.js';

/** Why an operation's id cannot be one of a document, or undefined (S9). */
export function idFailure(id: unknown): Failure | undefined {
  if (id === undefined || id === null || id === '')
    return { code: 'no_id', reason: 'The operation names no document.' };
  if (typeof id !== 'string') return { code: 'invalid_id', reason: 'The id of the document is not a text.' };
  if (id === '__proto__') return { code: 'invalid_id', reason: 'A document cannot have this id.' };
  if (id.startsWith('_')) {
    return { code: 'invalid_id', reason: 'The id of a document cannot begin with an underscore.' };
  }
  return undefined;
}
