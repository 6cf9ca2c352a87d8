import { z } from 'zod/mini';
import { endStates } from '../model/states.js';
import { isUnplanned, payloadSize, sequenceOf, type Header } from '../queue/stored.js';
import { countOf, range, withAdded, without } from './ranges.js';

/**
 * How far the events of one bulk operation were taken: those before `n` are taken, were never any, or are listed here:
 * `w` they wait (the place did not take them, the server does not have their revision, or an earlier one of their document
 * waits); `o` their operation has no outcome yet, while later ones of its batch have. `d` is how many are taken.
 */
const entry = z.object({
  s: z.int(),
  n: z.int(),
  d: z.int(),
  w: z.array(range),
  o: z.array(range),
});
export type Entry = z.infer<typeof entry>;

/**
 * What one publisher has taken: all bulk operations up to `upTo` are over, but for those that are listed, because an event of
 * theirs came late. Of the others those are listed that were looked at.
 */
export const progressData = z.object({
  upTo: z.int(),
  open: z.array(entry),
  /** The mark that was left at the place last. */
  mark: z.optional(z.string()),
});
export type Progress = z.infer<typeof progressData>;

export const nothingTaken: Progress = { upTo: 0, open: [] };

/** What became of the operations that were looked at. */
export interface Looked {
  readonly sequence: number;
  /** Their places in the bulk operation. */
  readonly indexes: readonly number[];
  /** Their events were taken. */
  readonly taken: number;
  /** Those that wait. */
  readonly waiting: readonly number[];
  /** Those that have no outcome yet. */
  readonly open: readonly number[];
}

/** The entries of the bulk operations that are not over, by their numbers. */
export function entriesOf({ open }: Progress): Map<number, Entry> {
  return new Map(open.map((one) => [one.s, one]));
}

/** Of a bulk operation that was not looked at yet. */
export function noEntry(sequence: number): Entry {
  return { s: sequence, n: 0, d: 0, w: [], o: [] };
}

/**
 * The progress when these operations have events again that they had lost for a while: whether they were taken before is not
 * known. They wait, whatever came later. What was not looked at yet, or is removed, stays as it is.
 */
export function withLate(
  progress: Progress,
  late: readonly { readonly sequence: number; readonly index: number }[],
  headers: readonly Header[],
): Progress {
  const open = entriesOf(progress);
  const present = new Map(headers.map((header) => [sequenceOf(header._id), header]));
  for (const { sequence: s, index } of late) {
    const header = present.get(s);
    if (header === undefined) continue;
    const over = { s, n: readableEnd(header), d: header.events ?? 0, w: [], o: [] };
    const before = open.get(s) ?? (s <= progress.upTo ? over : noEntry(s));
    if (index < before.n) open.set(s, { ...before, w: withAdded(before.w, [index]) });
  }
  return { ...progress, open: [...open.values()].sort((a, b) => a.s - b.s) };
}

/** Whether a bulk operation is over for a publisher, without a look at what it is. */
export function isPassed({ upTo }: Progress, entries: ReadonlyMap<number, Entry>, sequence: number): boolean {
  return sequence <= upTo && !entries.has(sequence);
}

/** The progress after these were looked at. `headers` in the order of their numbers. */
export function afterLook(progress: Progress, looks: readonly Looked[], headers: readonly Header[]): Progress {
  const open = entriesOf(progress);
  for (const { sequence, indexes, taken, waiting, open: still } of looks) {
    const before = open.get(sequence) ?? noEntry(sequence);
    open.set(sequence, {
      s: sequence,
      n: Math.max(before.n, ...indexes.map((index) => index + 1)),
      d: before.d + taken,
      w: withAdded(without(before.w, indexes), waiting),
      o: withAdded(without(before.o, indexes), still),
    });
  }
  return shortened({ ...progress, open: [...open.values()] }, headers);
}

/** Bulk operations of which nothing more can come are not listed any more. */
export function shortened(progress: Progress, headers: readonly Header[]): Progress {
  const open = entriesOf(progress);
  let { upTo } = progress;
  // Those that housekeeping has removed are over. Behind the last one that is known there may be others.
  const last = sequenceOf(headers[headers.length - 1]?._id ?? 'h:0');
  const present = new Set(headers.map(({ _id }) => sequenceOf(_id)));
  for (const s of [...open.keys()]) if (s <= last && !present.has(s)) open.delete(s);
  for (const header of headers) {
    const sequence = sequenceOf(header._id);
    if (sequence <= upTo) continue;
    if (!isOver(header, open.get(sequence) ?? noEntry(sequence))) break;
    open.delete(sequence);
    upTo = sequence;
  }
  const listed = [...open.values()].filter(({ s, w }) => s > upTo || w.length > 0);
  return { ...progress, upTo, open: listed.sort((a, b) => a.s - b.s) };
}

/** Whether all events that this bulk operation will ever have are taken. */
export function isOver(header: Header, { n, w, o }: Entry): boolean {
  return isAtEnd(header) && n >= readableEnd(header) && w.length === 0 && o.length === 0;
}

/** Nothing of its operations changes any more. */
export function isAtEnd(header: Header): boolean {
  return endStates.has(header.state) && header.unsettled === undefined;
}

/** Up to here operations may have outcomes. After a stop in the middle of a batch some of that batch do. */
export function readableEnd(header: Header): number {
  if (isUnplanned(header)) return 0;
  if (isAtEnd(header)) return Math.min(header.total, header.cursor + payloadSize);
  // A batch that waits may have outcomes too, once someone has begun; one that runs will soon be at its end.
  const isHeldUp =
    header.state === 'paused' ||
    header.state === 'cancelled' ||
    (header.state.startsWith('waiting-') && header.lease !== null);
  return isHeldUp ? Math.min(header.total, header.cursor + payloadSize) : header.cursor;
}

/**
 * How many events this publisher has not taken yet. Some of a batch that is not at its end may be taken before its header
 * counts them: what waits is never hidden behind these.
 */
export function untaken(progress: Progress, headers: readonly Header[]): number {
  const entries = entriesOf(progress);
  let sum = 0;
  for (const header of headers) {
    const sequence = sequenceOf(header._id);
    if (isPassed(progress, entries, sequence)) continue;
    const { d, w } = entries.get(sequence) ?? noEntry(sequence);
    sum += Math.max((header.events ?? 0) - d, countOf(w), 0);
  }
  return sum;
}

/** Whether anything waits to be looked at again. */
export function waitingCount({ open }: Progress): number {
  return open.reduce((sum, { w }) => sum + countOf(w), 0);
}
