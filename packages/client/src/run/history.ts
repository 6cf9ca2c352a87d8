import type { Doc } from '../model/json.js';
import type { DocumentStore } from '../model/pouch.js';
import { generationOf } from '../model/revision.js';

export interface HistoryQuestion {
  readonly id: string;
  /** The revision that the document has now. */
  readonly rev: string | undefined;
  /** The revision on which a write was tried; undefined when there never was such a document. */
  readonly base: string | undefined;
  /** Whether a revision is as our write would have made it. */
  isOwn(doc: Doc): boolean;
}

export interface HistoryAnswer {
  /** A revision after the base that is ours. */
  readonly rev: string | undefined;
  /** Whether all revisions after the base could be seen. */
  readonly complete: boolean;
}

/**
 * Looks between the revision on which we tried to write and the present one for a revision of ours: what came later
 * does not undo that it was applied (R3). Two reads for the whole batch.
 */
export async function findOwnRevisions(
  store: DocumentStore,
  questions: readonly HistoryQuestion[],
): Promise<ReadonlyMap<string, HistoryAnswer>> {
  const present = new Map<string, readonly string[]>();
  const asked = questions.flatMap(({ id, rev }) => (rev === undefined ? [] : [{ id, rev }]));
  for (const read of await store.readRevisions(asked)) present.set(read.id, read.ancestors);

  const wanted: { id: string; rev: string }[] = [];
  const between = new Map<string, { revs: readonly string[]; reachesBase: boolean }>();
  for (const { id, base } of questions) {
    const ancestors = present.get(id) ?? [];
    const end = base === undefined ? -1 : ancestors.indexOf(base);
    const revs = end < 0 ? ancestors.filter((rev) => generationOf(rev) > generationOf(base)) : ancestors.slice(0, end);
    // Before the base of a document that never was comes nothing: its history begins with the first revision.
    const reachesBase = base === undefined ? generationOf(ancestors.at(-1)) === 1 : end >= 0;
    between.set(id, { revs, reachesBase });
    for (const rev of revs) wanted.push({ id, rev });
  }

  const bodies = new Map<string, Map<string, Doc>>();
  for (const { id, doc } of await store.readRevisions(wanted)) {
    const known = bodies.get(id) ?? new Map<string, Doc>();
    known.set(doc._rev ?? '', doc);
    bodies.set(id, known);
  }

  const answers = new Map<string, HistoryAnswer>();
  for (const { id, isOwn } of questions) {
    const { revs, reachesBase } = between.get(id) ?? { revs: [], reachesBase: false };
    const seen = bodies.get(id);
    const own = revs.find((rev) => {
      const doc = seen?.get(rev);
      return doc !== undefined && isOwn(doc);
    });
    answers.set(id, { rev: own, complete: reachesBase && revs.every((rev) => seen?.has(rev) === true) });
  }
  return answers;
}
