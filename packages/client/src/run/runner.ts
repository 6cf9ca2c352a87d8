import type { Clock } from '../model/environment.js';
import type { AnyAction, HandlerContext, ServerAccess } from '../model/handler.js';
import type { DocumentStore } from '../model/pouch.js';
import { endStates, type BulkOperationState, type Target } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import type { Queue } from '../queue/queue.js';
import type { Retries } from '../queue/retries.js';
import {
  isUnplanned,
  recordId,
  sequenceOf,
  storedVersion,
  type BatchRecord,
  type Header,
  type PlanHeader,
  type RowState,
  type StoredFailure,
  type StoredOperation,
} from '../queue/stored.js';
import { classifyError, type ErrorVerdict } from '../retry/classify.js';
import type { RetryPolicy } from '../retry/policy.js';
import type { Scheduler } from '../retry/scheduler.js';
import { beginWait, resumeWait, storedWait } from '../retry/wait.js';
import { batchOf, partAt, type Batch } from './batch.js';
import { findWritten, isOutcome, runDocuments, type AttemptResult } from './documents.js';
import { Digests } from './digests.js';
import type { Gate } from './gate.js';
import { runHandler } from './handlers.js';
import { Order } from './order.js';
import type { Planning } from './planning.js';
import { placeOf, placesOf, presentPlace } from './places.js';
import { isCrasher, isSuspect, nextAlone, withStop } from './stops.js';
import {
  advanced,
  batchSizeOf,
  counted,
  failureOf,
  held,
  isUsable,
  LeaseLostError,
  merged,
  settled,
  settledWith,
} from './transitions.js';

export interface RunnerParts {
  readonly queue: Queue;
  readonly failures: Failures;
  readonly retries: Retries;
  readonly planning: Planning;
  readonly actions: ReadonlyMap<string, AnyAction>;
  readonly stores: Readonly<Record<Target, DocumentStore | undefined>>;
  readonly server: ServerAccess;
  readonly scheduler: Scheduler;
  readonly policy: RetryPolicy;
  readonly clock: Clock;
  readonly gate: Gate;
  readonly batchSize: number;
  /** Kept with what fails, so that a later version of the app can try it again. */
  readonly appVersion: string | undefined;
  /** How long another runner may be busy with one attempt before it counts as gone. Milliseconds. */
  readonly otherRunnerMs: number;
  /** The name of this run of the client: whoever takes a bulk operation over writes another one into its header. */
  readonly lease: string;
  readonly handlerFetch: typeof fetch;
  readonly closed: AbortSignal;
  /** Gives the page a turn in the middle of long work. */
  readonly breathe: () => Promise<void>;
  /** Something that is shown has changed. */
  readonly changed: () => void;
  /** A bulk operation came to its end, or documents were written there. */
  readonly wrote: (place: Target) => void;
  readonly warn: (line: string) => void;
}

/** A batch as it is loaded: its operations, what is known of each, and its record when there is one. */
interface LoadedBatch {
  readonly batch: Batch;
  readonly rows: readonly RowState[];
  record: BatchRecord | undefined;
}

/**
 * Runs what is queued, one batch at a time for each place (the target, or the server for an action that works there
 * whatever the target), first come first served.
 *
 *             ┌────────────── more operations ──────────────┐
 *             ▼                                             │
 *   queued ─▶ running ─ all rows have outcomes ─▶ cursor moves ─▶ done, done-with-failures
 *     │       │  ▲  └─ a handler's or a plan's own bug ─▶ failed
 *     └─▶ planning ─ operations are durable ─▶ running   (see Planning)
 *             ▼  │ due, awake, online, signed in
 *           waiting-retry, -storage (ramp)   waiting-auth, -network (the gate)   waiting-handler
 *
 * Every attempt is counted in the header before it starts; outcomes and cursor go into one write after it.
 */
export class Runner {
  readonly #parts: RunnerParts;
  readonly #order: Order;
  readonly #digests: Digests;
  readonly #busy = new Map<Target, Promise<void>>();
  readonly #storageFailures = new Map<number, number>();
  /** Bulk operations whose present batch was loaded by this run: its record is known. */
  readonly #started = new Set<number>();
  /** Places with an attempt under way; the one whose attempt must run alone, and the one that waits for that (R16). */
  readonly #active = new Set<Target>();
  #alone: Target | undefined;
  #wantsSilence: Target | undefined;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#order = new Order((header) => placesOf(header, parts.actions));
    const poke = (): void => {
      this.poke();
    };
    this.#digests = new Digests({ ...parts, order: this.#order, poke });
  }

  /**
   * Takes up stored waiting times; after a restart what remains is clamped (R18). `stoppedLease` names the run of the
   * client that ended while a person was looking at its page: what it was at may have ended it (R16).
   */
  async resume(stoppedLease?: string): Promise<void> {
    const { queue, clock } = this.#parts;
    for (const stored of queue.headers()) {
      if (endStates.has(stored.state) || stored.state === 'paused') continue;
      const wasUnderWay = stored.state === 'running' || stored.state === 'planning';
      const wasStopped = wasUnderWay && stored.lease !== null && stored.lease === stoppedLease;
      const header = wasStopped ? await this.#stopped(stored, sequenceOf(stored._id)) : stored;
      if (header.wait === null) continue;
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

  /** A stop of the process is counted; whoever has stopped it too often alone has failed (R16). */
  async #stopped(header: Header, sequence: number): Promise<Header> {
    const { queue, policy, clock, failures, appVersion } = this.#parts;
    const next: Header = { ...header, state: 'waiting-retry', stops: (header.stops ?? 0) + 1 };
    const docs: (BatchRecord | StoredFailure)[] = [];
    const fresh: StoredFailure[] = [];
    if (header.alone !== undefined) {
      const loaded = await this.#load(header, sequence);
      this.#started.delete(sequence);
      const place = header.alone - loaded.batch.from;
      let rows = withStop(loaded.rows, place);
      if (isCrasher(rows[place])) {
        const mayHaveBeenApplied = rows[place]?.s === 'intent';
        rows = rows.map((row, at) => (at === place ? { s: 'failed' } : row));
        const failure = { code: 'crashed', reason: 'The app stopped each time while it ran this operation alone.' };
        const found = { index: header.alone, failure, mayHaveBeenApplied };
        fresh.push(failureOf(header, sequence, loaded.batch, found, { at: clock.wall(), appVersion }));
      }
      docs.push(...fresh, this.#recordOf(sequence, loaded, rows));
    }
    // A batch that is not suspect yet is tried at once: most stops have nothing to do with it. So is one without its crasher.
    const isOnTheRamp = isSuspect(next) && fresh.length === 0;
    const { delayMs, notBeforeMs } = policy.delay(isOnTheRamp ? header.attempt : 1, 0);
    const waiting = { ...next, wait: storedWait(beginWait(clock, delayMs, notBeforeMs)) };
    const { revs, conflicts } = await queue.write([...docs, waiting]);
    if (conflicts.size > 0) return queue.refresh(sequence);
    failures.added(fresh.map((failure) => withRev(failure, revs)));
    return this.#keep(waiting, revs);
  }

  /** Headers that a person has changed here or in another tab: what waits is set anew. */
  noticed(headers: readonly Header[]): void {
    for (const { _id } of headers) {
      const sequence = sequenceOf(_id);
      const header = this.#parts.queue.header(sequence);
      if (header === undefined) continue;
      this.#parts.scheduler.clear(waitKey(sequence));
      if (header.wait === null || header.state === 'paused' || endStates.has(header.state)) continue;
      this.#wait(header, resumeWait(this.#parts.clock, header.wait));
    }
    this.poke();
  }

  /** Looks for something to run. Cheap, and harmless when there is nothing. */
  poke(): void {
    if (this.#parts.closed.aborted) return;
    for (const place of ['local', 'server'] as const) {
      if (this.#busy.has(place)) continue;
      const run = this.#loop(place);
      this.#busy.set(place, run);
    }
  }

  /** Resolves when nothing runs any more. */
  async idle(): Promise<void> {
    await Promise.all([...this.#busy.values(), this.#digests.idle()]);
  }

  async #loop(place: Target): Promise<void> {
    // The map holds this promise before anything runs: a poke from within never starts a second loop.
    await Promise.resolve();
    let makesWay = false;
    try {
      while (!makesWay) {
        const header = this.#next(place);
        if (header === undefined) break;
        this.#active.add(place);
        if (isSuspect(header)) this.#alone = place;
        await this.#run(header);
        makesWay = this.#alone === place || this.#wantsSilence !== undefined;
        if (this.#alone === place) this.#alone = undefined;
        this.#active.delete(place);
        // Its next batch may belong to the other place, or others there have waited for it.
        this.poke();
      }
    } finally {
      this.#busy.delete(place);
      if (makesWay) this.poke();
    }
  }

  #next(place: Target): Header | undefined {
    if (this.#parts.closed.aborted || this.#alone !== undefined) return undefined;
    if (this.#wantsSilence === place) this.#wantsSilence = undefined;
    if (this.#wantsSilence !== undefined) return undefined;
    const unsettled = this.#unsettled(place);
    if (unsettled !== undefined) return unsettled;
    this.#order.follow(this.#parts.queue.headers());
    const { next, unknown } = this.#order.choose(place, (header, sequence) => {
      if (header.state === 'paused') return false;
      if (!isUsable(header)) {
        this.#show(header, 'failed');
        return false;
      }
      if (presentPlace(header, this.#parts.actions) !== place) return false;
      if (this.#parts.scheduler.isWaiting(waitKey(sequence))) return false;
      const blocked = this.#blocked(header);
      if (blocked === undefined) return this.#isQuietEnough(header, place);
      if (blocked !== 'asking') this.#show(header, blocked);
      return false;
    });
    this.#digests.attend(unknown);
    return next;
  }

  /** A cancelled bulk operation of which it is not known yet what the last attempt has done. */
  #unsettled(place: Target): Header | undefined {
    const { queue, actions, scheduler } = this.#parts;
    return queue
      .headers()
      .find(
        (header) =>
          isUnsettled(header) &&
          isUsable(header) &&
          presentPlace(header, actions) === place &&
          !scheduler.isWaiting(waitKey(sequenceOf(header._id))) &&
          this.#blocked(header) === undefined,
      );
  }

  /** A suspect runs only while nothing else does: else no one could tell who has stopped the process (R16). */
  #isQuietEnough(header: Header, place: Target): boolean {
    if (!isSuspect(header) || this.#active.size === 0) return true;
    this.#wantsSilence = place;
    return false;
  }

  #blocked(header: Header): BulkOperationState | 'asking' | undefined {
    if (!this.#isKnown(header)) return 'waiting-handler';
    if (presentPlace(header, this.#parts.actions) !== 'server') return undefined;
    const gate = this.#parts.gate.state();
    return gate === 'open' ? undefined : gate;
  }

  #isKnown(header: Header): boolean {
    const { actions, planning, stores } = this.#parts;
    if (stores[presentPlace(header, actions)] === undefined) return false;
    return isUnplanned(header) ? planning.knows(header) : actions.has(partAt(header, header.cursor).action);
  }

  /** Runs batches of one bulk operation until it waits, ends, or someone else has changed it. Never throws. */
  async #run(header: Header): Promise<void> {
    const sequence = sequenceOf(header._id);
    try {
      if (isUnsettled(header)) {
        await this.#settle(header, sequence);
        return;
      }
      let current: Header | undefined = await this.#begin(header, sequence);
      if (current !== undefined && isUnplanned(current)) current = await this.#plan(current, sequence);
      while (current !== undefined) current = await this.#attempt(current, sequence);
      this.#storageFailures.delete(sequence);
    } catch (error) {
      this.#started.delete(sequence);
      this.#bookkeepingFailed(header, sequence, error);
    }
  }

  /** Finds out by the documents what the last attempt of a cancelled bulk operation has done, and says so. */
  async #settle(header: Header, sequence: number): Promise<void> {
    const { queue, actions, stores, policy, clock, warn } = this.#parts;
    this.#started.delete(sequence);
    const loaded = await this.#load(header, sequence);
    this.#started.delete(sequence);
    const action = actions.get(loaded.batch.action);
    const store = stores[presentPlace(header, actions)];
    let rows = loaded.rows;
    if (loaded.record !== undefined && action?.kind === 'document' && store !== undefined) {
      try {
        rows = await findWritten(loaded.batch, loaded.rows, action, store);
      } catch (error) {
        const verdict = classifyError(error);
        if (verdict.kind === 'auth') return;
        const failures = (this.#storageFailures.get(sequence) ?? 0) + 1;
        this.#storageFailures.set(sequence, failures);
        const { delayMs, notBeforeMs } = policy.delay(failures, verdict.kind === 'passing' ? verdict.notBeforeMs : 0);
        if (verdict.kind === 'bug')
          warn(`What a cancelled bulk operation has done cannot be seen (${verdict.summary.code}).`);
        this.#wait(header, beginWait(clock, delayMs, notBeforeMs));
        return;
      }
    }
    const records = loaded.record === undefined ? [] : [this.#recordOf(sequence, loaded, rows)];
    const next = settledWith(header, rows);
    const { revs, conflicts } = await queue.write([...records, next]);
    this.#storageFailures.delete(sequence);
    if (conflicts.size > 0) await queue.refresh(sequence);
    else this.#keep(next, revs);
    this.#parts.wrote(header.target);
  }

  /** Counts the attempt before it starts, and takes the bulk operation over: the batch's record is rewritten too. */
  async #begin(header: Header, sequence: number): Promise<Header | undefined> {
    const { queue, lease } = this.#parts;
    if (header.retries === true || header.continues !== undefined) await this.#parts.retries.settle(header);
    const state = isUnplanned(header) ? 'planning' : 'running';
    const next: Header = { ...counted(header), state, wait: null, lease };
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

  /** One attempt at a plan. Whoever changed the header meanwhile has the word: nothing of the attempt remains then. */
  async #plan(header: PlanHeader, sequence: number): Promise<Header | undefined> {
    const { queue, planning } = this.#parts;
    const request = await planning.request(header);
    const outcome = await planning.run(header, request).then(
      (checked) => ({ checked }),
      (error: unknown) => ({ error, verdict: classifyError(error) }),
    );
    if (this.#parts.closed.aborted) return undefined;
    const next =
      'checked' in outcome
        ? this.#goingOn(settled(await planning.store(header, outcome.checked)), header)
        : held(header, [], outcome.verdict, outcome.error, this.#parts);
    const { revs, conflicts } = await queue.write([next]);
    if (conflicts.size > 0) {
      await this.#refresh(sequence);
      return undefined;
    }
    const kept = this.#keep(next, revs);
    if ('verdict' in outcome) this.#hold(kept, outcome.verdict);
    else if (endStates.has(kept.state)) this.#parts.wrote(kept.target);
    return kept.state === 'running' && kept.attempt > 0 ? kept : undefined;
  }

  /** One attempt at the present batch. Answers with the header when the next batch may follow at once. */
  async #attempt(header: Header, sequence: number): Promise<Header | undefined> {
    const loaded = await this.#load(header, sequence);
    if (isSuspect(header)) return this.#attemptAlone(header, sequence, loaded);
    const result = await this.#execute(header, sequence, loaded);
    if (result.error instanceof LeaseLostError || this.#parts.closed.aborted) {
      await this.#refresh(sequence);
      return undefined;
    }
    return this.#finish(header, sequence, loaded, result);
  }

  /** One operation of a suspect batch by itself. Which one it is, is durable before it runs (R16). */
  async #attemptAlone(header: Header, sequence: number, loaded: LoadedBatch): Promise<Header | undefined> {
    const place = nextAlone(loaded.rows);
    const operation = place === undefined ? undefined : loaded.batch.operations[place];
    if (place === undefined || operation === undefined) {
      return this.#finish(header, sequence, loaded, { rows: loaded.rows, failures: [] });
    }
    const alone: Header = { ...header, alone: operation.index };
    const { revs, conflicts } = await this.#parts.queue.write([alone]);
    if (conflicts.size > 0) {
      await this.#refresh(sequence);
      return undefined;
    }
    const kept = this.#keep(alone, revs);
    const inPlace = (row: RowState | undefined): RowState[] =>
      loaded.rows.map((known, at) => (at === place && row !== undefined ? row : known));
    const single: LoadedBatch = {
      batch: { ...loaded.batch, from: operation.index, operations: [operation] },
      rows: loaded.rows.slice(place, place + 1),
      record: undefined,
    };
    const result = await this.#execute(kept, sequence, single, async ([row]) => {
      await this.#saveRecord(sequence, loaded, inPlace(row));
    });
    if (result.error instanceof LeaseLostError || this.#parts.closed.aborted) {
      await this.#refresh(sequence);
      return undefined;
    }
    return this.#finish(kept, sequence, loaded, { ...result, rows: inPlace(result.rows[0]) });
  }

  async #load(header: Header, sequence: number): Promise<LoadedBatch> {
    const { queue, batchSize } = this.#parts;
    const { action, left } = partAt(header, header.cursor);
    const known = this.#started.has(sequence) ? undefined : await queue.record(sequence, header.cursor);
    this.#started.add(sequence);
    const count = known?.record.count ?? Math.min(batchSizeOf(header, batchSize), left);
    const stored = await queue.operations(header, header.cursor, count);
    const batch = batchOf(header, action, header.cursor, stored, known !== undefined);
    const rows = known?.rows ?? batch.operations.map((_, place) => openRow(stored[place]));
    return { batch, rows, record: known?.record };
  }

  async #execute(
    header: Header,
    sequence: number,
    loaded: LoadedBatch,
    saveIntent = (rows: readonly RowState[]): Promise<void> => this.#saveRecord(sequence, loaded, rows),
  ): Promise<AttemptResult> {
    const action = this.#parts.actions.get(loaded.batch.action);
    const store = this.#parts.stores[placeOf(header.target, action)];
    if (action === undefined || store === undefined) {
      return { rows: loaded.rows, failures: [], error: new TypeError('The action or its target is not there.') };
    }
    const fence = async (): Promise<void> => {
      if (!(await this.#parts.queue.isUnchanged(header))) throw new LeaseLostError();
    };
    if (action.kind === 'document') {
      return runDocuments(loaded.batch, loaded.rows, action, store, { fence, saveIntent });
    }
    const context: HandlerContext = {
      db: store,
      server: this.#parts.server,
      fetch: this.#parts.handlerFetch,
      signal: this.#parts.closed,
      attempt: header.attempt,
      fence,
      now: () => this.#parts.clock.wall(),
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
    const { queue, failures, clock, appVersion } = this.#parts;
    const complete = result.error === undefined && result.rows.every(isOutcome);
    // Of a suspect batch one operation has run, and the next may follow.
    const goesOnAlone = !complete && isSuspect(header) && result.error === undefined;
    const verdict =
      complete || goesOnAlone ? undefined : classifyError(result.error ?? new TypeError('Rows without an outcome.'));
    const next = complete
      ? this.#after(header, result.rows)
      : goesOnAlone
        ? counted({ ...header, attempt: 0 })
        : held(header, result.rows, verdict, result.error, this.#parts);
    const newFailures = result.failures.map((failure) =>
      failureOf(header, sequence, loaded.batch, failure, { at: clock.wall(), appVersion }),
    );
    const record = this.#recordOf(sequence, loaded, result.rows);
    const { revs, conflicts } = await queue.write([...newFailures, record, next]);
    if (result.rows.some(({ s }, place) => s === 'applied' && loaded.rows[place]?.s !== 'applied')) {
      this.#parts.wrote(presentPlace(header, this.#parts.actions));
    }
    const fresh = newFailures.filter(({ _id }) => !conflicts.has(_id)).map((failure) => withRev(failure, revs));
    const isOurs = !conflicts.has(record._id);
    if (conflicts.has(next._id)) {
      this.#started.delete(sequence);
      if (isOurs && (await this.#mergeInto(header, sequence, result.rows, complete))) failures.added(fresh);
      // Another runner has the word on these operations: what we have said of them is taken back.
      else await queue.write(fresh.map((failure) => ({ ...failure, _deleted: true })));
      await this.#refresh(sequence);
      return undefined;
    }
    // The header has the last word. A runner that tried to take over may have touched the record, or said the same of an
    // operation as we did and be about to take it back.
    const adopted = await this.#overwritten(newFailures.filter(({ _id }) => conflicts.has(_id)));
    failures.added([...fresh, ...adopted]);
    loaded.record = isOurs ? withRev(record, revs) : (await this.#overwritten([record]))[0];
    const kept = this.#keep(next, revs);
    if (goesOnAlone) {
      this.#started.delete(sequence);
      return kept;
    }
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
    if (kept.wait !== null) this.#wait(kept, resumeWait(clock, kept.wait));
    return kept.attempt > 0 ? kept : undefined;
  }

  /** Writes documents of ours over whatever another runner has stored under their names. */
  async #overwritten<Stored extends BatchRecord | StoredFailure>(docs: readonly Stored[]): Promise<readonly Stored[]> {
    const { queue } = this.#parts;
    const written: Stored[] = [];
    for (let open = docs; open.length > 0;) {
      const present = await queue.revisions(open.map(({ _id }) => _id));
      const { revs, conflicts } = await queue.write(open.map((doc) => ({ ...doc, _rev: present.get(doc._id) })));
      written.push(...open.filter(({ _id }) => !conflicts.has(_id)).map((doc) => withRev(doc, revs)));
      open = open.filter(({ _id }) => conflicts.has(_id));
    }
    return written;
  }

  /** The header after a complete batch; when the next one may follow at once, its attempt is counted with it. */
  #after(header: Header, rows: readonly RowState[]): Header {
    return this.#goingOn(advanced(header, rows, this.#parts.clock), header);
  }

  #goingOn(next: Header, before: Header): Header {
    if (endStates.has(next.state) || next.wait !== null) return next;
    const { actions, closed } = this.#parts;
    const makesWay = isSuspect(before) || this.#wantsSilence !== undefined;
    const isHere = presentPlace(next, actions) === presentPlace(before, actions);
    const goesOn = isHere && this.#blocked(next) === undefined && !closed.aborted && !makesWay;
    return goesOn ? counted(next) : next;
  }

  /** A person has paused or cancelled it meanwhile: what this attempt brought is true all the same. */
  async #mergeInto(header: Header, sequence: number, rows: readonly RowState[], complete: boolean): Promise<boolean> {
    for (;;) {
      const changed = await this.#parts.queue.refresh(sequence);
      if (changed.lease !== this.#parts.lease || changed.cursor !== header.cursor) return false;
      const next = merged(changed, header, rows, complete);
      if (next === undefined) return true;
      const { revs, conflicts } = await this.#parts.queue.write([next]);
      if (conflicts.size > 0) continue;
      this.#keep(next, revs);
      if (endStates.has(next.state)) this.#parts.wrote(header.target);
      return true;
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

const isUnsettled = (header: Header): boolean => header.state === 'cancelled' && header.unsettled !== undefined;

const waitKey = (sequence: number): string => `bulk:${String(sequence)}`;

/** An operation that took over the rest of another bulk operation may have been written there: its intent goes on. */
function openRow(stored: StoredOperation | undefined): RowState {
  return stored?.w === undefined ? { s: 'open' } : { s: 'intent', ...stored.w };
}

function withRev<Stored extends { readonly _id: string }>(doc: Stored, revs: ReadonlyMap<string, string>): Stored {
  const rev = revs.get(doc._id);
  return rev === undefined ? doc : { ...doc, _rev: rev };
}
