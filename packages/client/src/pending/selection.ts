import { endStates } from '../model/states.js';
import { isSettled } from '../queue/forgettable.js';
import type { DocumentHashes } from '../queue/document-hashes.js';
import type { Failures } from '../queue/failures.js';
import type { Quarantine } from '../queue/quarantine.js';
import type { Queue } from '../queue/queue.js';
import type { Reports } from '../queue/reports.js';
import {
  housekeepingDoc,
  housekeepingId,
  isUnplanned,
  payloadSize,
  sequenceOf,
  type Header,
  type RowState,
} from '../queue/stored.js';
import { hashOf } from '../queue/subjects.js';

export interface SelectionParts {
  readonly queue: Queue;
  readonly hashes: DocumentHashes;
  readonly failures: Failures;
  readonly reports: Reports;
  readonly quarantine: Quarantine;
  readonly breathe: () => Promise<void>;
  /** Whether the server has the result of a bulk operation as it is now, or is to have none. */
  readonly isReported: (header: Header) => boolean;
  /** Whether all events of a bulk operation are taken, by what is stored now. */
  readonly published: () => Promise<(header: Header) => boolean>;
  /** Ids of local documents with revisions that the server may not have. */
  readonly unsent: () => Promise<ReadonlySet<string>>;
}

/** A bulk operation that is not over for good, as it was when the export began. */
export interface Chosen {
  readonly header: Header;
  /** What was known then of the batch at its cursor. */
  readonly rows: readonly RowState[];
}

export interface Selection {
  readonly chosen: readonly Chosen[];
  /** Ids of the documents that go into the file. */
  readonly documents: ReadonlySet<string>;
}

/** What goes into a file: read first, before any document. What is queued later is not in it. */
export async function select(parts: SelectionParts): Promise<Selection> {
  const { queue, hashes, failures, reports, quarantine, breathe } = parts;
  reports.reread(await queue.refreshAll());
  await failures.load();
  await failures.reload();
  await quarantine.load();
  const isPublished = await parts.published();
  const documents = new Set<string>();
  for (const id of await parts.unsent()) if (!id.startsWith('_design/')) documents.add(id);
  const refused = failures.matching({}).flatMap(({ stored: { id, refused: rev } }) => (rev === null ? [] : (id ?? [])));
  for (const id of refused) documents.add(id);
  const unsent = new Set([...documents].map(hashOf));
  // Found confirmed once by housekeeping: later revisions of its documents are not its own.
  const settled = new Set(
    (await queue.docs.read(housekeepingId, housekeepingDoc))?.settled.map(([sequence]) => sequence),
  );
  const chosen: Chosen[] = [];
  for (const header of queue.headers.all()) {
    if (header.withdrawn === true || header.importing === true) continue;
    const standing = {
      openFailures: reports.openFailures(header),
      isReported: parts.isReported(header),
      isPublished: isPublished(header),
      isConfirmed:
        header.target !== 'local' ||
        settled.has(sequenceOf(header._id)) ||
        (await hashes.among(header, unsent)).length === 0,
      inQuarantine: quarantine.of(header).some(({ resolution }) => resolution === undefined),
    };
    if (isSettled(header, standing)) continue;
    const known = isUnplanned(header) ? undefined : await queue.records.find(sequenceOf(header._id), header.cursor);
    chosen.push({ header, rows: known?.rows ?? [] });
    for await (const id of needed(header, parts)) documents.add(id);
    await breathe();
  }
  return { chosen, documents };
}

/**
 * Ids of local documents that what is left of it works on: an empty device has none of them before its first pull, and would
 * say `missing`.
 */
async function* needed(header: Header, { queue, failures }: SelectionParts): AsyncGenerator<string> {
  if (header.target !== 'local') return;
  for (const { id, resolution } of failures.of(header.id)) if (resolution === undefined && id !== null) yield id;
  if (isUnplanned(header) || isDone(header)) return;
  for (let from = header.cursor; from < header.total; from += payloadSize) {
    for (const { i } of await queue.contents.operations(header, from, payloadSize)) {
      if (typeof i === 'string' && i !== '' && !i.startsWith('_')) yield i;
    }
  }
}

function isDone({ state, unsettled, continuedBy }: Header): boolean {
  if (!endStates.has(state)) return false;
  return unsettled === undefined && (state !== 'failed' || continuedBy !== undefined);
}
