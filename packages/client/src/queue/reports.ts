import { RetryableError } from '../model/errors.js';
import { endStates, type BulkOperationState } from '../model/states.js';
import { generationOf } from '../model/revision.js';
import type { Queue } from './queue.js';
import type { StoredDoc } from './stored-docs.js';
import {
  reportDoc,
  reportId,
  sequenceOf,
  storedVersion,
  type Header,
  type Report,
  type StoredFailure,
} from './stored.js';

/** A change of what is reported of one bulk operation. */
export interface ReportChange {
  readonly header: Header;
  change(report: Report): Report;
}

/** Changes of the reports of these failures' bulk operations, given how many of each there are. */
export function changesOf(
  headers: readonly Header[],
  failures: readonly StoredFailure[],
  change: (report: Report, count: number) => Report,
): ReportChange[] {
  if (failures.length === 0) return [];
  const counts = new Map<string | null, number>();
  for (const { bulkOperationId } of failures) counts.set(bulkOperationId, (counts.get(bulkOperationId) ?? 0) + 1);
  return headers.flatMap((header) => {
    const count = counts.get(header.id);
    return count === undefined ? [] : [{ header, change: (report: Report) => change(report, count) }];
  });
}

/** Per bulk operation: what the server refused of it, what a person did with its failures, and what of its result the server has. The one writer of both. */
export class Reports {
  readonly #queue: Queue;
  readonly #known = new Map<number, Report>();
  #writing: Promise<unknown> = Promise.resolve();

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Those that were read with the headers. */
  loaded(reports: readonly Report[]): void {
    for (const report of reports) {
      const sequence = sequenceOf(report._id);
      // Whoever wrote while these were read knows better.
      if (generationOf(this.#known.get(sequence)?._rev) > generationOf(report._rev)) continue;
      this.#known.set(sequence, report);
    }
  }

  /** What a reading of all headers has found: reports, and which bulk operations are removed. */
  reread({ reports, removed }: { readonly reports: readonly Report[]; readonly removed: readonly number[] }): void {
    this.forget(removed);
    this.loaded(reports);
  }

  /** Reports of bulk operations that are removed. */
  forget(sequences: readonly number[]): void {
    for (const sequence of sequences) this.#known.delete(sequence);
  }

  of(header: Header): Report {
    const sequence = sequenceOf(header._id);
    return (
      this.#known.get(sequence) ?? {
        _id: reportId(sequence),
        v: storedVersion,
        refused: 0,
        resolved: 0,
        delivered: null,
        chunks: 0,
      }
    );
  }

  /**
   * Writes changes of reports, and other documents in the same call, one writer after another. A report that someone
   * else changed is read again and changed again. Answers with the new revisions of the other documents.
   */
  write(changes: readonly ReportChange[], others: readonly StoredDoc[] = []): Promise<ReadonlyMap<string, string>> {
    const write = this.#writing.then(() => this.#write(changes, others));
    this.#writing = write.catch(() => undefined); // the next writer does not care how this one ended
    return write;
  }

  async #write(changes: readonly ReportChange[], others: readonly StoredDoc[]): Promise<ReadonlyMap<string, string>> {
    const reports = changes.map(({ header, change }) => change(this.of(header)));
    if (reports.length + others.length === 0) return new Map();
    const { revs, conflicts } = await this.#queue.docs.write([...others, ...reports]);
    const lost: ReportChange[] = [];
    for (const [place, report] of reports.entries()) {
      const change = changes[place];
      if (conflicts.has(report._id) && change !== undefined) {
        const stored = await this.#queue.docs.read(report._id, reportDoc);
        if (stored === undefined && (await this.#queue.headers.isForgotten(change.header))) continue;
        if (stored === undefined)
          throw new RetryableError('A report is gone.', { class: 'storage', code: 'unreadable' });
        this.loaded([stored]);
        lost.push(change);
      } else this.loaded([{ ...report, _rev: revs.get(report._id) }]);
    }
    if (lost.length > 0) await this.#write(lost, []);
    return revs;
  }

  /** The state as a person should see it: an operation that the server refused later is a failure. */
  stateOf(header: Header): BulkOperationState {
    if (header.state !== 'done' && header.state !== 'done-with-failures') return header.state;
    return this.openFailures(header) > 0 ? 'done-with-failures' : 'done';
  }

  /** Failures that no one has queued anew or discarded, those included that the server refused later. */
  openFailures(header: Header): number {
    const { refused, resolved } = this.of(header);
    return header.failed + refused - resolved;
  }

  /** What is to be delivered, as one text: when it differs from what was delivered, it is sent again. */
  truthOf(header: Header): string {
    const { refused, resolved } = this.of(header);
    const { lastError } = header;
    const truth = [
      this.stateOf(header),
      header.cursor,
      header.applied,
      header.failed,
      refused,
      resolved,
      header.continuedBy ?? '',
    ];
    // Why it waits is a truth as long as it does.
    if (!endStates.has(header.state) && lastError !== null) truth.push(lastError.class, lastError.code);
    return truth.join(' ');
  }

  /** Whether the server has the result as it is now. */
  isDelivered(header: Header): boolean {
    return this.of(header).delivered === this.truthOf(header);
  }
}
