import type { Queue } from './queue.js';
import { removed } from './stored-docs.js';
import {
  claimDoc,
  claimId,
  failurePrefix,
  recordPrefix,
  reportId,
  sequenceOf,
  type Header,
  type Remains,
  type StoredQuarantine,
} from './stored.js';

const removedPerWrite = 500;

/** What names content: a header, or a whole bulk operation in quarantine. */
type Content = Pick<Header, 'payload' | 'subjects' | 'plan'>;

interface Room {
  readonly queue: Queue;
  readonly breathe: () => Promise<void>;
  readonly closed: AbortSignal;
}

/** What has to be known of a bulk operation to find all of it when its header is gone. `conflicts`: resolved ones of it. */
export function remainsOf(header: Header, conflicts: readonly StoredQuarantine[]): Remains {
  return {
    s: sequenceOf(header._id),
    id: header.id,
    conflicts: conflicts.map(({ _id }) => _id),
    contents: [header, ...conflicts.flatMap(({ content }) => content ?? [])].map(rootsOf),
  };
}

/** Removes the records of its keys: before its header, since a record whose bulk operation is not there makes others wait. */
export async function removeKeys(header: Header, { queue, breathe, closed }: Room): Promise<void> {
  await removeClaims(header, [claimId('b', header.key)], queue);
  for (let from = 0; from < header.total && !closed.aborted; from += removedPerWrite) {
    const operations = await queue.contents.operations(header, from, removedPerWrite);
    // Only keys that were given have records.
    const ids = operations.flatMap(({ k, o }) => (k === undefined || o !== undefined ? [] : [claimId('o', k)]));
    await removeClaims(header, [...new Set(ids)], queue);
    await breathe();
  }
}

async function removeClaims({ id }: Header, ids: readonly string[], queue: Queue): Promise<void> {
  if (ids.length === 0) return;
  const stored = await queue.docs.readMany(ids, claimDoc);
  // A key that was known before is the record of another one.
  const own = [...stored.values()].filter(({ bulkOperationId }) => bulkOperationId === id);
  if (own.length > 0) await queue.docs.write(own.map(({ _id, _rev }) => removed(_id, _rev)));
}

/**
 * Removes what a bulk operation without a header has left: what belongs to its number, its conflicts, and its content, unless
 * another one shares that. A portion at a time. Answers with the names of all that is gone, or undefined when the client was
 * closed meanwhile.
 */
export async function removeRemains(left: Remains, room: Room): Promise<readonly string[] | undefined> {
  const { queue, breathe, closed } = room;
  // A plan that is queued anew keeps its request, and a second version that a person has chosen its content: perhaps a
  // moment ago, in another tab.
  await queue.headers.loadNew();
  const shared = new Set(queue.headers.all().flatMap((header) => namesOf(rootsOf(header))));
  const own = left.contents.flatMap(namesOf).filter((name) => !shared.has(name));
  const gone: string[] = [];
  for (const name of [...left.conflicts, reportId(left.s), failurePrefix(left.s), recordPrefix(left.s), ...own]) {
    for (;;) {
      if (closed.aborted) return undefined;
      const isPrefix = name.endsWith(':') && !left.conflicts.includes(name);
      const names = await queue.docs.names(name, isPrefix ? `${name}\uffff` : name, removedPerWrite);
      if (names.length === 0) break;
      await queue.docs.write(names.map(({ id, rev }) => removed(id, rev)));
      gone.push(...names.map(({ id }) => id));
      await breathe();
    }
  }
  return gone;
}

/** What names the whole content of a bulk operation. */
export function rootsOf({ payload, subjects, plan }: Content): Remains['contents'][number] {
  return {
    payload,
    ...(subjects === null || Array.isArray(subjects) ? {} : { digest: subjects.digest }),
    ...(plan === undefined ? {} : { request: plan.request }),
  };
}

/** The request of a plan; payloads and digests, whose names begin so (those too that a plan has declared). */
export function namesOf({ payload, digest, request }: Remains['contents'][number]): string[] {
  const declared = request?.replace(/^q:/, 'd:');
  return [
    payload,
    payload.replace(/^p:/, 'd:'),
    ...(digest === undefined ? [] : [digest]),
    ...(request === undefined ? [] : [request]),
    ...(declared === undefined ? [] : [`${declared}:`]),
  ];
}
