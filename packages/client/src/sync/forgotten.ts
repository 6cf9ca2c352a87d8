import type { Doc } from '../model/json.js';
import type { LocalDatabase } from '../store/local-database.js';

/** A field of a tombstone that is for this device alone: it says that the document left it, not that it was deleted. */
const field = 'afield_forgotten';

/** What takes a document's place that leaves this device. The push never sends it. */
export function forgottenStub(id: string, rev: string): Doc {
  return { _id: id, _rev: rev, _deleted: true, [field]: true };
}

export function isForgottenStub(doc: Doc): boolean {
  return doc['_deleted'] === true && doc[field] === true;
}

/** Whether this revision only says that the document has left this device. */
export async function isForgotten(local: LocalDatabase, id: string, rev: string): Promise<boolean> {
  const [read] = await local.readRevisions([{ id, rev }]);
  return read !== undefined && isForgottenStub(read.doc);
}
