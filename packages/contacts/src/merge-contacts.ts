import { definePlan, deleteAction, PlanRefusedError, updateAction, type OperationInput } from '@afield/client';
import { z } from 'zod/mini';
import { contactsIndex, reportAbout } from './contacts-index.js';
import { deleteUser } from './delete-user.js';
import { lineageOperations } from './lineage-operations.js';
import { contactId, optionalFlag, partsOf } from './plan-parts.js';
import { isReport, subjectChange, subjectsOf } from './report.js';
import { noChange, RightLineages } from './right-lineages.js';
import { liveDocs, SeenContacts, type SeenContact } from './seen-contacts.js';
import { setContact } from './set-contact.js';
import { setParent } from './set-parent.js';
import { idsOfEach, readSubtree, type Reads } from './subtree.js';
import { userDeletions } from './users.js';

/**
 * `merge-contacts`: one contact takes the place of others, the sources. What is below them comes below it, places and
 * reports whose contact they are get it as contact, reports about them are about it; then they are deleted.
 *
 * - `sources`: ids of the contacts that go; `target`: the id of the one that stays. All of one kind (`contact_type`, else
 *   `type`).
 * - `deleteUsers`: also deletes users who are a source, or whose places are all sources. Default: false.
 *
 * Becomes `set-parent` from the top down, `set-contact`, `update` of reports, `delete` of the sources, `delete-user`; all
 * but the deletions with what the plan has seen as their guard (`guard_mismatch`). A short code of a source becomes that of
 * the target, or its id when it has none; a code that is the id of another document counts as that id. A source that was deleted is gone already: what still names it by its id is
 * brought to the target.
 *
 * Asks `contactsIndex`; for the target `local`. Refused before anything is written: `missing`, `not_a_contact`,
 * `different_kind`, `circular_lineage` (the target is a source or below one), `too_deep`.
 */
export const mergeContacts = definePlan({
  name: 'merge-contacts',
  indexes: [contactsIndex.name],
  request: z.strictObject({
    sources: z.array(contactId, 'must be a list of ids').check(z.minLength(1, 'must name at least one contact')),
    target: contactId,
    deleteUsers: optionalFlag,
  }),
  plan: async ({ sources: given, target: targetId, deleteUsers }, reads) => {
    const sources = [...new Set(given)];
    const seen = new SeenContacts(reads.db);
    const target = await seen.expect(targetId);
    await seen.learn(sources);
    assertMergeable(sources, target, seen);
    const change = { parents: new Map<string, string>(), replaced: new Map(sources.map((id) => [id, targetId])) };
    const ids = await readSubtree(sources, seen, reads);
    const lineages = await lineageOperations(sources, ids, change, seen, reads);
    await seen.learnCodes([targetId, ...sources]);
    const others = otherCodes(sources, target, seen);
    const updates = await reportUpdates(others, new Set(sources), seen, reads);
    const deletions = sources.filter((id) => seen.get(id) !== undefined).map((id) => ({ id }));
    return partsOf(
      [setParent.name, lineages.setParent],
      [setContact.name, lineages.setContact],
      [updateAction.name, updates],
      [deleteAction.name, deletions],
      [deleteUser.name, deleteUsers === true ? await userDeletions(new Set(sources), reads) : []],
    );
  },
});

function assertMergeable(sources: readonly string[], target: SeenContact, seen: SeenContacts): void {
  seen.assertContacts([target.id, ...sources]);
  const above = [target.id, ...new RightLineages(seen, noChange).above(target)];
  for (const id of sources) {
    if (above.includes(id)) {
      const where = target.id === id ? 'is itself among the sources' : 'lies below it';
      throw new PlanRefusedError('circular_lineage', `"${id}" cannot be merged into "${target.id}": that ${where}.`);
    }
    const source = seen.get(id);
    // Deleted: merged already, or gone otherwise. Never heard of: a wrong id, most likely.
    if (source === undefined && !seen.wasDeleted(id)) {
      throw new PlanRefusedError('missing', `There is no contact "${id}" on this device.`);
    }
    if (source !== undefined && source.kind !== target.kind) {
      throw new PlanRefusedError('different_kind', `"${id}" is not of the same kind of contact as "${target.id}".`);
    }
  }
}

/** What stands for the target wherever a source is named. What names the target stays as it is. */
function otherCodes(
  sources: readonly string[],
  { id: target }: SeenContact,
  seen: SeenContacts,
): ReadonlyMap<string, string> {
  const others = new Map<string, string>();
  const own = seen.codesOf(target);
  // A source that is gone has left its id: no code of the target, or a second run would find more to do.
  const codeOf = (code: string | undefined): string => (code === undefined || sources.includes(code) ? target : code);
  for (const id of sources) {
    const { patientId, placeId } = seen.codesOf(id);
    if (patientId !== undefined) others.set(patientId, codeOf(own.patientId));
    if (placeId !== undefined) others.set(placeId, codeOf(own.placeId));
    others.set(id, target);
  }
  for (const code of [target, own.patientId, own.placeId]) {
    if (code !== undefined && !sources.includes(code)) others.delete(code);
  }
  return others;
}

/** Reports about the sources become reports about the target. */
async function reportUpdates(
  others: ReadonlyMap<string, string>,
  sources: ReadonlySet<string>,
  seen: SeenContacts,
  reads: Reads,
): Promise<readonly OperationInput[]> {
  const found = await idsOfEach([...others.keys()], reportAbout, reads);
  const operations: OperationInput[] = [];
  for await (const docs of liveDocs(reads.db, found)) {
    await seen.learn(docs.flatMap(subjectsOf));
    for (const doc of docs) {
      const kept = seen.codesOfNamed(subjectsOf(doc), sources);
      const change = isReport(doc) && !sources.has(doc._id) ? subjectChange(doc, others, kept) : undefined;
      if (change !== undefined) operations.push({ id: doc._id, ...change });
    }
  }
  return operations;
}
