/* Ways in which a worker, or a page, ends. */
import { connectClient, type RemoteClient } from '@afield/client/worker';
import { filter, firstValueFrom } from 'rxjs';

const lostCode = (error: unknown): unknown => (error as { code?: unknown }).code;
let shared: RemoteClient | undefined;

const endings = {
  /** The worker's script is not there. */
  missing: async (): Promise<unknown> => {
    const worker = new Worker('/api/no-script', { type: 'module' });
    return connectClient(worker).storeId.catch(lostCode);
  },
  /** A worker that served is ended while a call is under way; what its observables end with, too. */
  terminated: async (): Promise<unknown[]> => {
    const worker = new Worker(new URL('./client.ts', import.meta.url), { type: 'module' });
    const client = connectClient(worker);
    await client.storeId;
    const shown = new Promise((_, reject) => client.status$.subscribe({ error: reject })).catch(lostCode);
    // So much that the worker cannot answer before it is ended.
    const operations = Array.from({ length: 20_000 }, (_, at) => ({ id: `d${String(at)}`, doc: {} }));
    const called = client.enqueue({ target: 'local', actions: [{ action: 'create', operations }] }).catch(lostCode);
    worker.terminate();
    return Promise.all([shown, called]);
  },
  connectShared: async (): Promise<string> => {
    const worker = new SharedWorker(new URL('./shared.ts', import.meta.url), { type: 'module' });
    shared = connectClient(worker);
    shared.events$.subscribe();
    return shared.storeId;
  },
  create: (id: string): Promise<unknown> | undefined =>
    shared?.enqueue({ target: 'local', actions: [{ action: 'create', operations: [{ id, doc: {} }] }] }),
  /** Resolves when the SharedWorker's client has done so many bulk operations. */
  done: (count: number): Promise<unknown> | undefined =>
    shared === undefined
      ? undefined
      : firstValueFrom(
          shared.bulkOperations$.pipe(filter((all) => all.filter(({ state }) => state === 'done').length === count)),
        ),
};

export type Endings = typeof endings;
declare global {
  interface Window {
    endings: Endings;
  }
}
window.endings = endings;
