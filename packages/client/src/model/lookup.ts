import type { Observable } from 'rxjs';
import type { Doc } from './json.js';

/** What rows of an index are found by: a text, a number, or a list of those, in the order of IndexedDB. */
export type IndexKey = string | number | readonly (string | number)[];

/** A local secondary index: which keys each document is found by. */
export interface IndexDefinition {
  /** Letters, digits, `-` and `_`; at most 64. */
  readonly name: string;
  /** 1, 2 …: raised whenever `keys` answers differently. A new version is built beside the old one. */
  readonly version: number;
  /**
   * The keys of a document; none (an empty list or undefined) leaves it out. Pure, and answers at once. Asked about live
   * documents that are no design documents.
   */
  keys(doc: Doc): IndexKey | readonly IndexKey[] | undefined;
  /**
   * What becomes of a document for which `keys` throws or answers with something else: the index parks with its id
   * (`park`, the default), or the document is left out and listed (`skip`, see `LocalIndex.skipped`).
   */
  readonly onError?: 'park' | 'skip';
  /** Documents that are read, and stored with the resume point, at once: 1 to 100. Default: 100. */
  readonly batchSize?: number;
}

/** Rows between two keys. A bound that is left out is none. */
export interface IndexRange {
  readonly from?: IndexKey;
  readonly to?: IndexKey;
  /** Leaves `from` itself out. Default: false. */
  readonly afterFrom?: boolean;
  /** Leaves `to` itself out. Default: false. */
  readonly beforeTo?: boolean;
}

/** Rows whose key begins so: a text, or the first parts of a list. */
export interface IndexPrefix {
  readonly prefix: string | readonly (string | number)[];
}

/** Rows of any of these keys, in the order of the keys. */
export interface IndexKeys {
  readonly keys: readonly IndexKey[];
}

export type IndexQuery = IndexKey | IndexRange | IndexPrefix | IndexKeys;

export interface IndexQueryOptions {
  /** Reads the documents, too, as they are then. A document that was deleted meanwhile is left out. Default: false. */
  readonly include_docs?: boolean;
  /** At most so many rows. Default: all. */
  readonly limit?: number;
  /** Milliseconds that it waits until the index has seen all writes made before. Default: 2000. */
  readonly waitMs?: number;
  /**
   * What it does when it has not seen them by then: `refuse` (default) rejects with `IndexNotReadyError`, `allow` answers
   * with `behind: true`.
   */
  readonly stale?: 'refuse' | 'allow';
}

export interface IndexRow {
  readonly id: string;
  readonly key: IndexKey;
  /** Only with `include_docs`. */
  readonly doc?: Doc;
}

/** Rows in the order of their keys, then of their ids. */
export interface IndexAnswer {
  readonly rows: readonly IndexRow[];
  /** Whether writes made before the query may be missing; only ever true with `stale: 'allow'`. */
  readonly behind: boolean;
}

/** A document that `keys` could not be asked about (`onError: 'skip'`). */
export interface SkippedDocument {
  readonly id: string;
  /** The name of the error. */
  readonly reason: string;
}

/** What a screen shows of an index (B2, B8). */
export type IndexState =
  /** Nothing is stored yet, and nobody has begun to build; or it was not looked at yet. */
  | { readonly state: 'idle' }
  | {
      readonly state: 'building';
      /** Rows (documents and deletions) that are done. */
      readonly rows: number;
      /** Live documents of the database; undefined until it is known. */
      readonly total: number | undefined;
      /** Rows a second since this pass began; undefined before the first batch. */
      readonly rowsPerSecond: number | undefined;
      /** Documents left out so far (`onError: 'skip'`). */
      readonly skipped: number;
    }
  | { readonly state: 'ready'; readonly rows: number; readonly skipped: number }
  | {
      readonly state: 'parked';
      /** A short machine name: the error's name; `keys` when the definition's function is wrong;
       * `removed` when its store was removed, as by a newer version of the index. */
      readonly reason: string;
      /** The document at which it stopped, if it was one. */
      readonly id: string | undefined;
      /** The sequence of the source from which it goes on: all before it is stored. */
      readonly resumePoint: number | string;
      /** Rows that are done. */
      readonly rows: number;
      readonly skipped: number;
    };

/** Answers queries; refuses them while the index is not complete. */
export interface IndexReader {
  /**
   * Rows that fit. Waits, for a bounded time, until the index has seen the writes made before the call. Rejects with
   * `IndexNotReadyError` while it is built or parked, or behind; with `InvalidRequestError` when the query is wrong.
   */
  query(query: IndexQuery, options?: IndexQueryOptions): Promise<IndexAnswer>;
}

/** One index of a client. */
export interface LocalIndex extends IndexReader {
  readonly name: string;
  /** The present state at once, then each change; in every tab. */
  readonly state$: Observable<IndexState>;
  /** Builds it, or goes on where it was; resolves when it is ready. Rejects with `IndexNotReadyError` when it parks. */
  build(): Promise<void>;
  /** Tries again what is parked, from its resume point; as `build`. */
  resume(): Promise<void>;
  /** Builds it from the start; the old rows are cleared first. As `build`. */
  rebuild(): Promise<void>;
  /** Documents that were left out (`onError: 'skip'`). */
  skipped(): Promise<readonly SkippedDocument[]>;
}
