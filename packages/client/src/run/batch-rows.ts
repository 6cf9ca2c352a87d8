import { DivisibleError, RetryableError } from '../model/errors.js';
import type { Failure } from '../model/failure.js';
import type { Doc } from '../model/json.js';
import type { DocRow, DocumentStore, WriteAnswer } from '../model/pouch.js';
import { classifyRow } from '../retry/classify.js';
import { readDividing } from '../retry/divide.js';
import { gravest, rowError } from './row-errors.js';

/*
 * For authors of actions that handle a batch as a whole: the same rules by which document actions are read and judged.
 */

/** What a read by ids brought. Each id is in one of the two. */
export interface JudgedRead {
  readonly rows: ReadonlyMap<string, DocRow>;
  /** Ids that the store refuses by themselves (R11): failed for good. */
  readonly failed: ReadonlyMap<string, Failure>;
}

/**
 * Reads documents in one request, and in halves when it is refused as a whole (R11). Throws `RetryableError` for what
 * may pass, and when we must sign in.
 */
export async function readRows(store: DocumentStore, ids: readonly string[]): Promise<JudgedRead> {
  const rows = new Map<string, DocRow>();
  const failed = new Map<string, Failure>();
  if (ids.length === 0) return { rows, failed };
  for (const [id, row] of await readDividing(ids, (part) => store.read(part))) {
    if (row instanceof DivisibleError) failed.set(id, { code: row.code, reason: row.message });
    else rows.set(id, row);
  }
  return { rows, failed };
}

/** What became of the documents of a bulk write. */
export interface JudgedWrite {
  readonly written: ReadonlySet<string>;
  /** Refused for good, by id (R4). */
  readonly failed: ReadonlyMap<string, Failure>;
  /** Neither written nor refused for good: to run again, for `error` (`HandlerResult.again`, R9). */
  readonly again: ReadonlySet<string>;
  /**
   * Why these must run again: rows in conflict, signing in, a network that was cut off … Undefined when every document
   * is written or refused for good, and nothing ended the write.
   */
  readonly error: unknown;
}

/** Judges the answer to `store.write(docs)`, row by row (R7, R10, R12). Rows are matched by id. */
export function judgeWrite(docs: readonly Doc[], answer: WriteAnswer): JudgedWrite {
  const again = new Set(docs.map(({ _id }) => _id));
  const written = new Set<string>();
  const failed = new Map<string, Failure>();
  const errors: Error[] = [];
  for (const row of answer.rows) {
    if (!again.has(row.id)) continue;
    const verdict = row.ok ? undefined : classifyRow(row.error);
    if (verdict !== undefined && verdict.kind !== 'failed') {
      errors.push(rowError(verdict));
      continue;
    }
    again.delete(row.id);
    if (row.ok) written.add(row.id);
    else if (verdict !== undefined) failed.set(row.id, { code: verdict.code, reason: row.reason });
  }
  const error = gravest(errors, answer.error) ?? (again.size === 0 ? undefined : unanswered());
  return { written, failed, again, error };
}

function unanswered(): RetryableError {
  return new RetryableError('Some documents got no answer. They are tried again.', {
    class: 'network',
    code: 'short-answer',
  });
}
