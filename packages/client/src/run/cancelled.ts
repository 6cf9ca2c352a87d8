import { sequenceOf, type Header } from '../queue/stored.js';
import { classifyError } from '../retry/classify.js';
import type { Batches } from './batches.js';
import type { Bookkeeping } from './bookkeeping.js';
import { findWritten } from './documents.js';
import type { RunParts } from './parts.js';
import { presentPlace } from './places.js';
import { settledWith } from './transitions.js';

/** A cancelled bulk operation of which it is not known yet what the last attempt has done. */
export function isUnsettled(header: Header): boolean {
  return header.state === 'cancelled' && header.unsettled !== undefined;
}

/** Finds out by the documents what the last attempt of a cancelled bulk operation has done, and says so. */
export async function settleCancelled(
  header: Header,
  parts: Pick<RunParts, 'queue' | 'actions' | 'stores' | 'events' | 'trail' | 'pageEvents' | 'wrote'> & {
    readonly batches: Batches;
    readonly bookkeeping: Bookkeeping;
  },
): Promise<void> {
  const { queue, actions, stores, batches, bookkeeping, wrote } = parts;
  const sequence = sequenceOf(header._id);
  batches.forget(sequence);
  const loaded = await batches.load(header);
  batches.forget(sequence);
  const action = actions.get(loaded.batch.action);
  const store = stores[presentPlace(header, actions)];
  let rows = loaded.rows;
  if (loaded.record !== undefined && action?.kind === 'document' && store !== undefined) {
    try {
      rows = await findWritten(loaded.batch, loaded.rows, action, store, parts.events);
    } catch (error) {
      const verdict = classifyError(error);
      if (verdict.kind !== 'auth') bookkeeping.notSeen(header, verdict);
      return;
    }
  }
  rows = await parts.trail.named(header, loaded.batch, loaded.rows, rows);
  const records = loaded.record === undefined ? [] : [batches.recordOf(sequence, loaded, rows)];
  const next = settledWith(header, rows);
  const { revs, conflicts } = await queue.docs.write([...records, next]);
  bookkeeping.worked(sequence);
  if (conflicts.size > 0) await queue.headers.refresh(sequence);
  else bookkeeping.keep(next, revs);
  if (records.every(({ _id }) => !conflicts.has(_id))) parts.pageEvents.happened(header, loaded, rows);
  wrote(header.target);
}
