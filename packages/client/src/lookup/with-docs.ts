import type { Doc } from '../model/json.js';
import type { IndexRow } from '../model/lookup.js';
import type { DocumentReader } from '../model/plan.js';

/** Documents that are read at once. */
const atOnce = 500;

/** The rows with their documents, as they are now; a row whose document is deleted is left out. */
export async function withDocs(
  rows: readonly IndexRow[],
  documents: Pick<DocumentReader, 'read'>,
  breathe: () => Promise<void>,
): Promise<readonly IndexRow[]> {
  const ids = [...new Set(rows.map(({ id }) => id))];
  const found = new Map<string, Doc>();
  for (let from = 0; from < ids.length; from += atOnce) {
    if (from > 0) await breathe();
    for (const { id, doc } of await documents.read(ids.slice(from, from + atOnce))) {
      if (doc !== undefined) found.set(id, doc);
    }
  }
  return rows.flatMap((row) => {
    const doc = found.get(row.id);
    return doc === undefined ? [] : [{ ...row, doc }];
  });
}
