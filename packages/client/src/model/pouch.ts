/**
 * The calls that Afield makes on a PouchDB, written down as structure: PouchDB's own types stay out of the public API,
 * and whoever brings another build of PouchDB fits.
 */
export interface PouchLike {
  readonly name: string;
  allDocs(options: AllDocsOptions): Promise<{ rows: unknown[] }>;
  bulkDocs(docs: readonly object[], options?: { new_edits?: boolean }): Promise<unknown[]>;
  bulkGet(options: BulkGetOptions): Promise<{ results: unknown[] }>;
  get(id: string, options?: object): Promise<object>;
  put(doc: object): Promise<unknown>;
  changes(options: object): PouchChanges;
  /** A name that this database was given when it was made: another one after it was destroyed and made again. */
  id(): Promise<string>;
  info(): Promise<unknown>;
  close(): Promise<void>;
  destroy(): Promise<unknown>;
}

export interface PouchChanges extends PromiseLike<unknown> {
  on(event: 'change' | 'error' | 'complete', listener: (value: never) => void): unknown;
  cancel(): void;
}

export interface PouchReplication extends PromiseLike<unknown> {
  on(event: 'change' | 'error' | 'complete' | 'denied', listener: (value: never) => void): unknown;
  cancel(): void;
}

export interface PouchConstructor {
  new (name: string, options?: object): PouchLike;
  replicate(source: PouchLike, target: PouchLike, options?: object): PouchReplication;
}

export interface AllDocsOptions {
  readonly keys?: readonly string[];
  readonly startkey?: string;
  readonly endkey?: string;
  readonly limit?: number;
  readonly descending?: boolean;
  readonly include_docs?: boolean;
  /** With `include_docs`: each document names its live losing leaves in `_conflicts`, where it has any. */
  readonly conflicts?: boolean;
}

export interface BulkGetOptions {
  readonly docs: readonly { readonly id: string; readonly rev?: string }[];
  readonly revs?: boolean;
  readonly attachments?: boolean;
}

/** A row of a read by keys. */
export interface DocRow {
  readonly id: string;
  /** Undefined when there never was such a document. */
  readonly rev: string | undefined;
  readonly deleted: boolean;
  readonly doc: import('./json.js').Doc | undefined;
  /** Live leaves beside this revision, hidden because they lose (S8). Absent where there are none. */
  readonly conflicts?: readonly string[];
}

/** A row of a bulk write: written with its revision, or refused with the server's word. */
export type WriteRow =
  | { readonly id: string; readonly ok: true; readonly rev: string | undefined }
  | {
      readonly id: string;
      readonly ok: false;
      readonly error: string;
      readonly reason: string;
      /** Which revision was refused, where the server says so. */
      readonly rev?: string;
    };

/** What a bulk write brought: rows that were answered, and the error that ended it early, if any. */
export interface WriteAnswer {
  readonly rows: readonly WriteRow[];
  /** Rows not in `rows` were not done, or no one knows. */
  readonly error?: unknown;
}

/** A revision with its ancestors, newest first. */
export interface RevisionRead {
  readonly id: string;
  readonly doc: import('./json.js').Doc;
  readonly ancestors: readonly string[];
}

/** The few calls on documents that handlers and the runner need, the same for a local database and for a server. */
export interface DocumentStore {
  /**
   * Whether a write that names the revision of a deletion is a conflict, as at CouchDB: what was deleted is created without
   * naming one. Default: false, as in PouchDB.
   */
  readonly refusesDeletions?: boolean;
  /** One row for each id, in the order asked for. */
  read(ids: readonly string[]): Promise<readonly DocRow[]>;
  /** Writes on the revisions that the documents carry. Rows are matched by id, never by position. */
  write(docs: readonly import('./json.js').Doc[]): Promise<WriteAnswer>;
  /** Bodies of these revisions, as far as the database still has them. */
  readRevisions(wanted: readonly { readonly id: string; readonly rev: string }[]): Promise<readonly RevisionRead[]>;
  /** A `_local` document, which no replication carries; undefined when there is none. Only of a server. */
  readLocal?(name: string): Promise<Readonly<Record<string, unknown>> | undefined>;
  /** Writes one over the revision that it carries. False: this server takes none from us. */
  writeLocal?(name: string, content: Readonly<Record<string, unknown>>): Promise<boolean>;
}
