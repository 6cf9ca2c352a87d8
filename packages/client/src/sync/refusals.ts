import type { Clock } from '../model/environment.js';
import type { RevisionRead } from '../model/pouch.js';
import { endStates } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import { keyOf } from '../queue/keys.js';
import { partAt } from '../queue/parts.js';
import type { Queue } from '../queue/queue.js';
import type { StoredDoc } from '../queue/stored-docs.js';
import { changesOf, type ReportChange, type Reports } from '../queue/reports.js';
import {
  editFailureId,
  failureDoc,
  failureId,
  failurePrefix,
  refusedIn,
  sequenceOf,
  storedVersion,
  type Header,
  type RowState,
  type StoredFailure,
} from '../queue/stored.js';
import { isOwnRevision } from '../model/own-revisions.js';
import type { Writer, Writers } from '../queue/writers.js';

export interface Refused {
  readonly read: RevisionRead;
  /** Revisions of its history that the server lacks, this one first: earlier ones it may have taken before. */
  readonly lacked: readonly string[];
  readonly code: string;
  readonly reason: string;
  /** It is the deletion of a version that nobody sees: the document lives in another one. */
  readonly isHidden?: boolean;
  /** The other leaves of its document, where it is a deletion. */
  readonly others?: readonly string[];
}

/** Turns documents that the server refused into failed operations, and back when a later revision is taken (S2). */
export class Refusals {
  readonly #queue: Queue;
  readonly #failures: Failures;
  readonly #reports: Reports;
  readonly #clock: Clock;
  readonly #writers: Writers;
  readonly #changed: () => void;
  /** Ids of bulk operations whose count is what is stored, as far as this tab knows. */
  readonly #sure = new Set<string>();

  constructor(parts: {
    queue: Queue;
    failures: Failures;
    reports: Reports;
    writers: Writers;
    clock: Clock;
    changed: () => void;
  }) {
    this.#queue = parts.queue;
    this.#failures = parts.failures;
    this.#reports = parts.reports;
    this.#writers = parts.writers;
    this.#clock = parts.clock;
    this.#changed = parts.changed;
  }

  /**
   * Records what the server refused for good. Answers with those that must be judged later. A hidden version that the server
   * keeps is no failure: nothing is lost, and nobody could do anything about it.
   */
  async refused(refused: readonly Refused[]): Promise<readonly RevisionRead[]> {
    if (refused.length === 0) return [];
    await this.#failures.load();
    const wanted = new Set(refused.flatMap(({ lacked, others = [] }) => [...lacked, ...others]));
    const writers = await this.#writers.of(
      refused.map(({ read }) => read.id),
      (row, { state }) => isUnderWay(row, state) || (row.s === 'applied' && revsOf(row).some((rev) => wanted.has(rev))),
    );

    const postponed: RevisionRead[] = [];
    const failures: StoredFailure[] = [];
    const past = new Set<string>();
    for (const { read, lacked, code, reason, isHidden, others = [] } of refused) {
      const known = writers.get(read.id) ?? [];
      const found = known.filter(({ row }) => row.s === 'applied' && revsOf(row).some((rev) => lacked.includes(rev)));
      // Who wrote the newest revision may be known when the batch that tries to write has its outcomes.
      const isOpen = known.some(({ row, header }) => isUnderWay(row, header.state));
      if (isOpen && found.every(({ row }) => !revsOf(row).includes(read.doc._rev ?? ''))) {
        postponed.push(read);
        continue;
      }
      const at = this.#clock.wall();
      const common = {
        v: storedVersion,
        id: read.id,
        code,
        reason,
        mayHaveBeenApplied: false,
        refused: read.doc._rev ?? '',
        at,
      } as const;
      // Upon what a person has given up, what comes later is an edit of its own.
      const over = found.flatMap((writer) => this.#givenUpOf(writer) ?? []);
      const isOfNone =
        over.length === found.length && over.every((failure) => !refusedIn(failure).includes(read.doc._rev ?? ''));
      // Hidden versions go before the winner when a document is deleted: that the winner stays is failure enough.
      const isBeside =
        read.doc['_deleted'] === true &&
        (known.some(({ row }) => row.s === 'applied' && revsOf(row).some((rev) => others.includes(rev))) ||
          this.#failsBeside(read.id, lacked));
      if (isOfNone && isHidden !== true && !isBeside) {
        failures.push({
          ...common,
          _id: editFailureId(read.id),
          bulkOperationId: null,
          index: null,
          key: null,
          action: null,
          operation: null,
        });
      }
      for (const writer of found) failures.push({ ...common, ...failureOf(writer) });
      for (const rev of read.ancestors) past.add(nameOf(read.id, rev));
    }
    await this.#store(this.#queue.headers.all(), failures, past);
    return postponed;
  }

  /** Whether an operation on this document is known as refused, in a revision that is none of these. */
  #failsBeside(id: string, revs: readonly string[]): boolean {
    return this.#failures
      .refusedOf(id)
      .some((failure) => failure.bulkOperationId !== null && !refusedIn(failure).some((rev) => revs.includes(rev)));
  }

  /** Whether the server has refused anything of this document, as far as is known. */
  async hasRefused(id: string): Promise<boolean> {
    await this.#failures.load();
    return this.#failures.refusedOf(id).length > 0;
  }

  /** Whether the server has refused this revision, as far as is known, or is not to have it. */
  async isRefused(id: string, rev: string): Promise<boolean> {
    await this.#failures.load();
    return isOwnRevision(rev) || this.#failures.refusedOf(id).some((failure) => refusedIn(failure).includes(rev));
  }

  /** The refused revisions of these documents that a person has given up. */
  async givenUp(ids: readonly string[]): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
    await this.#failures.load();
    return new Map(
      ids.flatMap((id) => {
        const resolved = this.#failures.refusedOf(id).filter(({ resolution }) => resolution !== undefined);
        return resolved.length === 0 ? [] : [[id, new Set(resolved.flatMap(refusedIn))] as const];
      }),
    );
  }

  /**
   * Histories that the server has now: a refused revision in one of them was taken after all. What a person has given up
   * stays so: nobody is told of it any more.
   */
  async delivered(lines: readonly { readonly id: string; readonly revs: readonly string[] }[]): Promise<void> {
    await this.#failures.load();
    const gone = lines.flatMap(({ id, revs }) =>
      this.#failures
        .refusedOf(id)
        .filter((failure) => failure.resolution === undefined && refusedIn(failure).some((rev) => revs.includes(rev))),
    );
    if (gone.length === 0) return;
    const headers = this.#queue.headers.all();
    await this.#write(
      headers,
      gone,
      this.#counted(headers, gone, -1),
      gone.map((failure) => ({ ...failure, _deleted: true })),
    );
    this.#changed();
    this.#failures.removed(gone.map(({ _id }) => _id));
  }

  /** `past`: the histories of what is refused now. What was refused on other branches is kept beside it. */
  async #store(headers: readonly Header[], given: readonly StoredFailure[], past: ReadonlySet<string>): Promise<void> {
    const failures = together(given);
    const known = new Map(
      failures
        .flatMap(({ id }) => (id === null ? [] : this.#failures.refusedOf(id)))
        .map((failure) => [failure._id, failure]),
    );
    const fresh = failures.filter(({ _id }) => !known.has(_id));
    const renewed = failures.flatMap((failure) => {
      const old = known.get(failure._id);
      // What a person has given up is not open again, however often it is refused.
      if (old === undefined || isGivenUp(old, failure)) return [];
      const revs = [...refusedIn(failure), ...refusedIn(old).filter((rev) => !past.has(nameOf(failure.id ?? '', rev)))];
      return [{ ...withRefused(failure, revs), _rev: old._rev }];
    });
    const all = [...fresh, ...renewed];
    if (all.length === 0) return;
    const reopened = renewed.flatMap(({ _id }) => known.get(_id) ?? []);
    const changes = [...this.#counted(headers, fresh, 1), ...this.#reopened(headers, reopened)];
    const revs = await this.#write(headers, all, changes, all);
    // What another tab has stored, or we before an answer that got lost, has a revision of its own.
    const present = await this.#queue.docs.revisions(all.flatMap(({ _id }) => (revs.has(_id) ? [] : [_id])));
    this.#changed();
    this.#failures.added(
      all.map((failure) => ({ ...failure, _rev: revs.get(failure._id) ?? present.get(failure._id) })),
    );
  }

  /** The failure of an operation that a person has given up. */
  #givenUpOf({ header, index }: Writer): StoredFailure | undefined {
    const failure = this.#failures.get(failureId(sequenceOf(header._id), index));
    return failure?.resolution === undefined ? undefined : failure;
  }

  #counted(headers: readonly Header[], failures: readonly StoredFailure[], step: 1 | -1): ReportChange[] {
    return changesOf(headers, failures, (report, count) => ({
      ...report,
      refused: Math.max(0, report.refused + step * count),
    }));
  }

  /**
   * Writes failures, and what is counted of them. Several documents in one write are not one step: where another tab wrote
   * too, or a write was tried again, the count may be wrong. Then what is stored is counted.
   */
  async #write(
    headers: readonly Header[],
    concerned: readonly StoredFailure[],
    changes: readonly ReportChange[],
    docs: readonly StoredDoc[],
  ): Promise<ReadonlyMap<string, string>> {
    const names = new Set(concerned.map(({ bulkOperationId }) => bulkOperationId));
    const touched = headers.filter(({ id }) => names.has(id));
    const unsure = touched.filter(({ id }) => !this.#sure.has(id));
    // Until all of it is written, none of them is sure.
    for (const { id } of touched) this.#sure.delete(id);
    const revs = await this.#reports.write(changes, docs);
    await this.#recount(revs.size < docs.length ? touched : unsure);
    for (const { id } of touched) this.#sure.add(id);
    return revs;
  }

  async #recount(headers: readonly Header[]): Promise<void> {
    for (;;) {
      const wrong: ReportChange[] = [];
      for (const header of headers) {
        const stored = await this.#queue.docs.readRange(failurePrefix(sequenceOf(header._id)), failureDoc);
        // Beside them are those that have failed when they were healed: healing counts them there, too.
        const count = stored.filter(({ refused, buried }) => refused !== null || buried !== undefined).length;
        if (this.#reports.of(header).refused === count) continue;
        wrong.push({ header, change: (report) => ({ ...report, refused: count }) });
      }
      if (wrong.length === 0) return;
      await this.#reports.write(wrong);
    }
  }

  #reopened(headers: readonly Header[], failures: readonly StoredFailure[]): ReportChange[] {
    return changesOf(
      headers,
      failures.filter(({ resolution }) => resolution !== undefined),
      (report, count) => ({ ...report, resolved: Math.max(0, report.resolved - count) }),
    );
  }
}

/** The revisions that hold the operation: the one that it wrote, and those in which it was healed. */
function revsOf({ r, h = [] }: RowState): readonly string[] {
  return r === undefined ? h : [r, ...h];
}

/** Whether its write may still come to be known. */
function isUnderWay({ s }: RowState, state: Header['state']): boolean {
  return s === 'intent' && !endStates.has(state);
}

/** Whether a person has given up what is refused now: of an app's own edit that means this very revision. */
function isGivenUp(old: StoredFailure, { refused }: StoredFailure): boolean {
  return (
    old.resolution !== undefined &&
    (old.bulkOperationId !== null || (refused !== null && refusedIn(old).includes(refused)))
  );
}

/** One failure of each name: of several branches that are refused at once each has the revision. */
function together(failures: readonly StoredFailure[]): readonly StoredFailure[] {
  const byName = new Map<string, StoredFailure>();
  for (const failure of failures) {
    const before = byName.get(failure._id);
    const revs = [...refusedIn(failure), ...(before === undefined ? [] : refusedIn(before))];
    byName.set(failure._id, withRefused(failure, revs));
  }
  return [...byName.values()];
}

function withRefused(failure: StoredFailure, revs: readonly string[]): StoredFailure {
  const also = [...new Set(revs)].filter((rev) => rev !== failure.refused);
  return also.length === 0 ? failure : { ...failure, also };
}

function nameOf(id: string, rev: string): string {
  return JSON.stringify([id, rev]);
}

function failureOf({
  header,
  index,
  operation,
}: Writer): Pick<StoredFailure, '_id' | 'bulkOperationId' | 'index' | 'key' | 'origin' | 'action' | 'operation'> {
  return {
    _id: failureId(sequenceOf(header._id), index),
    bulkOperationId: header.id,
    index,
    ...keyOf(header, operation, index),
    action: partAt(header, index).action,
    operation: JSON.stringify({ id: operation.i, content: operation.c }),
  };
}
