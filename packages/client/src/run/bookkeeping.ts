import type { ErrorSummary } from '../model/errors.js';
import { endStates, type BulkOperationState } from '../model/states.js';
import { sequenceOf, withRev, type Header } from '../queue/stored.js';
import { classifyError, type ErrorVerdict } from '../retry/classify.js';
import { beginWait, resumeWait, type Wait } from '../retry/wait.js';
import type { RunParts } from './parts.js';

export type BookkeepingParts = Pick<
  RunParts,
  | 'queue'
  | 'scheduler'
  | 'policy'
  | 'clock'
  | 'gate'
  | 'lease'
  | 'otherRunnerMs'
  | 'closed'
  | 'changed'
  | 'wrote'
  | 'warn'
> & {
  /** Something that has waited is due. */
  readonly poke: () => void;
};

/** What is known of the bulk operations between two looks: headers as they were written last, and who waits how long. */
export class Bookkeeping {
  readonly #parts: BookkeepingParts;
  /** How often in a row the queue's own store did not work. */
  readonly #failures = new Map<number, number>();
  /** The scheduler's moment when the attempt that is under way began. */
  readonly #begunAt = new Map<number, number>();

  constructor(parts: BookkeepingParts) {
    this.#parts = parts;
  }

  /** The header as it was written. */
  keep(header: Header, revs: ReadonlyMap<string, string>): Header {
    const kept = withRev(header, revs);
    this.#parts.queue.headers.keep(kept);
    this.#parts.changed();
    return kept;
  }

  /** A state that is shown but not stored, with its cause where the attempts before do not say it. */
  show(header: Header, state: BulkOperationState, cause?: ErrorSummary): void {
    if (header.state === state && (cause === undefined || header.lastError?.code === cause.code)) return;
    this.#parts.queue.headers.keep({ ...header, state, lastError: cause ?? header.lastError });
    this.#parts.changed();
  }

  /** An attempt begins: an event from now on is for the one after it (R14). */
  begins(sequence: number): void {
    this.#begunAt.set(sequence, this.#parts.scheduler.moment);
  }

  wait(header: Header, wait: Wait): void {
    const sequence = sequenceOf(header._id);
    this.#parts.scheduler.wait(waitKey(sequence), wait, this.#parts.poke, this.#begunAt.get(sequence));
    this.#begunAt.delete(sequence);
    this.#parts.changed();
  }

  /** Takes up the wait that the header names, and answers with what remains of it; undefined: it names none. */
  resumeWait(header: Header): Wait | undefined {
    if (header.wait === null) return undefined;
    const wait = resumeWait(this.#parts.clock, header.wait);
    this.wait(header, wait);
    return wait;
  }

  isWaiting(sequence: number): boolean {
    return this.#parts.scheduler.isWaiting(waitKey(sequence));
  }

  endWait(sequence: number): void {
    if (!this.isWaiting(sequence)) return;
    this.#parts.scheduler.clear(waitKey(sequence));
    this.#parts.changed();
  }

  /** The attempt did not bring it further: it waits as its header says, or is at its end. */
  hold(header: Header, verdict: ErrorVerdict): void {
    if (verdict.kind === 'bug') this.#parts.wrote(header.target);
    if (verdict.kind !== 'passing' || header.wait === null) return;
    if (verdict.summary.class === 'network') this.#parts.gate.failed();
    this.resumeWait(header);
  }

  /**
   * Someone else has written the header: it is read again, and the attempt does not count. Another runner gets the
   * time that its attempt may need; only a header that stays as it is so long is taken over.
   */
  async lost(sequence: number): Promise<void> {
    const { queue, clock, lease, closed, otherRunnerMs } = this.#parts;
    const header = await queue.headers.refresh(sequence);
    const isForeign = header.lease !== null && header.lease !== lease && !endStates.has(header.state);
    if (isForeign && !closed.aborted) this.wait(header, beginWait(clock, otherRunnerMs));
    this.#parts.changed();
  }

  /** The store has worked: the ramp of its failures starts anew. */
  worked(sequence: number): void {
    this.#failures.delete(sequence);
    this.#begunAt.delete(sequence);
  }

  /** The queue's own store did not work: nothing could be written down, so the wait is kept in memory. */
  failed(header: Header, error: unknown): void {
    if (this.#parts.closed.aborted) return;
    const verdict = classifyError(error);
    const wait = this.#nextWait(header, 0);
    if (verdict.kind === 'bug')
      this.#parts.warn(`The queue cannot be read or written (${verdict.summary.code}). It is tried again.`);
    const stored = this.#parts.queue.headers.get(sequenceOf(header._id)) ?? header;
    this.#parts.queue.headers.keep({
      ...stored,
      state: 'waiting-storage',
      lastError: { class: 'storage', code: verdict.summary.code },
    });
    this.wait(stored, wait);
    this.#parts.changed();
  }

  /** What a cancelled bulk operation has done could not be seen: its header stays, and it is looked at again. */
  notSeen(header: Header, verdict: ErrorVerdict): void {
    const wait = this.#nextWait(header, verdict.kind === 'passing' ? verdict.notBeforeMs : 0);
    if (verdict.kind === 'bug')
      this.#parts.warn(`What a cancelled bulk operation has done cannot be seen (${verdict.summary.code}).`);
    this.wait(header, wait);
  }

  #nextWait(header: Header, atLeastMs: number): Wait {
    const sequence = sequenceOf(header._id);
    const failures = (this.#failures.get(sequence) ?? 0) + 1;
    this.#failures.set(sequence, failures);
    return beginWait(this.#parts.clock, this.#parts.policy.delay(failures, atLeastMs));
  }
}

/** Under this name the scheduler knows the wait of a bulk operation. */
export function waitKey(sequence: number): string {
  return `bulk:${String(sequence)}`;
}
