import { documentConflict } from '../queue/conflicts.js';
import { endStates } from '../model/states.js';
import {
  isOutcome,
  sequenceOf,
  withRev,
  type Header,
  type RowState,
  type StoredFailure,
  type StoredQuarantine,
} from '../queue/stored.js';
import { classifyError, type ErrorVerdict } from '../retry/classify.js';
import type { Batches, LoadedBatch } from './batches.js';
import type { Bookkeeping } from './bookkeeping.js';
import type { AttemptResult } from './documents.js';
import type { RunParts } from './parts.js';
import { presentPlace } from './places.js';
import { isSuspect } from './stops.js';
import { advanced, counted, failureOf, held, merged } from './transitions.js';

export type OutcomesParts = Pick<
  RunParts,
  | 'queue'
  | 'failures'
  | 'quarantine'
  | 'trail'
  | 'pageEvents'
  | 'policy'
  | 'clock'
  | 'actions'
  | 'appVersion'
  | 'lease'
  | 'wrote'
> & {
  readonly batches: Batches;
  readonly bookkeeping: Bookkeeping;
  /** The header after a batch, with one more attempt when the next batch may follow at once. */
  readonly goingOn: (next: Header, before: Header) => Header;
};

/** What an attempt at a batch means for its bulk operation. */
interface Meaning {
  /** All operations of the batch have outcomes. */
  readonly isComplete: boolean;
  /** Of a suspect batch one operation has run, and the next may follow (R16). */
  readonly goesOnAlone: boolean;
  readonly verdict: ErrorVerdict | undefined;
  readonly next: Header;
}

/** Stores what the attempts at batches have brought: outcomes, failures and cursor in one write. */
export class Outcomes {
  readonly #parts: OutcomesParts;

  constructor(parts: OutcomesParts) {
    this.#parts = parts;
  }

  /**
   * Stores what an attempt has brought; the next attempt is counted with it when it follows at once. Answers with the
   * header then.
   */
  async store(header: Header, loaded: LoadedBatch, result: AttemptResult): Promise<Header | undefined> {
    const { queue, failures, quarantine, clock, actions, appVersion, batches, bookkeeping, wrote } = this.#parts;
    const sequence = sequenceOf(header._id);
    const meaning = this.#meaningOf(header, result);
    const newFailures = result.failures.map((failure) =>
      failureOf(header, sequence, loaded.batch, failure, { at: clock.wall(), appVersion }),
    );
    const rows = await this.#parts.trail.named(header, loaded.batch, loaded.rows, result.rows);
    const record = batches.recordOf(sequence, loaded, rows);
    const conflicting = this.#conflictsOf(header, loaded, result);
    const note = await this.#parts.pageEvents.note(header, rows.length);
    const { revs, conflicts } = await queue.docs.write([...newFailures, ...conflicting, record, meaning.next, ...note]);
    this.#parts.pageEvents.noted(note, revs);
    if (rows.some(({ s }, place) => s === 'applied' && loaded.rows[place]?.s !== 'applied')) {
      wrote(presentPlace(header, actions));
    }
    const fresh = newFailures.filter(({ _id }) => !conflicts.has(_id)).map((failure) => withRev(failure, revs));
    const isOurs = !conflicts.has(record._id);
    const kept = conflicting.filter(({ _id }) => !conflicts.has(_id)).map((entry) => withRev(entry, revs));
    if (conflicts.has(meaning.next._id)) {
      batches.forget(sequence);
      if (isOurs && (await this.#mergeInto(header, rows, meaning.isComplete))) {
        this.#parts.pageEvents.happened(header, loaded, rows);
        failures.added(fresh);
        quarantine.added(kept);
      }
      // Another runner has the word on these operations: what we have said of them is taken back, unless it has read it.
      else if (!isOurs || (await batches.reopen(withRev(record, revs), loaded.rows, rows))) {
        await queue.docs.write([...fresh, ...kept].map((doc) => ({ ...doc, _deleted: true })));
      }
      await bookkeeping.lost(sequence);
      return undefined;
    }
    // The header has the last word. A runner that tried to take over may have touched the record, or said the same of an
    // operation as we did and be about to take it back.
    const adopted = await batches.overwrite<StoredFailure>(newFailures.filter(({ _id }) => conflicts.has(_id)));
    failures.added([...fresh, ...adopted]);
    quarantine.added(kept);
    const settled = isOurs ? { record: withRev(record, revs), rows } : await batches.settle(sequence, record, rows);
    loaded.record = settled.record;
    this.#parts.pageEvents.happened(header, loaded, settled.rows);
    return this.#follow(bookkeeping.keep(meaning.next, revs), meaning);
  }

  /** Both versions of documents that were there already, with other content (O5). */
  #conflictsOf(header: Header, { batch }: LoadedBatch, { failures }: AttemptResult): readonly StoredQuarantine[] {
    return failures.flatMap(({ index, conflict: found }) => {
      const operation = batch.operations[index - batch.from];
      if (found === undefined || typeof operation?.id !== 'string') return [];
      const { id, key, origin = 'o', content } = operation;
      const conflict = { index, action: batch.action, mutation: { key, origin }, id, content, found };
      return [this.#parts.quarantine.docOf(documentConflict(header, conflict))];
    });
  }

  #meaningOf(header: Header, result: AttemptResult): Meaning {
    const isComplete = result.error === undefined && result.rows.every(isOutcome);
    const goesOnAlone = !isComplete && isSuspect(header) && result.error === undefined;
    const verdict =
      isComplete || goesOnAlone ? undefined : classifyError(result.error ?? new TypeError('Rows without an outcome.'));
    const next = isComplete
      ? this.#parts.goingOn(advanced(header, result.rows, this.#parts.clock), header)
      : goesOnAlone
        ? counted({ ...header, attempt: 0 })
        : held(header, result.rows, verdict, result.error, this.#parts);
    return { isComplete, goesOnAlone, verdict, next };
  }

  /** The header as it was kept, when another attempt may follow at once. */
  #follow(kept: Header, { isComplete, goesOnAlone, verdict }: Meaning): Header | undefined {
    const { batches, bookkeeping, wrote } = this.#parts;
    const isAtEnd = isComplete && endStates.has(kept.state);
    if (!isComplete || isAtEnd) batches.forget(sequenceOf(kept._id));
    if (goesOnAlone) return kept;
    if (!isComplete) {
      if (verdict !== undefined) bookkeeping.hold(kept, verdict);
      return undefined;
    }
    if (isAtEnd) {
      wrote(kept.target);
      return undefined;
    }
    bookkeeping.resumeWait(kept);
    return kept.attempt > 0 ? kept : undefined;
  }

  /** A person has paused or cancelled it meanwhile: what this attempt brought is true all the same. */
  async #mergeInto(header: Header, rows: readonly RowState[], complete: boolean): Promise<boolean> {
    const { queue, lease, wrote } = this.#parts;
    let isOurs = false;
    const { header: kept, isChanged } = await queue.headers.change(sequenceOf(header._id), (changed) => {
      isOurs = changed.lease === lease && changed.cursor === header.cursor;
      return isOurs ? merged(changed, header, rows, complete) : undefined;
    });
    if (isChanged && endStates.has(kept.state)) wrote(header.target);
    return isOurs;
  }
}
