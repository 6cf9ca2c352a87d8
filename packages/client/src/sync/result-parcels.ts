import type { Doc } from '../model/json.js';
import { generationOf } from '../model/revision.js';
import { endStates } from '../model/states.js';
import type { Reports } from '../queue/reports.js';
import { sequenceOf, type Header, type Report, type StoredFailure } from '../queue/stored.js';
import { inChunks, summaryOf } from './failure-chunks.js';
import { failureRowOf, safeCode, type Disclosure } from './failure-rows.js';
import {
  edits,
  failuresId,
  resultId,
  resultsVersion,
  type FailuresDocument,
  type ResultDocument,
} from './result-documents.js';
import type { Parcel } from './result-writes.js';

/** Whose results these are. */
export interface Origin {
  readonly store: string;
  readonly user: string | undefined;
}

/** A parcel, and how many failures documents it had when it was made. */
export interface CountedParcel extends Parcel {
  chunks(): number;
}

/** The result of a bulk operation as it is now, and its failures: read at once, however long the sending takes. */
export function resultParcel(
  header: Header,
  failures: readonly StoredFailure[],
  reports: Reports,
  own: Origin,
  disclosure: Disclosure,
): CountedParcel {
  // What a file has brought is known by its name in the store where it was queued.
  const origin = { ...own, store: header.origin?.store ?? own.store };
  const result = resultOf(header, reports, origin);
  const { bulkOperation, sequence, changes } = result;
  const list = { ...originOf(origin), bulkOperation, sequence, changes };
  const least = reports.of(header).chunks;
  return parcelOf(result._id, failures, least, disclosure, { list, id: header.id, first: [result as Doc] });
}

/** Documents that the app edited itself and the server refused. */
export function editsParcel(
  failures: readonly StoredFailure[],
  changes: number,
  least: number,
  origin: Origin,
  disclosure: Disclosure,
): CountedParcel {
  const list = { ...originOf(origin), bulkOperation: null, sequence: null, changes };
  const oldestBy = failuresId(origin.store, edits, 0);
  return parcelOf(oldestBy, failures, least, disclosure, { list, id: edits, first: [] });
}

type List = Pick<FailuresDocument, 'v' | 'store' | 'user' | 'bulkOperation' | 'sequence' | 'changes'>;

/** At least as many failures documents as there were: those that are not needed any more are emptied. */
function parcelOf(
  oldestBy: string,
  failures: readonly StoredFailure[],
  least: number,
  disclosure: Disclosure,
  { list, id, first }: { list: List; id: string; first: readonly Doc[] },
): CountedParcel {
  let chunks = 0;
  const chunkOf = (rows: FailuresDocument['operations']): Doc => {
    const chunk = chunks++;
    const _id = failuresId(list.store, id, chunk);
    const doc: FailuresDocument = { _id, type: 'afield-failures', ...list, chunk, ...summaryOf(rows) };
    return doc as Doc;
  };
  return {
    name: id,
    oldestBy,
    chunks: () => chunks,
    *docs() {
      chunks = 0;
      yield* first;
      for (const rows of inChunks(rowsOf(failures, disclosure))) yield chunkOf(rows);
      while (chunks < least) yield chunkOf([]);
    },
  };
}

function* rowsOf(
  failures: readonly StoredFailure[],
  disclosure: Disclosure,
): Generator<FailuresDocument['operations'][number]> {
  for (const failure of failures) yield failureRowOf(failure, disclosure);
}

function originOf({ store, user }: Origin): Pick<List, 'v' | 'store' | 'user'> {
  return { v: resultsVersion, store, ...(user === undefined ? {} : { user }) };
}

function resultOf(header: Header, reports: Reports, origin: Origin): ResultDocument {
  const report = reports.of(header);
  const state = reports.stateOf(header);
  const { lastError } = header;
  const isStuck = !endStates.has(state) || state === 'failed';
  return {
    _id: resultId(origin.store, header.id),
    type: 'afield-result',
    ...originOf(origin),
    bulkOperation: header.id,
    sequence: header.origin?.sequence ?? sequenceOf(header._id),
    target: header.target,
    ...(header.plan === undefined ? {} : { plan: header.plan.name }),
    actions: header.parts.map(({ action }) => action),
    state,
    cursor: header.cursor,
    total: header.total,
    applied: header.applied - report.refused,
    alreadyApplied: header.alreadyApplied,
    failed: reports.openFailures(header),
    resolved: report.resolved,
    notDone: header.total - header.applied - header.alreadyApplied - header.failed,
    ...(header.continuedBy === undefined ? {} : { continuedBy: header.continuedBy }),
    ...(isStuck && lastError !== null ? { lastError: { ...lastError, code: safeCode(lastError.code) } } : {}),
    queuedAt: header.queuedAt,
    changes: changesOf(header, report),
  };
}

/** Grows with each change of the header or the report that a result is made of. */
function changesOf(header: Header, report: Report): number {
  return (header.origin?.changes ?? 0) + generationOf(header._rev) + generationOf(report._rev);
}
