import type { ActionPart, OperationInput } from '@afield/client';
import type { Lineage } from './csv/read-files.js';
import type { Entry, Places } from './catalogue.js';

/** A move that can't be: the message is for people. */
export class MoveError extends Error {
  override readonly name = 'MoveError';
}

/**
 * What has to change when these places and persons, with all below them, come to lie in another place: `set-parent` for
 * each of them from the top down, then `set-contact` for every report or place whose contact has moved along.
 * Each operation names the parent or contact that it expects to find.
 */
export function planMove(places: Places, ids: readonly string[], targetId: string): readonly ActionPart[] {
  const target = places.get(targetId);
  if (!target) throw new MoveError('The new place is not on this device.');
  const above = lineageOf(places, targetId);
  const roots = withoutThoseBelow(places, ids);
  const moved = new Map<string, Lineage>();
  const setParents: OperationInput[] = [];
  for (const id of roots) {
    const root = places.get(id);
    if (!root) throw new MoveError(`“${id}” is not on this device.`);
    if (id === targetId || idsAbove(places, targetId).includes(id)) {
      throw new MoveError(`“${root.name}” can’t be moved into itself.`);
    }
    if (root.parentId === targetId) throw new MoveError(`“${root.name}” is already in “${target.name}”.`);
    moveSubtree(places, root, above, moved, setParents);
  }
  const setContacts = [...places.entries()]
    .map((entry) => contactAfter(entry, moved))
    .filter((found) => found !== undefined);
  const parts = [
    { action: 'set-parent', operations: setParents },
    { action: 'set-contact', operations: setContacts },
  ];
  return parts.filter(({ operations }) => operations.length > 0);
}

/** What lies in another one of them moves along with it. */
export function withoutThoseBelow(places: Places, ids: readonly string[]): readonly string[] {
  const chosen = new Set(ids);
  return ids.filter(
    (id) =>
      !idsAbove(places, id)
        .slice(1)
        .some((higher) => chosen.has(higher)),
  );
}

/** Level by level, so that a place is always changed before what lies in it. */
function moveSubtree(
  places: Places,
  root: Entry,
  above: Lineage,
  moved: Map<string, Lineage>,
  operations: OperationInput[],
): void {
  let level: (readonly [Entry, Lineage])[] = [[root, above]];
  while (level.length > 0) {
    const next: (readonly [Entry, Lineage])[] = [];
    for (const [entry, parent] of level) {
      if (moved.has(entry.id)) continue;
      moved.set(entry.id, parent);
      operations.push({ id: entry.id, parent, current_parent_id: entry.parentId ?? null });
      for (const child of places.childrenOf(entry.id)) next.push([child, { _id: entry.id, parent }]);
    }
    level = next;
  }
}

/** A new contact when someone in the present one's lineage has moved. */
function contactAfter(entry: Entry, moved: ReadonlyMap<string, Lineage>): OperationInput | undefined {
  const at = entry.contact.findIndex((id) => moved.has(id));
  if (at < 0) return undefined;
  const parent = moved.get(entry.contact[at] ?? '');
  const contact = entry.contact
    .slice(0, at + 1)
    .reduceRight<Lineage | undefined>((higher, _id) => (higher ? { _id, parent: higher } : { _id }), parent);
  return { id: entry.id, contact, current_contact_id: entry.contact[0] };
}

function lineageOf(places: Places, id: string): Lineage {
  return idsAbove(places, id).reduceRight<Lineage | undefined>(
    (parent, _id) => (parent ? { _id, parent } : { _id }),
    undefined,
  ) as Lineage;
}

/** The id itself and those above it. */
function idsAbove(places: Places, id: string): string[] {
  const ids: string[] = [];
  for (
    let here: string | undefined = id;
    here !== undefined && !ids.includes(here);
    here = places.get(here)?.parentId
  ) {
    ids.push(here);
  }
  return ids;
}
