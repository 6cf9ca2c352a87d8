import type { BulkOperationStatus, DocumentEvent } from '@afield/client';
import { BehaviorSubject, firstValueFrom, ReplaySubject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { lastEvents, mostEvents, placeBefore } from './last-events.js';

const bulk = (sequence: number, cursor: number): BulkOperationStatus =>
  ({ sequence, cursor }) as unknown as BulkOperationStatus;

function event(sequence: number, index: number): DocumentEvent {
  return { id: `${String(sequence)}.${String(index)}`, sequence, index } as unknown as DocumentEvent;
}

describe('the last events', () => {
  it('O8 are in the order of their numbers, each once, whether they are read or told', async () => {
    const told = new ReplaySubject<DocumentEvent>();
    const shown: string[][] = [];
    const client = {
      events$: told,
      bulkOperations$: new BehaviorSubject([bulk(1, 2)]),
      listEvents: () => Promise.resolve([event(1, 0), event(1, 1)]),
    };
    const subscription = lastEvents(client).subscribe((events) => shown.push(events.map(({ id }) => id)));
    for (const one of [event(2, 0), event(1, 1)]) told.next(one);
    await firstValueFrom(lastEvents(client));
    subscription.unsubscribe();
    expect(shown.at(-1)).toEqual(['2.0', '1.1', '1.0']);
  });

  it('O8 are not more than fit, the newest of them', () => {
    const told = new ReplaySubject<DocumentEvent>();
    const client = { events$: told, bulkOperations$: new BehaviorSubject([]), listEvents: () => Promise.resolve([]) };
    let shown: readonly DocumentEvent[] = [];
    lastEvents(client).subscribe((events) => (shown = events));
    for (let index = 0; index < mostEvents + 5; index++) told.next(event(1, index));
    told.next(event(1, 2));
    expect(shown.map(({ index }) => index)).toEqual(
      Array.from({ length: mostEvents }, (_, place) => mostEvents + 4 - place),
    );
  });

  it('O8 are read from near the end, however much was done before', () => {
    expect(placeBefore([bulk(1, 6000)])).toEqual({ sequence: 1, index: 6000 - mostEvents - 1 });
    expect(placeBefore([bulk(1, 6000), bulk(2, mostEvents - 1)])).toEqual({ sequence: 1, index: 5998 });
    expect(placeBefore([bulk(1, 1)])).toEqual({ sequence: 0, index: -1 });
  });
});
