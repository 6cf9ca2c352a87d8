import type { Doc } from '../model/json.js';

/** A field of a tombstone that is for this device alone: it says that the document left it, not that it was deleted. */
const field = 'afield_forgotten';

/** What takes a document's place that leaves this device. The push never sends it. */
export function forgottenStub(id: string, rev: string): Doc {
  return { _id: id, _rev: rev, _deleted: true, [field]: true };
}

export function isForgottenStub(doc: Doc): boolean {
  return doc['_deleted'] === true && doc[field] === true;
}
