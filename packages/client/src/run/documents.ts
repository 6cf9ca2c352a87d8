import { documentFailure } from '../actions/document.js';
import { idFailure } from '../actions/subject.js';
import { DivisibleError } from '../model/errors.js';
import type { Failure } from '../model/failure.js';
import type { DocumentAction, RefusedRow } from '../model/handler.js';
import type { Doc } from '../model/json.js';
import type { DocRow, DocumentStore, WriteAnswer } from '../model/pouch.js';
import { classifyRow } from '../retry/classify.js';
import { readDividing } from '../retry/divide.js';
import { isOutcome, type RowState } from '../queue/stored.js';
import type { Batch, BatchOperation } from './batch.js';
import { appliedTo, guardOf, isApplied, WrongAnswerError } from './answers.js';
import { findOwnRevisions, type HistoryAnswer } from './history.js';
import { called, refusedRow } from './own-lines.js';
import { removeLeaves, type RefusedWrite } from './remove-leaves.js';
import { gravest, rowError } from './row-errors.js';

/** What one attempt brought: the rows as they are now, new failures, and why the batch must run again, if it must. */
export interface AttemptResult {
  readonly rows: readonly RowState[];
  readonly failures: readonly AttemptFailure[];
  readonly error?: unknown;
}

export interface AttemptFailure {
  readonly index: number;
  readonly failure: Failure;
  readonly mayHaveBeenApplied: boolean;
  /** With the code `conflicting_content`: the document as it was found, for the quarantine (O5). */
  readonly conflict?: Doc;
}

/** What the events of a batch are made of, beside its rows (O3). */
export interface EventSource {
  /** The type of a document. What an app answers is checked where it is used. */
  typeOf(doc: Doc): string | undefined;
  /** Milliseconds since 1970, on the wall clock. */
  now(): number;
}

export interface Guards {
  /** Makes the intent durable, before anything is written. */
  saveIntent(rows: readonly RowState[]): Promise<void>;
  /** Throws when another runner has taken over; asked after the read and right before the write. */
  fence(): Promise<void>;
}

interface Item {
  readonly place: number;
  readonly operation: BatchOperation;
  readonly id: string;
  readonly row: DocRow;
  /** It cannot be seen any more whether an earlier attempt was applied (R3). */
  uncertain: boolean;
}

/**
 * One attempt at a batch of a document action: read, decide, intent, fence, write, judge the rows.
 *
 *   open ──intent──▶ intent ──row ok──────────▶ applied
 *    ▲                 │ ──row refused────────▶ failed
 *    └──row conflict───┘ ──no answer──▶ stays intent: the next attempt looks at the history
 *
 * Where a document is deleted that has hidden conflicts, its losing leaves go first, and the winner last: otherwise one of
 * them would be the document then (S8).
 */
export async function runDocuments(
  batch: Batch,
  before: readonly RowState[],
  action: DocumentAction,
  store: DocumentStore,
  guards: Guards,
  events: EventSource,
): Promise<AttemptResult> {
  const attempt = new DocumentAttempt(batch, before, action, store, events);
  try {
    await attempt.decide();
    return await attempt.write(guards);
  } catch (error) {
    return attempt.result(error);
  }
}

/**
 * Which of the writes that were tried have been done, by the documents and their histories. Nothing is written: for a
 * bulk operation that was cancelled in the middle. What was not done is `open` again.
 */
export async function findWritten(
  batch: Batch,
  before: readonly RowState[],
  action: DocumentAction,
  store: DocumentStore,
  events: EventSource,
): Promise<readonly RowState[]> {
  const attempt = new DocumentAttempt(batch, before, action, store, events);
  await attempt.findWritten();
  return attempt.result().rows;
}

class DocumentAttempt {
  readonly #batch: Batch;
  readonly #action: DocumentAction;
  readonly #store: DocumentStore;
  readonly #events: EventSource;
  readonly #before: readonly RowState[];
  readonly #rows: RowState[];
  readonly #failures: AttemptFailure[] = [];
  readonly #writes = new Map<string, { item: Item; doc: Doc }>();

  constructor(
    batch: Batch,
    before: readonly RowState[],
    action: DocumentAction,
    store: DocumentStore,
    events: EventSource,
  ) {
    this.#batch = batch;
    this.#events = events;
    this.#action = action;
    this.#store = store;
    this.#before = before;
    this.#rows = [...before];
  }

  /** Reads the documents and decides each operation: done already, failed for good, or to be written. */
  async decide(): Promise<void> {
    const items = await this.#read();
    const unclear: Item[] = [];
    for (const item of items) {
      if (this.#isDone(item)) continue;
      const state = this.#rows[item.place];
      if (state?.s === 'intent' && state.b !== item.row.rev) unclear.push(item);
      else this.#plan(item);
    }
    if (unclear.length === 0) return;
    const own = await this.#own(unclear);
    for (const item of unclear) {
      const found = own.get(item.id);
      if (found?.rev !== undefined) {
        this.#settle(item.place, 'applied', found.rev);
        continue;
      }
      item.uncertain = found?.complete !== true;
      this.#plan(item);
    }
  }

  async findWritten(): Promise<void> {
    const tried = (await this.#read()).filter(({ place }) => this.#rows[place]?.s === 'intent');
    const later = tried.filter(({ place, row }) => this.#rows[place]?.b !== row.rev);
    const own = await this.#own(later);
    for (const { id, place } of tried) {
      const rev = own.get(id)?.rev;
      if (rev === undefined) this.#rows[place] = { s: 'open' };
      else this.#settle(place, 'applied', rev);
    }
  }

  /** Looks for our own revisions after the bases of these. */
  async #own(items: readonly Item[]): Promise<ReadonlyMap<string, HistoryAnswer>> {
    if (items.length === 0) return new Map();
    return findOwnRevisions(
      this.#store,
      items.map(({ id, row, place, operation }) => ({
        id,
        rev: row.rev,
        base: this.#rows[place]?.b,
        isOwn: (doc) => this.#isApplied(doc, operation),
      })),
    );
  }

  async write(guards: Guards): Promise<AttemptResult> {
    if (this.#writes.size === 0) {
      // Nothing is written to the documents, but failures may be: not when another runner has taken over.
      await guards.fence();
      return this.result();
    }
    const wasOpen = new Set<string>();
    const losing = new Map<string, readonly string[]>();
    for (const [id, { item, doc }] of this.#writes) {
      if (doc._deleted === true && item.row.conflicts !== undefined) losing.set(id, item.row.conflicts);
      if (this.#rows[item.place]?.s === 'intent') continue;
      wasOpen.add(id);
      this.#rows[item.place] = {
        s: 'intent',
        ...(item.row.rev === undefined ? {} : { b: item.row.rev }),
        ...this.#eventOf(doc._deleted === true ? item.row.doc : doc),
      };
    }
    const again: Error[] = [];
    try {
      await guards.saveIntent(this.#intent());
      if (losing.size > 0) again.push(...(await this.#removeLosing(losing, guards, wasOpen)));
      await guards.fence();
    } catch (error) {
      for (const id of wasOpen) this.#reopen(id);
      throw error;
    }
    const answer = await this.#store.write([...this.#writes.values()].map(({ doc }) => doc));
    return this.#judge(answer, wasOpen, again);
  }

  /**
   * The rows as they may be stored before the write: intents, and nothing else that is new. An outcome of this attempt
   * becomes durable after the write, together with what belongs to it: the content of a failure, and which event is the
   * one before. A row that says so too early would lose it in a crash.
   */
  #intent(): RowState[] {
    return this.#rows.map((row, place) => (row.s === 'intent' ? row : (this.#before[place] ?? { s: 'open' })));
  }

  result(error?: unknown): AttemptResult {
    return { rows: this.#rows, failures: this.#failures, ...(error === undefined ? {} : { error }) };
  }

  async #read(): Promise<Item[]> {
    const wanted: { place: number; operation: BatchOperation; id: string }[] = [];
    this.#batch.operations.forEach((operation, place) => {
      if (isOutcome(this.#rows[place])) return;
      const failure = idFailure(operation.id);
      if (failure !== undefined) this.#fail(place, operation, failure, false);
      else wanted.push({ place, operation, id: operation.id as string });
    });
    if (wanted.length === 0) return [];
    const found = await readDividing(
      wanted.map(({ id }) => id),
      (ids) => this.#store.read(ids),
    );
    return wanted.flatMap(({ place, operation, id }) => {
      const row = found.get(id);
      if (row === undefined) return [];
      if (!(row instanceof DivisibleError)) return [{ place, operation, id, row, uncertain: false }];
      this.#fail(place, operation, { code: row.code, reason: row.message }, this.#rows[place]?.s === 'intent');
      return [];
    });
  }

  /** Whether the document is as the operation wants it; then the row has its outcome. */
  #isDone(item: Item): boolean {
    const { doc, rev } = item.row;
    const applied = doc === undefined ? this.#action.missing === 'applied' : this.#isApplied(doc, item.operation);
    if (!applied) return false;
    const state = this.#rows[item.place];
    const own = state?.s === 'intent' && state.b !== rev;
    this.#settle(item.place, own ? 'applied' : 'already-applied', rev, doc);
    return true;
  }

  #isApplied(doc: Doc, { content }: BatchOperation): boolean {
    return called(this.#action, () => isApplied(this.#action, doc, content));
  }

  #plan(item: Item): void {
    const { doc: found, rev } = item.row;
    const { content } = item.operation;
    const failure = found === undefined ? this.#absence(item) : this.#guard(found, item.operation);
    if (failure !== undefined) {
      this.#fail(item.place, item.operation, failure, item.uncertain, found);
      return;
    }
    const isNamed = rev !== undefined && (found !== undefined || this.#store.refusesDeletions !== true);
    const names = { _id: item.id, ...(isNamed ? { _rev: rev } : {}) };
    const doc: Doc = found ?? names;
    const next: Doc = { ...called(this.#action, () => appliedTo(this.#action, doc, content)), ...names };
    const wrong = documentFailure(next);
    if (wrong === undefined) this.#writes.set(item.id, { item, doc: next });
    else this.#fail(item.place, item.operation, wrong, item.uncertain);
  }

  #guard(doc: Doc, { content }: BatchOperation): Failure | undefined {
    return called(this.#action, () => guardOf(this.#action, doc, content));
  }

  /** What has failed because there is no live document; undefined: the action makes one. */
  #absence({ uncertain }: Item): Failure | undefined {
    if (this.#action.missing !== 'create') return { code: 'missing', reason: 'The document is not there.' };
    // Someone has deleted it since, and it may have been ours: it must not come back.
    if (!uncertain) return undefined;
    return { code: 'missing', reason: 'The document was deleted. Perhaps it had been created before.' };
  }

  /**
   * Removes losing leaves. Documents that keep one are not written in this attempt; answers with why they must run again.
   * Throws what ended it: then no winner is written.
   */
  async #removeLosing(
    losing: ReadonlyMap<string, readonly string[]>,
    { fence }: Guards,
    wasOpen: ReadonlySet<string>,
  ): Promise<readonly Error[]> {
    const { refused, error } = await removeLeaves(this.#store, losing, fence);
    const again = refused.flatMap((row) => {
      const passing = this.#judgeRefused(row);
      // Whatever became of the leaf: the winner was surely not written.
      if (passing !== undefined && wasOpen.has(row.id)) this.#reopen(row.id);
      this.#writes.delete(row.id);
      return passing ?? [];
    });
    if (error !== undefined) throw gravest(again, error);
    return again;
  }

  #judge(answer: WriteAnswer, wasOpen: ReadonlySet<string>, before: readonly Error[]): AttemptResult {
    const again = [...before];
    for (const row of answer.rows) {
      const write = this.#writes.get(row.id);
      if (write === undefined) continue;
      if (row.ok) {
        const { item, doc } = write;
        this.#settle(item.place, 'applied', row.rev, doc._deleted === true ? item.row.doc : doc);
        continue;
      }
      const passing = this.#judgeRefused(row);
      if (passing === undefined) continue;
      again.push(passing);
      // Surely not written: the base moves. After a passing error no one knows, and it stays.
      if (classifyRow(row.error).kind !== 'passing' && wasOpen.has(row.id)) this.#reopen(row.id);
    }
    return this.result(gravest(again, answer.error));
  }

  /** Why a refused row must run again; undefined: its operation has failed for good. */
  #judgeRefused(row: RefusedWrite): Error | undefined {
    const write = this.#writes.get(row.id);
    if (write === undefined) return undefined;
    const verdict = classifyRow(row.error);
    if (verdict.kind !== 'failed') return rowError(verdict);
    const own = this.#ownLine(row);
    if (own instanceof Error) return own;
    const { place, operation, uncertain } = write.item;
    this.#fail(place, operation, own ?? { code: verdict.code, reason: row.reason }, uncertain);
    return undefined;
  }

  /** The row has its outcome. What its event is made of was chosen with the intent, or is chosen now. */
  #settle(place: number, s: 'applied' | 'already-applied', rev: string | undefined, doc?: Doc): void {
    const { t, a } = this.#rows[place] ?? {};
    const known = t === undefined ? {} : { t };
    // An intent that came from another bulk operation says the type, and not the time.
    const event = a === undefined ? { ...this.#eventOf(doc), ...known } : { ...known, a };
    this.#rows[place] = { s, ...(rev === undefined ? {} : { r: rev }), ...event };
  }

  #eventOf(doc: Doc | undefined): Pick<RowState, 't' | 'a'> {
    const type: unknown = doc === undefined ? undefined : this.#events.typeOf(doc);
    if (type instanceof Promise) type.catch(() => undefined); // no answer, and no second error of the page
    // Anything else than a text is no type: stored as it came it could never be read again, and would hold up every event.
    return { ...(typeof type === 'string' && type !== '' ? { t: type } : {}), a: this.#events.now() };
  }

  /** What the action says of a refused row. A wrong answer is an error too: the other rows are still judged. */
  #ownLine(row: RefusedRow): Failure | Error | undefined {
    try {
      return refusedRow(this.#action, { id: row.id, error: row.error, reason: row.reason });
    } catch (error) {
      return error instanceof Error ? error : new WrongAnswerError(String(error));
    }
  }

  #reopen(id: string): void {
    const write = this.#writes.get(id);
    if (write !== undefined) this.#rows[write.item.place] = { s: 'open' };
  }

  #fail(place: number, operation: BatchOperation, failure: Failure, mayHaveBeenApplied: boolean, found?: Doc): void {
    this.#rows[place] = { s: 'failed' };
    const conflict = failure.code === 'conflicting_content' && found !== undefined ? { conflict: found } : {};
    this.#failures.push({ index: operation.index, failure, mayHaveBeenApplied, ...conflict });
  }
}
