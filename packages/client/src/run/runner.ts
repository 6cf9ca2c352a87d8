import type { Clock } from '../model/environment.js';
import { RetryableError, type ErrorSummary } from '../model/errors.js';
import type { AnyAction, HandlerContext } from '../model/handler.js';
import type { DocumentStore } from '../model/pouch.js';
import { endStates, type BulkOperationState, type Target } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import type { Queue } from '../queue/queue.js';
import {
  failureId,
  recordId,
  sequenceOf,
  storedVersion,
  type BatchRecord,
  type Header,
  type RowState,
  type StoredFailure,
} from '../queue/stored.js';
import { classifyError, type ErrorVerdict } from '../retry/classify.js';
import type { RetryPolicy } from '../retry/policy.js';
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait, resumeWait, storedWait } from '../retry/wait.js';
import { batchOf, partAt, type Batch } from './batch.js';
import { isOutcome, runDocuments, type AttemptResult } from './documents.js';
import type { Gate } from './gate.js';
import { runHandler } from './handlers.js';
import { pick } from './pick.js';

export interface RunnerParts {
  readonly queue: Queue;
  readonly failures: Failures;
  readonly actions: ReadonlyMap<string, AnyAction>;
  readonly stores: Readonly<Record<Target, DocumentStore | undefined>>;
  readonly scheduler: Scheduler;
  readonly policy: RetryPolicy;
  readonly clock: Clock;
  readonly gate: Gate;
  readonly batchSize: number;
  /** How long another runner may be busy with one attempt before it counts as gone. Milliseconds. */
  readonly otherRunnerMs: number;
  /** The name of this run of the client: whoever takes a bulk operation over writes another one into its header. */
  readonly lease: string;
  readonly handlerFetch: typeof fetch;
  readonly closed: AbortSignal;
  /** Something that is shown has changed. */
  readonly changed: () => void;
  /** A bulk operation came to its end, or documents of this target were written. */
  readonly wrote: (target: Target) => void;
  readonly warn: (line: string) => void;
}

/** A batch as it is loaded: its operations, what is known of each, and its record when there is one. */
interface LoadedBatch {
  readonly batch: Batch;
  readonly rows: readonly RowState[];
  record: BatchRecord | undefined;
}

/**
 * Runs what is queued, one batch at a time for each target, first come first served.
 *
 *             ┌────────────── more operations ──────────────┐
 *             ▼                                             │
 *   queued ─▶ running ─ all rows have outcomes ─▶ cursor moves ─▶ done, done-with-failures
 *             │  ▲  └─ a handler's own bug ─▶ failed
 *             ▼  │ due, awake, online, signed in
 *           waiting-retry, -storage (ramp)   waiting-auth, -network (the gate)   waiting-handler
 *
 * Every attempt is counted in the header before it starts; outcomes and cursor go into one write after it.
 */
export class Runner {
  readonly #parts: RunnerParts;
  readonly #busy = new Map<Target, Promise<void>>();
  readonly #storageFailures = new Map<number, number>();
  /** Bulk operations whose present batch was loaded by this run: its record is known. */
  readonly #started = new Set<number>();

  constructor(parts: RunnerParts) {
    this.#parts = parts;
  }

  /** Takes up stored waiting times; after a restart what remains is clamped (R18). */
  async resume(): Promise<void> {
    const { queue, clock } = this.#parts;
    for (const header of queue.headers()) {
      if (header.wait === null || endStates.has(header.state)) continue;
      const wait = resumeWait(clock, header.wait);
      this.#wait(header, wait);
      if (header.wait.setAt <= clock.wall()) continue;
      // The clock went back: what remains is stored anew, or short sessions would never come to an end of it.
      const next = { ...header, wait: storedWait(wait) };
      const { revs, conflicts } = await queue.write([next]);
      if (conflicts.size === 0) this.#keep(next, revs);
    }
    this.poke();
  }

  /** Looks for something to run. Cheap, and harmless when there is nothing. */
  poke(): void {
    if (this.#parts.closed.aborted) return;
    for (const target of ['local', 'server'] as const) {
      if (this.#busy.has(target)) continue;
      const run = this.#loop(target);
      this.#busy.set(target, run);
    }
  }

  /** Resolves when nothing runs any more. */
  async idle(): Promise<void> {
    await Promise.all(this.#busy.values());
  }

  /** Ids of documents that a batch has tried to write without having its outcomes stored yet. */
  async openIntents(target: Target): Promise<ReadonlySet<string>> {
    const open = new Set<string>();
    for (const header of this.#parts.queue.headers()) {
      if (header.target !== target || endStates.has(header.state)) continue;
      const known = await this.#parts.queue.record(sequenceOf(header._id), header.cursor);
      if (known?.rows.some(({ s }) => s === 'intent') !== true) continue;
      const operations = await this.#parts.queue.operations(header, known.record.from, known.record.count);
      operations.forEach(({ i }, place) => {
        if (known.rows[place]?.s === 'intent' && typeof i === 'string') open.add(i);
      });
    }
    return open;
  }

  async #loop(target: Target): Promise<void> {
    // The map holds this promise before anything runs: a poke from within never starts a second loop.
    await Promise.resolve();
    try {
      for (let header = this.#next(target); header !== undefined; header = this.#next(target)) await this.#run(header);
    } finally {
      this.#busy.delete(target);
    }
  }

  #next(target: Target): Header | undefined {
    if (this.#parts.closed.aborted) return undefined;
    return pick(this.#parts.queue.headers(), target, (header, sequence) => {
      if (!isUsable(header)) {
        this.#show(header, 'failed');
        return false;
      }
      if (this.#parts.scheduler.isWaiting(waitKey(sequence))) return false;
      const blocked = this.#blocked(header);
      if (blocked === undefined) return true;
      if (blocked !== 'asking') this.#show(header, blocked);
      return false;
    });
  }

  #blocked(header: Header): BulkOperationState | 'asking' | undefined {
    if (!this.#parts.actions.has(partAt(header, header.cursor).action)) return 'waiting-handler';
    if (header.target !== 'server') return undefined;
    const gate = this.#parts.gate.state();
    return gate === 'open' ? undefined : gate;
  }

  /** Runs batches of one bulk operation until it waits, ends, or someone else has changed it. Never throws. */
  async #run(header: Header): Promise<void> {
    const sequence = sequenceOf(header._id);
    try {
      let current: Header | undefined = await this.#begin(header, sequence);
      while (current !== undefined) current = await this.#attempt(current, sequence);
      this.#storageFailures.delete(sequence);
    } catch (error) {
      this.#started.delete(sequence);
      this.#bookkeepingFailed(header, sequence, error);
    }
  }

  /** Counts the attempt before it starts, and takes the bulk operation over: the batch's record is rewritten too. */
  async #begin(header: Header, sequence: number): Promise<Header | undefined> {
    const { queue, lease } = this.#parts;
    const next: Header = { ...header, ...counted(header), state: 'running', wait: null, lease };
    const known = header.lease === lease ? undefined : await queue.record(sequence, header.cursor);
    const records: BatchRecord[] = known === undefined ? [] : [{ ...known.record, lease }];
    const { revs, conflicts } = await queue.write([next, ...records]);
    if (conflicts.size > 0) {
      await this.#refresh(sequence);
      return undefined;
    }
    this.#started.delete(sequence);
    return this.#keep(next, revs);
  }

  /** One attempt at the present batch. Answers with the header when the next batch may follow at once. */
  async #attempt(header: Header, sequence: number): Promise<Header | undefined> {
    const loaded = await this.#load(header, sequence);
    const result = await this.#execute(header, sequence, loaded);
    if (result.error instanceof LeaseLostError || this.#parts.closed.aborted) {
      await this.#refresh(sequence);
      return undefined;
    }
    return this.#finish(header, sequence, loaded, result);
  }

  async #load(header: Header, sequence: number): Promise<LoadedBatch> {
    const { queue, batchSize } = this.#parts;
    const { action, left } = partAt(header, header.cursor);
    const known = this.#started.has(sequence) ? undefined : await queue.record(sequence, header.cursor);
    this.#started.add(sequence);
    const count = known?.record.count ?? Math.min(batchSize, left);
    const stored = await queue.operations(header, header.cursor, count);
    const batch = batchOf(header, action, header.cursor, stored, known !== undefined);
    return { batch, rows: known?.rows ?? batch.operations.map(() => ({ s: 'open' })), record: known?.record };
  }

  async #execute(header: Header, sequence: number, loaded: LoadedBatch): Promise<AttemptResult> {
    const action = this.#parts.actions.get(loaded.batch.action);
    const store = this.#parts.stores[header.target];
    if (action === undefined || store === undefined) {
      return { rows: loaded.rows, failures: [], error: new TypeError('The action or its target is not there.') };
    }
    const fence = async (): Promise<void> => {
      if (!(await this.#parts.queue.isUnchanged(header))) throw new LeaseLostError();
    };
    if (action.kind === 'document') {
      return runDocuments(loaded.batch, loaded.rows, action, store, {
        fence,
        saveIntent: async (rows) => {
          await this.#saveRecord(sequence, loaded, rows);
        },
      });
    }
    const context: HandlerContext = {
      db: store,
      fetch: this.#parts.handlerFetch,
      signal: this.#parts.closed,
      attempt: header.attempt,
      fence,
    };
    return runHandler(loaded.batch, loaded.rows, action, context);
  }

  async #saveRecord(sequence: number, loaded: LoadedBatch, rows: readonly RowState[]): Promise<void> {
    const record = this.#recordOf(sequence, loaded, rows);
    const { revs, conflicts } = await this.#parts.queue.write([record]);
    if (conflicts.size > 0) throw new LeaseLostError();
    loaded.record = withRev(record, revs);
  }

  #recordOf(sequence: number, loaded: LoadedBatch, rows: readonly RowState[]): BatchRecord {
    const { from, operations } = loaded.batch;
    const base = loaded.record ?? { _id: recordId(sequence, from), v: storedVersion, from, count: operations.length };
    return { ...base, lease: this.#parts.lease, at: this.#parts.clock.wall(), rows: JSON.stringify(rows) };
  }

  /** Stores outcomes, failures and cursor in one write; the next attempt is counted with it when it follows at once. */
  async #finish(
    header: Header,
    sequence: number,
    loaded: LoadedBatch,
    result: AttemptResult,
  ): Promise<Header | undefined> {
    const { queue, failures } = this.#parts;
    const complete = result.error === undefined && result.rows.every(isOutcome);
    const verdict = complete ? undefined : classifyError(result.error ?? new TypeError('Rows without an outcome.'));
    const next = complete ? this.#advanced(header, result.rows) : this.#held(header, verdict, result.error);
    const newFailures = result.failures.map((failure) => this.#failureOf(header, sequence, loaded.batch, failure));
    const record = this.#recordOf(sequence, loaded, result.rows);
    const { revs, conflicts } = await queue.write([...newFailures, record, next]);
    if (result.rows.some(({ s }, place) => s === 'applied' && loaded.rows[place]?.s !== 'applied')) {
      this.#parts.wrote(header.target);
    }
    const fresh = newFailures.filter(({ _id }) => !conflicts.has(_id));
    if (conflicts.has(record._id) || conflicts.has(next._id)) {
      // Another runner has the word on these operations: what we have said of them is taken back.
      await queue.write(fresh.map((failure) => ({ ...failure, _rev: revs.get(failure._id), _deleted: true })));
      await this.#refresh(sequence);
      return undefined;
    }
    failures.added(fresh.map((failure) => withRev(failure, revs)));
    const kept = this.#keep(next, revs);
    if (!complete) {
      this.#started.delete(sequence);
      if (verdict !== undefined) this.#hold(kept, verdict);
      return undefined;
    }
    if (endStates.has(kept.state)) {
      this.#started.delete(sequence);
      this.#parts.wrote(header.target);
      return undefined;
    }
    return kept.attempt > 0 ? kept : undefined;
  }

  #advanced(header: Header, rows: readonly RowState[]): Header {
    const count = (state: RowState['s']): number => rows.filter(({ s }) => s === state).length;
    const cursor = header.cursor + rows.length;
    const failed = header.failed + count('failed');
    const next: Header = {
      ...header,
      cursor,
      failed,
      applied: header.applied + count('applied'),
      alreadyApplied: header.alreadyApplied + count('already-applied'),
      attempt: 0,
    };
    if (cursor >= header.total) return { ...next, state: failed > 0 ? 'done-with-failures' : 'done', lease: null };
    const goesOn = this.#blocked(next) === undefined && !this.#parts.closed.aborted;
    return goesOn ? { ...next, ...counted(next) } : next;
  }

  /** The header of a batch that must run again, or of a bulk operation that a handler's bug has stopped. */
  #held(header: Header, verdict: ErrorVerdict | undefined, error: unknown): Header {
    const lastError = verdict?.summary ?? header.lastError;
    switch (verdict?.kind) {
      case 'auth':
        return {
          ...header,
          state: 'waiting-auth',
          lastError,
          attempt: header.attempt - 1,
          attempts: header.attempts - 1,
        };
      case 'passing': {
        const { delayMs, notBeforeMs } = this.#parts.policy.delay(header.attempt, verdict.notBeforeMs);
        const wait = beginWait(this.#parts.clock, delayMs, notBeforeMs);
        return {
          ...header,
          state: stateFor(verdict.summary),
          lastError,
          failedAttempts: header.failedAttempts + 1,
          wait: storedWait(wait),
        };
      }
      default:
        return {
          ...header,
          state: 'failed',
          lastError,
          failedAttempts: header.failedAttempts + 1,
          lease: null,
          bug: bugOf(error),
        };
    }
  }

  #hold(header: Header, verdict: ErrorVerdict): void {
    if (verdict.kind === 'bug') this.#parts.wrote(header.target);
    if (verdict.kind !== 'passing' || header.wait === null) return;
    if (verdict.summary.class === 'network') this.#parts.gate.failed();
    this.#wait(header, resumeWait(this.#parts.clock, header.wait));
  }

  /** The queue's own store did not work: nothing could be written down, so the wait is kept in memory. */
  #bookkeepingFailed(header: Header, sequence: number, error: unknown): void {
    if (this.#parts.closed.aborted) return;
    const verdict = classifyError(error);
    const failures = (this.#storageFailures.get(sequence) ?? 0) + 1;
    this.#storageFailures.set(sequence, failures);
    if (verdict.kind === 'bug')
      this.#parts.warn(`The queue cannot be read or written (${verdict.summary.code}). It is tried again.`);
    const { delayMs, notBeforeMs } = this.#parts.policy.delay(failures, 0);
    const stored = this.#parts.queue.header(sequence) ?? header;
    this.#parts.queue.remember({
      ...stored,
      state: 'waiting-storage',
      lastError: { class: 'storage', code: verdict.summary.code },
    });
    this.#wait(stored, beginWait(this.#parts.clock, delayMs, notBeforeMs));
    this.#parts.changed();
  }

  #wait(header: Header, wait: ReturnType<typeof beginWait>): void {
    this.#parts.scheduler.wait(waitKey(sequenceOf(header._id)), wait, () => {
      this.poke();
    });
    this.#parts.changed();
  }

  #failureOf(
    header: Header,
    sequence: number,
    batch: Batch,
    { index, failure, mayHaveBeenApplied }: AttemptResult['failures'][number],
  ): StoredFailure {
    const operation = batch.operations[index - batch.from];
    return {
      _id: failureId(sequence, index),
      v: storedVersion,
      bulkOperationId: header.id,
      index,
      key: operation?.key ?? null,
      id: typeof operation?.id === 'string' && operation.id !== '' ? operation.id : null,
      action: batch.action,
      code: failure.code,
      reason: failure.reason,
      operation: JSON.stringify({ id: operation?.id, content: operation?.content }),
      mayHaveBeenApplied,
      refused: null,
      at: this.#parts.clock.wall(),
    };
  }

  #show(header: Header, state: BulkOperationState): void {
    if (header.state === state) return;
    this.#parts.queue.remember({ ...header, state });
    this.#parts.changed();
  }

  #keep(header: Header, revs: ReadonlyMap<string, string>): Header {
    const kept = withRev(header, revs);
    this.#parts.queue.remember(kept);
    this.#parts.changed();
    return kept;
  }

  /**
   * Someone else has written the header: it is read again, and the attempt does not count. Another runner gets the
   * time that its attempt may need; only a header that stays as it is so long is taken over.
   */
  async #refresh(sequence: number): Promise<void> {
    const { queue, clock, lease, closed, otherRunnerMs } = this.#parts;
    this.#started.delete(sequence);
    const header = await queue.refresh(sequence);
    const isForeign = header.lease !== null && header.lease !== lease && !endStates.has(header.state);
    if (isForeign && !closed.aborted) this.#wait(header, beginWait(clock, otherRunnerMs));
    this.#parts.changed();
  }
}

/** The lease is lost: another runner has taken over, or a person has changed the bulk operation. */
class LeaseLostError extends RetryableError {
  constructor() {
    super('Another tab has taken over.', { class: 'conflict', code: 'lease-lost' });
  }
}

/** A header that says less than it counts cannot run, and must not keep others from it. */
function isUsable(header: Header): boolean {
  return header.cursor < header.total && header.parts.reduce((sum, { count }) => sum + count, 0) === header.total;
}

const waitKey = (sequence: number): string => `bulk:${String(sequence)}`;

function counted(header: Header): Pick<Header, 'attempt' | 'attempts'> {
  return { attempt: header.attempt + 1, attempts: header.attempts + 1 };
}

function stateFor(summary: ErrorSummary): BulkOperationState {
  return summary.class === 'storage' ? 'waiting-storage' : 'waiting-retry';
}

function withRev<Stored extends { readonly _id: string }>(doc: Stored, revs: ReadonlyMap<string, string>): Stored {
  const rev = revs.get(doc._id);
  return rev === undefined ? doc : { ...doc, _rev: rev };
}

function bugOf(error: unknown): { name: string; stack: string } {
  if (!(error instanceof Error)) return { name: 'Error', stack: String(error) };
  return { name: error.name, stack: error.stack ?? '' };
}
