import { reportId, sequenceOf, storedVersion, type Header, type Report } from './stored.js';
import type { BulkOperationState } from '../model/states.js';

/** Per bulk operation: what the server refused of it, and what of its result the server has. */
export class Reports {
  readonly #known = new Map<number, Report>();

  /** Those that were read with the headers. */
  loaded(reports: readonly Report[]): void {
    for (const report of reports) this.stored(report);
  }

  of(header: Header): Report {
    const sequence = sequenceOf(header._id);
    return (
      this.#known.get(sequence) ?? { _id: reportId(sequence), v: storedVersion, refused: 0, delivered: null, chunks: 0 }
    );
  }

  /** What was just stored. */
  stored(report: Report): void {
    this.#known.set(sequenceOf(report._id), report);
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
