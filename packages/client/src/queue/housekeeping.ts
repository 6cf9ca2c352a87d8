import type { Clock } from '../model/environment.js';
import { endStates } from '../model/states.js';
import { classifyError } from '../retry/classify.js';
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait } from '../retry/wait.js';
import { countedBetween, isForgettable, isSettled } from './forgettable.js';
import type { Failures } from './failures.js';
import type { Orphans } from './orphans.js';
import type { Quarantine } from './quarantine.js';
import type { Queue } from './queue.js';
import { removed } from './stored-docs.js';
import { remainsOf, removeKeys, removeRemains } from './remains.js';
import type { Reports } from './reports.js';
import {
  failureDoc,
  failurePrefix,
  headerId,
  housekeepingDoc,
  housekeepingId,
  sequenceOf,
  storedVersion,
  withRev,
  type Header,
  type Remains,
  type StoredHousekeeping,
} from './stored.js';

const everyMs = 86_400_000;
/** Bulk operations that are removed together: so many headers in one write. */
const removedAtOnce = 50;

export interface HousekeepingParts {
  readonly queue: Queue;
  readonly failures: Failures;
  readonly reports: Reports;
  readonly quarantine: Quarantine;
  readonly orphans: Orphans;
  readonly clock: Clock;
  readonly scheduler: Scheduler;
  readonly rememberMs: number;
  readonly closed: AbortSignal;
  /** Gives the page a turn in the middle of long work. */
  readonly breathe: () => Promise<void>;
  readonly warn: (line: string) => void;
  /** Whether the server has the result of a bulk operation as it is now, or is to have none. */
  readonly isReported: (header: Header) => boolean;
  /** Whether all events of a bulk operation are taken, by what is stored now. */
  readonly published: () => Promise<(header: Header) => boolean>;
  /** Whether the server has, or has refused for good, what was written on local documents until now. */
  readonly isConfirmed: () => Promise<boolean>;
  /** Bulk operations were removed: other tabs show them still. */
  readonly forgot: () => void;
}

/**
 * Removes bulk operations of which nothing is left to do, when they have been remembered long enough. In the tab that
 * leads, at its start and once a day.
 *
 *   at its end ─ reported, published, confirmed, no failure open ─▶ settled ─ rememberDays ─▶ forgotten
 *                                                                     └─ something opens again ─▶ at its end
 *
 * The order of its removal: its name in our own document, its keys, its header, all the rest. Without its header nothing of it
 * counts; what a stop of the process leaves is named there, and is removed at the next look.
 */
export class Housekeeping {
  readonly #parts: HousekeepingParts;
  #looking: Promise<void> | undefined;
  /** The monotonic clock at the last look of this run. */
  #lookedAt: number | undefined;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  /** Looks now, and then once a day. */
  start(): void {
    const { scheduler, clock, closed } = this.#parts;
    if (closed.aborted) return;
    // Nothing that happens is a reason to look earlier: all of the delay is its floor.
    scheduler.wait('housekeeping', beginWait(clock, { delayMs: everyMs, notBeforeMs: everyMs }), () => {
      this.start();
    });
    this.#looking ??= this.#look()
      .catch((error: unknown) => {
        this.#failed(error);
      })
      .finally(() => (this.#looking = undefined));
  }

  /** Resolves when no look is under way. */
  async idle(): Promise<void> {
    await this.#looking;
    await this.#parts.orphans.idle();
  }

  #failed(error: unknown): void {
    const { closed, warn } = this.#parts;
    if (closed.aborted) return;
    const { summary } = classifyError(error);
    warn(`What is over could not be removed from the local store (${summary.code}). It is tried again in a day.`);
  }

  async #look(): Promise<void> {
    const { queue, quarantine, closed, breathe, rememberMs } = this.#parts;
    await breathe(); // what waits to run goes first
    if (closed.aborted) return;
    await queue.headers.loadNew();
    const headers = queue.headers.all();
    if (!headers.some(({ state }) => endStates.has(state))) return;
    await quarantine.load();
    let note: StoredHousekeeping | undefined = await this.#finish(await this.#read());
    if (note === undefined) return;
    const settled = await this.#settled(headers, note);
    const due = this.#due(headers, settled, note.counted, rememberMs);
    note = { ...note, settled: [...settled.values()].map(({ header, at }) => [sequenceOf(header._id), at]) };
    for (let from = 0; from < due.length; from += removedAtOnce) {
      const some = due.slice(from, from + removedAtOnce);
      note = await this.#write({ ...note, removing: [...note.removing, ...some.map((one) => this.#remainsOf(one))] });
      if (note === undefined || closed.aborted) return;
      for (const header of some) await removeKeys(header, this.#parts);
      if (closed.aborted) return;
      await this.#removeHeaders(some);
      note = await this.#finish(note);
      if (note === undefined) return;
      await breathe();
    }
    note = { ...note, orphans: await this.#sweepOrphans(note) };
    const gone = new Set(due.map(({ _id }) => sequenceOf(_id)));
    await this.#write({ ...note, settled: note.settled.filter(([sequence]) => !gone.has(sequence)) });
  }

  /** What is stored, with the time that has passed since the last look. */
  async #read(): Promise<StoredHousekeeping> {
    const { queue, clock } = this.#parts;
    const [wall, monotonic] = [clock.wall(), clock.monotonic()];
    const since = monotonic - (this.#lookedAt ?? monotonic);
    this.#lookedAt = monotonic;
    const stored = await queue.docs.read(housekeepingId, housekeepingDoc);
    if (stored === undefined)
      return { _id: housekeepingId, v: storedVersion, counted: 0, seenAt: wall, settled: [], removing: [] };
    return { ...stored, counted: stored.counted + countedBetween(wall - stored.seenAt, since), seenAt: wall };
  }

  /** Content of a tab that nothing has named for a day is removed, if the tab is gone. */
  async #sweepOrphans({ orphans: known, counted }: StoredHousekeeping): Promise<StoredHousekeeping['orphans']> {
    const { orphans } = this.#parts;
    const since = new Map(known);
    const tabs = [...(await orphans.tabs())].map((tab): [string, number] => [tab, since.get(tab) ?? counted]);
    for (const [tab, at] of tabs) if (counted - at >= everyMs) orphans.sweepWhenGone(tab);
    return tabs;
  }

  /** Undefined when another tab is at it. */
  async #write(note: StoredHousekeeping): Promise<StoredHousekeeping | undefined> {
    const { revs, conflicts } = await this.#parts.queue.docs.write([note]);
    return conflicts.size > 0 ? undefined : withRev(note, revs);
  }

  /** Removes the rest of those whose header is gone. Undefined when the client was closed meanwhile. */
  async #finish(note: StoredHousekeeping): Promise<StoredHousekeeping | undefined> {
    const { queue, failures, quarantine } = this.#parts;
    if (note.removing.length === 0) return note;
    const headers = await queue.docs.revisions(note.removing.map(({ s }) => headerId(s)));
    const removing: Remains[] = [];
    for (const left of note.removing) {
      // Another tab may be about to remove it: it stays named.
      if (headers.get(headerId(left.s)) !== undefined) removing.push(left);
      else {
        const gone = await removeRemains(left, this.#parts);
        if (gone === undefined) return undefined;
        failures.removed(gone.filter((name) => name.startsWith('f:')));
        quarantine.removed(left.conflicts);
      }
    }
    return { ...note, removing };
  }

  #remainsOf(header: Header): Remains {
    const { quarantine } = this.#parts;
    return remainsOf(
      header,
      quarantine.of(header).filter(({ resolution }) => resolution !== undefined),
    );
  }

  async #removeHeaders(headers: readonly Header[]): Promise<void> {
    const { queue, reports, forgot } = this.#parts;
    const { conflicts } = await queue.docs.write(headers.map(({ _id, _rev }) => removed(_id, _rev)));
    const gone = headers.flatMap(({ _id }) => (conflicts.has(_id) ? [] : [sequenceOf(_id)]));
    queue.headers.forget(gone);
    reports.forget(gone);
    forgot();
  }

  /** Those of which nothing is left to do, with the time at which that was found. */
  async #settled(
    headers: readonly Header[],
    note: StoredHousekeeping,
  ): Promise<ReadonlyMap<string, { header: Header; at: number; followers: readonly string[] }>> {
    const { reports, quarantine, isReported, published, isConfirmed } = this.#parts;
    const known = new Map(note.settled);
    const isPublished = await published();
    // Asked when all these headers were at their end: what they wrote was written before.
    const areConfirmed = await isConfirmed();
    const settled = new Map<string, { header: Header; at: number; followers: readonly string[] }>();
    for (const header of headers) {
      const at = known.get(sequenceOf(header._id));
      const standing = {
        openFailures: reports.openFailures(header),
        isReported: isReported(header),
        isPublished: isPublished(header),
        // What was confirmed once stays so: later revisions of its documents are not its own.
        isConfirmed: at !== undefined || areConfirmed || header.target !== 'local',
        inQuarantine: quarantine.of(header).some(({ resolution }) => resolution === undefined),
      };
      if (!isSettled(header, standing)) continue;
      settled.set(header.id, { header, at: at ?? note.counted, followers: await this.#followersOf(header) });
    }
    return settled;
  }

  /** Those that took over operations of it. */
  async #followersOf(header: Header): Promise<readonly string[]> {
    const { queue, reports } = this.#parts;
    const rest = header.continuedBy === undefined ? [] : [header.continuedBy];
    if (reports.of(header).resolved === 0) return rest;
    const stored = await queue.docs.readRange(failurePrefix(sequenceOf(header._id)), failureDoc);
    return [
      ...rest,
      ...stored.flatMap(({ resolution }) => (resolution?.how === 'retried' ? resolution.bulkOperationId : [])),
    ];
  }

  /** Those that may be removed now. Latest first: what took over operations of another one comes before that. */
  #due(
    headers: readonly Header[],
    settled: ReadonlyMap<string, { header: Header; at: number; followers: readonly string[] }>,
    counted: number,
    rememberMs: number,
  ): readonly Header[] {
    const remembered = new Set(headers.map(({ id }) => id));
    const due: Header[] = [];
    const [last] = headers.slice(-1);
    for (const header of [...headers].reverse()) {
      const one = settled.get(header.id);
      const age = {
        settledMs: one === undefined ? undefined : counted - one.at,
        rememberMs,
        isLast: header === last,
        isTakenOver: one?.followers.some((id) => remembered.has(id)) === true,
      };
      if (!isForgettable(age)) continue;
      remembered.delete(header.id);
      due.push(header);
    }
    return due;
  }
}
