import type { IndexKey, PlanContext } from '@afield/client';
import { below, childOf, contactsIndex } from './contacts-index.js';
import { pagesOf, type SeenContacts } from './seen-contacts.js';

/** What a plan needs of its context. */
export type Reads = Pick<PlanContext, 'db' | 'index'>;

/**
 * The ids of these contacts and of all that are below one of them, or say so: by their lineage, or because their parent is
 * among them, whatever their lineage says. All of them, and all above them, are read into `seen`.
 *
 * A lineage that was only half brought up to date once (someone cancelled, a guard did not fit) is found like this.
 */
export async function readSubtree(
  roots: readonly string[],
  seen: SeenContacts,
  reads: Reads,
): Promise<readonly string[]> {
  const ids = new Set(roots);
  for (const id of await idsOf(roots.map(below), reads)) ids.add(id);
  for (let open = [...ids]; open.length > 0;) {
    const children = await idsOfEach(open, childOf, reads);
    open = [...children].filter((id) => !ids.has(id));
    for (const id of open) ids.add(id);
  }
  await seen.learn(ids);
  return [...ids];
}

/** The documents that have one of these keys in the index, each once. */
export async function idsOf(keys: readonly IndexKey[], reads: Reads): Promise<ReadonlySet<string>> {
  if (keys.length === 0) return new Set();
  const { rows } = await reads.index(contactsIndex.name).query({ keys });
  return new Set(rows.map(({ id }) => id));
}

/** The documents that have the key of one of these, each once: asked page by page, however many there are. */
export async function idsOfEach(
  names: readonly string[],
  keyOf: (name: string) => IndexKey,
  reads: Reads,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const page of pagesOf(names)) for (const id of await idsOf(page.map(keyOf), reads)) found.add(id);
  return found;
}
