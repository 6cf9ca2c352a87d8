import { z } from 'zod/mini';
import { RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { AllDocsOptions, DocRow, DocumentStore, PouchLike, RevisionRead, WriteAnswer } from '../model/pouch.js';
import {
  allDocsRows,
  bulkGetResults,
  docRowsByKey,
  revisionReads,
  storedDoc,
  writeRow,
  writeRows,
} from '../model/rows.js';
import { localStoreError } from '../retry/classify.js';
import { writeDividing } from '../retry/divide.js';

const changesPage = z.object({
  results: z.array(
    z.object({
      id: z.string(),
      seq: z.union([z.number(), z.string()]),
      changes: z.array(z.object({ rev: z.string() })),
    }),
  ),
  last_seq: z.union([z.number(), z.string()]),
});

const changedDocs = z.object({
  results: z.array(
    z.object({
      id: z.string(),
      seq: z.union([z.number(), z.string()]),
      deleted: z.optional(z.boolean()),
      doc: z.optional(z.nullable(storedDoc)),
    }),
  ),
  last_seq: z.union([z.number(), z.string()]),
});
const databaseInfo = z.object({ doc_count: z.number(), update_seq: z.union([z.number(), z.string()]) });

/** Documents whose leaves are read side by side. */
const leavesAtOnce = 20;

/** A change with the winning document; without one where it is deleted. */
export interface ChangedDoc {
  readonly id: string;
  readonly seq: number | string;
  readonly doc: Doc | undefined;
}

/** A local change: a document and all its live leaves. */
export interface LocalChange {
  readonly id: string;
  readonly revs: readonly string[];
}

/** A local PouchDB. What it throws is marked as a storage error that may pass. */
export class LocalDatabase implements DocumentStore {
  readonly #open: () => PouchLike;
  #pouch: PouchLike | undefined;

  /** `open` is called when the database is first needed. */
  constructor(open: () => PouchLike) {
    this.#open = open;
  }

  get pouch(): PouchLike {
    this.#pouch ??= this.#open();
    return this.#pouch;
  }

  /** Closes the handle, if there is one. */
  async close(): Promise<void> {
    await this.#pouch?.close();
  }

  /** Takes a new connection from now on; another tab of this process may have closed the one that they shared. */
  async reopen(): Promise<void> {
    const before = this.#pouch;
    this.#pouch = undefined;
    await before?.close().catch(() => undefined); // it is closed already: that is what is wanted
  }

  /** Removes the database, with its views. A later call makes a new one. */
  async destroy(): Promise<void> {
    await this.reopen();
    await this.#open().destroy();
  }

  async read(ids: readonly string[]): Promise<readonly DocRow[]> {
    if (ids.length === 0) return [];
    const found = docRowsByKey(await this.#rows({ keys: ids, include_docs: true, conflicts: true }));
    return ids.map((id) => {
      const row = found.get(id);
      if (row === undefined) throw unreadable();
      return row;
    });
  }

  /** Documents between two ids, both included, in their order. */
  async range(startkey: string, endkey: string): Promise<readonly Doc[]> {
    const rows = await this.#rows({ startkey, endkey, include_docs: true });
    return rows.flatMap((row) => row.doc ?? []);
  }

  /** Names and revisions of documents between two ids, both included: the first `limit` of them. */
  async names(
    startkey: string,
    endkey: string,
    limit: number,
  ): Promise<readonly { readonly id: string; readonly rev: string }[]> {
    const rows = await this.#rows({ startkey, endkey, limit });
    return rows.flatMap(({ key, value }) => (value?.rev === undefined ? [] : [{ id: key, rev: value.rev }]));
  }

  write(docs: readonly Doc[]): Promise<WriteAnswer> {
    return writeDividing(docs, async (part) => {
      const rows = writeRows.safeParse(await marked(() => this.pouch.bulkDocs(part)));
      if (!rows.success) throw unreadable();
      const known = rows.data.flatMap((row) => writeRow(row) ?? []);
      const complete = part.every((doc) => known.some((row) => row.id === doc._id));
      return complete ? { rows: known } : { rows: known, error: unreadable() };
    });
  }

  async readRevisions(
    wanted: readonly { readonly id: string; readonly rev: string }[],
  ): Promise<readonly RevisionRead[]> {
    return this.#bulkGet(wanted, false);
  }

  /** Revisions with their attachments, ready to be written elsewhere as they are. */
  async readWhole(wanted: readonly { readonly id: string; readonly rev: string }[]): Promise<readonly RevisionRead[]> {
    return this.#bulkGet(wanted, true);
  }

  /** All leaves of these documents, deleted ones too, each with its history. A document that never was has none. */
  async leaves(ids: readonly string[]): Promise<readonly RevisionRead[]> {
    const reads: RevisionRead[] = [];
    for (let at = 0; at < ids.length; at += leavesAtOnce) {
      const part = ids.slice(at, at + leavesAtOnce);
      const answers = await marked(() => Promise.all(part.map((id) => this.#openRevisions(id))));
      const parsed = bulkGetResults.safeParse(part.map((id, place) => ({ id, docs: answers[place] })));
      if (!parsed.success) throw unreadable();
      reads.push(...revisionReads(parsed.data));
    }
    return reads;
  }

  async #openRevisions(id: string): Promise<unknown> {
    try {
      return await this.pouch.get(id, { open_revs: 'all', revs: true });
    } catch (error) {
      if ((error as { status?: unknown } | null)?.status === 404) return [];
      throw error;
    }
  }

  /** Stores revisions as they are, with the histories that they carry (`_revisions`). They never conflict. */
  async writeRevisions(docs: readonly Doc[]): Promise<void> {
    await marked(() => this.pouch.bulkDocs(docs, { new_edits: false }));
  }

  /** The same, for revisions that come from outside: throws when one of them was not taken. */
  async storeRevisions(docs: readonly Doc[]): Promise<void> {
    const rows = writeRows.safeParse(await marked(() => this.pouch.bulkDocs(docs, { new_edits: false })));
    if (!rows.success) throw unreadable();
    const refused = rows.data.flatMap((row) => writeRow(row) ?? []).find(({ ok }) => !ok);
    if (refused === undefined) return;
    const code = refused.ok ? 'refused' : refused.error;
    throw new RetryableError('The local store has refused a document.', { class: 'storage', code });
  }

  /** The changes after `since`, at most `limit`. */
  async changesAfter(
    since: number | string,
    limit: number,
  ): Promise<{ changes: readonly LocalChange[]; last: number | string }> {
    const { results, last_seq: last } = await this.#changes({ since, limit });
    return { changes: results.map(changeOf), last };
  }

  /** The changes after `since` that nothing after `upTo` has replaced: at most `limit`. `last` is `upTo` at the end. */
  async changesBetween(
    since: number,
    upTo: number,
    limit: number,
  ): Promise<{ changes: readonly LocalChange[]; last: number }> {
    const { results } = await this.#changes({ since, limit });
    const within = results.filter(({ seq }) => isUpTo(seq, upTo));
    const last = within.length < results.length || results.length < limit ? upTo : Number(within.at(-1)?.seq ?? upTo);
    return { changes: within.map(changeOf), last };
  }

  /** The newest changes, without those after `upTo`: at most `limit`. */
  async newestUpTo(upTo: number, limit: number): Promise<readonly LocalChange[]> {
    const { results } = await this.#changes({ descending: true, limit });
    return results.filter(({ seq }) => isUpTo(seq, upTo)).map(changeOf);
  }

  async #changes(options: object): Promise<z.infer<typeof changesPage>> {
    const asked = { ...options, style: 'all_docs', return_docs: true };
    const page = changesPage.safeParse(await marked(() => Promise.resolve(this.pouch.changes(asked))));
    if (!page.success) throw unreadable();
    return page.data;
  }

  /** The winning documents that have changed after `since`, oldest change first: at most `limit`. */
  async changedDocs(
    since: number | string,
    limit: number,
  ): Promise<{ changes: readonly ChangedDoc[]; last: number | string }> {
    const options = { since, limit, include_docs: true, return_docs: true };
    const page = changedDocs.safeParse(await marked(() => Promise.resolve(this.pouch.changes(options))));
    if (!page.success) throw unreadable();
    const changes = page.data.results.map(({ id, seq, deleted, doc }) => {
      if (deleted === true) return { id, seq, doc: undefined };
      // A change without its document says nothing of it: it must not be taken for a deletion.
      if (doc?._id !== id) throw unreadable();
      return { id, seq, doc };
    });
    return { changes, last: page.data.last_seq };
  }

  /**
   * Calls back with each change from now on, in this page and process. A feed that breaks says nothing: whoever follows
   * loses time by it, and must not rely on it.
   */
  follow(heard: (change: unknown) => void): { cancel(): void } {
    const feed = this.pouch.changes({ live: true, since: 'now', return_docs: false });
    feed.on('change', heard);
    feed.on('error', () => undefined);
    Promise.resolve(feed).catch(() => undefined);
    return feed;
  }

  /** The name that the database was given when it was made. */
  id(): Promise<string> {
    return marked(() => this.pouch.id());
  }

  /** Live documents, and the sequence of the last change. */
  async extent(): Promise<{ live: number; sequence: number | string }> {
    const info = databaseInfo.safeParse(await marked(() => this.pouch.info()));
    if (!info.success) throw unreadable();
    return { live: info.data.doc_count, sequence: info.data.update_seq };
  }

  async #bulkGet(
    wanted: readonly { readonly id: string; readonly rev: string }[],
    attachments: boolean,
  ): Promise<readonly RevisionRead[]> {
    if (wanted.length === 0) return [];
    const answer = await marked(() => this.pouch.bulkGet({ docs: wanted, revs: true, attachments }));
    const results = bulkGetResults.safeParse(answer.results);
    if (!results.success) throw unreadable();
    return revisionReads(results.data);
  }

  async #rows(options: AllDocsOptions): Promise<z.infer<typeof allDocsRows>> {
    const { rows } = await marked(() => this.pouch.allDocs(options));
    const parsed = allDocsRows.safeParse(rows);
    if (!parsed.success) throw unreadable();
    return parsed.data;
  }
}

function changeOf({ id, changes }: { id: string; changes: readonly { rev: string }[] }): LocalChange {
  return { id, revs: changes.map(({ rev }) => rev) };
}

function isUpTo(sequence: number | string, upTo: number): boolean {
  return typeof sequence === 'number' && sequence <= upTo;
}

/** Runs a call on a local PouchDB and marks what it throws. */
export async function marked<Value>(call: () => Promise<Value>): Promise<Value> {
  try {
    return await call();
  } catch (error) {
    throw localStoreError(error);
  }
}

function unreadable(): RetryableError {
  return new RetryableError('The local store answered in another shape than expected.', {
    class: 'storage',
    code: 'unreadable',
  });
}
