import { z } from 'zod/mini';
import type { ServerDatabase } from '../http/server-database.js';
import type { RevisionRead } from '../model/pouch.js';
import { generationOf } from '../model/revision.js';
import type { LocalDatabase } from '../store/local-database.js';

/** Attachments that are sent without their bytes, by their names. */
export type Stubs = ReadonlyMap<string, object>;

/** Of revisions that were read without the bytes of their attachments: which of these go as stubs. */
export type StubsOf = (reads: readonly RevisionRead[]) => Promise<ReadonlyMap<RevisionRead, Stubs>>;

const attached = z.object({ _attachments: z.record(z.string(), z.unknown()) });
const anyStub = z.object({ stub: z.literal(true) });
const attachment = z.object({
  // CouchDB answers with a 500 to a stub whose digest it cannot read.
  digest: z.string().check(z.regex(/^md5-[A-Za-z0-9+/]{22}==$/)),
  content_type: z.string(),
  length: z.number(),
});
const placed = z.object({ ...attachment.shape, revpos: z.number() });

/**
 * The attachments that the server has in an ancestor (`ancestors`, by document: what it has said that it has). Such a one
 * has the name, the type and the digest that it has in the ancestor, and was not written since.
 *
 * CouchDB takes a stub by its name alone, out of the nearest ancestor whose body it still has; of the stub it looks at
 * nothing but `revpos`, which must be its own one where it is there. PouchDB makes that number anew with each pull, so that
 * it says too little: here it only proves that nothing between the ancestor and the revision has brought other bytes for a
 * while. It is not sent.
 */
export function knownAttachments(
  { local, server }: { local: LocalDatabase; server: ServerDatabase },
  ancestors: ReadonlyMap<string, readonly string[]>,
): StubsOf {
  const bodiesOf = async (wanted: readonly { readonly id: string; readonly rev: string }[]): Promise<Bodies> => {
    const bodies: Bodies = new Map((await local.readRevisions(wanted)).map((read) => [nameOf(read), read]));
    // Where the store is compacted, only the server has them.
    const gone = wanted.filter(({ id, rev }) => !bodies.has(JSON.stringify([id, rev])));
    for (const read of await server.readRevisions(gone)) bodies.set(nameOf(read), read);
    return bodies;
  };
  return async (reads) => {
    const candidates = reads.flatMap((read) => {
      const rev = read.ancestors.slice(1).find((one) => ancestors.get(read.id)?.includes(one) === true);
      const old = rev === undefined ? [] : unwrittenSince(read, generationOf(rev));
      return rev === undefined || old.length === 0 ? [] : [{ read, rev, old }];
    });
    if (candidates.length === 0) return new Map();
    const bodies = await bodiesOf(candidates.map(({ read, rev }) => ({ id: read.id, rev })));
    return new Map(
      candidates.map(({ read, rev, old }) => {
        const there = attachmentsOf(bodies.get(JSON.stringify([read.id, rev])));
        return [read, new Map(old.flatMap(([name, one]) => (isSame(there.get(name), one) ? [[name, one]] : [])))];
      }),
    );
  };
}

/** Whether it has them all as stubs. */
export function isAllStubs(read: RevisionRead, stubs: Stubs | undefined): boolean {
  return stubs !== undefined && [...attachmentsOf(read).keys()].every((name) => stubs.has(name));
}

/** The revision as it is sent. */
export function withStubs(read: RevisionRead, stubs: Stubs | undefined): RevisionRead {
  if (stubs === undefined || stubs.size === 0) return read;
  const all = Object.fromEntries([...attachmentsOf(read), ...stubs]);
  return { ...read, doc: { ...read.doc, _attachments: all } };
}

/** Whether some of its attachments go without their bytes. */
export function hasStubs(read: RevisionRead): boolean {
  return [...attachmentsOf(read).values()].some((one) => anyStub.safeParse(one).success);
}

type Bodies = Map<string, RevisionRead>;

/** Its attachments that this generation may have, as they are sent. */
function unwrittenSince(read: RevisionRead, generation: number): (readonly [string, object])[] {
  return [...attachmentsOf(read)].flatMap(([name, value]) => {
    const parsed = placed.safeParse(value);
    if (!parsed.success || parsed.data.revpos > generation) return [];
    const { digest, length, content_type } = parsed.data;
    return [[name, { stub: true, digest, length, content_type }] as const];
  });
}

function isSame(there: unknown, here: object): boolean {
  const [one, other] = [attachment.safeParse(there), attachment.safeParse(here)];
  if (!one.success || !other.success) return false;
  return one.data.digest === other.data.digest && one.data.content_type === other.data.content_type;
}

function attachmentsOf(read: RevisionRead | undefined): ReadonlyMap<string, unknown> {
  const parsed = attached.safeParse(read?.doc);
  return new Map(parsed.success ? Object.entries(parsed.data._attachments) : []);
}

function nameOf({ id, doc }: RevisionRead): string {
  return JSON.stringify([id, doc._rev]);
}
