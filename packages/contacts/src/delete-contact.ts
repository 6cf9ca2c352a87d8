import { definePlan, deleteAction, type IndexKey, type OperationInput } from '@afield/client';
import { z } from 'zod/mini';
import { contactsIndex, placeOf, placeOfBelow, reportAbout } from './contacts-index.js';
import { deleteUser } from './delete-user.js';
import { idsIn, ownField } from './lineage.js';
import { contactId, optionalFlag, partsOf } from './plan-parts.js';
import { isReport, subjectsOf } from './report.js';
import { noChange, RightLineages } from './right-lineages.js';
import { liveDocs, pagesOf, SeenContacts, type SeenContact } from './seen-contacts.js';
import { setContact } from './set-contact.js';
import { idsOf, readSubtree, type Reads } from './subtree.js';
import { userDeletions } from './users.js';

/**
 * `delete-contact`: a contact goes with all below it and all reports about any of them. Places elsewhere whose contact is
 * among them are left without one. Other reports that one of them has sent stay as they are.
 *
 * - `id`: the contact. When it is gone already, what is left below it goes.
 * - `deleteUsers`: also deletes users who are one of them, or whose places are all among them. Default: false.
 *
 * Becomes `set-contact` (null, with what the plan has seen as its guard), `delete` of the reports, then of the contacts from
 * the bottom up, the contact itself last, then `delete-user`, which waits for the network. Who says in a lineage to be below
 * the contact, but whose parents say otherwise, stays.
 *
 * Asks `contactsIndex`; for the target `local`. Refused before anything is written: `not_a_contact`, `circular_lineage`.
 */
export const deleteContact = definePlan({
  name: 'delete-contact',
  indexes: [contactsIndex.name],
  request: z.strictObject({ id: contactId, deleteUsers: optionalFlag }),
  plan: async ({ id, deleteUsers }, reads) => {
    const seen = new SeenContacts(reads.db);
    await seen.learn([id]);
    seen.assertContacts([id]);
    const found = await findMembers(id, await readSubtree([id], seen, reads), seen, reads);
    const { cleared, reports } = await readNaming(id, found, seen, reads);
    return partsOf(
      [setContact.name, cleared],
      [deleteAction.name, [...reports, ...found.contacts]],
      [deleteUser.name, deleteUsers === true ? await userDeletions(found.members, reads) : []],
    );
  },
});

interface Found {
  /** The contact, and all that are below it; it is among them also when it is gone. */
  readonly members: ReadonlySet<string>;
  /** `delete` for those that are there, from the bottom up. */
  readonly contacts: readonly OperationInput[];
  /** Ids and short codes by which reports may name them. */
  readonly codes: ReadonlySet<string>;
  /** Documents that name one of them. */
  readonly naming: ReadonlySet<string>;
}

async function findMembers(root: string, ids: readonly string[], seen: SeenContacts, reads: Reads): Promise<Found> {
  const right = new RightLineages(seen, noChange);
  const [members, codes] = [new Set([root]), new Set<string>()];
  // Whose contact is gone already is found by the lineage that they keep.
  const naming = new Set(await idsOf([placeOfBelow(root)], reads));
  const byDistance: OperationInput[][] = [];
  for (const page of pagesOf(ids)) {
    for (const id of page) {
      const contact = seen.get(id);
      const distance = contact === undefined ? undefined : distanceTo(root, contact, right);
      if (contact !== undefined && distance !== undefined) {
        members.add(id);
        (byDistance[distance] ??= []).push({ id });
      }
    }
    const here = page.filter((id) => members.has(id));
    await seen.learnCodes(here);
    const keys: IndexKey[] = [];
    for (const id of here) {
      const { patientId, placeId } = seen.codesOf(id);
      const named = [id, patientId, placeId].filter((code) => code !== undefined);
      for (const code of named) codes.add(code);
      keys.push(placeOf(id), ...named.map(reportAbout));
    }
    for (const id of await idsOf(keys, reads)) naming.add(id);
  }
  return { members, codes, naming, contacts: byDistance.reverse().flat() };
}

/** Levels between; 0: it is the root itself; undefined: it is not below it. What is too deep can be deleted, too. */
function distanceTo(root: string, contact: SeenContact, right: RightLineages): number | undefined {
  const at = [contact.id, ...right.above(contact, Infinity)].indexOf(root);
  return at < 0 ? undefined : at;
}

/** What becomes of the documents that name them: reports about them go, places elsewhere lose their contact. */
async function readNaming(
  root: string,
  { members, codes, naming }: Found,
  seen: SeenContacts,
  reads: Reads,
): Promise<{ readonly cleared: readonly OperationInput[]; readonly reports: readonly OperationInput[] }> {
  const right = new RightLineages(seen, noChange);
  const cleared: OperationInput[] = [];
  const reports: OperationInput[] = [];
  for await (const docs of liveDocs(reads.db, naming)) {
    await seen.learn(docs.flatMap((doc) => (isReport(doc) ? subjectsOf(doc) : idsIn(ownField(doc, 'contact')))));
    for (const doc of docs) {
      if (isReport(doc)) {
        const subjects = subjectsOf(doc);
        const others = seen.codesOfNamed(subjects, members);
        if (subjects.some((code) => codes.has(code) && !others.has(code))) reports.push({ id: doc._id });
      } else if (!members.has(doc._id) && right.contactOf(doc, Infinity).includes(root)) {
        cleared.push({ id: doc._id, contact: null, current_contact: ownField(doc, 'contact') });
      }
    }
  }
  return { cleared, reports };
}
