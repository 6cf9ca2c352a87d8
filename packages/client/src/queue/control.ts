import type { Clock } from '../model/environment.js';
import { AfieldError } from '../model/errors.js';
import { endStates } from '../model/states.js';
import { resumeWait, shortened, storedWait, type StoredWait } from '../retry/wait.js';
import type { Queue } from './queue.js';
import { hasEvent, sequenceOf, type Header, type RowState } from './stored.js';

/**
 * What a person does with a bulk operation (R19). Each call is durable when it resolves; who runs the bulk operation
 * finds the header changed, writes nothing more, and does not count its attempt.
 *
 *   queued, running, waiting-… ──pause──▶ paused ──resume──▶ queued
 *              └───────────cancel───────────┴──▶ cancelled ◀──cancel── failed
 */
export class Control {
  readonly #queue: Queue;
  readonly #clock: Clock;

  constructor(queue: Queue, clock: Clock) {
    this.#queue = queue;
    this.#clock = clock;
  }

  /** Nothing more of it is tried until `resume`. Later ones that share a subject or a lane with it wait too (R17). */
  pause(bulkOperationId: string): Promise<Header> {
    return this.#change(bulkOperationId, (header) => {
      if (endStates.has(header.state)) throw ended(header);
      return header.state === 'paused' ? undefined : { ...uncounted(header), state: 'paused' };
    });
  }

  /** Due at once, but never before what the server asked for (R13). */
  resume(bulkOperationId: string): Promise<Header> {
    return this.#change(bulkOperationId, (header) => {
      if (endStates.has(header.state)) throw ended(header);
      if (header.importing === true) {
        const what = `The bulk operation ${header.id} was brought in only in part. Import the same file again.`;
        throw new AfieldError('import_unfinished', what);
      }
      return header.state === 'paused' ? { ...header, state: 'queued', wait: this.#floorOf(header.wait) } : undefined;
    });
  }

  /** What is not done yet is not done any more; what is done stays. Also gives up the rest of a `failed` one. */
  cancel(bulkOperationId: string): Promise<Header> {
    return this.#change(bulkOperationId, async (header) => {
      if (header.state === 'failed') return { ...header, state: 'cancelled' };
      if (endStates.has(header.state)) throw ended(header);
      const known = await this.#queue.records.find(sequenceOf(header._id), header.cursor);
      const rows = known?.rows ?? [];
      const isUnsettled = header.state === 'running' || rows.some(({ s }) => s === 'intent');
      const cancelled: Header = { ...withOutcomes(uncounted(header), rows), state: 'cancelled', wait: null };
      const { applied, alreadyApplied, failed, events = 0 } = header;
      return isUnsettled ? { ...cancelled, unsettled: { applied, alreadyApplied, failed, events } } : cancelled;
    });
  }

  async #change(
    bulkOperationId: string,
    change: (header: Header) => Header | undefined | Promise<Header | undefined>,
  ): Promise<Header> {
    const sequence = sequenceOf((await this.#queue.headers.find(bulkOperationId))._id);
    return (await this.#queue.headers.change(sequence, change)).header;
  }

  #floorOf(wait: StoredWait | null): StoredWait | null {
    if (wait === null) return null;
    const floor = storedWait(shortened(this.#clock, resumeWait(this.#clock, wait), 0));
    return floor.delayMs > 0 ? floor : null;
  }
}

/** The counts of a bulk operation that ends in the middle of a batch: rows of it that have an outcome count too. */
export function withOutcomes(header: Header, rows: readonly RowState[]): Header {
  const count = (state: RowState['s']): number => rows.filter(({ s }) => s === state).length;
  return {
    ...header,
    applied: header.applied + count('applied'),
    alreadyApplied: header.alreadyApplied + count('already-applied'),
    failed: header.failed + count('failed'),
    events: (header.events ?? 0) + rows.filter(hasEvent).length,
  };
}

/** The attempt under way does not count: a person has ended it, not a failure. */
function uncounted(header: Header): Header {
  const isUnderWay = header.state === 'running' || header.state === 'planning';
  if (!isUnderWay || header.attempt === 0) return header;
  return { ...header, attempt: header.attempt - 1, attempts: Math.max(0, header.attempts - 1) };
}

function ended(header: Header): AfieldError {
  return new AfieldError(
    'already_ended',
    `The bulk operation ${header.id} is at its end (${header.state}). ${
      header.state === 'failed' || header.state === 'cancelled'
        ? 'retryRest() queues what was not done.'
        : 'What failed of it can be retried or discarded.'
    }`,
  );
}
