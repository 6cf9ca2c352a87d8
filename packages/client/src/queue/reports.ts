import { RetryableError } from '../model/errors.js';
import type { BulkOperationState } from '../model/states.js';
import type { Queue, StoredDoc } from './queue.js';
import { reportDoc, reportId, sequenceOf, storedVersion, type Header, type Report } from './stored.js';

/** A change of what is reported of one bulk operation. */
export interface ReportChange {
  readonly header: Header;
  change(report: Report): Report;
}

/** Per bulk operation: what the server refused of it, and what of its result the server has. The one writer of both. */
export class Reports {
  readonly #queue: Queue;
  readonly #known = new Map<number, Report>();
  #writing: Promise<unknown> = Promise.resolve();

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Those that were read with the headers. */
  loaded(reports: readonly Report[]): void {
    for (const report of reports) this.#known.set(sequenceOf(report._id), report);
  }

  of(header: Header): Report {
    const sequence = sequenceOf(header._id);
    return (
      this.#known.get(sequence) ?? {
        _id: reportId(sequence),
        v: storedVersion,
        refused: 0,
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
    const { revs, conflicts } = await this.#queue.write([...others, ...reports]);
    const lost: ReportChange[] = [];
    for (const [place, report] of reports.entries()) {
      const change = changes[place];
      if (conflicts.has(report._id) && change !== undefined) {
        const stored = await this.#queue.readDoc(report._id, reportDoc);
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
    return header.state === 'done' && this.of(header).refused > 0 ? 'done-with-failures' : header.state;
  }

  /** What is to be delivered, as one text: when it differs from what was delivered, it is sent again. */
  truthOf(header: Header): string {
    return [this.stateOf(header), header.cursor, header.failed, this.of(header).refused].join(' ');
  }
}
