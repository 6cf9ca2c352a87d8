import { endStates, type Target } from '../model/states.js';
import { DocumentHashes } from './document-hashes.js';
import type { Queue } from './queue.js';
import { headerDoc, isUnplanned, sequenceOf, type Header, type RowState, type StoredOperation } from './stored.js';
import { hashOf } from './subjects.js';

/** Operations that are read in one call. */
const readAtOnce = 100;

/** An operation that was tried on a document, and what is known of it: `row.r` is the revision that it wrote or found. */
export interface Writer {
  readonly header: Header;
  readonly index: number;
  readonly operation: StoredOperation;
  readonly row: RowState;
}

/**
 * Which operations of this device were tried on a document, with which revisions. Only bulk operations that may concern
 * the document are read, and of these only the operations on it. What is stored counts, not what is remembered: another
 * tab may have queued or run some of it.
 */
export class Writers {
  readonly #queue: Queue;
  readonly #hashes: DocumentHashes;
  readonly #breathe: () => Promise<void>;

  /** `breathe` gives the page a turn in the middle of long work. */
  constructor(
    queue: Queue,
    breathe: () => Promise<void> = () => Promise.resolve(),
    hashes = new DocumentHashes(queue.contents),
  ) {
    this.#queue = queue;
    this.#breathe = breathe;
    this.#hashes = hashes;
  }

  /**
   * Per document its operations in the order of the queue; a document without one is left out. What `keeps` does not
   * want is not held in memory. Throws what the store throws.
   */
  async of(
    ids: Iterable<string>,
    keeps: (row: RowState, header: Header) => boolean = () => true,
    target: Target = 'local',
  ): Promise<ReadonlyMap<string, readonly Writer[]>> {
    const asked = new Set(ids);
    const wanted = new Set([...asked].map(hashOf));
    const found = new Map<string, Writer[]>();
    if (asked.size === 0) return found;
    await this.#queue.headers.loadNew();
    for (const [place, known] of this.#queue.headers.all().entries()) {
      if (place % 1000 === 999) await this.#breathe();
      if (known.target !== target || (await this.#hashes.among(known, wanted)).length === 0) continue;
      const header = await this.#present(known);
      if (header === undefined || header.attempts === 0 || isUnplanned(header)) continue;
      const hashes = new Set(await this.#hashes.among(header, wanted));
      if (hashes.size === 0) continue;
      for (const writer of await this.#in(header, hashes, asked, keeps)) {
        const id = writer.operation.i as string;
        const before = found.get(id);
        if (before === undefined) found.set(id, [writer]);
        else before.push(writer);
      }
    }
    return found;
  }

  /** As it is stored. The queue goes on with the one that it knows: whoever runs it must notice a change itself. */
  async #present(known: Header): Promise<Header | undefined> {
    return endStates.has(known.state) ? known : this.#queue.docs.read(known._id, headerDoc);
  }

  /** Those in one bulk operation; none when another tab removes it meanwhile. */
  async #in(
    header: Header,
    hashes: ReadonlySet<number>,
    asked: ReadonlySet<string>,
    keeps: (row: RowState, header: Header) => boolean,
  ): Promise<readonly Writer[]> {
    try {
      return await this.#read(header, hashes, asked, keeps);
    } catch (error) {
      if (await this.#queue.headers.isForgotten(header)) return [];
      throw error;
    }
  }

  async #read(
    header: Header,
    hashes: ReadonlySet<number>,
    asked: ReadonlySet<string>,
    keeps: (row: RowState, header: Header) => boolean,
  ): Promise<readonly Writer[]> {
    const sequence = sequenceOf(header._id);
    const places = (await this.#hashes.placesOf(header, hashes)).map(({ at }) => at);
    const writers: Writer[] = [];
    for (let from = 0; from < places.length; from += readAtOnce) {
      const part = places.slice(from, from + readAtOnce);
      const rows = await this.#queue.records.rowsAt(sequence, part);
      const kept = part.filter((at) => {
        const row = rows.get(at);
        return row !== undefined && row.s !== 'open' && keeps(row, header);
      });
      if (kept.length === 0) continue;
      const operations = await this.#queue.contents.operationsAt(header, kept);
      for (const index of kept) {
        const [operation, row] = [operations.get(index), rows.get(index)];
        // Two documents may have one hash.
        if (operation === undefined || row === undefined || !asked.has(operation.i as string)) continue;
        writers.push({ header, index, operation, row });
      }
    }
    return writers;
  }
}
