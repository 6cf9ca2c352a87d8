import type { Failure } from '../model/failure.js';
import type { Doc } from '../model/json.js';

/** Fields with an underscore that a document may carry when it is written. */
const special = new Set(['_id', '_rev', '_attachments', '_deleted']);
/** Documents deeper than this break stores; real ones are far flatter. */
const deepest = 1000;

/**
 * Why a document cannot be stored, or undefined. Found before the write: one bad document makes PouchDB reject the
 * whole bulk write, with a status that looks as if it may pass (R7).
 */
export function documentFailure(doc: Doc): Failure | undefined {
  for (const name of Object.keys(doc)) {
    if (name.startsWith('_') && name !== '__proto__' && !special.has(name)) {
      return { code: 'invalid_doc', reason: `A document cannot have a field "${name}".` };
    }
  }
  const open: { value: unknown; depth: number }[] = [{ value: doc, depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, depth } = next;
    switch (typeof value) {
      case 'function':
      case 'symbol':
      case 'bigint':
        return { code: 'invalid_doc', reason: 'A document cannot hold what is not JSON.' };
      case 'object':
        break;
      default:
        continue;
    }
    if (value === null) continue;
    if (depth > deepest)
      return { code: 'too_deep', reason: `The document is nested deeper than ${String(deepest)} levels.` };
    if (Object.prototype.hasOwnProperty.call(value, '__proto__')) {
      return { code: 'invalid_doc', reason: 'A document cannot have a field "__proto__".' };
    }
    for (const inner of Object.values(value)) open.push({ value: inner, depth: depth + 1 });
  }
  return undefined;
}

/** What readers of the change will know it by: the document's own type. */
export function typeOf(doc: Doc): string | undefined {
  const type = doc['type'] ?? doc['form'];
  return typeof type === 'string' ? type : undefined;
}
