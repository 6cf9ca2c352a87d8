/* The page of the move: an app with the contacts of a district, that is told when it is offline and what to queue. */
import {
  couchdbPublisher,
  createClient,
  definePlan,
  type BulkOperationStatus,
  type ClientStatus,
  type Connectivity,
  type IndexState,
} from '@afield/client';
import { PouchDB } from '@afield/client/pouchdb';
import { contactsIndex, moveContact, setContact, setParent } from '@afield/contacts';
import { tellProblems } from '../real-browser/tell-problems.js';
import { moveRequest, type Config, type LongTask, type Shown, type Stage, type Told } from './messages.js';

let config = (await (await fetch('/config')).json()) as Config;

async function tell(told: Told): Promise<void> {
  config = (await (await fetch('/told', { method: 'POST', body: JSON.stringify(told) })).json()) as Config;
  for (const changed of listeners) changed();
}
tellProblems((problem) => void tell({ problem }));

/** What this browser says of the network: as it is told. */
let isOnline = config.online;
const listeners = new Set<() => void>();
const connectivity: Connectivity = {
  online: () => isOnline,
  subscribe: (changed) => {
    const listen = (): void => {
      if (isOnline === config.online) return;
      isOnline = config.online;
      changed();
    };
    listeners.add(listen);
    return () => listeners.delete(listen);
  },
};

const withoutReports = definePlan({
  ...moveContact,
  plan: async (request, context) =>
    (await moveContact.plan(request, context)).map(({ action, operations }) => ({
      action,
      operations: operations.filter(({ id }) => !String(id).startsWith('report-')),
    })),
});

const client = createClient({
  name: 'moved',
  PouchDB,
  actions: [setParent, setContact],
  plans: [config.skipsReports ? withoutReports : moveContact],
  indexes: [contactsIndex],
  server: config.records,
  results: config.results,
  publishers: [couchdbPublisher({ url: config.events })],
  pullEveryS: 5,
  // The run is to end today: half a second, where a person's phone waits for minutes.
  ramp: () => 500,
  environment: { connectivity },
});

let bulks: readonly BulkOperationStatus[] = [];
let status: ClientStatus | undefined;
let index: IndexState = { state: 'idle' };
let isDryRun = false;
/** When each stage began, newest first. */
const stages: { readonly stage: Stage; readonly at: number }[] = [{ stage: 'pull and index', at: 0 }];

function presentStage(): Stage {
  if (isDryRun) return 'dry run';
  const [last] = bulks.slice(-1);
  if (last?.state === 'queued' || last?.state === 'planning') return 'planning';
  if (last?.state === 'running') return 'applying';
  if (status !== undefined && status.leader && isSettled(status)) return 'at rest';
  return last === undefined ? 'pull and index' : 'push';
}

function noteStage(): void {
  const stage = presentStage();
  if (stages[0]?.stage !== stage) stages.unshift({ stage, at: performance.now() });
}

const longTasks: LongTask[] = [];
new PerformanceObserver((list) => {
  for (const { startTime, duration } of list.getEntries()) {
    const during = stages.find(({ at }) => at <= startTime)?.stage ?? 'pull and index';
    longTasks.push({ during, took: duration });
  }
}).observe({ type: 'longtask', buffered: true });

client.bulkOperations$.subscribe((now) => {
  bulks = now;
  noteStage();
  void show();
});
client.status$.subscribe((now) => {
  status = now;
  noteStage();
});
client.index(contactsIndex.name).state$.subscribe((now) => (index = now));

async function documentCount(): Promise<number> {
  return ((await client.documents.info()) as { doc_count: number }).doc_count;
}

function isSettled({ pending, unreported, unpublished, push, pull, results }: ClientStatus): boolean {
  const isAtRest = [push, pull, results].every(({ state }) => state === 'idle');
  return isAtRest && pending === 0 && unreported === 0 && unpublished === 0 && push.attempts > 0;
}

/** Every document here, the index ready, and all that was queued at its end, here and at the server. */
function isAllSettled(documents: number): boolean {
  const isQueued = bulks.length === config.requests.length;
  const isHere = documents === config.documents && index.state === 'ready';
  return isHere && isQueued && status?.leader === true && isSettled(status);
}

async function shown(): Promise<Shown> {
  const documents = await documentCount();
  return {
    documents,
    index: index.state,
    bulks: bulks.map(({ key, state, cursor, total, applied, alreadyApplied, failed, lastError }) => {
      return { key, state, cursor, total, applied, alreadyApplied, failed, lastError };
    }),
    push: status?.push.state ?? 'off',
    failedPushes: status?.push.failedAttempts ?? 0,
    isSettled: isAllSettled(documents),
  };
}

let showing: Promise<void> | undefined;
/** Tells what the device shows; while this is under way nothing more is told. */
function show(): Promise<void> {
  showing ??= (async () => {
    if (longTasks.length > 0) await tell({ longTasks: longTasks.splice(0) });
    await tell({ shown: await shown() });
    showing = undefined;
  })();
  return showing;
}

/** What is not stored is asked for, also again: a page that was killed was told nothing. */
async function enqueue(key: string): Promise<void> {
  if (bulks.some((bulk) => bulk.key === key)) return;
  isDryRun = true;
  noteStage();
  const began = performance.now();
  const { actions } = await client.dryRun(moveRequest);
  const took = performance.now() - began;
  isDryRun = false;
  noteStage();
  await tell({
    dryRun: Object.fromEntries(actions.map(({ action, operations }) => [action, operations.length])),
    took,
  });
  await client.enqueue({ ...moveRequest, key });
  await tell({ confirmed: key });
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 25));

await tell({ alive: await client.storeId, documents: await documentCount() });
// The first value of `bulkOperations$` is the store's only after the store is open.
await turn();
for (let hasToldAll = false; ; await turn()) {
  for (const key of config.requests) await enqueue(key);
  await show();
  if (hasToldAll || !config.tellAll) {
    hasToldAll &&= config.tellAll;
    continue;
  }
  const { rows } = await client.documents.allDocs({ include_docs: true });
  const failures = (await client.listFailures()).map(({ code }) => code);
  await tell({ rows, failures });
  hasToldAll = true;
}
