import type { QuarantineEntry } from '../model/quarantine.js';
import type { Queue } from './queue.js';
import { payloadSize, storedOperations, type Header, type StoredQuarantine } from './stored.js';
import type { Entry } from './content-hash.js';

/** Operations of a whole bulk operation that are shown of a version. */
const shownOperations = 1000;

/** Entries as an app sees them, with both versions. */
export async function shownEntries(
  entries: readonly StoredQuarantine[],
  queue: Queue,
): Promise<readonly QuarantineEntry[]> {
  // Neighbours share a payload: they are read one after another.
  const inPlace = [...entries].sort(
    (a, b) => compared(a.bulkOperationId ?? '', b.bulkOperationId ?? '') || (a.index ?? 0) - (b.index ?? 0),
  );
  const shown = new Map<string, QuarantineEntry>();
  for (const entry of inPlace) shown.set(entry._id, await shownEntry(entry, queue));
  return entries.flatMap(({ _id }) => shown.get(_id) ?? []);
}

/** The second version of a conflict between operations, as it was to be queued. */
export function secondOperation({ second }: StoredQuarantine): Entry['operation'] {
  const [operation] = storedOperations.parse([JSON.parse(second ?? 'null')]);
  return operation ?? { c: null };
}

/** One operation as it is shown in quarantine. */
export function shownOperation(target: string, { action, operation: { i, k, c } }: Entry): object {
  return { action, target, ...(i === undefined ? {} : { id: i }), ...(k === undefined ? {} : { key: k }), content: c };
}

async function shownEntry(entry: StoredQuarantine, queue: Queue): Promise<QuarantineEntry> {
  const { resolution } = entry;
  return {
    quarantineId: entry._id,
    kind: entry.kind,
    key: entry.key,
    bulkOperationId: entry.bulkOperationId ?? undefined,
    first: await firstOf(entry, queue),
    second: await secondOf(entry, queue),
    at: entry.at,
    resolution: resolution && { ...resolution, bulkOperationId: resolution.bulkOperationId },
  };
}

async function firstOf(entry: StoredQuarantine, queue: Queue): Promise<unknown> {
  if (entry.first !== undefined) return JSON.parse(entry.first) as unknown;
  const header = queue.headers.known(entry.bulkOperationId ?? '');
  if (header === undefined) return undefined;
  return entry.kind === 'bulk-operation' ? shownContent(header, queue) : operationUnder(header, entry, queue);
}

async function secondOf(entry: StoredQuarantine, queue: Queue): Promise<unknown> {
  const { content, as } = entry;
  if (content !== undefined) return shownContent(content, queue);
  if (as === undefined) return JSON.parse(entry.second ?? 'null') as unknown;
  return shownOperation(as.target, { action: as.action, operation: secondOperation(entry) });
}

/** The operation that holds this key. Duplicates before it were not queued: it is at its place in the request or before. */
async function operationUnder(header: Header, { key, index = 0 }: StoredQuarantine, queue: Queue): Promise<unknown> {
  if (header.total === 0) return undefined;
  for (let page = Math.floor(Math.min(index, header.total - 1) / payloadSize); page >= 0; page--) {
    const operations = await queue.contents.operations(header, page * payloadSize, payloadSize);
    const place = operations.findIndex(({ k, o }) => k === key && o === undefined);
    const operation = operations[place];
    if (operation === undefined) continue;
    const action = actionAt(header.parts, page * payloadSize + place);
    return shownOperation(header.target, { action, operation });
  }
  return undefined;
}

/** A whole bulk operation as it was asked for; of a long one its beginning. */
async function shownContent(
  content: Pick<Header, 'target' | 'parts' | 'plan' | 'payload' | 'total'>,
  queue: Queue,
): Promise<unknown> {
  const { target, parts, plan, total } = content;
  if (plan !== undefined) return { target, plan: plan.name, request: await queue.contents.planRequest({ plan }) };
  const operations = await queue.contents.operations(content, 0, shownOperations);
  let from = 0;
  const actions = parts.map(({ action, count }) => {
    const some = operations.slice(from, (from += count));
    return { action, operations: some.map((operation) => shownOperation(target, { action, operation })) };
  });
  return { target, total, actions };
}

function actionAt(parts: Header['parts'], index: number): string {
  let end = 0;
  return parts.find(({ count }) => index < (end += count))?.action ?? '';
}

function compared(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
