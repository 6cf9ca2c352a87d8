import { definePlan, PlanRefusedError } from '@afield/client';
import { z } from 'zod/mini';
import { contactsIndex } from './contacts-index.js';
import { lineageOperations } from './lineage-operations.js';
import { contactId, partsOf } from './plan-parts.js';
import { noChange, RightLineages } from './right-lineages.js';
import { SeenContacts } from './seen-contacts.js';
import { setContact } from './set-contact.js';
import { setParent } from './set-parent.js';
import { readSubtree } from './subtree.js';

/**
 * `move-contact`: the contact gets another parent, and it and all below it their right lineages; so do the contacts of
 * places and reports that are among them.
 *
 * - `id`: the contact; `parent`: the id of its new parent, null: it has none any more.
 *
 * Becomes `set-parent` from the top down, then `set-contact`, each with all of what the plan has seen as its guard
 * (`guard_mismatch`); only where a lineage is not right. Asks `contactsIndex`; for the target `local`. Refused before
 * anything is written: `missing`, `not_a_contact`, `circular_lineage` (the new parent is the contact itself or below it),
 * `too_deep` (a document would have more than 50 levels).
 */
export const moveContact = definePlan({
  name: 'move-contact',
  indexes: [contactsIndex.name],
  request: z.strictObject({ id: contactId, parent: z.nullable(contactId) }),
  plan: async ({ id, parent }, reads) => {
    const seen = new SeenContacts(reads.db);
    await seen.expect(id);
    const target = parent === null ? undefined : await seen.expect(parent);
    seen.assertContacts([id, ...(parent === null ? [] : [parent])]);
    if (target !== undefined && [target.id, ...new RightLineages(seen, noChange).above(target)].includes(id)) {
      const where = target.id === id ? 'is the contact itself' : 'lies below it';
      throw new PlanRefusedError('circular_lineage', `"${id}" cannot be moved to "${target.id}": that ${where}.`);
    }
    const change = { parents: new Map([[id, parent]]), replaced: new Map<string, string>() };
    const ids = await readSubtree([id], seen, reads);
    const operations = await lineageOperations([id], ids, change, seen, reads);
    return partsOf([setParent.name, operations.setParent], [setContact.name, operations.setContact]);
  },
});
