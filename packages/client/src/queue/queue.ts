import { z } from 'zod/mini';
import { AfieldError, RetryableError, StoreLeftError, StoreTooNewError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { Owner } from '../model/store-name.js';
import type { WriteRow } from '../model/pouch.js';
import { generationOf } from '../model/revision.js';
import { endStates } from '../model/states.js';
import type { LocalDatabase } from '../store/local-database.js';
import { assertOwner, claimed } from './store-owner.js';
import {
  digestDoc,
  headerDoc,
  headerId,
  numberedId,
  payloadDoc,
  payloadSize,
  planRequestDoc,
  recordDoc,
  recordId,
  reportDoc,
  rowStates,
  sequenceOf,
  storedOperations,
  storedVersion,
  storeDoc,
  wipeNoteDoc,
  withRev,
  type BatchRecord,
  type Header,
  type PlanHeader,
  type Report,
  type RowState,
  type StoredOperation,
  type StoredStore,
  type WipeNote,
} from './stored.js';
import { digestsOf, hashesOf, inHeader, subjectsOf } from './subjects.js';

/** Whatever the queue database holds. */
export interface StoredDoc {
  readonly _id: string;
  readonly _rev?: string | undefined;
  readonly v: number;
}

/**
 * What is durable of all bulk operations. Holds the headers in memory, never the operations.
 * Whoever writes a header gets `undefined` back when someone else changed it meanwhile.
 */
export class Queue {
  readonly #db: LocalDatabase;
  readonly #breathe: () => Promise<void>;
  readonly #headers = new Map<number, Header>();
  /** Sequence numbers by the ids of the bulk operations. */
  readonly #sequences = new Map<string, number>();
  /** Sequence numbers in their order; unset when one was added. */
  #order: number[] | undefined;
  #lastSequence = 0;
  /** All numbers up to here were read: of those that are not in memory the headers are removed. */
  #readUpTo = 0;
  #appending: Promise<unknown> = Promise.resolve();
  #user: string | undefined;
  /** Which removal of the store is this tab's own: it keeps only others away. */
  #ownNote: string | undefined;
  /** Up to this number none is free, whatever the headers say. */
  #skipped = 0;
  #cached: { id: string; operations: readonly StoredOperation[] } | undefined;

  /** `breathe` gives the page a turn in the middle of long work. */
  constructor(db: LocalDatabase, breathe: () => Promise<void> = () => Promise.resolve()) {
    this.#db = db;
    this.#breathe = breathe;
  }

  /**
   * Reads all that is needed at the start in one read: headers and reports, no operation. A new store gets its name.
   * Called again, it shows what others have stored meanwhile. Throws `OtherStoreError` when the store is not `owner`'s,
   * before anything of it is kept in memory.
   */
  async open(
    newStoreId: string,
    now: number,
    owner: Owner = { user: undefined, server: undefined },
  ): Promise<{ storeId: string; user: string | undefined; reports: readonly Report[] }> {
    const docs = await this.#db.range('h', 'h\uffff');
    this.#assertNotLeft(docs);
    const found = docs.find(({ _id }) => _id === 'hs');
    const stored =
      found === undefined ? await this.#name(newStoreId, now, owner) : readAs(storeDoc, found, 'The local store');
    const { storeId, user } = await this.#own(stored, owner);
    this.#user = user;
    this.#noteRead(docs);
    const reports: Report[] = [];
    for (const doc of docs) {
      if (isWipeNote(doc)) continue;
      if (doc._id.startsWith('h:')) this.#keepHeader(readAs(headerDoc, doc, 'A bulk operation'));
      else if (doc._id.startsWith('hr:')) reports.push(readAs(reportDoc, doc, 'A report'));
    }
    return { storeId, user, reports };
  }

  /** Names a new store; when another tab was faster, its name counts. */
  async #name(storeId: string, createdAt: number, { user, server }: Owner): Promise<StoredStore> {
    const mine: StoredStore = { _id: 'hs', v: storedVersion, storeId, createdAt, user, server };
    await this.write([mine]);
    return this.#store();
  }

  async #store(): Promise<StoredStore> {
    const stored = await this.readDoc('hs', storeDoc);
    if (stored === undefined) throw new AfieldError('store_unreadable', 'The local store has lost its name.');
    return stored;
  }

  /** Whose the store is: what was not known of it before is written down; of two tabs the faster one counts. */
  async #own(found: StoredStore, owner: Owner): Promise<StoredStore> {
    for (let stored = found; ; stored = await this.#store()) {
      assertOwner(stored, owner);
      const next = claimed(stored, owner);
      if (next === undefined) return stored;
      const { conflicts } = await this.write([next]);
      if (conflicts.size === 0) return next;
    }
  }

  /** The person whose work this store holds; undefined: not known yet. */
  get user(): string | undefined {
    return this.#user;
  }

  /**
   * The server has said who is signed in: from now on the store is for this person, if it was for nobody before. Durable when
   * it resolves. Answers with whose it is.
   */
  async claim(user: string): Promise<string> {
    const stored = await this.#store();
    const owned = stored.user === undefined ? await this.#own(stored, { user, server: undefined }) : stored;
    this.#user = owned.user;
    return owned.user ?? user;
  }

  /** Reads the headers that others have added since. Answers whether there were any. */
  async loadNew(): Promise<boolean> {
    const docs = await this.#db.range(headerId(this.#lastKnown() + 1), 'h:\uffff');
    this.#assertNotLeft(docs);
    this.#noteRead(docs);
    for (const doc of docs) {
      if (isWipeNote(doc)) continue;
      const header = readAs(headerDoc, doc, 'A bulk operation');
      const known = this.#headers.get(sequenceOf(header._id));
      // Whoever wrote while this read was under way knows better.
      if (known === undefined || generationOf(known._rev) < generationOf(header._rev)) this.#keepHeader(header);
    }
    return docs.length > 0;
  }

  /** In the order of their sequence numbers. */
  headers(): readonly Header[] {
    this.#order ??= [...this.#headers.keys()].sort((a, b) => a - b);
    return this.#order.flatMap((sequence) => this.#headers.get(sequence) ?? []);
  }

  header(sequence: number): Header | undefined {
    return this.#headers.get(sequence);
  }

  /** The bulk operation of this id, as far as it is in memory. */
  known(bulkOperationId: string): Header | undefined {
    return this.#headers.get(this.#sequences.get(bulkOperationId) ?? 0);
  }

  /** The bulk operation of this id; what another tab has queued is looked for. Throws `AfieldError` when there is none. */
  async find(bulkOperationId: string): Promise<Header> {
    if (this.known(bulkOperationId) === undefined) await this.loadNew();
    const header = this.known(bulkOperationId);
    if (header !== undefined) return header;
    throw new AfieldError('unknown_bulk_operation', `There is no bulk operation ${bulkOperationId} on this device.`);
  }

  /** Reads the headers anew that are not at their end. Answers with those that someone else has changed. */
  async refreshOpen(): Promise<readonly Header[]> {
    const open = this.headers().filter(({ state }) => !endStates.has(state));
    const rows = await this.#db.read(open.map(({ _id }) => _id));
    return this.#keepNewer(rows.flatMap(({ doc }) => doc ?? []));
  }

  /**
   * Reads all headers and reports anew. Answers with the headers that someone else has added or changed, and the numbers
   * of those that housekeeping has removed.
   */
  async refreshAll(): Promise<{
    headers: readonly Header[];
    reports: readonly Report[];
    removed: readonly number[];
  }> {
    const before = [...this.#headers.keys()];
    const docs = await this.#db.range('h', 'h\uffff');
    this.#assertNotLeft(docs);
    this.#noteRead(docs);
    const present = new Set(docs.map(({ _id }) => _id));
    const removed = before.filter((sequence) => !present.has(headerId(sequence)));
    this.forget(removed);
    return {
      removed,
      headers: this.#keepNewer(docs.filter((doc) => doc._id.startsWith('h:') && !isWipeNote(doc))),
      reports: docs.flatMap((doc) => (doc._id.startsWith('hr:') ? readAs(reportDoc, doc, 'A report') : [])),
    };
  }

  /** Whoever wrote while these were read knows better. */
  #keepNewer(docs: readonly Doc[]): readonly Header[] {
    return docs.flatMap((doc) => {
      const known = this.#headers.get(sequenceOf(doc._id));
      if (known !== undefined && generationOf(doc._rev) <= generationOf(known._rev)) return [];
      const header = readAs(headerDoc, doc, 'A bulk operation');
      this.#keepHeader(header);
      return [header];
    });
  }

  /**
   * Stores payloads and digests, then the header that makes them count: its sequence number is taken by the write
   * itself. Before the header is written nothing of it runs.
   */
  async append(
    header: Omit<Header, '_id' | '_rev' | 'subjects'>,
    operations: readonly StoredOperation[],
  ): Promise<Header> {
    return this.appendHeader({ ...header, subjects: await this.writeContent(header.payload, operations) });
  }

  /** Stores the request of a plan and the subjects that it declared (undefined: everything), then the header. */
  async appendPlan(
    header: Omit<PlanHeader, '_id' | '_rev' | 'subjects'>,
    request: unknown,
    declared: readonly string[] | undefined,
  ): Promise<Header> {
    return this.appendHeader({
      ...header,
      subjects: await this.writePlan(header.plan.request, header.payload, request, declared),
    });
  }

  /** Stores a header that makes count what is stored already. */
  appendHeader(header: Omit<Header, '_id' | '_rev'>): Promise<Header> {
    // One after another: a later one must not be written, and run, while the number before it is still on its way.
    const appending = this.#appending.then(() => this.#takeNumber(header));
    this.#appending = appending.catch(() => undefined); // the next one does not care how this one ended
    return appending;
  }

  async #takeNumber(given: Omit<Header, '_id' | '_rev'>): Promise<Header> {
    const header = this.#user === undefined ? given : { ...given, user: this.#user };
    for (;;) {
      // A number is used up only when it is known who has it: one whose write got no answer is tried again.
      const sequence = this.#lastSequence + 1;
      const doc = { ...header, _id: headerId(sequence) };
      const stored = await this.#createHeader(doc);
      if (stored === undefined) {
        // Someone else was faster: what comes before ours must be known before ours may run.
        await this.loadNew();
        this.#lastSequence = Math.max(this.#lastSequence, sequence);
        continue;
      }
      if (isReused(stored) && (await this.#giveBack(stored))) continue;
      this.#keepHeader(stored);
      return stored;
    }
  }

  /**
   * The number of this header was used before: its old header was removed since this tab has last looked, and a document
   * that is created anew goes on from its tombstone. Takes it away again, unless someone runs it already.
   */
  async #giveBack(header: Header): Promise<boolean> {
    const { conflicts } = await this.write([removed(header._id, header._rev)]);
    if (conflicts.size > 0) {
      const stored = await this.readDoc(header._id, headerDoc);
      if (stored?.id === header.id) return false;
    }
    await this.loadNew();
    this.#lastSequence = Math.max(this.#lastSequence, sequenceOf(header._id));
    return true;
  }

  /** Stores payloads and digests under a prefix that no one has used. Answers with what the header says of the subjects. */
  async writeContent(prefix: string, operations: readonly StoredOperation[]): Promise<Header['subjects']> {
    for (let start = 0; start < operations.length; start += payloadSize * payloadsPerWrite) {
      await this.writeAll(payloadsOf(prefix, operations, start));
    }
    return this.#writeSubjects(prefix, idsOf(operations));
  }

  /** The same for the request of a plan, under an id that no one has used. */
  async writePlan(
    id: string,
    prefix: string,
    request: unknown,
    declared: readonly string[] | undefined,
  ): Promise<Header['subjects']> {
    const stored: z.infer<typeof planRequestDoc> = { _id: id, v: storedVersion, request: JSON.stringify({ request }) };
    await this.writeAll([stored]);
    return declared === undefined ? null : this.#writeSubjects(prefix, declared);
  }

  async #writeSubjects(payload: string, ids: Iterable<unknown>): Promise<Header['subjects']> {
    return this.writeHashes(payload, await subjectsOf(ids, this.#breathe));
  }

  /** Stores what is kept in order, where it is more than a header holds. Answers with what the header says of it. */
  async writeHashes(payload: string, hashes: ReadonlySet<number> | null): Promise<Header['subjects']> {
    const prefix = payload.replace(/^p:/, 'd:');
    const subjects = inHeader(hashes, prefix);
    if (hashes === null || subjects === null || Array.isArray(subjects)) return subjects;
    for (const digest of digestsOf(hashes, prefix)) await this.writeAll([digest]);
    return subjects;
  }

  /** The subjects that a header keeps beside itself; undefined when they cannot be made out any more. */
  async digest({ digest, count }: { digest: string; count: number }): Promise<Uint32Array | undefined> {
    return hashesOf(await this.readRange(digest, digestDoc), count, this.#breathe);
  }

  /** The request of a plan, as it was queued. */
  async planRequest({ plan }: Pick<Header, 'plan'>): Promise<unknown> {
    const doc = plan === undefined ? undefined : await this.readDoc(plan.request, planRequestDoc);
    if (doc === undefined) throw new AfieldError('store_unreadable', 'The request of a plan is missing in the store.');
    return storedRequest.parse(JSON.parse(doc.request)).request;
  }

  /** The operations from `from`, at most `count` of them. */
  async operations(
    header: Pick<Header, 'payload' | 'total'>,
    from: number,
    count: number,
  ): Promise<readonly StoredOperation[]> {
    const found: StoredOperation[] = [];
    const end = Math.min(from + count, header.total);
    for (let at = from; at < end;) {
      const page = await this.#payload(numberedId(header.payload, Math.floor(at / payloadSize)));
      const offset = at % payloadSize;
      const slice = page.slice(offset, offset + end - at);
      if (slice.length === 0)
        throw new AfieldError('store_unreadable', 'Operations of a bulk operation are missing in the store.');
      found.push(...slice);
      at += slice.length;
    }
    return found;
  }

  async record(sequence: number, from: number): Promise<{ record: BatchRecord; rows: RowState[] } | undefined> {
    const record = await this.readDoc(recordId(sequence, from), recordDoc);
    return record === undefined ? undefined : { record, rows: rowsOf(record) };
  }

  /** The records of the batches that hold these operations. They may lie far apart: only these batches are read. */
  async recordsAt(
    sequence: number,
    indexes: readonly number[],
  ): Promise<readonly { record: BatchRecord; rows: RowState[] }[]> {
    const found = new Map<string, { record: BatchRecord; rows: RowState[] }>();
    for (const [from, to] of stretchesOf(indexes)) {
      // A record has at most a hundred operations: the first of these may lie in one that begins before them.
      const docs = await this.#db.range(
        recordId(sequence, Math.max(0, from - payloadSize + 1)),
        recordId(sequence, to - 1),
      );
      for (const doc of docs) {
        const record = readAs(recordDoc, doc, 'A batch');
        if (record.from + record.count > from) found.set(record._id, { record, rows: rowsOf(record) });
      }
    }
    return [...found.values()];
  }

  /** What is known of these operations, by index; those of which nothing is stored are left out. */
  async rowsAt(sequence: number, indexes: readonly number[]): Promise<ReadonlyMap<number, RowState>> {
    const wanted = new Set(indexes);
    const found = new Map<number, RowState>();
    for (const { record, rows } of await this.recordsAt(sequence, indexes)) {
      rows.forEach((row, place) => {
        if (wanted.has(record.from + place)) found.set(record.from + place, row);
      });
    }
    return found;
  }

  /** Operations by their places in this bulk operation, in one read. */
  async operationsAt(header: Header, indexes: readonly number[]): Promise<ReadonlyMap<number, StoredOperation>> {
    const pageOf = (index: number): string => numberedId(header.payload, Math.floor(index / payloadSize));
    const rows = await this.#db.read([...new Set(indexes.map(pageOf))]);
    const pages = new Map(rows.map(({ id, doc }) => [id, operationsOf(doc)]));
    const found = new Map<number, StoredOperation>();
    for (const index of indexes) {
      const operation = pages.get(pageOf(index))?.[index % payloadSize];
      if (operation !== undefined) found.set(index, operation);
    }
    return found;
  }

  /** All records of one bulk operation. */
  async records(sequence: number): Promise<readonly { record: BatchRecord; rows: RowState[] }[]> {
    const docs = await this.#db.range(recordId(sequence, 0), `${recordId(sequence, 0).slice(0, 15)}\uffff`);
    return docs.map((doc) => {
      const record = readAs(recordDoc, doc, 'A batch');
      return { record, rows: rowsOf(record) };
    });
  }

  /**
   * Writes documents of the queue in one call. Answers with their new revisions, and with the ids of those that
   * someone else changed meanwhile. Throws when anything else went wrong.
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

  /** Headers that are removed from the store: they are shown no more. Their numbers stay used. */
  forget(sequences: readonly number[]): void {
    for (const sequence of sequences) {
      this.#sequences.delete(this.#headers.get(sequence)?.id ?? '');
      this.#headers.delete(sequence);
    }
    if (sequences.length > 0) this.#order = undefined;
  }

  /**
   * Notes that the store is being removed, where the next header would stand: from then on nobody queues anything. Answers
   * with undefined when something was queued after the number `upTo`.
   */
  leave(given: Pick<WipeNote, 'wipe' | 'documents'>, upTo: number): Promise<WipeNote | undefined> {
    const leaving = this.#appending.then(() => this.#takeLastNumber(given, upTo));
    this.#appending = leaving.catch(() => undefined);
    return leaving;
  }

  async #takeLastNumber(given: Pick<WipeNote, 'wipe' | 'documents'>, upTo: number): Promise<WipeNote | undefined> {
    for (;;) {
      await this.loadNew();
      if (this.headers().some(({ _id }) => sequenceOf(_id) > upTo)) return undefined;
      const sequence = Math.max(this.#lastSequence, this.#skipped) + 1;
      const note: WipeNote = { _id: headerId(sequence), v: storedVersion, ...given };
      this.#ownNote = given.wipe;
      const rev = (await this.write([note])).revs.get(note._id);
      if (rev === undefined) continue;
      // A number that was used before would not be in the way of who takes the next one.
      if (generationOf(rev) === 1) return { ...note, _rev: rev };
      await this.write([removed(note._id, rev)]);
      this.#skipped = sequence;
    }
  }

  /** The store is not removed after all. */
  async stay({ _id, _rev }: WipeNote): Promise<void> {
    await this.write([removed(_id, _rev)]);
    this.#ownNote = undefined;
  }

  /** The note that the store is being removed, by whomever. */
  async wipeNote(): Promise<WipeNote | undefined> {
    const docs = await this.#db.range('h:', 'h:\uffff');
    const found = docs.find(isWipeNote);
    return found === undefined ? undefined : readAs(wipeNoteDoc, found, 'A note');
  }

  /** Whoever finds that the store is being removed keeps away from it (S7). */
  #assertNotLeft(docs: readonly Doc[]): void {
    if (docs.some((doc) => isWipeNote(doc) && doc['wipe'] !== this.#ownNote)) throw new StoreLeftError();
  }

  /** Whether housekeeping has removed a bulk operation, here or in another tab: whoever still reads of it finds nothing. */
  async isForgotten({ _id }: Header): Promise<boolean> {
    const [row] = await this.#db.read([_id]);
    if (row?.rev !== undefined && !row.deleted) return false;
    this.forget([sequenceOf(_id)]);
    return true;
  }

  /** Keeps a header as it was written. */
  remember(header: Header): void {
    this.#keepHeader(header);
  }

  /** Reads a header anew from the store, and keeps it. */
  async refresh(sequence: number): Promise<Header> {
    const header = await this.readDoc(headerId(sequence), headerDoc);
    if (header === undefined) {
      const ended = this.#headers.get(sequence);
      if (ended === undefined || !endStates.has(ended.state))
        throw new AfieldError('store_unreadable', 'A bulk operation is missing in the store.');
      this.forget([sequence]);
      throw new AfieldError('unknown_bulk_operation', `The bulk operation ${ended.id} is over and was removed.`);
    }
    // Whoever wrote while this read was under way knows better.
    const known = this.#headers.get(sequence);
    if (known === undefined || generationOf(known._rev) <= generationOf(header._rev)) this.#keepHeader(header);
    return header;
  }

  /**
   * Changes a header by what is stored, as often as someone else is faster. `change` answers with what is to be stored,
   * or undefined when nothing is. Answers with the header as it is then, and whether this call has changed it.
   */
  async change(
    sequence: number,
    change: (header: Header) => Header | undefined | Promise<Header | undefined>,
  ): Promise<{ header: Header; isChanged: boolean }> {
    for (;;) {
      const header = await this.refresh(sequence);
      const next = await change(header);
      if (next === undefined) return { header, isChanged: false };
      const { revs, conflicts } = await this.write([next]);
      if (conflicts.size > 0) continue;
      const kept = withRev(next, revs);
      this.remember(kept);
      return { header: kept, isChanged: true };
    }
  }

  /** Whether the stored header still has this revision: asked after the documents were read and before they are written. */
  async isUnchanged(header: Header): Promise<boolean> {
    const [row] = await this.#db.read([header._id]);
    return row?.rev === header._rev;
  }

  /** The present revisions of these documents, as far as there are some. */
  async revisions(ids: readonly string[]): Promise<ReadonlyMap<string, string | undefined>> {
    return new Map((await this.#db.read(ids)).map(({ id, rev, deleted }) => [id, deleted ? undefined : rev]));
  }

  async readDoc<Shape extends z.ZodMiniType>(id: string, shape: Shape): Promise<z.infer<Shape> | undefined> {
    const [row] = await this.#db.read([id]);
    return row?.doc === undefined ? undefined : readAs(shape, row.doc, id);
  }

  /** The documents of these ids, as far as there are some. */
  async readDocs<Shape extends z.ZodMiniType>(
    ids: readonly string[],
    shape: Shape,
  ): Promise<ReadonlyMap<string, z.infer<Shape>>> {
    const rows = await this.#db.read(ids);
    return new Map(rows.flatMap(({ id, doc }) => (doc === undefined ? [] : [[id, readAs(shape, doc, 'An entry')]])));
  }

  /** Documents whose ids begin so. */
  async readRange<Shape extends z.ZodMiniType>(prefix: string, shape: Shape): Promise<readonly z.infer<Shape>[]> {
    const docs = await this.#db.range(prefix, `${prefix}\uffff`);
    return docs.map((doc) => readAs(shape, doc, prefix));
  }

  /** Names and revisions of the first `limit` documents between two ids, both included. */
  names(from: string, to: string, limit: number): Promise<readonly { readonly id: string; readonly rev: string }[]> {
    return this.#db.names(from, to, limit);
  }

  /** Grows with each write of any tab. */
  async writes(): Promise<number> {
    const { sequence } = await this.#db.extent();
    return typeof sequence === 'number' ? sequence : Number.parseInt(sequence, 10);
  }

  async writeAll(docs: readonly StoredDoc[]): Promise<void> {
    const { conflicts } = await this.write(docs);
    if (conflicts.size > 0)
      throw new AfieldError('store_conflict', 'Something with the same name is in the store already.');
  }

  #keepHeader(header: Header): void {
    const sequence = sequenceOf(header._id);
    if (!this.#headers.has(sequence)) this.#order = undefined;
    this.#headers.set(sequence, header);
    this.#sequences.set(header.id, sequence);
    this.#lastSequence = Math.max(this.#lastSequence, sequence);
  }

  /** Up to here nothing new can come: numbers that others took may lie between ours. */
  #lastKnown(): number {
    let last = this.#readUpTo;
    while (this.#headers.has(last + 1)) last++;
    this.#readUpTo = last;
    return last;
  }

  /** A number is taken only when the one before it is: what a read up to the end did not find is removed. */
  #noteRead(docs: readonly Doc[]): void {
    for (const { _id } of docs) {
      if (_id.startsWith('h:')) this.#readUpTo = Math.max(this.#readUpTo, sequenceOf(_id));
    }
  }

  async #payload(id: string): Promise<readonly StoredOperation[]> {
    if (this.#cached?.id === id) return this.#cached.operations;
    const [row] = await this.#db.read([id]);
    const operations = operationsOf(row?.doc);
    this.#cached = { id, operations };
    return operations;
  }

  /** The created header as it is stored, or undefined when the number is taken. */
  async #createHeader(doc: Omit<Header, '_rev'>): Promise<Header | undefined> {
    try {
      const rev = (await this.write([doc])).revs.get(doc._id);
      return rev === undefined ? undefined : { ...doc, _rev: rev };
    } catch (error) {
      // An error does not say that nothing was written: what is stored is looked at before anyone is told. It may have
      // run already, in this tab or another.
      const stored = await this.readDoc(doc._id, headerDoc).catch(() => undefined);
      if (stored?.id === doc.id) return stored;
      throw error;
    }
  }
}

/** Whether a header that was just created has taken a number that was used before. One that runs already stays. */
function isReused({ _rev, state, attempts }: Header): boolean {
  return generationOf(_rev) > 1 && state === 'queued' && attempts === 0;
}

function isWipeNote(doc: Doc): boolean {
  return 'wipe' in doc;
}

/** What is written to remove a document. */
export function removed(id: string, rev: string | undefined): StoredDoc & { readonly _deleted: true } {
  return { _id: id, _rev: rev, v: storedVersion, _deleted: true };
}

function* idsOf(operations: readonly StoredOperation[]): Generator {
  for (const { i } of operations) yield i;
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

const storedRequest = z.object({ request: z.optional(z.unknown()) });

/** Payloads that are written in one call: their text is made and hashed without a turn for the page in between. */
const payloadsPerWrite = 10;

function payloadsOf(
  prefix: string,
  operations: readonly StoredOperation[],
  from: number,
): z.infer<typeof payloadDoc>[] {
  const payloads: z.infer<typeof payloadDoc>[] = [];
  const end = Math.min(from + payloadSize * payloadsPerWrite, operations.length);
  for (let start = from; start < end; start += payloadSize) {
    payloads.push({
      _id: numberedId(prefix, start / payloadSize),
      v: storedVersion,
      operations: JSON.stringify(operations.slice(start, start + payloadSize)),
    });
  }
  return payloads;
}

function operationsOf(doc: Doc | undefined): readonly StoredOperation[] {
  if (doc === undefined)
    throw new AfieldError('store_unreadable', 'Operations of a bulk operation are missing in the store.');
  return storedOperations.parse(JSON.parse(readAs(payloadDoc, doc, 'A list of operations').operations));
}

function rowsOf(record: BatchRecord): RowState[] {
  return rowStates.parse(JSON.parse(record.rows));
}

function readAs<Shape extends z.ZodMiniType>(shape: Shape, doc: object, what: string): z.infer<Shape> {
  const parsed = shape.safeParse(doc);
  if (parsed.success) return parsed.data;
  const found = (doc as { v?: unknown }).v;
  if (typeof found === 'number' && found > storedVersion) throw new StoreTooNewError(what, found);
  throw new AfieldError('store_unreadable', `${what} in the local store has another shape than expected.`);
}

function refusedRow(row: Extract<WriteRow, { ok: false }>): RetryableError {
  return new RetryableError('The local store refused a write.', { class: 'storage', code: row.error });
}
