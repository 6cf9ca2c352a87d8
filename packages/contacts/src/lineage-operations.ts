import type { OperationInput } from '@afield/client';
import { placeOf, placeOfBelow, reportBy, reportByBelow } from './contacts-index.js';
import { idsIn, ownField } from './lineage.js';
import { RightLineages, type LineageChange } from './right-lineages.js';
import { liveDocs, pagesOf, type SeenContacts } from './seen-contacts.js';
import { idsOf, type Reads } from './subtree.js';

/** Operations that bring lineages up to date. */
export interface LineageOperations {
  /** From the top down. */
  readonly setParent: readonly OperationInput[];
  readonly setContact: readonly OperationInput[];
}

/**
 * What is to be done so that the lineages of these contacts, and those in the `contact` of places and reports that name one
 * of them, are right after the change. `roots`: those whose subtree `ids` is. Those that are replaced are left as they are.
 * Throws as `RightLineages` does.
 */
export async function lineageOperations(
  roots: readonly string[],
  ids: readonly string[],
  change: LineageChange,
  seen: SeenContacts,
  reads: Reads,
): Promise<LineageOperations> {
  const right = new RightLineages(seen, change);
  const byDepth: OperationInput[][] = [];
  // What has a contact that is not on this device any more is found by the lineage that it keeps.
  const naming = new Set(
    await idsOf(
      roots.flatMap((id) => [placeOfBelow(id), reportByBelow(id)]),
      reads,
    ),
  );
  for (const page of pagesOf(ids)) {
    // The page gets its turn with each question, so that no task is long.
    const keys = page.flatMap((id) => [placeOf(id), reportBy(id)]);
    for (const id of await idsOf(keys, reads)) naming.add(id);
    for (const id of page) {
      const contact = seen.get(id);
      const found = contact === undefined || change.replaced.has(id) ? undefined : right.setParent(contact);
      if (found !== undefined) (byDepth[found.depth] ??= []).push(found.operation);
    }
  }
  const setContact: OperationInput[] = [];
  for await (const docs of liveDocs(reads.db, naming)) {
    await seen.learn(docs.flatMap((doc) => idsIn(ownField(doc, 'contact'))));
    for (const doc of docs) {
      const operation = change.replaced.has(doc._id) ? undefined : right.setContact(doc);
      if (operation !== undefined) setContact.push(operation);
    }
  }
  return { setParent: byDepth.flat(), setContact };
}
