import { endStates, type BulkOperationState, type Target } from '../model/states.js';
import { isUnplanned, sequenceOf, type Header } from '../queue/stored.js';
import { storedWait } from '../retry/wait.js';
import { Attempts } from './attempts.js';
import { partAt } from '../queue/parts.js';
import { Batches } from './batches.js';
import { Bookkeeping } from './bookkeeping.js';
import { isUnsettled, settleCancelled } from './cancelled.js';
import { Digests } from './digests.js';
import { Order } from './order.js';
import type { RunParts } from './parts.js';
import { placesOf, presentPlace } from './places.js';
import { countStop } from './stopped.js';
import { isSuspect } from './stops.js';
import { counted, isUsable } from './transitions.js';

const otherUser = { class: 'auth', code: 'other-user' } as const;

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
 *           waiting-index (until it is ready; the ramp while it is only behind)
 *
 * Says who runs next, and who waits; the attempts themselves are made by `Attempts`.
 */
export class Runner {
  readonly #parts: RunParts;
  readonly #order: Order;
  readonly #digests: Digests;
  readonly #batches: Batches;
  readonly #bookkeeping: Bookkeeping;
  /** What those need that work on one bulk operation. */
  readonly #work: RunParts & { readonly batches: Batches; readonly bookkeeping: Bookkeeping };
  readonly #attempts: Attempts;
  readonly #busy = new Map<Target, Promise<void>>();
  /** Places with an attempt under way; the one whose attempt must run alone, and the one that waits for that (R16). */
  readonly #active = new Set<Target>();
  #alone: Target | undefined;
  #wantsSilence: Target | undefined;

  constructor(parts: RunParts) {
    this.#parts = parts;
    const poke = (): void => {
      this.poke();
    };
    this.#order = new Order((header) => placesOf(header, parts.actions));
    this.#digests = new Digests({ ...parts, order: this.#order, poke });
    this.#batches = new Batches(parts);
    this.#bookkeeping = new Bookkeeping({ ...parts, poke });
    this.#work = { ...parts, batches: this.#batches, bookkeeping: this.#bookkeeping };
    this.#attempts = new Attempts({ ...this.#work, goingOn: (next, before) => this.#goingOn(next, before) });
  }

  /**
   * Takes up stored waiting times; after a restart what remains is clamped (R18). `stoppedLease` names the run of the
   * client that ended while a person was looking at its page: what it was at may have ended it (R16).
   */
  async resume(stoppedLease?: string): Promise<void> {
    const { queue, clock } = this.#parts;
    for (const stored of queue.headers.all()) {
      if (endStates.has(stored.state) || stored.state === 'paused') continue;
      const wasUnderWay = stored.state === 'running' || stored.state === 'planning';
      const wasStopped = wasUnderWay && stored.lease !== null && stored.lease === stoppedLease;
      const header = wasStopped ? await countStop(stored, this.#work) : stored;
      const wait = this.#bookkeeping.resumeWait(header);
      if (header.wait === null || wait === undefined || header.wait.setAt <= clock.wall()) continue;
      // The clock went back: what remains is stored anew, or short sessions would never come to an end of it.
      const next = { ...header, wait: storedWait(wait) };
      const { revs, conflicts } = await queue.docs.write([next]);
      if (conflicts.size === 0) this.#bookkeeping.keep(next, revs);
    }
    this.poke();
  }

  /** Headers that a person has changed here or in another tab: what waits is set anew. */
  noticed(headers: readonly Header[]): void {
    for (const { _id } of headers) {
      const sequence = sequenceOf(_id);
      const header = this.#parts.queue.headers.get(sequence);
      if (header === undefined) continue;
      this.#bookkeeping.endWait(sequence);
      if (header.state === 'paused' || endStates.has(header.state)) continue;
      this.#bookkeeping.resumeWait(header);
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
    this.#order.follow(this.#parts.queue.headers.all());
    const { next, unknown } = this.#order.choose(place, (header, sequence) => {
      if (header.state === 'paused') return false;
      if (!isUsable(header)) {
        this.#bookkeeping.show(header, 'failed');
        return false;
      }
      if (presentPlace(header, this.#parts.actions) !== place) return false;
      // Now it waits for the index, and for no time: due the moment that the index is ready.
      if (header.state === 'waiting-index' && this.#needsIndex(header)) this.#bookkeeping.endWait(sequence);
      if (this.#bookkeeping.isWaiting(sequence)) return false;
      const blocked = this.#blocked(header);
      if (blocked === undefined) return this.#isQuietEnough(header, place);
      if (blocked !== 'asking') this.#bookkeeping.show(header, blocked, this.#isOtherUsers() ? otherUser : undefined);
      return false;
    });
    this.#digests.attend(unknown);
    return next;
  }

  /** A cancelled bulk operation of which it is not known yet what the last attempt has done. */
  #unsettled(place: Target): Header | undefined {
    const { queue, actions } = this.#parts;
    return queue.headers
      .all()
      .find(
        (header) =>
          isUnsettled(header) &&
          isUsable(header) &&
          presentPlace(header, actions) === place &&
          !this.#bookkeeping.isWaiting(sequenceOf(header._id)) &&
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
    if (this.#isOtherUsers()) return 'waiting-auth';
    if (!this.#isKnown(header)) return 'waiting-handler';
    if (this.#needsIndex(header)) return 'waiting-index';
    if (presentPlace(header, this.#parts.actions) !== 'server') return undefined;
    const gate = this.#parts.gate.state();
    return gate === 'open' ? undefined : gate;
  }

  /** Also what is done on this device alone: whoever is signed in would find it done in their name. */
  #isOtherUsers(): boolean {
    return this.#parts.gate.isOtherUser;
  }

  #isKnown(header: Header): boolean {
    const { actions, planning, stores } = this.#parts;
    if (stores[presentPlace(header, actions)] === undefined) return false;
    return isUnplanned(header) ? planning.knows(header) : actions.has(partAt(header, header.cursor).action);
  }

  /** Whether its plan asks an index that is not ready. */
  #needsIndex(header: Header): boolean {
    return isUnplanned(header) && !this.#parts.planning.isReady(header);
  }

  /** The next batch may follow at once when it is due here, and nobody waits for silence: its attempt is counted then. */
  #goingOn(next: Header, before: Header): Header {
    if (endStates.has(next.state) || next.wait !== null) return next;
    const { actions, closed } = this.#parts;
    const makesWay = isSuspect(before) || this.#wantsSilence !== undefined;
    const isHere = presentPlace(next, actions) === presentPlace(before, actions);
    const goesOn = isHere && this.#blocked(next) === undefined && !closed.aborted && !makesWay;
    return goesOn ? counted(next) : next;
  }

  /** Runs one bulk operation until it waits, ends, or someone else has changed it. Never throws. */
  async #run(header: Header): Promise<void> {
    const sequence = sequenceOf(header._id);
    try {
      if (isUnsettled(header)) {
        await settleCancelled(header, this.#work);
        return;
      }
      await this.#attempts.run(header);
      this.#bookkeeping.worked(sequence);
    } catch (error) {
      this.#batches.forget(sequence);
      this.#bookkeeping.failed(header, error);
    }
  }
}
