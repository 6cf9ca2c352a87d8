import type { BulkOperationStatus, Client, DocumentEvent } from '@afield/client';
import { defer, filter, from, map, merge, scan, switchMap, take, type Observable } from 'rxjs';

/** So many are shown. */
export const mostEvents = 50;

/**
 * The last events of this store, the newest first: those that it still keeps, and those that are told while the page is
 * open, in whichever tab they happen. One that comes again counts once.
 */
export function lastEvents(
  client: Pick<Client, 'events$' | 'bulkOperations$' | 'listEvents'>,
): Observable<readonly DocumentEvent[]> {
  const kept = client.bulkOperations$.pipe(
    filter((bulkOperations) => bulkOperations.length > 0),
    take(1),
    switchMap((bulkOperations) => defer(() => from(client.listEvents({ after: placeBefore(bulkOperations) })))),
  );
  return merge(kept, client.events$.pipe(map((event) => [event]))).pipe(
    scan((shown: readonly DocumentEvent[], more: readonly DocumentEvent[]) => more.reduce(withEvent, shown), []),
  );
}

/** Where to begin, so that the last ones are read and not thousands before them. */
export function placeBefore(bulkOperations: readonly BulkOperationStatus[]): { sequence: number; index: number } {
  let left = mostEvents;
  for (const { sequence, cursor } of [...bulkOperations].sort((a, b) => b.sequence - a.sequence)) {
    if (cursor >= left) return { sequence, index: cursor - left - 1 };
    left -= cursor;
  }
  return { sequence: 0, index: -1 };
}

function withEvent(shown: readonly DocumentEvent[], event: DocumentEvent): readonly DocumentEvent[] {
  if (shown.some(({ id }) => id === event.id)) return shown;
  const place = shown.findIndex((one) => isBefore(one, event));
  const at = place < 0 ? shown.length : place;
  return at >= mostEvents ? shown : [...shown.slice(0, at), event, ...shown.slice(at)].slice(0, mostEvents);
}

function isBefore(a: DocumentEvent, b: DocumentEvent): boolean {
  return a.sequence < b.sequence || (a.sequence === b.sequence && a.index < b.index);
}
