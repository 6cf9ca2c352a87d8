import { failureRow, failuresDocument } from '@afield/client/results';
import { z } from 'zod/mini';
import type { Couch } from '../couch.js';
import { byStore, byTime, byUser } from './indexes.js';
import { findDocuments, listDocuments } from './pages.js';
import type { Source } from './sources.js';
import type { Tally } from './tally.js';
import { isoTime } from './times.js';

/** Which failures are wanted; what is left out does not count. */
export interface FailureWishes {
  /** Milliseconds since 1970: failed at this time or later. */
  readonly since?: number;
  /** Failed before this time. */
  readonly until?: number;
  readonly codes: readonly string[];
  readonly store?: string;
  readonly user?: string;
  /** Those too that a person has retried or discarded. */
  readonly withResolved: boolean;
}

/** A failure as it is listed; the same fields in the same order in each format. */
export interface ListedFailure {
  readonly at: string | number;
  readonly store: string;
  readonly user: string | null;
  readonly bulkOperation: string | null;
  readonly sequence: number | null;
  readonly index: number | null;
  readonly id: string | null;
  readonly action: string | null;
  readonly code: string;
  readonly fields: readonly string[];
  readonly mayHaveBeenApplied: boolean;
  readonly refused: boolean;
  readonly app: string | null;
  readonly resolution: string | null;
  readonly resolvedAt: string | number | null;
  readonly reason: string | null;
  readonly content: unknown;
  readonly withheld: string | null;
}

/** The rows one by one, so that one damaged row does not hide the others. */
const document = z.extend(failuresDocument, { operations: z.array(z.unknown()) });

/** Failures of one database, page by page. */
export async function* failuresIn(
  couch: Couch,
  source: Source,
  wishes: FailureWishes,
  tally: Tally,
): AsyncGenerator<ListedFailure> {
  for await (const stored of documentsIn(couch, source, wishes)) {
    tally.read(stored);
    const doc = document.safeParse(stored);
    if (!doc.success) {
      tally.unreadable();
      continue;
    }
    const user = doc.data.user ?? source.user ?? null;
    if (wishes.store !== undefined && doc.data.store !== wishes.store) continue;
    if (wishes.user !== undefined && user !== wishes.user) continue;
    for (const operation of doc.data.operations) {
      const row = failureRow.safeParse(operation);
      if (!row.success) tally.unreadable();
      else if (isWanted(row.data, wishes)) yield listedFailure(doc.data, user, row.data);
    }
  }
}

/** A shared database is asked by an index; in one user's the few documents are read in the order of their ids. */
function documentsIn(couch: Couch, source: Source, wishes: FailureWishes): AsyncGenerator<unknown> {
  const { since, until, codes, store, user, withResolved } = wishes;
  if (source.user !== undefined) {
    return listDocuments(couch, source.database, store === undefined ? 'failures:' : `failures:${store}:`);
  }
  const index = store !== undefined ? byStore : user !== undefined ? byUser : byTime;
  const anyCode = codes.length === 0 ? {} : { [withResolved ? 'codes' : 'openCodes']: { $elemMatch: { $in: codes } } };
  return findDocuments(couch, source.database, index, {
    type: 'afield-failures',
    ...(store === undefined ? {} : { store }),
    ...(user === undefined ? {} : { user }),
    // Null, of a document without rows, comes before all numbers.
    lastAt: { $gte: since ?? Number.MIN_SAFE_INTEGER },
    ...(until === undefined ? {} : { firstAt: { $lt: until } }),
    ...(withResolved ? {} : { open: { $gt: 0 } }),
    ...anyCode,
  });
}

function isWanted(row: z.infer<typeof failureRow>, { since, until, codes, withResolved }: FailureWishes): boolean {
  if (since !== undefined && row.at < since) return false;
  if (until !== undefined && row.at >= until) return false;
  if (codes.length > 0 && !codes.includes(row.code)) return false;
  return withResolved || row.resolution === undefined;
}

function listedFailure(
  doc: z.infer<typeof document>,
  user: string | null,
  row: z.infer<typeof failureRow>,
): ListedFailure {
  return {
    at: isoTime(row.at),
    store: doc.store,
    user,
    bulkOperation: doc.bulkOperation,
    sequence: doc.sequence,
    index: row.index,
    id: row.id,
    action: row.action,
    code: row.code,
    fields: row.fields,
    mayHaveBeenApplied: row.mayHaveBeenApplied,
    refused: row.refused ?? false,
    app: row.app ?? null,
    resolution: row.resolution?.how ?? null,
    resolvedAt: row.resolution === undefined ? null : isoTime(row.resolution.at),
    reason: row.reason ?? null,
    content: row.content ?? null,
    withheld: row.withheld ?? null,
  };
}
