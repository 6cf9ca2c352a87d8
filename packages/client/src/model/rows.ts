import { z } from 'zod/mini';
import type { Doc } from './json.js';
import type { DocRow, RevisionRead, WriteRow } from './pouch.js';

/** A document is kept as it is, not copied: an own key of any name survives. */
export const storedDoc = z.custom<Doc>(
  (value) => typeof value === 'object' && value !== null && typeof (value as { _id?: unknown })._id === 'string',
);

/** Rows of a read by keys, as CouchDB and PouchDB give them. */
export const allDocsRows = z.array(
  z.object({
    key: z.string(),
    value: z.optional(z.nullable(z.object({ rev: z.string(), deleted: z.optional(z.boolean()) }))),
    doc: z.optional(z.nullable(storedDoc)),
    error: z.optional(z.string()),
  }),
);

/** Only an answer that says so is a missing document; a row that says nothing stays out, and is not taken for one. */
export function docRowsByKey(rows: z.infer<typeof allDocsRows>): Map<string, DocRow> {
  const found = new Map<string, DocRow>();
  for (const row of rows) {
    if (row.value === undefined || row.value === null) {
      if (row.error === 'not_found')
        found.set(row.key, { id: row.key, rev: undefined, deleted: false, doc: undefined });
      continue;
    }
    const deleted = row.value.deleted === true;
    // A live document without its body, or another one, says nothing: it is read again, never taken for missing.
    if (!deleted && (row.doc?._id !== row.key || row.doc._rev !== row.value.rev)) continue;
    const seen = deleted ? {} : withoutConflicts(row.doc ?? undefined);
    if (seen === undefined) continue;
    found.set(row.key, { id: row.key, rev: row.value.rev, deleted, doc: undefined, ...seen });
  }
  return found;
}

const leafNames = z.array(z.string());

/**
 * A document apart from the names of its losing leaves: they are the store's, and written back they would be refused.
 * Undefined: they came in another shape, and the row says nothing.
 */
function withoutConflicts(doc: Doc | undefined): Pick<DocRow, 'doc' | 'conflicts'> | undefined {
  if (doc === undefined || !Object.prototype.hasOwnProperty.call(doc, '_conflicts')) return { doc };
  const { _conflicts, ...own } = doc;
  const names = leafNames.safeParse(_conflicts);
  if (!names.success) return undefined;
  return { doc: own, ...(names.data.length === 0 ? {} : { conflicts: names.data }) };
}

/** Rows of a bulk write, as CouchDB and PouchDB give them. */
export const writeRows = z.array(
  z.object({
    id: z.optional(z.string()),
    ok: z.optional(z.unknown()),
    rev: z.optional(z.unknown()),
    error: z.optional(z.unknown()),
    name: z.optional(z.unknown()),
    reason: z.optional(z.unknown()),
    message: z.optional(z.unknown()),
  }),
);

/**
 * A row by its id; its word is `error` where it is text, else `name`: in PouchDB an error is `true` (R7). A row without
 * an id, or one that says nothing, is no row.
 */
export function writeRow(row: z.infer<typeof writeRows>[number]): WriteRow | undefined {
  const { id, ok, rev, error, name } = row;
  if (id === undefined) return undefined;
  const isError = error !== undefined && error !== null && error !== false;
  if (!isError && typeof rev === 'string') return { id, ok: true, rev };
  if (!isError && ok === true) return { id, ok: true, rev: undefined };
  const word = [error, name].find((value) => typeof value === 'string') ?? (isError ? 'unknown_error' : undefined);
  const reason = [row.reason, row.message].find((value) => typeof value === 'string') ?? '';
  if (word === undefined) return undefined;
  return { id, ok: false, error: word, reason, ...(typeof rev === 'string' ? { rev } : {}) };
}

const revisions = z.object({ start: z.number(), ids: z.array(z.string()) });

/** Answers to a bulk get; rows that hold no document (`{}`, an error, `missing`) are passed over. */
export const bulkGetResults = z.array(
  z.object({ id: z.string(), docs: z.array(z.looseObject({ ok: z.optional(storedDoc) })) }),
);

export function revisionReads(results: z.infer<typeof bulkGetResults>): RevisionRead[] {
  const reads: RevisionRead[] = [];
  for (const { id, docs } of results) {
    for (const { ok } of docs) {
      if (ok === undefined) continue;
      const history = revisions.safeParse(ok['_revisions']);
      const ancestors = history.success ? namesOf(history.data) : [];
      reads.push({ id, doc: ok, ancestors });
    }
  }
  return reads;
}

function namesOf(history: z.infer<typeof revisions>): string[] {
  return history.ids.map((hash, age) => `${String(history.start - age)}-${hash}`);
}
