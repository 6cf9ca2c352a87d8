import type { Doc } from '@afield/client';

/** A lineage that does not say what the documents say. */
export interface WrongLineage {
  /** The document that has it. */
  readonly id: string;
  readonly field: 'parent' | 'contact';
  /** The ids in it, nearest first; of `contact` the contact's own comes first. */
  readonly is: readonly string[];
  /** The ids that should be there. Where parents go round in a circle it ends with the id that comes again. */
  readonly should: readonly string[];
}

/**
 * Looks at all documents of an app whose contacts carry their lineage, and lists those whose `parent` or `contact` names
 * other contacts than the documents do: above a contact are its parent, and whoever is above that. Of a parent that is not
 * among the documents only what the lineage itself says is known. Live documents only; the order of the answer is theirs.
 */
export function wrongLineages(docs: Iterable<Doc>): readonly WrongLineage[] {
  const live = new Map([...docs].filter((doc) => doc._deleted !== true).map((doc) => [doc._id, doc] as const));
  const wrong: WrongLineage[] = [];
  for (const doc of live.values()) {
    for (const field of ['parent', 'contact'] as const) {
      const is = written(doc[field]);
      const should = asDocumentsSay(doc[field], live, field === 'parent' ? [doc._id] : []);
      if (is.join('\n') !== should.join('\n')) wrong.push({ id: doc._id, field, is, should });
    }
  }
  return wrong;
}

function written(lineage: unknown): string[] {
  const ids: string[] = [];
  for (let level = lineage; idOf(level) !== undefined; level = above(level)) ids.push(String(idOf(level)));
  return ids;
}

function asDocumentsSay(start: unknown, live: ReadonlyMap<string, Doc>, before: readonly string[]): string[] {
  const ids: string[] = [];
  const met = new Set(before);
  let level = start;
  for (let id = idOf(level); id !== undefined; id = idOf(level)) {
    ids.push(id);
    if (met.has(id)) return ids;
    met.add(id);
    level = above(live.get(id) ?? level);
  }
  return ids;
}

function idOf(level: unknown): string | undefined {
  if (typeof level !== 'object' || level === null) return undefined;
  const { _id: id } = level as { _id?: unknown };
  return typeof id === 'string' && id !== '' ? id : undefined;
}

function above(level: unknown): unknown {
  return (level as { parent?: unknown }).parent;
}
