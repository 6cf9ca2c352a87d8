import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError, SignInRequiredError } from '../model/errors.js';
import type { RevisionRead, WriteRow } from '../model/pouch.js';
import { isStandIn } from '../model/own-revisions.js';
import { classifyRow } from '../retry/classify.js';
import type { LocalChange, LocalDatabase } from '../store/local-database.js';
import { isForgottenStub } from './forgotten.js';
import { hasStubs, knownAttachments } from './known-attachments.js';
import { lackedOf } from './lacked.js';
import { readBounded } from './read-bounded.js';
import type { Refusals } from './refusals.js';
import { endStandIns, withoutWithheld } from './withheld.js';

/** What became of changes that were brought to the server. */
export interface Delivery {
  readonly delivered: number;
  readonly behind: readonly LocalChange[];
  readonly error: unknown;
}

export interface Places {
  readonly local: LocalDatabase;
  readonly server: ServerDatabase;
  readonly refusals: Refusals;
}

/**
 * What lives goes first. The deletion of a version that nobody sees follows when the server has the version that counts
 * here: if it took the deletion and refused that one, the document would be gone there.
 */
export async function deliver(places: Places, all: readonly LocalChange[], isRetry: boolean): Promise<Delivery> {
  const { local, server, refusals } = places;
  const changes = await withoutWithheld(places, all);
  const { missing, possibleAncestors } = await server.difference(new Map(changes.map(({ id, revs }) => [id, revs])));
  await endStandIns(places, all, changes, missing);
  const behind = new Map<string, string[]>();
  let delivered = 0;
  // What the server has already may be later than what it refused once: then that was taken after all.
  await refusals.delivered(changes.filter(({ id }) => !missing.has(id)).map(({ id, revs }) => ({ id, revs })));
  const wanted = [...missing].flatMap(([id, revs]) => revs.map((rev) => ({ id, rev })));
  // A change names all leaves of its document; what stayed behind may be one of many.
  const named = new Map(isRetry ? [] : all.map(({ id, revs }) => [id, new Set(revs)]));
  const deletions: RevisionRead[] = [];
  for await (const { asked, reads } of readBounded(local, wanted, knownAttachments(places, possibleAncestors))) {
    // What cannot be read here now is not delivered either: it stays behind, or a later change replaces it.
    const readable = groupById(reads);
    for (const { id, rev } of asked) if (readable.get(id)?.includes(rev) !== true) keep(behind, id, rev);
    const sent = reads.filter(({ doc }) => !isForgottenStub(doc));
    const isLate = ({ id, doc }: RevisionRead): boolean => doc['_deleted'] === true && named.get(id)?.size !== 1;
    deletions.push(...sent.filter(isLate));
    for (const part of server.inRequests(sent.filter((read) => !isLate(read)))) {
      delivered += await deliverPart(places, part, behind);
    }
  }
  const { ending, hidden, leaves } = await afterWhatLives(places, deletions, named, behind);
  for (const part of server.inRequests(ending)) delivered += await deliverPart(places, part, behind, { leaves });
  for (const part of server.inRequests(hidden))
    delivered += await deliverPart(places, part, behind, { isHidden: true });
  return {
    delivered,
    behind: [...behind].map(([id, revs]) => ({ id, revs })),
    error: new RetryableError('Some documents could not be delivered now.', { class: 'server', code: 'not-stored' }),
  };
}

/**
 * Deletions that may be sent now: those that end their document, and those of hidden versions whose document lives in a
 * version that the server has. One whose document waits in `behind` waits with it; that of a refused one is not sent at
 * all, until the document changes or is sent again; neither is that of a version of which a copy counts here. One whose document has changed meanwhile comes with that change.
 */
async function afterWhatLives(
  { local, server }: Places,
  deletions: readonly RevisionRead[],
  named: ReadonlyMap<string, ReadonlySet<string>>,
  behind: Map<string, string[]>,
): Promise<{ ending: readonly RevisionRead[]; hidden: readonly RevisionRead[]; leaves: readonly RevisionRead[] }> {
  if (deletions.length === 0) return { ending: [], hidden: [], leaves: [] };
  const ids = [...new Set(deletions.map(({ id }) => id))];
  const leaves = await local.leaves(ids);
  const changed = new Set(leaves.flatMap(({ id, doc }) => (named.get(id)?.has(doc._rev ?? '') === false ? [id] : [])));
  const present = deletions.filter(({ id }) => !changed.has(id));
  const rows = await local.read(ids);
  const living = new Map(
    rows.flatMap(({ id, rev, deleted }) => (rev === undefined || deleted ? [] : [[id, atServer(id, rev, leaves)]])),
  );
  const missing = living.size === 0 ? living : await server.missing(asQuestion(living));
  for (const { id, doc } of present) if (missing.has(id) && behind.has(id)) keep(behind, id, doc._rev ?? '');
  return {
    ending: present.filter(({ id }) => !living.has(id)),
    hidden: present.filter(
      ({ id, ancestors }) => living.has(id) && !missing.has(id) && !ancestors.includes(living.get(id) ?? ''),
    ),
    leaves,
  };
}

/** The version of which this one is a copy, as the server has it; itself, where it is none. */
function atServer(id: string, rev: string, leaves: readonly RevisionRead[]): string {
  const copied = isStandIn(rev)
    ? leaves.find((leaf) => leaf.id === id && leaf.doc._rev === rev)?.ancestors[1]
    : undefined;
  return copied ?? rev;
}

function asQuestion(revs: ReadonlyMap<string, string>): ReadonlyMap<string, readonly string[]> {
  return new Map([...revs].map(([id, rev]) => [id, [rev]]));
}

interface PartKind {
  /** They are deletions of versions that nobody sees. */
  readonly isHidden?: boolean;
  /** The leaves of their documents, where they are deletions. */
  readonly leaves?: readonly RevisionRead[];
  /** All their attachments go with their bytes. */
  readonly isWhole?: boolean;
}

/**
 * One request, and the proof of what it did. What neither arrived nor was refused for good goes to `behind`. Where the
 * server lacks an attachment that went as a stub, all is sent whole before anything is judged.
 */
async function deliverPart(
  places: Places,
  reads: readonly RevisionRead[],
  behind: Map<string, string[]>,
  { isHidden = false, leaves = [], isWhole = false }: PartKind = {},
): Promise<number> {
  const { server, refusals } = places;
  const isThinned = !isWhole && reads.some(hasStubs);
  const docs = reads.map(({ doc }) => doc);
  const answer = isThinned ? await server.writeWithStubs(docs) : await server.writeRevisions(docs);
  if (answer.error !== undefined) throw answer.error as Error;
  const refused = answer.rows.flatMap((row) => (row.ok ? [] : [row]));
  if (refused.some(({ error }) => classifyRow(error).kind === 'auth')) throw new SignInRequiredError('unauthorized');
  // An answer without a row says nothing: what the server has now is the proof.
  const still = await server.missing(groupById(reads));
  const stuck = reads.filter(({ id, doc }) => still.get(id)?.includes(doc._rev ?? '') === true);
  const arrived = reads.filter((read) => !stuck.includes(read));
  // A later revision that the server took proves an earlier refused one.
  await refusals.delivered(arrived.map(({ id, ancestors }) => ({ id, revs: ancestors })));

  const rowOf = rowsOf(refused);
  const lacking = isThinned ? stuck.filter((read) => rowOf(read)?.error === 'missing_stub') : [];
  const final: { read: RevisionRead; code: string; reason: string }[] = [];
  for (const read of stuck) {
    if (lacking.includes(read)) continue;
    const row = rowOf(read);
    const verdict = row === undefined ? undefined : classifyRow(row.error);
    if (row !== undefined && verdict?.kind === 'failed') final.push({ read, code: verdict.code, reason: row.reason });
    else keep(behind, read.id, read.doc._rev ?? '');
  }
  const othersOf = (read: RevisionRead): readonly string[] =>
    leaves.flatMap(({ id, doc }) => (id === read.id && doc._rev !== read.doc._rev ? [doc._rev ?? ''] : []));
  const lacked = await lackedOf(
    server,
    final.map(({ read: { id, ancestors } }) => ({ id, revs: ancestors })),
  );
  const refusedNow = final.flatMap((one, at) => {
    const revs = lacked[at] ?? [];
    return revs.length === 0 ? [] : [{ ...one, lacked: revs, isHidden, others: othersOf(one.read) }];
  });
  for (const { id, doc } of await refusals.refused(refusedNow)) keep(behind, id, doc._rev ?? '');
  return arrived.length + (await deliverWhole(places, lacking, behind, { isHidden, leaves, isWhole: true }));
}

/** Once more with all their attachments: the server does not have them after all. */
async function deliverWhole(
  places: Places,
  reads: readonly RevisionRead[],
  behind: Map<string, string[]>,
  kind: PartKind,
): Promise<number> {
  let delivered = 0;
  const wanted = reads.map(({ id, doc }) => ({ id, rev: doc._rev ?? '' }));
  for await (const { asked, reads: whole } of readBounded(places.local, wanted)) {
    const readable = groupById(whole);
    for (const { id, rev } of asked) if (readable.get(id)?.includes(rev) !== true) keep(behind, id, rev);
    for (const part of places.server.inRequests(whole)) delivered += await deliverPart(places, part, behind, kind);
  }
  return delivered;
}

/** Of a document with several versions in one request each has a row of its own, where the server names it (CouchDB does). */
function rowsOf(
  refused: readonly Extract<WriteRow, { ok: false }>[],
): (read: RevisionRead) => Extract<WriteRow, { ok: false }> | undefined {
  const byId = new Map(refused.map((row) => [row.id, row]));
  const byRevision = new Map(refused.map((row) => [JSON.stringify([row.id, row.rev]), row]));
  return ({ id, doc }) => byRevision.get(JSON.stringify([id, doc._rev])) ?? byId.get(id);
}

function keep(behind: Map<string, string[]>, id: string, rev: string): void {
  behind.set(id, [...(behind.get(id) ?? []), rev]);
}

function groupById(reads: readonly RevisionRead[]): Map<string, string[]> {
  const grouped = new Map<string, string[]>();
  for (const { id, doc } of reads) grouped.set(id, [...(grouped.get(id) ?? []), doc._rev ?? '']);
  return grouped;
}
