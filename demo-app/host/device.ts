import type { ActionPart, BulkOperationStatus, ClientStatus, FailedOperation } from '@afield/client';
import type { Page } from 'playwright-core';
import type { DemoApi } from '../src/page-api.js';
import type { StoredDocument } from './couch.js';

const pageSize = 1000;

/** What the page shows of its client at one moment. */
export interface DeviceState {
  readonly status: ClientStatus;
  readonly bulkOperations: readonly BulkOperationStatus[];
  readonly failures: readonly FailedOperation[];
}

/** The device, as the driver sees it: the page's own client, asked from outside. */
export class Device {
  constructor(private readonly page: Page) {}

  async open(address: string): Promise<void> {
    await this.page.goto(address);
    await this.ready();
  }

  async ready(): Promise<void> {
    await this.page.waitForFunction(() => window.afieldDemo !== undefined, undefined, { timeout: 60_000 });
  }

  /** The newest state, whether the client runs or not. */
  state(): Promise<DeviceState> {
    return this.page.evaluate(async () => {
      const { client } = window.afieldDemo as DemoApi;
      const first = <Value>(stream: {
        subscribe(next: (value: Value) => void): { unsubscribe(): void };
      }): Promise<Value> =>
        new Promise((resolve) => {
          const subscription = stream.subscribe((value) => {
            resolve(value);
            queueMicrotask(() => subscription.unsubscribe());
          });
        });
      return {
        status: await first(client.status$),
        bulkOperations: await first(client.bulkOperations$),
        failures: await first(client.failures$),
      };
    });
  }

  /** Asks again and again until the state is as wished; throws with the last one when it takes too long. */
  async until(
    what: string,
    seconds: number,
    isSo: (state: DeviceState) => boolean | Promise<boolean>,
  ): Promise<DeviceState> {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const state = await this.state();
      if (await isSo(state)) return state;
      if (Date.now() > end) {
        throw new Error(`Waited ${String(seconds)} s in vain until ${what}: ${JSON.stringify(brief(state))}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  async documents(): Promise<Map<string, StoredDocument>> {
    const all = new Map<string, StoredDocument>();
    for (let startkey = ''; ;) {
      const docs = await this.page.evaluate(
        async ({ startkey, limit }) => {
          const { client } = window.afieldDemo as DemoApi;
          const { rows } = await client.documents.allDocs({ include_docs: true, startkey, limit });
          return (rows as { doc: StoredDocument }[]).map(({ doc }) => doc);
        },
        { startkey, limit: pageSize },
      );
      for (const doc of docs) all.set(doc._id, doc);
      const last = docs[docs.length - 1];
      if (!last || docs.length < pageSize) return all;
      startkey = `${last._id}\u0000`;
    }
  }

  planMove(id: string, targetId: string): Promise<readonly ActionPart[]> {
    return this.page.evaluate(
      ({ id, targetId }) => {
        return (window.afieldDemo as DemoApi).planMove([id], targetId);
      },
      { id, targetId },
    );
  }

  /**
   * Queues the parts, and reloads the page from inside as soon as a part of them is done. The page that comes then does
   * not start its client by itself.
   */
  async enqueueAndReloadMidway(parts: readonly ActionPart[]): Promise<void> {
    const loaded = this.page.waitForEvent('load', { timeout: 120_000 });
    await this.page.evaluate(async (actions) => {
      const { client } = window.afieldDemo as DemoApi;
      const address = new URL(location.href);
      address.searchParams.set('autoStart', 'false');
      history.replaceState(null, '', address);
      await client.enqueue({ target: 'local', actions });
      let isReloading = false;
      client.bulkOperations$.subscribe((bulkOperations) => {
        const isMidway = bulkOperations.some(({ cursor, total }) => cursor > 0 && cursor < total);
        if (!isMidway || isReloading) return;
        isReloading = true;
        location.reload();
      });
    }, parts);
    await loaded;
    await this.ready();
  }

  async start(): Promise<void> {
    await this.page.evaluate(() => (window.afieldDemo as DemoApi).client.start());
  }

  async syncNow(): Promise<void> {
    await this.page.evaluate(() => (window.afieldDemo as DemoApi).client.syncNow());
  }
}

/** Whether everything that can be done has been done and told to the server. */
export function isSettled({ status }: DeviceState): boolean {
  return (
    status.pending === 0 && status.push.state === 'idle' && status.unreported === 0 && status.results.state === 'idle'
  );
}

function brief({ status, bulkOperations, failures }: DeviceState): unknown {
  return { status, bulkOperations, failures: failures.length };
}
