import type { Clock } from '../model/environment.js';
import type { RevisionRead } from '../model/pouch.js';
import { endStates } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import { keyOf } from '../queue/keys.js';
import type { Queue } from '../queue/queue.js';
import { changesOf, type ReportChange, type Reports } from '../queue/reports.js';
import {
  editFailureId,
  failureDoc,
  failureId,
  failurePrefix,
  headerDoc,
  sequenceOf,
  storedVersion,
  type Header,
  type StoredFailure,
} from '../queue/stored.js';
import { partAt } from '../queue/parts.js';

export interface Refused {
  readonly read: RevisionRead;
  /** Revisions of its history that the server lacks, this one first: earlier ones it may have taken before. */
  readonly lacked: readonly string[];
  readonly code: string;
  readonly reason: string;
}

/** An operation of ours whose revision is in a refused history. */
interface Writer {
  readonly header: Header;
  readonly index: number;
  readonly rev: string;
}

/** Turns documents that the server refused into failed operations, and back when a later revision is taken (S2). */
export class Refusals {
  readonly #queue: Queue;
  readonly #failures: Failures;
  readonly #reports: Reports;
  readonly #clock: Clock;
  readonly #changed: () => void;

  constructor(parts: { queue: Queue; failures: Failures; reports: Reports; clock: Clock; changed: () => void }) {
    this.#queue = parts.queue;
    this.#failures = parts.failures;
    this.#reports = parts.reports;
    this.#clock = parts.clock;
    this.#changed = parts.changed;
  }

  /** Records what the server refused for good. Answers with those that must be judged later. */
  async refused(refused: readonly Refused[]): Promise<readonly RevisionRead[]> {
    if (refused.length === 0) return [];
    await this.#failures.load();
    // Another tab may have queued or run some of it: what is stored counts, not what is remembered.
    const headers = await this.#queue.readRange('h:', headerDoc);
    const { writers, open } = await this.#writersOf(headers, refused);
    const postponed: RevisionRead[] = [];
    const failures: StoredFailure[] = [];
    for (const { read, lacked, code, reason } of refused) {
      const found = writers.filter(({ rev }) => lacked.includes(rev));
      // Who wrote the newest revision may be known when the batch that tries to write has its outcomes.
      if (open.has(read.id) && found.every(({ rev }) => rev !== read.doc._rev)) {
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
      if (found.length === 0) {
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
      for (const writer of found) failures.push({ ...common, ...(await this.#operationOf(writer)) });
    }
    await this.#store(headers, failures);
    return postponed;
  }

  /** Histories that the server has now: a refused revision in one of them was taken after all. */
  async delivered(lines: readonly { readonly id: string; readonly revs: readonly string[] }[]): Promise<void> {
    await this.#failures.load();
    const gone = lines.flatMap(({ id, revs }) =>
      this.#failures.refusedOf(id).filter(({ refused }) => refused !== null && revs.includes(refused)),
    );
    if (gone.length === 0) return;
    const headers = this.#queue.headers();
    await this.#reports.write(
      [...this.#counted(headers, gone, -1), ...this.#reopened(gone)],
      gone.map((failure) => ({ ...failure, _deleted: true })),
    );
    await this.#recount(headers, gone);
    this.#changed();
    this.#failures.removed(gone.map(({ _id }) => _id));
  }

  async #store(headers: readonly Header[], failures: readonly StoredFailure[]): Promise<void> {
    const known = new Map(
      failures
        .flatMap(({ id }) => (id === null ? [] : this.#failures.refusedOf(id)))
        .map((failure) => [failure._id, failure]),
    );
    const fresh = failures.filter(({ _id }) => !known.has(_id));
    const renewed = failures.flatMap((failure) => {
      const old = known.get(failure._id);
      return old === undefined ? [] : [{ ...failure, _rev: old._rev }];
    });
    // Refused again: what a person did with it before is over.
    const reopened = this.#reopened(renewed.flatMap(({ _id }) => known.get(_id) ?? []));
    const revs = await this.#reports.write([...this.#counted(headers, fresh, 1), ...reopened], [...fresh, ...renewed]);
    const all = [...fresh, ...renewed];
    await this.#recount(headers, all);
    // What another tab has stored, or we before an answer that got lost, has a revision of its own.
    const present = await this.#queue.revisions(all.flatMap(({ _id }) => (revs.has(_id) ? [] : [_id])));
    this.#changed();
    this.#failures.added(
      all.map((failure) => ({ ...failure, _rev: revs.get(failure._id) ?? present.get(failure._id) })),
    );
  }

  #counted(headers: readonly Header[], failures: readonly StoredFailure[], step: 1 | -1): ReportChange[] {
    return changesOf(headers, failures, (report, count) => ({
      ...report,
      refused: Math.max(0, report.refused + step * count),
    }));
  }

  /**
   * Several documents in one write are not one step: where another tab wrote too, or a write was tried again, the count
   * may be wrong. What is stored is the truth.
   */
  async #recount(headers: readonly Header[], failures: readonly StoredFailure[]): Promise<void> {
    const touched = new Set(failures.map(({ bulkOperationId }) => bulkOperationId));
    const concerned = headers.filter(({ id }) => touched.has(id));
    for (;;) {
      const wrong: ReportChange[] = [];
      for (const header of concerned) {
        const stored = await this.#queue.readRange(failurePrefix(sequenceOf(header._id)), failureDoc);
        const count = stored.filter(({ refused }) => refused !== null).length;
        if (this.#reports.of(header).refused === count) continue;
        wrong.push({ header, change: (report) => ({ ...report, refused: count }) });
      }
      if (wrong.length === 0) return;
      await this.#reports.write(wrong);
    }
  }

  #reopened(failures: readonly StoredFailure[]): ReportChange[] {
    return changesOf(
      this.#queue.headers(),
      failures.filter(({ resolution }) => resolution !== undefined),
      (report, count) => ({ ...report, resolved: Math.max(0, report.resolved - count) }),
    );
  }

  /**
   * Our operations whose revisions are in these histories; `open` are the documents whose write is under way, or has no
   * outcome yet.
   */
  async #writersOf(
    headers: readonly Header[],
    refused: readonly Refused[],
  ): Promise<{ writers: readonly Writer[]; open: ReadonlySet<string> }> {
    const wanted = new Set(refused.flatMap(({ lacked }) => lacked));
    const writers: Writer[] = [];
    const open = new Set<string>();
    for (const header of headers) {
      if (header.target !== 'local' || header.attempts === 0) continue;
      for (const { record, rows } of await this.#queue.records(sequenceOf(header._id))) {
        const tried: number[] = [];
        rows.forEach(({ s, r }, place) => {
          if (s === 'intent') tried.push(place);
          if (s === 'applied' && r !== undefined && wanted.has(r))
            writers.push({ header, index: record.from + place, rev: r });
        });
        if (tried.length === 0 || endStates.has(header.state)) continue;
        const operations = await this.#queue.operations(header, record.from, record.count);
        for (const place of tried) {
          const id = operations[place]?.i;
          if (typeof id === 'string') open.add(id);
        }
      }
    }
    return { writers, open };
  }

  async #operationOf({
    header,
    index,
  }: Writer): Promise<
    Pick<StoredFailure, '_id' | 'bulkOperationId' | 'index' | 'key' | 'origin' | 'action' | 'operation'>
  > {
    const [operation] = await this.#queue.operations(header, index, 1);
    return {
      _id: failureId(sequenceOf(header._id), index),
      bulkOperationId: header.id,
      index,
      ...keyOf(header, operation, index),
      action: partAt(header, index).action,
      operation: JSON.stringify({ id: operation?.i, content: operation?.c }),
    };
  }
}
