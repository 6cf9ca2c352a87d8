import { deviceDocument, type WorkCounts } from '@afield/client/results';
import type { Couch } from '../couch.js';
import { bySeen } from './indexes.js';
import { findDocuments, listDocuments } from './pages.js';
import type { Source } from './sources.js';
import type { Tally } from './tally.js';
import { isoTime } from './times.js';

/** A device as it is listed; the same fields in the same order in each format. */
export interface ListedDevice extends WorkCounts {
  readonly store: string;
  readonly user: string | null;
  readonly appVersion: string | null;
  readonly seenAt: string | number;
  /** Seconds since then, by this machine's clock. */
  readonly silentS: number;
  readonly oldestUnsentAt: string | number | null;
  /** Seconds since the oldest work was queued that was not all sent when the device was last seen. */
  readonly oldestUnsentS: number | null;
  readonly drained: boolean;
  readonly asOf: number;
  readonly lastSequence: number;
}

/**
 * Devices of one database that were not heard of since `seenBefore`, page by page. A wish that is undefined does not
 * count. In a shared database the quietest come first.
 */
export async function* devicesIn(
  couch: Couch,
  source: Source,
  wishes: { readonly now: number; readonly seenBefore: number | undefined; readonly user: string | undefined },
  tally: Tally,
): AsyncGenerator<ListedDevice> {
  const { now, user: wanted } = wishes;
  const bound = wishes.seenBefore ?? Number.MAX_SAFE_INTEGER;
  const docs =
    source.user === undefined
      ? findDocuments(couch, source.database, bySeen, { type: 'afield-device', seenAt: { $lt: bound } })
      : listDocuments(couch, source.database, 'device:');
  for await (const stored of docs) {
    tally.read(stored);
    const parsed = deviceDocument.safeParse(stored);
    if (!parsed.success) {
      tally.unreadable();
      continue;
    }
    const doc = parsed.data;
    const user = doc.user ?? source.user ?? null;
    if (doc.seenAt >= bound || (wanted !== undefined && user !== wanted)) continue;
    yield {
      store: doc.store,
      user,
      appVersion: doc.appVersion ?? null,
      seenAt: isoTime(doc.seenAt),
      silentS: secondsBetween(doc.seenAt, now),
      pending: doc.pending,
      failed: doc.failed,
      stopped: doc.stopped,
      quarantined: doc.quarantined,
      unpublished: doc.unpublished,
      unreported: doc.unreported,
      unconfirmed: doc.unconfirmed,
      oldestUnsentAt: doc.oldestUnsentAt === null ? null : isoTime(doc.oldestUnsentAt),
      oldestUnsentS: doc.oldestUnsentAt === null ? null : secondsBetween(doc.oldestUnsentAt, now),
      drained: doc.drained,
      asOf: doc.asOf,
      lastSequence: doc.lastSequence,
    };
  }
}

function secondsBetween(from: number, to: number): number {
  return Math.max(0, Math.round((to - from) / 1000));
}
