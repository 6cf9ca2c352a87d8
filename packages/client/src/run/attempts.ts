import { IndexNotReadyError } from '../model/errors.js';
import { endStates } from '../model/states.js';
import type { HandlerContext } from '../model/handler.js';
import { isUnplanned, sequenceOf, type Header, type PlanHeader, type RowState } from '../queue/stored.js';
import { classifyError, type ErrorVerdict } from '../retry/classify.js';
import type { LoadedBatch } from './batches.js';
import { runDocuments, type AttemptResult } from './documents.js';
import { runHandler } from './handlers.js';
import { Outcomes, type OutcomesParts } from './outcomes.js';
import type { RunParts } from './parts.js';
import { placeOf } from './places.js';
import { isSuspect, nextAlone } from './stops.js';
import { counted, held, LeaseLostError, settled } from './transitions.js';

export type AttemptsParts = OutcomesParts &
  Pick<
    RunParts,
    'takenOver' | 'quarantineControl' | 'planning' | 'events' | 'stores' | 'server' | 'handlerFetch' | 'closed'
  >;

/**
 * The attempts at one bulk operation, one after another. Each is counted in the header before it starts; outcomes and
 * cursor go into one write after it.
 */
export class Attempts {
  readonly #parts: AttemptsParts;
  readonly #outcomes: Outcomes;

  constructor(parts: AttemptsParts) {
    this.#parts = parts;
    this.#outcomes = new Outcomes(parts);
  }

  /** Plans and runs batches of one bulk operation until it waits, ends, or someone else has changed it. */
  async run(header: Header): Promise<void> {
    let current = await this.#begin(header);
    if (current !== undefined && isUnplanned(current)) current = await this.#plan(current);
    while (current !== undefined) current = await this.#attempt(current);
  }

  /**
   * Counts the attempt before it starts. Whoever takes the bulk operation over writes the header first and the batch's
   * record after it: a record that is newer than its header would let a cursor pass outcomes that are not stored.
   */
  async #begin(header: Header): Promise<Header | undefined> {
    const { queue, takenOver, quarantineControl, lease, batches, bookkeeping } = this.#parts;
    const sequence = sequenceOf(header._id);
    // In this order: one that is withdrawn here takes no failure over.
    if (header.taken !== undefined && !(await quarantineControl.settle(header))) return this.#lost(header);
    if (header.retries === true || header.continues !== undefined) await takenOver.settle(header);
    const state = isUnplanned(header) ? 'planning' : 'running';
    const next: Header = { ...counted(header), state, wait: null, lease };
    const { revs, conflicts } = await queue.docs.write([next]);
    if (conflicts.size > 0) return this.#lost(header);
    batches.forget(sequence);
    const kept = bookkeeping.keep(next, revs);
    if (header.lease !== lease) await batches.takeOver(sequence, header.cursor);
    return kept;
  }

  /** One attempt at a plan. Whoever changed the header meanwhile has the word: nothing of the attempt remains then. */
  async #plan(header: PlanHeader): Promise<Header | undefined> {
    const { queue, planning, closed, bookkeeping, goingOn, wrote } = this.#parts;
    const request = await planning.request(header);
    bookkeeping.begins(sequenceOf(header._id));
    const outcome = await planning.run(header, request).then(
      (checked) => ({ checked }),
      (error: unknown) => ({
        error,
        verdict: classifyError(error),
        // Looked at now: when the index is ready by the time that this is written, it is due at once.
        isTimed: !(error instanceof IndexNotReadyError) || planning.isReady(header),
      }),
    );
    if (closed.aborted) return undefined;
    const next =
      'checked' in outcome
        ? goingOn(settled(await planning.store(header, outcome.checked)), header)
        : this.#notPlanned(header, outcome);
    const { revs, conflicts } = await queue.docs.write([next]);
    if (conflicts.size > 0) return this.#lost(header);
    const kept = bookkeeping.keep(next, revs);
    if ('verdict' in outcome) bookkeeping.hold(kept, outcome.verdict);
    else if (endStates.has(kept.state)) wrote(kept.target);
    return kept.state === 'running' && kept.attempt > 0 ? kept : undefined;
  }

  /** An index that is only behind is asked again on the ramp; one that is not ready says itself when it is. */
  #notPlanned(
    header: PlanHeader,
    { error, verdict, isTimed }: { error: unknown; verdict: ErrorVerdict; isTimed: boolean },
  ): Header {
    const next = held(header, [], verdict, error, this.#parts);
    return isTimed ? next : { ...next, wait: null };
  }

  /** One attempt at the present batch. Answers with the header when the next batch may follow at once. */
  async #attempt(header: Header): Promise<Header | undefined> {
    const loaded = await this.#parts.batches.load(header);
    if (isSuspect(header)) return this.#attemptAlone(header, loaded);
    const result = await this.#execute(header, loaded);
    if (this.#isOver(result)) return this.#lost(header);
    return this.#outcomes.store(header, loaded, result);
  }

  /** One operation of a suspect batch by itself. Which one it is, is durable before it runs (R16). */
  async #attemptAlone(header: Header, loaded: LoadedBatch): Promise<Header | undefined> {
    const { queue, batches, bookkeeping } = this.#parts;
    const place = nextAlone(loaded.rows);
    const operation = place === undefined ? undefined : loaded.batch.operations[place];
    if (place === undefined || operation === undefined) {
      return this.#outcomes.store(header, loaded, { rows: loaded.rows, failures: [] });
    }
    const alone: Header = { ...header, alone: operation.index };
    const { revs, conflicts } = await queue.docs.write([alone]);
    if (conflicts.size > 0) return this.#lost(header);
    const kept = bookkeeping.keep(alone, revs);
    const inPlace = (row: RowState | undefined): RowState[] =>
      loaded.rows.map((known, at) => (at === place && row !== undefined ? row : known));
    const single: LoadedBatch = {
      batch: { ...loaded.batch, from: operation.index, operations: [operation] },
      rows: loaded.rows.slice(place, place + 1),
      record: undefined,
    };
    const result = await this.#execute(kept, single, ([row]) =>
      batches.save(sequenceOf(header._id), loaded, inPlace(row)),
    );
    if (this.#isOver(result)) return this.#lost(kept);
    return this.#outcomes.store(kept, loaded, { ...result, rows: inPlace(result.rows[0]) });
  }

  async #execute(
    header: Header,
    loaded: LoadedBatch,
    saveIntent = (rows: readonly RowState[]): Promise<void> =>
      this.#parts.batches.save(sequenceOf(header._id), loaded, rows),
  ): Promise<AttemptResult> {
    const { queue, actions, bookkeeping, stores, server, handlerFetch, closed, clock } = this.#parts;
    bookkeeping.begins(sequenceOf(header._id));
    const action = actions.get(loaded.batch.action);
    const store = stores[placeOf(header.target, action)];
    if (action === undefined || store === undefined) {
      return { rows: loaded.rows, failures: [], error: new TypeError('The action or its target is not there.') };
    }
    const fence = async (): Promise<void> => {
      if (!(await queue.headers.isUnchanged(header))) throw new LeaseLostError();
    };
    if (action.kind === 'document') {
      return runDocuments(loaded.batch, loaded.rows, action, store, { fence, saveIntent }, this.#parts.events);
    }
    const context: HandlerContext = {
      db: store,
      server,
      fetch: handlerFetch,
      signal: closed,
      attempt: header.attempt,
      fence,
      now: () => clock.wall(),
    };
    return runHandler(loaded.batch, loaded.rows, action, context);
  }

  /** Nothing of this attempt is to be stored any more. */
  #isOver({ error }: AttemptResult): boolean {
    return error instanceof LeaseLostError || this.#parts.closed.aborted;
  }

  /** Someone else has the word. */
  async #lost(header: Header): Promise<undefined> {
    const sequence = sequenceOf(header._id);
    this.#parts.batches.forget(sequence);
    await this.#parts.bookkeeping.lost(sequence);
    return undefined;
  }
}
