import { PlanRefusedError, type Doc, type Json, type OperationInput } from '@afield/client';
import { deepestLineage, isNone, levelOf, levelsOf, ownField, withField, type Level } from './lineage.js';
import type { Seen, SeenContact } from './seen-contacts.js';

/** What a plan changes about who is below whom. */
export interface LineageChange {
  /** Contacts that get another parent, or none (null). */
  readonly parents: ReadonlyMap<string, string | null>;
  /** Contacts in whose place another one comes, wherever they are named. */
  readonly replaced: ReadonlyMap<string, string>;
}

export const noChange: LineageChange = { parents: new Map(), replaced: new Map() };

/**
 * What lineages must be once the change is done. The lineage of a contact is its parent and the lineage of that, as the
 * documents say; of a parent that is not on this device, or is no contact, only what the lineage itself says is known.
 *
 * Lineages are compared by their ids: what else is written in them is kept. All methods throw `PlanRefusedError` for a
 * lineage that is circular (`circular_lineage`) or would be deeper than 50 levels (`too_deep`). Pure.
 */
export class RightLineages {
  readonly #seen: Seen;
  readonly #change: LineageChange;

  constructor(seen: Seen, change: LineageChange) {
    this.#seen = seen;
    this.#change = change;
  }

  /** Who is above this contact, nearest first. `most`: levels that it may have. */
  above(contact: SeenContact, most = deepestLineage): readonly string[] {
    return this.#walk(this.#parentOf(contact.id, contact), [contact.id], { most, of: contact.id });
  }

  /** The contact that a document names, and who is above it; empty when it names none. `most`: levels above it. */
  contactOf(doc: Doc, most = deepestLineage): readonly string[] {
    // The contact itself is no level of its lineage.
    return this.#walk(levelOf(ownField(doc, 'contact')), [], { most: most + 1, of: doc._id });
  }

  /** `set-parent` for a contact whose lineage is not right, and how deep it lies. Undefined: it is right. */
  setParent(contact: SeenContact): { readonly operation: OperationInput; readonly depth: number } | undefined {
    const ids = this.above(contact);
    if (isSame(ids, contact.parent)) return undefined;
    const operation = { id: contact.id, parent: lineage(ids, contact.parent), current_parent: asSeen(contact.parent) };
    return { operation, depth: ids.length };
  }

  /** `set-contact` for a document whose contact, or the contact's lineage, is not right. Undefined: it is right. */
  setContact(doc: Doc): OperationInput | undefined {
    const seen = ownField(doc, 'contact');
    const ids = this.contactOf(doc);
    if (isSame(ids, seen)) return undefined;
    return { id: doc._id, contact: lineage(ids, seen), current_contact: asSeen(seen) };
  }

  /** The ids from this level on, upwards. */
  #walk(start: Level | undefined, before: readonly string[], { most, of }: { most: number; of: string }): string[] {
    const ids: string[] = [];
    const met = new Set(before);
    for (let level = start; level !== undefined;) {
      const id = this.#change.replaced.get(level._id) ?? level._id;
      if (met.has(id)) {
        throw new PlanRefusedError('circular_lineage', `The lineage of "${of}" is a circle: it comes back to "${id}".`);
      }
      if (ids.length === most) {
        const levels = String(deepestLineage);
        throw new PlanRefusedError('too_deep', `"${of}" would have a lineage of more than ${levels} levels.`);
      }
      met.add(id);
      ids.push(id);
      // A report or a user is nobody's parent: it says as little as what is not here, and may go with a deletion.
      const contact = this.#seen.get(id);
      level = this.#parentOf(id, contact?.isContact === true ? contact : level);
    }
    return ids;
  }

  /** `known`: the contact, or what another lineage says of it. */
  #parentOf(id: string, known: object): Level | undefined {
    const given = this.#change.parents.get(id);
    if (given === undefined) return levelOf(ownField(known, 'parent'));
    return given === null ? undefined : { _id: given };
  }
}

/** Whether a lineage has these ids, and no others. */
function isSame(ids: readonly string[], value: unknown): boolean {
  let depth = 0;
  for (const { _id } of levelsOf(value, ids.length + 1)) {
    if (ids[depth] !== _id) return false;
    depth += 1;
  }
  return depth === ids.length;
}

/** A lineage of these ids; what the old one says of a contact beside its id is kept. Null when there are none. */
function lineage(ids: readonly string[], old: unknown): Json {
  const kept = new Map(Array.from(levelsOf(old), (level) => [level._id, level] as const));
  let above: Level | undefined;
  for (const id of [...ids].reverse()) above = withField(kept.get(id) ?? { _id: id }, 'parent', above);
  return (above ?? null) as Json;
}

/** A guard: what is there now; null when there is nothing. */
function asSeen(value: unknown): Json {
  return isNone(value) ? null : (value as Json);
}
