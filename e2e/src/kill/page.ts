/* The page that is killed: an app that queues 2,000 operations over its many lives. It says what it was told, and how far it is. */
import { couchdbPublisher, createClient, type BulkOperationStatus, type ClientStatus } from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { setParent } from '@afield/contacts';
import { firstValueFrom } from 'rxjs';
import { tellProblems } from '../real-browser/tell-problems.js';
import { bulkKey, documentsOf, wanted, type Config, type Told } from './work.js';

const config = (await (await fetch('/config')).json()) as Config;

async function tell(told: Told): Promise<void> {
  await fetch('/told', { method: 'POST', body: JSON.stringify(told) });
}
tellProblems((problem) => void tell({ problem }));

const client = createClient({
  name: 'killed',
  PouchDB,
  actions: [setParent],
  server: config.records,
  results: config.results,
  publishers: [couchdbPublisher({ url: config.events })],
  batchSize: 10,
  pullEveryS: 5,
  // The run is to end today: half a second, where a person's phone waits for minutes.
  ramp: () => 500,
});
let bulks: readonly BulkOperationStatus[] = [];
let status: ClientStatus | undefined;
client.bulkOperations$.subscribe((now) => (bulks = now));
client.status$.subscribe((now) => (status = now));

/** What is not stored is asked for, also again: a page that was killed was told nothing. */
async function enqueue(): Promise<void> {
  await client.storeId;
  await Promise.resolve();
  const known = new Set((await firstValueFrom(client.bulkOperations$)).map(({ key }) => key));
  for (let bulk = 0; bulk < config.allowed; bulk += 1) {
    const key = bulkKey(bulk);
    if (known.has(key)) continue;
    const operations = documentsOf(bulk).map((id) => ({ id, parent: wanted, current_parent_id: 'h1' }));
    const target = bulk % 2 === 0 ? ('local' as const) : ('server' as const);
    await client.enqueue({ target, key, actions: [{ action: 'set-parent', operations }] });
    await tell({ confirmed: key });
  }
}

async function documentCount(): Promise<number> {
  return ((await client.documents.info()) as { doc_count: number }).doc_count;
}

/** Every document here, and everything at its end, here and at the server. */
async function isSettled(): Promise<boolean> {
  return (
    (await documentCount()) === config.documents &&
    bulks.length === config.allowed &&
    status?.leader === true &&
    status.pending === 0 &&
    status.unreported === 0 &&
    status.unpublished === 0 &&
    [status.push, status.pull, status.results].every(({ state }) => state === 'idle') &&
    status.push.attempts > 0
  );
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

await tell({ alive: await client.storeId, documents: await documentCount() });
await enqueue();
while (!(await isSettled())) {
  await tell({ done: bulks.reduce((sum, { cursor }) => sum + cursor, 0) });
  await turn();
}
if (config.isLast) {
  client.syncNow();
  do await turn();
  while (!(await isSettled()));
}
const { rows } = await client.documents.allDocs({ include_docs: true });
await tell({
  settled: {
    rows: config.isLast ? rows : [],
    bulks: bulks.map(({ key, state, applied, total }) => ({ key, state, applied, total })),
  },
});
