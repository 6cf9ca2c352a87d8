import type { Clock } from '../model/environment.js';
import type { Failures } from './failures.js';
import type { Quarantine } from './quarantine.js';
import type { Queue } from './queue.js';
import { changesOf, type ReportChange, type Reports } from './reports.js';
import { removed } from './stored-docs.js';
import { failureDoc, failureId, sequenceOf, withRev, type StoredFailure, type StoredQuarantine } from './stored.js';

const failuresPerWrite = 500;

/** A failure that is over. */
export type EndedFailure = StoredFailure & { readonly resolution: NonNullable<StoredFailure['resolution']> };

/** A conflict that is closed. */
export type ClosedConflict = StoredQuarantine & { readonly resolution: NonNullable<StoredQuarantine['resolution']> };

/** Whether the failure of a conflict has ended, and no person has said what counts: its second version can still be taken. */
export function isClosedByFailure({ resolution }: Pick<StoredQuarantine, 'resolution'>): boolean {
  return resolution?.decision === 'failure-discarded' || resolution?.decision === 'failure-retried';
}

/**
 * Ends failures and closes conflicts. A conflict about a document is a failed operation, too (O5): what ends the one ends
 * the other, in one write, so that no stop of the process leaves anything that no one has to decide any more (R19).
 */
export class Endings {
  readonly #queue: Queue;
  readonly #failures: Failures;
  readonly #reports: Reports;
  readonly #quarantine: Quarantine;
  readonly #clock: Clock;

  constructor(parts: { queue: Queue; failures: Failures; reports: Reports; quarantine: Quarantine; clock: Clock }) {
    this.#queue = parts.queue;
    this.#failures = parts.failures;
    this.#reports = parts.reports;
    this.#quarantine = parts.quarantine;
    this.#clock = parts.clock;
  }

  /**
   * Stores failures that have ended, with their conflicts. Those that another tab has ended first stay as they are.
   * A write of many thousands takes far longer than many writes of some, and the page has no turn meanwhile.
   */
  async end(failures: readonly EndedFailure[]): Promise<void> {
    const conflicts = await this.#conflictsOf(failures);
    for (let from = 0; from < failures.length; from += failuresPerWrite) {
      await this.#endSome(failures.slice(from, from + failuresPerWrite), conflicts);
    }
  }

  /**
   * Removes failures that are none after all, with their conflicts: healing counts them no longer among the refused ones.
   * Answers with the names of those that are removed: what a person, or another tab, has ended first stays.
   */
  async takeBack(failures: readonly StoredFailure[]): Promise<ReadonlySet<string>> {
    const known = await this.#conflictsOf(failures);
    const conflicts = failures.flatMap((failure) => known.get(placeOf(failure)) ?? []);
    const counted = (some: readonly StoredFailure[], step: 1 | -1): readonly ReportChange[] =>
      changesOf(this.#queue.headers.all(), some, (report, count) => ({
        ...report,
        refused: Math.max(0, report.refused + step * count),
      }));
    const gone = [...failures, ...conflicts].map(({ _id, _rev }) => removed(_id, _rev));
    const revs = await this.#reports.write(counted(failures, -1), gone);
    const lost = failures.filter(({ _id }) => !revs.has(_id));
    if (lost.length > 0) {
      await this.#reports.write(counted(lost, 1));
      await this.#failures.reload();
    }
    this.#quarantine.takenBack(conflicts.flatMap(({ _id }) => (revs.has(_id) ? [_id] : [])));
    const names = failures.flatMap(({ _id }) => (revs.has(_id) ? [_id] : []));
    this.#failures.removed(names);
    return new Set(names);
  }

  /** Stores a conflict that is closed, with its failure. False when someone else was faster. */
  async close(conflict: ClosedConflict): Promise<boolean> {
    const failure = await this.failureOf(conflict);
    const ended = failure === undefined ? [] : [{ ...failure, resolution: endOf(conflict.resolution) }];
    const revs = await this.#write(ended, [conflict]);
    const again = revs.has(failure?._id ?? '') ? undefined : failure && (await this.failureOf(conflict));
    // It has changed since it was read, and was not ended.
    if (again !== undefined) await this.end([{ ...again, resolution: endOf(conflict.resolution) }]);
    return revs.has(conflict._id);
  }

  /** The failure of a conflict about a document, as it is stored; undefined when it is over, or there is none. */
  async failureOf({ kind, bulkOperationId, index }: StoredQuarantine): Promise<StoredFailure | undefined> {
    const header = this.#queue.headers.known(bulkOperationId ?? '');
    if (kind !== 'create' || header === undefined || index === undefined) return undefined;
    const failure = await this.#queue.docs.read(failureId(sequenceOf(header._id), index), failureDoc);
    return failure?.resolution === undefined ? failure : undefined;
  }

  /** What was decided of the one alone, as builds did that wrote one after the other, is decided of both. */
  async recover(): Promise<void> {
    await this.#quarantine.ready();
    const pairs = this.#quarantine.entries().flatMap((entry) => {
      const { kind, bulkOperationId, index } = entry;
      const header = this.#queue.headers.known(bulkOperationId ?? '');
      if (kind !== 'create' || header === undefined || index === undefined) return [];
      return [{ entry, failure: failureId(sequenceOf(header._id), index) }];
    });
    if (pairs.length === 0) return;
    const stored = await this.#queue.docs.readMany([...new Set(pairs.map(({ failure }) => failure))], failureDoc);
    for (const { entry, failure: name } of pairs) {
      const failure = stored.get(name);
      if (failure === undefined) continue;
      const [how, decision] = [failure.resolution, entry.resolution?.decision];
      if (how !== undefined && decision === undefined)
        await this.close({ ...entry, resolution: this.#closingOf(how, entry) });
      // A second version that is taken ends the failure when it runs.
      const isGivenUp = decision === 'keep-first' || decision === 'discard';
      if (how === undefined && isGivenUp) {
        await this.end([{ ...failure, resolution: { how: 'discarded', at: this.#clock.wall() } }]);
      }
    }
  }

  async #endSome(
    failures: readonly EndedFailure[],
    conflicts: ReadonlyMap<string, readonly StoredQuarantine[]>,
  ): Promise<void> {
    const closed = failures.flatMap((failure) =>
      (conflicts.get(placeOf(failure)) ?? []).map((entry) => ({
        ...entry,
        resolution: this.#closingOf(failure.resolution, entry),
      })),
    );
    await this.#write(failures, closed);
  }

  async #write(
    failures: readonly EndedFailure[],
    closed: readonly ClosedConflict[],
  ): Promise<ReadonlyMap<string, string>> {
    const changes = changesOf(this.#queue.headers.all(), failures, (report, count) => ({
      ...report,
      resolved: report.resolved + count,
    }));
    const revs = await this.#reports.write(changes, [...failures, ...closed]);
    this.#failures.added(failures.flatMap((failure) => (revs.has(failure._id) ? [withRev(failure, revs)] : [])));
    this.#quarantine.added(closed.flatMap((entry) => (revs.has(entry._id) ? [withRev(entry, revs)] : [])));
    const lost = failures.filter(({ _id }) => !revs.has(_id));
    if (lost.length > 0) {
      // Another tab was faster with these: they are counted once.
      await this.#reports.write(
        changesOf(this.#queue.headers.all(), lost, (report, count) => ({
          ...report,
          resolved: report.resolved - count,
        })),
      );
      await this.#failures.reload();
    }
    if (closed.some(({ _id }) => !revs.has(_id))) await this.#quarantine.load();
    return revs;
  }

  /** Open conflicts of these, by the place of their operation: another tab may have stored them a moment ago. */
  async #conflictsOf(failures: readonly StoredFailure[]): Promise<ReadonlyMap<string, readonly StoredQuarantine[]>> {
    const found = new Map<string, StoredQuarantine[]>();
    if (!failures.some(({ code }) => code === 'conflicting_content')) return found;
    await this.#quarantine.load();
    for (const entry of this.#quarantine.entries()) {
      if (entry.kind !== 'create' || entry.resolution !== undefined) continue;
      const place = placeOf(entry);
      found.set(place, [...(found.get(place) ?? []), entry]);
    }
    return found;
  }

  /** How a conflict is closed when its failure ends so: that the second version was taken is known of who retries it. */
  #closingOf(ended: EndedFailure['resolution'], { _id }: StoredQuarantine): ClosedConflict['resolution'] {
    const { at } = ended;
    if (ended.how !== 'retried') return { decision: 'failure-discarded', at };
    const { bulkOperationId } = ended;
    const isTaken = this.#queue.headers.known(bulkOperationId)?.taken === _id;
    return { decision: isTaken ? 'take-second' : 'failure-retried', at, bulkOperationId };
  }
}

/** What names the operation that a failure and a conflict have in common. */
function placeOf({
  bulkOperationId,
  index,
}: {
  readonly bulkOperationId: string | null;
  readonly index?: number | null | undefined;
}): string {
  return JSON.stringify([bulkOperationId, index ?? null]);
}

/** How a failure ends when its conflict is closed so. */
function endOf({ bulkOperationId, at }: ClosedConflict['resolution']): EndedFailure['resolution'] {
  return bulkOperationId === undefined ? { how: 'discarded', at } : { how: 'retried', bulkOperationId, index: 0, at };
}
