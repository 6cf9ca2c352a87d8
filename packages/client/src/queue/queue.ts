import type { Doc } from '../model/json.js';
import type { Owner } from '../model/store-name.js';
import type { LocalDatabase } from '../store/local-database.js';
import { BatchRecords } from './batch-records.js';
import { Contents } from './contents.js';
import { Headers } from './headers.js';
import { SequenceNumbers } from './sequence-numbers.js';
import { StoreRecord } from './store-record.js';
import { readAs, StoredDocs } from './stored-docs.js';
import { reportDoc, type Header, type PlanHeader, type Report, type StoredOperation } from './stored.js';
import { WipeNotes } from './wipe-notes.js';

/**
 * What is durable of all bulk operations, and what concerns more than one part of it. Holds the headers in memory, never the
 * operations. Whoever writes a header is told when someone else changed it meanwhile.
 */
export class Queue {
  readonly docs: StoredDocs;
  readonly store: StoreRecord;
  readonly wipeNotes: WipeNotes;
  readonly headers: Headers;
  readonly numbers: SequenceNumbers;
  readonly contents: Contents;
  readonly records: BatchRecords;
  readonly #db: LocalDatabase;

  /** `breathe` gives the page a turn in the middle of long work. */
  constructor(db: LocalDatabase, breathe: () => Promise<void> = () => Promise.resolve()) {
    this.#db = db;
    this.docs = new StoredDocs(db);
    this.store = new StoreRecord(this.docs);
    this.wipeNotes = new WipeNotes(db, this.docs);
    this.headers = new Headers(db, this.docs, this.wipeNotes);
    this.numbers = new SequenceNumbers(this);
    this.contents = new Contents(this.docs, breathe);
    this.records = new BatchRecords(this.docs);
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
    const docs = await this.#readStart();
    const { storeId, user } = await this.store.open(docs, newStoreId, now, owner);
    this.headers.keepAll(docs);
    return { storeId, user, reports: reportsIn(docs) };
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
    const before = this.headers.all();
    const docs = await this.#readStart();
    return { ...this.headers.reread(docs, before), reports: reportsIn(docs) };
  }

  /**
   * Stores payloads and digests, then the header that makes them count: its sequence number is taken by the write
   * itself. Before the header is written nothing of it runs.
   */
  async append(
    header: Omit<Header, '_id' | '_rev' | 'subjects'>,
    operations: readonly StoredOperation[],
  ): Promise<Header> {
    return this.numbers.take({ ...header, subjects: await this.contents.write(header.payload, operations) });
  }

  /** Stores the request of a plan and the subjects that it declared (undefined: everything), then the header. */
  async appendPlan(
    header: Omit<PlanHeader, '_id' | '_rev' | 'subjects'>,
    request: unknown,
    declared: readonly string[] | undefined,
  ): Promise<Header> {
    return this.numbers.take({
      ...header,
      subjects: await this.contents.writePlan(header.plan.request, header.payload, request, declared),
    });
  }

  /** All whose ids begin with `h`: headers, reports and the store's own record among them. */
  async #readStart(): Promise<readonly Doc[]> {
    const docs = await this.#db.range('h', 'h\uffff');
    this.wipeNotes.assertNotLeft(docs);
    return docs;
  }
}

function reportsIn(docs: readonly Doc[]): readonly Report[] {
  return docs.flatMap((doc) => (doc._id.startsWith('hr:') ? readAs(reportDoc, doc, 'A report') : []));
}
