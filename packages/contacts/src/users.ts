import type { Doc, OperationInput } from '@afield/client';
import { facilitiesOf, userOf, userPrefix } from './contacts-index.js';
import { ownField } from './lineage.js';
import { liveDocs } from './seen-contacts.js';
import { idsOfEach, type Reads } from './subtree.js';

/**
 * `delete-user` for all users who are one of these contacts, or whose places are all among them: whoever has another place
 * stays. A user whose settings are inactive is gone already.
 */
export async function userDeletions(contacts: ReadonlySet<string>, reads: Reads): Promise<readonly OperationInput[]> {
  const found = await idsOfEach([...contacts], userOf, reads);
  const operations: OperationInput[] = [];
  for await (const docs of liveDocs(reads.db, found)) {
    for (const settings of docs) {
      if (ownField(settings, 'inactive') === true || !isUserOf(settings, contacts)) continue;
      const facilities = facilitiesOf(settings);
      operations.push({ id: settings._id, facilities: facilities.length === 0 ? null : facilities });
    }
  }
  return operations;
}

function isUserOf(settings: Doc, contacts: ReadonlySet<string>): boolean {
  if (!settings._id.startsWith(userPrefix)) return false;
  const [contact, facilities] = [ownField(settings, 'contact_id'), facilitiesOf(settings)];
  if (typeof contact === 'string' && contacts.has(contact)) return true;
  return facilities.length > 0 && facilities.every((id) => contacts.has(id));
}
