import type { BatchRecord, Header, RowState, StoredFailure, StoredOperation } from '../queue/stored.js';
import { hasEvent, isOutcome, recordId, sequenceOf, storedVersion, withRev } from '../queue/stored.js';
import { partAt } from '../queue/parts.js';
import { batchOf, type Batch } from './batch.js';
import type { RunParts } from './parts.js';
import { batchSizeOf, LeaseLostError } from './transitions.js';

/** A batch as it is loaded: its operations, what is known of each, and its record when there is one. */
export interface LoadedBatch {
  readonly batch: Batch;
  readonly rows: readonly RowState[];
  record: BatchRecord | undefined;
}

/** The present batches of the bulk operations, as they are stored: operations and records. */
export class Batches {
  readonly #parts: Pick<RunParts, 'queue' | 'batchSize' | 'lease' | 'clock'>;
  /** Bulk operations whose present batch was loaded by this run: its record is known. */
  readonly #started = new Set<number>();

  constructor(parts: Pick<RunParts, 'queue' | 'batchSize' | 'lease' | 'clock'>) {
    this.#parts = parts;
  }

  /** The batch at the cursor. Its record is read, unless the batch follows one of this run. */
  async load(header: Header): Promise<LoadedBatch> {
    const { queue, batchSize } = this.#parts;
    const sequence = sequenceOf(header._id);
    const { action, left } = partAt(header, header.cursor);
    const known = this.#started.has(sequence) ? undefined : await queue.records.find(sequence, header.cursor);
    this.#started.add(sequence);
    const count = known?.record.count ?? Math.min(batchSizeOf(header, batchSize), left);
    const stored = await queue.contents.operations(header, header.cursor, count);
    const batch = batchOf(header, action, header.cursor, stored, known !== undefined);
    const rows = known?.rows ?? batch.operations.map((_, place) => openRow(stored[place]));
    return { batch, rows, record: known?.record };
  }

  /** The next load reads the record again: the batch did not come to its end, or someone else may have written it. */
  forget(sequence: number): void {
    this.#started.delete(sequence);
  }

  /** The record with these rows, in the name of this run. */
  recordOf(sequence: number, loaded: LoadedBatch, rows: readonly RowState[]): BatchRecord {
    const { from, operations } = loaded.batch;
    const base = loaded.record ?? { _id: recordId(sequence, from), v: storedVersion, from, count: operations.length };
    return { ...base, lease: this.#parts.lease, at: this.#parts.clock.wall(), rows: JSON.stringify(rows) };
  }

  /** Rewrites the record of a batch in the name of this run, if there is one: what a late runner says of it is refused. */
  async takeOver(sequence: number, from: number): Promise<void> {
    const { queue, lease } = this.#parts;
    for (;;) {
      const known = await queue.records.find(sequence, from);
      if (known === undefined) return;
      const record: BatchRecord = { ...known.record, lease };
      const { conflicts } = await queue.docs.write([record]);
      if (conflicts.size === 0) return;
    }
  }

  /** Throws `LeaseLostError` when another runner has written the record meanwhile. */
  async save(sequence: number, loaded: LoadedBatch, rows: readonly RowState[]): Promise<void> {
    const record = this.recordOf(sequence, loaded, rows);
    const { revs, conflicts } = await this.#parts.queue.docs.write([record]);
    if (conflicts.size > 0) throw new LeaseLostError();
    loaded.record = withRev(record, revs);
  }

  /**
   * Takes back that operations have failed: their rows are again as before. False: another runner has written the record
   * since, and has read them as failed.
   */
  async reopen(record: BatchRecord, before: readonly RowState[], rows: readonly RowState[]): Promise<boolean> {
    const open = rows.map((row, place) => {
      const known = before[place];
      return row.s === 'failed' && known !== undefined && !isOutcome(known) ? known : row;
    });
    if (open.every((row, place) => row === rows[place])) return true;
    const next: BatchRecord = { ...record, rows: JSON.stringify(open) };
    return (await this.#parts.queue.docs.write([next])).conflicts.size === 0;
  }

  /**
   * Writes the record of a batch that the header counts over what another runner has stored. Of an operation that both say
   * is done the stored row stays: its event may be published already, and never becomes another one (O3).
   */
  async settle(
    sequence: number,
    record: BatchRecord,
    rows: readonly RowState[],
  ): Promise<{ readonly record: BatchRecord; readonly rows: readonly RowState[] }> {
    const { queue } = this.#parts;
    for (;;) {
      const known = await queue.records.find(sequence, record.from);
      const isSame = known?.rows.length === rows.length;
      const kept = rows.map((row, place) => {
        const stored = isSame ? known.rows[place] : undefined;
        return hasEvent(row) && hasEvent(stored) ? stored : row;
      });
      const next = { ...record, _rev: known?.record._rev, rows: JSON.stringify(kept) };
      const { revs, conflicts } = await queue.docs.write([next]);
      if (conflicts.size === 0) return { record: withRev(next, revs), rows: kept };
    }
  }

  /** Writes documents of ours over whatever another runner has stored under their names. */
  async overwrite<Stored extends StoredFailure>(docs: readonly Stored[]): Promise<readonly Stored[]> {
    const { queue } = this.#parts;
    const written: Stored[] = [];
    for (let open = docs; open.length > 0;) {
      const present = await queue.docs.revisions(open.map(({ _id }) => _id));
      const { revs, conflicts } = await queue.docs.write(open.map((doc) => ({ ...doc, _rev: present.get(doc._id) })));
      written.push(...open.filter(({ _id }) => !conflicts.has(_id)).map((doc) => withRev(doc, revs)));
      open = open.filter(({ _id }) => conflicts.has(_id));
    }
    return written;
  }
}

/** An operation that took over the rest of another bulk operation may have been written there: its intent goes on. */
function openRow(stored: StoredOperation | undefined): RowState {
  return stored?.w === undefined ? { s: 'open' } : { s: 'intent', ...stored.w };
}
