import type { Observable } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PouchConstructor, PouchLike } from './model/pouch.js';
import { memoryPouch } from './store/memory-pouch.fixture.js';
import { paint, TestBed } from './test-bed.fixture.js';

const minute = 60_000;

describe('what an app sees', () => {
  let bed: TestBed;
  /** How many reads of the queue's store are still to fail. */
  let failing: number;
  beforeEach(() => {
    failing = 0;
    bed = new TestBed(failingPouch(() => failing-- > 0));
  });
  afterEach(() => bed.close());

  it.each([
    ['failures$', 1],
    ['failures$', 4],
    ['quarantine$', 1],
    ['quarantine$', 4],
    ['conflicts$', 1],
    ['conflicts$', 4],
  ] as const)('V1 %s lasts when the store fails at first (%i times), and comes without a call', async (name, times) => {
    failing = times;
    const client = bed.open({ autoStart: false });
    const seen: (readonly unknown[])[] = [];
    const errors: unknown[] = [];
    (client[name] as Observable<readonly unknown[]>).subscribe({
      next: (list) => seen.push(list),
      error: (error: unknown) => errors.push(error),
    });
    await bed.until(() => seen.length > 0 || errors.length > 0, minute);
    expect(errors).toEqual([]);
    expect(seen[0]).toEqual([]);
    expect(failing).toBeLessThan(1);
  });

  it('V1 failures$ shows what fails after its store has failed', async () => {
    failing = 2;
    const client = bed.open();
    const seen: (readonly { code: string }[])[] = [];
    client.failures$.subscribe((list) => seen.push(list));
    await bed.until(() => seen.length > 0, minute);
    await client.enqueue(paint(['nobody'], 'blue'));
    await bed.until(() => seen.at(-1)?.length === 1, minute);
    expect(seen.at(-1)?.map(({ code }) => code)).toEqual(['missing']);
  });

  it('V1 who no longer looks at failures$ leaves no waiting behind', async () => {
    failing = 99;
    const client = bed.open({ autoStart: false });
    const subscription = client.failures$.subscribe();
    await bed.until(() => failing < 96, minute);
    subscription.unsubscribe();
    const { timers } = bed.clock;
    expect(timers).toBe(0);
  });
});

/** Databases in memory; reads of the queue's store are refused as long as `fails` says so. */
function failingPouch(fails: () => boolean): PouchConstructor {
  const PouchDB = memoryPouch();
  const Failing = function (this: unknown, name: string, options?: object): PouchLike {
    const db = new PouchDB(name, options);
    if (!name.endsWith('-afield-queue')) return db;
    const allDocs = db.allDocs.bind(db);
    return Object.assign(db, {
      allDocs: (asked: Parameters<typeof allDocs>[0]) =>
        fails() ? Promise.reject(Object.assign(new Error('made up'), { name: 'InvalidStateError' })) : allDocs(asked),
    });
  };
  return Object.assign(Failing, PouchDB) as unknown as PouchConstructor;
}
