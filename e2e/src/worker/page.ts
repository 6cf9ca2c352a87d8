/* The page: shows what the worker does, and is to stay free of long tasks meanwhile. */
import type { BulkOperationStatus } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { connectClient } from '@afield/client/worker';
import { filter, firstValueFrom, map } from 'rxjs';

const ids = Array.from({ length: 2000 }, (_, at) => `person-${String(at).padStart(4, '0')}`);
const client = connectClient(new Worker(new URL('./client.ts', import.meta.url), { type: 'module' }));

/** A PouchDB of the page's own, on the same documents. */
const withDocuments = async <Value>(use: (db: InstanceType<typeof PouchDB>) => Promise<Value>): Promise<Value> => {
  const db = new PouchDB('in-worker');
  try {
    return await use(db);
  } finally {
    await db.close();
  }
};

/** Runs in a task of the page's own: what a debugger runs is not watched for being long. */
const inTask = <Value>(run: () => Value | Promise<Value>): Promise<Value> =>
  new Promise((resolve, reject) => {
    setTimeout(() => {
      try {
        resolve(run());
      } catch (error) {
        reject(error as Error);
      }
    });
  });

const longTasks: number[] = [];
const observer = new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) longTasks.push(duration);
});
observer.observe({ type: 'longtask' });
const cursors = new Set<number>();
/** The newest bulk operation, once the store is read. */
const newest$ = client.bulkOperations$.pipe(
  map((all) => all.at(-1)),
  filter((one) => one !== undefined),
);
newest$.subscribe(({ cursor }) => cursors.add(cursor));
/** As it was found when the page was opened. */
const found = firstValueFrom(newest$);

const app = {
  seed: () =>
    withDocuments((db) => db.bulkDocs(ids.map((_id) => ({ _id, type: 'person', parent: { _id: 'h0' }, name: _id })))),
  /** Queues that all of them move; answers when that is durable. */
  move: (to: string): Promise<string> =>
    inTask(async () => {
      const operations = ids.map((id) => ({ id, parent: { _id: to } }));
      const receipt = await client.enqueue({ target: 'local', actions: [{ action: 'set-parent', operations }] });
      return receipt.bulkOperationId;
    }),
  /** Starts to count anew. */
  watch: (): void => {
    observer.takeRecords();
    longTasks.length = 0;
    cursors.clear();
  },
  /** What was seen since. */
  seen: async (): Promise<{ longTasks: readonly number[]; cursors: readonly number[] }> => {
    // The last task is reported after it has ended.
    await new Promise((resolve) => setTimeout(resolve));
    for (const { duration } of observer.takeRecords()) longTasks.push(duration);
    return { longTasks, cursors: [...cursors] };
  },
  /** Holds the page up, to see whether that is noticed. */
  block: (ms: number): Promise<void> =>
    inTask(() => {
      const end = performance.now() + ms;
      while (performance.now() < end);
    }),
  found: (): Promise<BulkOperationStatus> => found,
  newest: (): Promise<BulkOperationStatus> => firstValueFrom(newest$),
  /** How many documents have which parent. */
  parents: () =>
    withDocuments(async (db) => {
      const counts: Record<string, number> = {};
      const { rows } = (await db.allDocs({ include_docs: true })) as { rows: { doc: { parent: { _id: string } } }[] };
      for (const { doc } of rows) counts[doc.parent._id] = (counts[doc.parent._id] ?? 0) + 1;
      return counts;
    }),
  note: () => localStorage.getItem('afield:in-worker:run'),
};

export type App = typeof app;
declare global {
  interface Window {
    app: App;
  }
}
window.app = app;
