import type { z } from 'zod/mini';
import { AfieldError, RetryableError, StoreTooNewError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { WriteRow } from '../model/pouch.js';
import type { LocalDatabase } from '../store/local-database.js';
import { storedVersion } from './stored.js';

/** Whatever the queue database holds. */
export interface StoredDoc {
  readonly _id: string;
  readonly _rev?: string | undefined;
  readonly v: number;
}

/**
 * The documents of the queue database, each read in its shape: throws `StoreTooNewError` where a newer version of the SDK has
 * written one, and `AfieldError` where one has another shape.
 */
export class StoredDocs {
  readonly #db: LocalDatabase;

  constructor(db: LocalDatabase) {
    this.#db = db;
  }

  async read<Shape extends z.ZodMiniType>(id: string, shape: Shape, what = id): Promise<z.infer<Shape> | undefined> {
    const [row] = await this.#db.read([id]);
    return row?.doc === undefined ? undefined : readAs(shape, row.doc, what);
  }

  /** The documents of these ids, as far as there are some. */
  async readMany<Shape extends z.ZodMiniType>(
    ids: readonly string[],
    shape: Shape,
    what = 'An entry',
  ): Promise<ReadonlyMap<string, z.infer<Shape>>> {
    const rows = await this.#db.read(ids);
    return new Map(rows.flatMap(({ id, doc }) => (doc === undefined ? [] : [[id, readAs(shape, doc, what)]])));
  }

  /** Documents whose ids begin so. */
  readRange<Shape extends z.ZodMiniType>(prefix: string, shape: Shape): Promise<readonly z.infer<Shape>[]> {
    return this.readBetween(prefix, `${prefix}\uffff`, shape, prefix);
  }

  /** Documents between two ids, both included. */
  async readBetween<Shape extends z.ZodMiniType>(
    from: string,
    to: string,
    shape: Shape,
    what: string,
  ): Promise<readonly z.infer<Shape>[]> {
    const docs = await this.#db.range(from, to);
    return docs.map((doc) => readAs(shape, doc, what));
  }

  /** Names and revisions of the first `limit` documents between two ids, both included. */
  names(from: string, to: string, limit: number): Promise<readonly { readonly id: string; readonly rev: string }[]> {
    return this.#db.names(from, to, limit);
  }

  /** The present revisions of these documents, as far as there are some. */
  async revisions(ids: readonly string[]): Promise<ReadonlyMap<string, string | undefined>> {
    return new Map((await this.#db.read(ids)).map(({ id, rev, deleted }) => [id, deleted ? undefined : rev]));
  }

  /** Grows with each write of any tab. */
  async writes(): Promise<number> {
    const { sequence } = await this.#db.extent();
    return typeof sequence === 'number' ? sequence : Number.parseInt(sequence, 10);
  }

  /**
   * Writes documents in one call. Answers with their new revisions, and with the ids of those that someone else changed
   * meanwhile. Throws when anything else went wrong.
   */
  async write(
    docs: readonly StoredDoc[],
  ): Promise<{ revs: ReadonlyMap<string, string>; conflicts: ReadonlySet<string> }> {
    const answer = await this.#db.write(docs.map((doc) => ({ ...doc }) as Doc));
    if (answer.error !== undefined) throw answer.error as Error;
    const revs = new Map<string, string>();
    const conflicts = new Set<string>();
    for (const row of answer.rows) {
      if (row.ok) revs.set(row.id, row.rev ?? '');
      else if (row.error === 'conflict') conflicts.add(row.id);
      else throw refusedRow(row);
    }
    return { revs, conflicts };
  }

  /** The same; throws `AfieldError` when one of them is in the store already. */
  async writeAll(docs: readonly StoredDoc[]): Promise<void> {
    const { conflicts } = await this.write(docs);
    if (conflicts.size > 0)
      throw new AfieldError('store_conflict', 'Something with the same name is in the store already.');
  }
}

/** What is written to remove a document. */
export function removed(id: string, rev: string | undefined): StoredDoc & { readonly _deleted: true } {
  return { _id: id, _rev: rev, v: storedVersion, _deleted: true };
}

/** A document that was read, in its shape. `what` names it in the error. */
export function readAs<Shape extends z.ZodMiniType>(shape: Shape, doc: object, what: string): z.infer<Shape> {
  const parsed = shape.safeParse(doc);
  if (parsed.success) return parsed.data;
  const found = (doc as { v?: unknown }).v;
  if (typeof found === 'number' && found > storedVersion) throw new StoreTooNewError(what, found);
  throw new AfieldError('store_unreadable', `${what} in the local store has another shape than expected.`);
}

function refusedRow(row: Extract<WriteRow, { ok: false }>): RetryableError {
  return new RetryableError('The local store refused a write.', { class: 'storage', code: row.error });
}
