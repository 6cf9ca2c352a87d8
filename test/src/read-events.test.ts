import {
  couchdbPublisher,
  readEvents,
  standalonePublishContext,
  type DocumentEvent,
  type PouchLike,
} from '@afield/client';
import { serverUnderTest, temporaryDatabases, type ServerUnderTest, type TemporaryDatabases } from '@afield/devserver';
import { FakeClock, MemoryPouch, sampleEvent } from '@afield/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';

let server: ServerUnderTest;
let databases: TemporaryDatabases;
beforeAll(async () => {
  server = await serverUnderTest();
  databases = temporaryDatabases(server.url, server.admin);
});
afterAll(async () => {
  await databases.dispose();
  await server.close();
});

it('O8 what was published is read from the server, and from a replica, in order and once', async () => {
  const { url } = await databases.create('events');
  const { username, password } = server.admin;
  const context = standalonePublishContext({
    fetch: (input, init) => fetch(input, init),
    clock: new FakeClock(() => Promise.resolve()),
    server: url,
    auth: { credentials: () => Promise.resolve({ type: 'basic', username, password }) },
  });
  const publisher = couchdbPublisher({ url });
  const events = Array.from({ length: 3 }, (_round, round) =>
    Array.from({ length: 20 }, (_document, number) => mutation(number, round)),
  );
  for (const round of events) {
    const { accepted } = await publisher.publish(round, context);
    expect(accepted).toHaveLength(20);
  }

  const remote = new MemoryPouch(url, { skip_setup: true, auth: { username, password } });
  // Changed since, these come last in the feed: after the events that follow on them.
  const moved = await remote.allDocs({ keys: (events[0] ?? []).slice(0, 5).map(({ id }) => id), include_docs: true });
  await remote.bulkDocs(moved.rows.map((row) => ({ ...(row as { doc: object }).doc, touched: true })));
  const replica = new MemoryPouch(`replica-${new URL(url).pathname.slice(1)}`, { adapter: 'memory' });
  await MemoryPouch.replicate(remote, replica);
  for (const database of [remote, replica]) {
    const found = await all(database);
    expect(found).toHaveLength(60);
    expect(new Map(found.map((event) => [event.id, event]))).toEqual(
      new Map(events.flat().map((event) => [event.id, event])),
    );
    for (const { documentId } of events[0] ?? []) {
      const own = found.filter((event) => event.documentId === documentId);
      expect(own.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    }
  }
  await remote.close();
  await replica.destroy();
});

function mutation(number: number, round: number): DocumentEvent {
  const id = (one: number): string => `store-1:o:${String(number)}/${String(one)} ü%`;
  return sampleEvent(number, {
    id: id(round),
    sequence: round + 1,
    previous: round === 0 ? null : id(round - 1),
  });
}

async function all(database: PouchLike): Promise<readonly DocumentEvent[]> {
  const found: DocumentEvent[] = [];
  let since: string | undefined;
  for (let more = true; more;) {
    const read = await readEvents(database, { since, limit: 7 });
    found.push(...read.events);
    expect(read).toMatchObject({ held: 0, gaps: [], unreadable: [] });
    ({ since, more } = read);
  }
  return found;
}
