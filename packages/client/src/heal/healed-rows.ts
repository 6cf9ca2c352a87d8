import type { Queue } from '../queue/queue.js';
import { sequenceOf, type BatchRecord, type RowState } from '../queue/stored.js';
import type { Writer } from '../queue/writers.js';

/** The records of the operations that are healed: rows are changed in memory, and written in one call. */
export class HealedRows {
  readonly #queue: Queue;
  readonly #records = new Map<string, { record: BatchRecord; rows: RowState[]; isChanged: boolean }>();
  /** Ids of records by `sequence:index`. */
  readonly #places = new Map<string, string>();

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Reads the records of these operations. */
  async read(writers: readonly Writer[]): Promise<void> {
    const bySequence = new Map<number, number[]>();
    for (const { header, index } of writers) {
      const sequence = sequenceOf(header._id);
      bySequence.set(sequence, [...(bySequence.get(sequence) ?? []), index]);
    }
    for (const [sequence, indexes] of bySequence) {
      for (const { record, rows } of await this.#queue.records.at(sequence, indexes)) {
        this.#records.set(record._id, { record, rows, isChanged: false });
        rows.forEach((_, place) => this.#places.set(placeOf(sequence, record.from + place), record._id));
      }
    }
  }

  of(writer: Writer): RowState | undefined {
    const found = this.#find(writer);
    return found?.rows[writer.index - found.record.from];
  }

  change(writer: Writer, change: (row: RowState) => RowState): void {
    const found = this.#find(writer);
    const place = writer.index - (found?.record.from ?? 0);
    const row = found?.rows[place];
    if (found === undefined || row === undefined) return;
    found.rows[place] = change(row);
    found.isChanged = true;
  }

  /** What is to be written now. */
  changed(): readonly BatchRecord[] {
    return [...this.#records.values()].flatMap(({ record, rows, isChanged }) =>
      isChanged ? [{ ...record, rows: JSON.stringify(rows) }] : [],
    );
  }

  /** What was written; what is not in `revs` was changed by another tab, and is not to be trusted any more. */
  written(revs: ReadonlyMap<string, string>): void {
    for (const [id, found] of this.#records) {
      if (!found.isChanged) continue;
      const rev = revs.get(id);
      if (rev === undefined) this.#records.delete(id);
      else this.#records.set(id, { record: { ...found.record, _rev: rev }, rows: found.rows, isChanged: false });
    }
  }

  #find({ header, index }: Writer): { record: BatchRecord; rows: RowState[]; isChanged: boolean } | undefined {
    return this.#records.get(this.#places.get(placeOf(sequenceOf(header._id), index)) ?? '');
  }
}

function placeOf(sequence: number, index: number): string {
  return `${String(sequence)}:${String(index)}`;
}
