import type { Contents } from './contents.js';
import { payloadSize, type Header } from './stored.js';
import { hashOf } from './subjects.js';

/** Hashes that are kept in memory, of all bulk operations together: 4 bytes each. */
const mostKept = 1_000_000;

/**
 * Where the operations on some documents may be, by hashes: only bulk operations that may concern them are read. Two
 * documents may have one hash, so that too much may be found, never too little.
 */
export class DocumentHashes {
  readonly #contents: Pick<Contents, 'digest' | 'operations'>;
  readonly #mostKept: number;
  /** What was read last stays: sorted subjects by `s` and the digest's name, operations in their order by `o` and the payload's. */
  readonly #known = new Map<string, Uint32Array>();
  #kept = 0;

  constructor(contents: Pick<Contents, 'digest' | 'operations'>, most = mostKept) {
    this.#contents = contents;
    this.#mostKept = most;
  }

  /** Those of these hashes that a bulk operation may concern; all of them where its subjects are not known. */
  async among({ subjects }: Header, wanted: ReadonlySet<number>): Promise<readonly number[]> {
    if (subjects === null) return [...wanted];
    // A list is short: it need not be sorted.
    if (Array.isArray(subjects)) return [...new Set(subjects)].filter((hash) => wanted.has(hash));
    const sorted = await this.#read(`s${subjects.digest}`, async () => (await this.#contents.digest(subjects))?.sort());
    return sorted === undefined ? [...wanted] : [...wanted].filter((hash) => has(sorted, hash));
  }

  /** The places in a bulk operation of the operations on documents with these hashes, in their order. */
  async placesOf(header: Header, wanted: ReadonlySet<number>): Promise<readonly { at: number; hash: number }[]> {
    const hashes = await this.#read(`o${header.payload}`, () => this.#inOrder(header));
    const places: { at: number; hash: number }[] = [];
    hashes?.forEach((hash, at) => {
      if (wanted.has(hash)) places.push({ at, hash });
    });
    return places;
  }

  async #inOrder(header: Header): Promise<Uint32Array> {
    const hashes = new Uint32Array(header.total);
    for (let from = 0; from < header.total; from += payloadSize) {
      const operations = await this.#contents.operations(header, from, payloadSize);
      operations.forEach(({ i }, place) => {
        if (typeof i === 'string') hashes[from + place] = hashOf(i);
      });
    }
    return hashes;
  }

  async #read(name: string, read: () => Promise<Uint32Array | undefined>): Promise<Uint32Array | undefined> {
    const hashes = this.#known.get(name) ?? (await read());
    if (hashes === undefined) return undefined;
    if (this.#known.delete(name)) this.#kept -= hashes.length;
    for (const [other, { length }] of this.#known) {
      if (this.#kept + hashes.length <= this.#mostKept) break;
      this.#known.delete(other);
      this.#kept -= length;
    }
    this.#known.set(name, hashes);
    this.#kept += hashes.length;
    return hashes;
  }
}

/** Whether a sorted list holds a hash. */
function has(sorted: Uint32Array, hash: number): boolean {
  let low = 0;
  for (let high = sorted.length; low < high;) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) < hash) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === hash;
}
