import { createClient } from '@afield/client';
import { connectClient } from '@afield/client/worker';
import type { Client } from '@afield/client';
import { MemoryPouch } from '@afield/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examplesOf, type Examples } from './examples.js';

describe('the example of docs/workers.md', () => {
  let examples: Examples;
  beforeAll(async () => {
    examples = await examplesOf('docs/workers.md');
  });
  afterAll(() => examples.remove());

  it('compiles in strict mode', async () => {
    expect(examples.files).toHaveLength(1);
    expect(await examples.compile()).toBe('');
  }, 60_000);

  it('serves each page that connects to a SharedWorker', async () => {
    const { serveAll } = (await import(/* @vite-ignore */ examples.files[0] ?? '')) as {
      serveAll(client: Client): void;
    };
    const client = createClient({ name: 'workers-page', PouchDB: MemoryPouch, actions: [] });
    // What a SharedWorker hears when a page has made it, or has found it.
    const heard = new EventTarget();
    const own = globalThis.addEventListener as typeof globalThis.addEventListener | undefined;
    globalThis.addEventListener = heard.addEventListener.bind(heard) as typeof globalThis.addEventListener;
    try {
      serveAll(client);
    } finally {
      if (own === undefined) Reflect.deleteProperty(globalThis, 'addEventListener');
      else globalThis.addEventListener = own;
    }
    const pages = [0, 1].map(() => {
      const { port1, port2 } = new MessageChannel();
      heard.dispatchEvent(new MessageEvent('connect', { ports: [port2] }));
      return { port1, remote: connectClient(port1) };
    });
    const storeId = await client.storeId;
    expect(await Promise.all(pages.map(({ remote }) => remote.storeId))).toEqual([storeId, storeId]);
    for (const { port1, remote } of pages) {
      remote.disconnect();
      port1.close();
    }
    await client.close();
  });
});
