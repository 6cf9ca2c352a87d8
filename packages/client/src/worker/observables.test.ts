import { BehaviorSubject, firstValueFrom, of, ReplaySubject, Subject, throwError, type Observable } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Client } from '../model/client.js';
import { AfieldError } from '../model/errors.js';
import type { DocumentEvent } from '../model/event.js';
import { paint } from '../test-bed.fixture.js';
import type { RemoteClient } from './connect.js';
import { WorkerBed } from './worker-bed.fixture.js';

describe('a client in a worker: observables', () => {
  let bed: WorkerBed;
  beforeEach(() => {
    bed = new WorkerBed();
  });
  afterEach(() => bed.close());

  /** A client whose observables are in the hands of the test. */
  const showing = (observables: Partial<Record<keyof Client, Observable<unknown>>>, more: object = {}): Client =>
    ({ syncNow: () => undefined, ...observables, ...more }) as unknown as Client;
  const collect = <Value>(values: Observable<Value>): Value[] => {
    const collected: Value[] = [];
    values.subscribe((value) => collected.push(value));
    return collected;
  };

  it('V1 each state arrives, and whoever subscribes late gets the newest at once', async () => {
    const { client, remote } = bed.pair();
    await bed.seed(client, 1);
    const states = collect(remote.bulkOperations$);
    const { bulkOperationId } = await remote.enqueue(paint(['d0000'], 'blue'));
    await bed.until(() => states.at(-1)?.[0]?.state === 'done');
    expect(states.at(-1)).toMatchObject([{ id: bulkOperationId, cursor: 1, applied: 1 }]);
    const late = collect(remote.bulkOperations$);
    expect(late).toEqual([states.at(-1)]);
    expect(await firstValueFrom(remote.status$)).toMatchObject({ state: 'idle', pending: 0, leader: true });
    expect(await firstValueFrom(remote.quarantine$)).toEqual([]);
  });

  it('V1 all observables come from the one of their name', async () => {
    const names = ['bulkOperations$', 'status$', 'failures$', 'events$', 'quarantine$'] as const;
    const { remote } = bed.pair(showing(Object.fromEntries(names.map((name) => [name, of(name)]))));
    for (const name of names) expect(await firstValueFrom(remote[name] as Observable<unknown>)).toBe(name);
  });

  it('V1 the state of an index arrives; of one that is not there, why', async () => {
    const index = (name: string): { state$: Observable<unknown> } => {
      if (name !== 'by-name') throw new AfieldError('unknown_index', 'There is none.');
      return { state$: of({ state: 'ready', rows: 3, skipped: 0 }) };
    };
    const { remote } = bed.pair(showing({}, { index }));
    expect(await firstValueFrom(remote.index('by-name').state$)).toMatchObject({ state: 'ready', rows: 3 });
    const error = await firstValueFrom(remote.index('by-age').state$).catch((one: unknown) => one);
    expect(error).toBeInstanceOf(AfieldError);
    expect(error).toMatchObject({ code: 'unknown_index' });
  });

  it('nobody listens in the worker before someone subscribes, nor after the last one is gone', async () => {
    const status = new BehaviorSubject('idle');
    const { remote } = bed.pair(showing({ status$: status }));
    await bed.rest();
    expect(status.observed).toBe(false);
    const [first, second] = [remote.status$.subscribe(), remote.status$.subscribe()];
    await bed.until(() => status.observed);
    expect(status.observers).toHaveLength(1);
    first.unsubscribe();
    await bed.rest();
    expect(status.observed).toBe(true);
    second.unsubscribe();
    await bed.until(() => !status.observed);
    status.next('running');
    const again = collect(remote.status$);
    await bed.until(() => again.length > 0);
    expect(again).toEqual(['running']);
  });

  it('a page that is busy is sent only the newest state next, and is never more than one behind', async () => {
    const status = new BehaviorSubject(0);
    const { remote } = bed.pair(showing({ status$: status }));
    const seen = collect(remote.status$ as unknown as Observable<number>);
    await bed.until(() => seen.length === 1);
    // All of these come before the page has had a turn.
    for (let at = 1; at <= 1000; at++) status.next(at);
    await bed.until(() => seen.at(-1) === 1000);
    // The one that was under way, and the newest.
    expect(seen.length).toBeLessThanOrEqual(3);
  });

  it('O8 events all arrive, in their order, however many come at once', async () => {
    const events = new Subject<number>();
    const { remote } = bed.pair(showing({ events$: events }));
    const seen = collect(remote.events$ as unknown as Observable<number>);
    await bed.until(() => events.observed);
    const all = Array.from({ length: 2500 }, (_, at) => at);
    for (const one of all) events.next(one);
    await bed.until(() => seen.length === all.length);
    expect(seen).toEqual(all);
  });

  it('O8 who subscribes late to events gets the last ones first, each of them', async () => {
    const events = new ReplaySubject<number>(1000);
    for (let at = 0; at < 1500; at++) events.next(at);
    const { remote } = bed.pair(showing({ events$: events }));
    const first = collect(remote.events$ as unknown as Observable<number>);
    await bed.until(() => first.length === 1000);
    const second = collect(remote.events$ as unknown as Observable<number>);
    await bed.until(() => second.length === 1000);
    expect([second[0], second.at(-1)]).toEqual([500, 1499]);
  });

  it('what was shown before a call was answered has arrived before the answer', async () => {
    const status = new BehaviorSubject('before');
    const events = new Subject<number>();
    const pause = (): Promise<void> => {
      for (let at = 0; at < 250; at++) events.next(at);
      status.next('in between');
      status.next('after');
      return Promise.resolve();
    };
    const { remote } = bed.pair(showing({ status$: status, events$: events }, { pause }));
    const states = collect(remote.status$ as unknown as Observable<string>);
    const seen = collect(remote.events$ as unknown as Observable<number>);
    await bed.until(() => states.length === 1 && events.observed);
    await remote.pause('b1');
    expect(states.at(-1)).toBe('after');
    expect(seen).toHaveLength(250);
  });

  it('V1 a bulk operation is in the list as soon as its enqueue is answered', async () => {
    const { remote } = bed.pair();
    const states = collect(remote.bulkOperations$);
    for (let at = 1; at <= 5; at++) {
      await remote.enqueue(paint(['a'], 'blue'));
      expect(states.at(-1)).toHaveLength(at);
    }
  });

  it('V1 events of a real client arrive in the page', async () => {
    const { client, remote } = bed.pair();
    await bed.seed(client, 3);
    const events: DocumentEvent[] = collect(remote.events$);
    await remote.enqueue(paint(['d0000', 'd0001', 'd0002'], 'blue'));
    await bed.until(() => events.length === 3);
    expect(events.map(({ documentId }) => documentId)).toEqual(['d0000', 'd0001', 'd0002']);
  });

  it('close() completes all observables; an error of an observable arrives', async () => {
    const { remote } = bed.pair();
    let completed = 0;
    for (const one of [remote.status$, remote.events$, remote.failures$]) {
      (one as Observable<unknown>).subscribe({ complete: () => completed++ });
    }
    await firstValueFrom(remote.status$);
    await remote.close();
    expect(completed).toBe(3);
    remote.status$.subscribe({ complete: () => completed++ });
    expect(completed).toBe(4);
    const broken = bed.pair(showing({ status$: throwError(() => new AfieldError('broken', 'It is.')) })).remote;
    await expect(firstValueFrom(broken.status$)).rejects.toMatchObject({ code: 'broken' });
  });

  it('two pages of one worker each see everything, and one may let go without the other', async () => {
    const status = new BehaviorSubject('idle');
    const client = showing({ status$: status });
    const pages: RemoteClient[] = [0, 1].map(() => {
      const { page, worker } = bed.endpoints();
      bed.serve(client, worker);
      return bed.connect(page);
    });
    const seen = pages.map((page) => collect(page.status$ as unknown as Observable<string>));
    await bed.until(() => status.observers.length === 2);
    pages[0]?.disconnect();
    await bed.until(() => status.observers.length === 1);
    status.next('running');
    await bed.until(() => seen[1]?.length === 2);
    expect(seen).toEqual([['idle'], ['idle', 'running']]);
    await expect(pages[0]?.pause('b')).rejects.toMatchObject({ code: 'disconnected' });
  });
});
