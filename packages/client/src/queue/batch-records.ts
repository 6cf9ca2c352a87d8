import type { StoredDocs } from './stored-docs.js';
import {
  payloadSize,
  recordDoc,
  recordId,
  recordPrefix,
  rowStates,
  type BatchRecord,
  type RowState,
} from './stored.js';

/** The record of a batch, and what it says of each of its operations. */
export interface RecordedBatch {
  record: BatchRecord;
  rows: RowState[];
}

/** What is known of the operations of bulk operations, batch by batch: the intent, then the outcomes. */
export class BatchRecords {
  readonly #docs: StoredDocs;

  constructor(docs: StoredDocs) {
    this.#docs = docs;
  }

  /** The batch that begins at this place. */
  async find(sequence: number, from: number): Promise<RecordedBatch | undefined> {
    const record = await this.#docs.read(recordId(sequence, from), recordDoc);
    return record === undefined ? undefined : batchOf(record);
  }

  /** The batches that hold these operations. They may lie far apart: only these batches are read. */
  async at(sequence: number, indexes: readonly number[]): Promise<readonly RecordedBatch[]> {
    const found = new Map<string, RecordedBatch>();
    for (const [from, to] of stretchesOf(indexes)) {
      // A record has at most a hundred operations: the first of these may lie in one that begins before them.
      const first = recordId(sequence, Math.max(0, from - payloadSize + 1));
      for (const record of await this.#docs.readBetween(first, recordId(sequence, to - 1), recordDoc, recordName)) {
        if (record.from + record.count > from) found.set(record._id, batchOf(record));
      }
    }
    return [...found.values()];
  }

  /** What is known of these operations, by index; those of which nothing is stored are left out. */
  async rowsAt(sequence: number, indexes: readonly number[]): Promise<ReadonlyMap<number, RowState>> {
    const wanted = new Set(indexes);
    const found = new Map<number, RowState>();
    for (const { record, rows } of await this.at(sequence, indexes)) {
      rows.forEach((row, place) => {
        if (wanted.has(record.from + place)) found.set(record.from + place, row);
      });
    }
    return found;
  }

  /** All batches of one bulk operation. */
  async of(sequence: number): Promise<readonly RecordedBatch[]> {
    const prefix = recordPrefix(sequence);
    return (await this.#docs.readBetween(prefix, `${prefix}\uffff`, recordDoc, recordName)).map(batchOf);
  }
}

const recordName = 'A batch';

function batchOf(record: BatchRecord): RecordedBatch {
  return { record, rows: rowStates.parse(JSON.parse(record.rows)) };
}

/** From the first of some numbers to behind the last, wherever no more than a batch has room between two of them. */
function stretchesOf(indexes: readonly number[]): [number, number][] {
  const stretches: [number, number][] = [];
  for (const index of [...indexes].sort((a, b) => a - b)) {
    const last = stretches[stretches.length - 1];
    if (last !== undefined && index < last[1] + payloadSize) last[1] = index + 1;
    else stretches.push([index, index + 1]);
  }
  return stretches;
}
