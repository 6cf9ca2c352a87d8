import { isRecord } from './answers.js';

/** The calls of a database that write, as far as they are wrapped here. */
export interface WritingDatabase {
  bulkDocs(body: unknown, options: unknown, callback?: unknown): unknown;
  put(document: unknown, options: unknown, callback?: unknown): unknown;
}

const guarded = new WeakSet<WritingDatabase>();

/**
 * Keeps the revision history that a client sent with `new_edits: false`.
 *
 * The validation plugin overwrites `_revisions` of each new document with those of the stored one before it calls a
 * validation function. The store would then take the write for a revision that it already has, answer success and
 * drop it. A `_revisions` that can't be assigned to is left alone by the plugin and read by the store.
 */
export function keepSentHistory(database: WritingDatabase): void {
  if (guarded.has(database)) return;
  guarded.add(database);
  const { bulkDocs, put } = database;
  database.bulkDocs = (body, options, callback) => {
    if (isWithoutNewEdits(options)) documentsOf(body).forEach(fixHistory);
    return bulkDocs.call(database, body, options, callback);
  };
  database.put = (document, options, callback) => {
    if (isWithoutNewEdits(options)) fixHistory(document);
    return put.call(database, document, options, callback);
  };
}

function isWithoutNewEdits(options: unknown): boolean {
  return isRecord(options) && options['new_edits'] === false;
}

function documentsOf(body: unknown): unknown[] {
  const documents = isRecord(body) ? body['docs'] : body;
  return Array.isArray(documents) ? documents : [];
}

function fixHistory(document: unknown): void {
  if (!isRecord(document)) return;
  const sent = document['_revisions'] ?? historyOf(document['_rev']);
  if (sent === undefined) return;
  Object.defineProperty(document, '_revisions', {
    enumerable: true,
    configurable: true,
    get: () => sent,
    set: () => undefined,
  });
}

/** The history of a document that was sent with its `_rev` only: this one revision. */
function historyOf(revision: unknown): unknown {
  if (typeof revision !== 'string') return undefined;
  const dash = revision.indexOf('-');
  return { start: Number(revision.slice(0, dash)), ids: [revision.slice(dash + 1)] };
}
