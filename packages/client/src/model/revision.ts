import type { Doc } from './json.js';

/** The number before the dash of a revision; 0 when there is none. */
export function generationOf(rev: string | undefined): number {
  return rev === undefined ? 0 : Number.parseInt(rev, 10);
}

/** A revision after these (newest first), under a name of ours, ready to be stored as it is. */
export function childOf(ancestors: readonly string[], name: string, content: Doc): Doc {
  const start = generationOf(ancestors[0]) + 1;
  const ids = [name, ...ancestors.map((rev) => rev.slice(rev.indexOf('-') + 1))];
  return { ...content, _rev: `${String(start)}-${name}`, _revisions: { start, ids } };
}

/** The document without the history that was read beside it. */
export function withoutHistory(doc: Doc): Doc {
  const rest: Record<string, unknown> & Pick<Doc, '_id'> = { ...doc };
  delete rest['_revisions'];
  return rest;
}
