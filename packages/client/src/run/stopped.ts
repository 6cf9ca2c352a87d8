import { isOutcome, sequenceOf, withRev, type BatchRecord, type Header, type StoredFailure } from '../queue/stored.js';
import { beginWait, storedWait } from '../retry/wait.js';
import type { Batches } from './batches.js';
import type { Bookkeeping } from './bookkeeping.js';
import type { RunParts } from './parts.js';
import { isCrasher, isSuspect, withStop } from './stops.js';
import { failureOf } from './transitions.js';

/**
 * Counts that the process stopped while this bulk operation was under way. Whoever has stopped it too often alone has
 * failed (R16).
 */
export async function countStop(
  header: Header,
  parts: Pick<RunParts, 'queue' | 'policy' | 'clock' | 'failures' | 'appVersion'> & {
    readonly batches: Batches;
    readonly bookkeeping: Bookkeeping;
  },
): Promise<Header> {
  const { queue, policy, clock, failures, appVersion, batches, bookkeeping } = parts;
  const sequence = sequenceOf(header._id);
  const next: Header = { ...header, state: 'waiting-retry', stops: (header.stops ?? 0) + 1 };
  const docs: (BatchRecord | StoredFailure)[] = [];
  const fresh: StoredFailure[] = [];
  if (header.alone !== undefined) {
    const loaded = await batches.load(header);
    batches.forget(sequence);
    const place = header.alone - loaded.batch.from;
    // One that has its outcome did not stop the process: the next one was not named yet.
    let rows = isOutcome(loaded.rows[place]) ? loaded.rows : withStop(loaded.rows, place);
    if (isCrasher(rows[place]) && !isOutcome(rows[place])) {
      const mayHaveBeenApplied = rows[place]?.s === 'intent';
      rows = rows.map((row, at) => (at === place ? { s: 'failed' } : row));
      const failure = { code: 'crashed', reason: 'The app stopped each time while it ran this operation alone.' };
      const found = { index: header.alone, failure, mayHaveBeenApplied };
      fresh.push(failureOf(header, sequence, loaded.batch, found, { at: clock.wall(), appVersion }));
    }
    docs.push(...fresh, batches.recordOf(sequence, loaded, rows));
  }
  // A batch that is not suspect yet is tried at once: most stops have nothing to do with it. So is one without its crasher.
  const isOnTheRamp = isSuspect(next) && fresh.length === 0;
  const delay = policy.delay(isOnTheRamp ? header.attempt : 1, 0);
  const waiting = { ...next, wait: storedWait(beginWait(clock, delay)) };
  const { revs, conflicts } = await queue.docs.write([...docs, waiting]);
  if (conflicts.size > 0) return queue.headers.refresh(sequence);
  failures.added(fresh.map((failure) => withRev(failure, revs)));
  return bookkeeping.keep(waiting, revs);
}
