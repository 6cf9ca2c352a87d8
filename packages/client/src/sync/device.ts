import { omit } from 'es-toolkit/object';
import { z } from 'zod/mini';
import type { Doc } from '../model/json.js';
import { endStates } from '../model/states.js';
import { isSettled } from '../queue/forgettable.js';
import type { Quarantine } from '../queue/quarantine.js';
import type { Queue } from '../queue/queue.js';
import type { Reports } from '../queue/reports.js';
import { sequenceOf, type Header } from '../queue/stored.js';
import { deviceId, resultsVersion, type DeviceDocument, type WorkCounts } from './result-documents.js';
import type { Origin } from './result-parcels.js';
import type { Present } from './result-writes.js';

/** What is remembered of the device document as it was sent last. */
export const sentDevice = z.object({
  rev: z.string(),
  writes: z.number(),
  truth: z.string(),
  asOf: z.number(),
  drained: z.boolean(),
  sentAt: z.number(),
});
export type SentDevice = z.infer<typeof sentDevice>;

/** How far this store is. */
export interface Progress extends WorkCounts {
  readonly asOf: number;
  readonly lastSequence: number;
  readonly drained: boolean;
  readonly oldestUnsentAt: number | null;
  /** Bulk operations on local documents up to this number are confirmed, whatever was written later. */
  readonly confirmedUpTo: number;
}

export interface ProgressParts {
  readonly queue: Queue;
  readonly reports: Reports;
  readonly quarantine: Quarantine;
  /** What is known in memory: too much rather than too little. */
  readonly counts: () => WorkCounts;
  /** Whether the server has the result of a bulk operation as it is now, or is to have none. */
  readonly isReported: (header: Header) => boolean;
  /** Whether the server has, or has refused for good, every local revision that is stored now. */
  readonly isConfirmed: () => Promise<boolean>;
  /** Whether all events of a bulk operation are taken, by what is stored now. */
  readonly published: () => Promise<(header: Header) => boolean>;
}

/** How far this store is, by what is stored. `confirmedUpTo` is what was known of it before. */
export async function progressOf(parts: ProgressParts, confirmedUpTo: number): Promise<Progress> {
  const { queue, reports, quarantine } = parts;
  const headers = queue.headers.all();
  const counts = parts.counts();
  // Asked when all these headers were as they are: what they wrote was written before.
  const areConfirmed = await parts.isConfirmed();
  const isPublished = await parts.published();
  const lastSequence = sequenceOf(headers[headers.length - 1]?._id ?? 'h:0');
  const openLocal = headers.find((header) => header.target === 'local' && !isAtEnd(header));
  const nowConfirmed = openLocal === undefined ? lastSequence : sequenceOf(openLocal._id) - 1;
  const upTo = areConfirmed ? Math.max(confirmedUpTo, nowConfirmed) : confirmedUpTo;
  let asOf = lastSequence;
  let oldestUnsentAt: number | null = null;
  for (const header of headers) {
    const sequence = sequenceOf(header._id);
    const isReported = parts.isReported(header);
    const isConfirmed = header.target !== 'local' || sequence <= upTo;
    const isSent = isAtEnd(header) && isReported && isConfirmed && isPublished(header);
    if (!isSent) oldestUnsentAt ??= header.queuedAt;
    const standing = {
      openFailures: reports.openFailures(header),
      isReported,
      isPublished: isPublished(header),
      isConfirmed,
      inQuarantine: quarantine.of(header).some(({ resolution }) => resolution === undefined),
    };
    if (!isSettled(header, standing)) asOf = Math.min(asOf, sequence - 1);
  }
  const unpublished = Math.max(counts.unpublished, headers.every(isPublished) ? 0 : 1);
  const unconfirmed = areConfirmed ? 0 : Math.max(1, counts.unconfirmed);
  const all = { ...counts, unpublished, unconfirmed };
  return {
    ...all,
    asOf,
    lastSequence,
    drained: asOf === lastSequence && isNothing(all),
    oldestUnsentAt,
    confirmedUpTo: upTo,
  };
}

function isAtEnd(header: Header): boolean {
  return endStates.has(header.state) && header.unsettled === undefined;
}

export function isNothing(counts: WorkCounts): boolean {
  const { pending, failed, stopped, quarantined, unpublished, unreported, unconfirmed } = counts;
  return pending + failed + stopped + quarantined + unpublished + unreported + unconfirmed === 0;
}

/** Whether something is on its way still, and will change by itself. */
export function isMoving({ pending, unpublished, unconfirmed }: WorkCounts): boolean {
  return pending + unpublished + unconfirmed > 0;
}

/** The document without what changes with each sending. */
export function deviceOf(
  progress: Progress,
  origin: Origin,
  appVersion: string | undefined,
): Omit<DeviceDocument, '_rev' | 'seenAt' | 'writes'> {
  return {
    _id: deviceId(origin.store),
    type: 'afield-device',
    v: resultsVersion,
    store: origin.store,
    ...(origin.user === undefined ? {} : { user: origin.user }),
    ...(appVersion === undefined ? {} : { appVersion }),
    ...omit(progress, ['confirmedUpTo']),
  };
}

/** How often the server was written to, by what it shows; undefined: it has no such document. */
export function writesOf(present: Present | undefined): number | undefined {
  if (present?.doc === undefined || present.deleted) return undefined;
  const writes = (present.doc as Doc)['writes'];
  return typeof writes === 'number' ? writes : 0;
}
