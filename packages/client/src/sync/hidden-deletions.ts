import type { LocalDatabase } from '../store/local-database.js';
import { isForgottenStub } from './forgotten.js';
import type { Refusals } from './refusals.js';

/** One revision of a document. */
interface Named {
  readonly id: string;
  readonly rev: string;
}

/**
 * Which of these revisions only end a version that nobody sees: deletions of documents that live in another one. Nothing
 * that a person knows of depends on whether the server has them.
 */
export async function hiddenDeletions(
  local: Pick<LocalDatabase, 'read' | 'readRevisions'>,
  asked: readonly Named[],
): Promise<(id: string, rev: string) => boolean> {
  const reads = await local.readRevisions(asked);
  const deletions = reads.filter(({ doc }) => doc['_deleted'] === true);
  const rows = await local.read([...new Set(deletions.map(({ id }) => id))]);
  const living = new Set(rows.flatMap(({ id, rev, deleted }) => (rev === undefined || deleted ? [] : [id])));
  const hidden = new Set(deletions.flatMap(({ id, doc }) => (living.has(id) ? [nameOf(id, doc._rev)] : [])));
  return (id, rev) => hidden.has(nameOf(id, rev));
}

/**
 * Whether the server need not have this revision, though nothing says that it was refused: it was never sent, or is a
 * deletion that was not or may not be taken.
 */
export async function isPassedOver(
  local: LocalDatabase,
  refusals: Refusals,
  id: string,
  rev: string,
): Promise<boolean> {
  const [read] = await local.readRevisions([{ id, rev }]);
  if (read?.doc['_deleted'] !== true) return false;
  if (isForgottenStub(read.doc) || (await refusals.hasRefused(id))) return true;
  return (await hiddenDeletions(local, [{ id, rev }]))(id, rev);
}

function nameOf(id: string, rev: string | undefined): string {
  return JSON.stringify([id, rev]);
}
