import { z } from 'zod/mini';
import type { RevisionRead } from '../model/pouch.js';
import type { LocalDatabase } from '../store/local-database.js';
import { isAllStubs, withStubs, type StubsOf } from './known-attachments.js';

/** Documents that are read at once. */
const readAtOnce = 20;
/** Bytes of attachments that are held in memory at once; a larger one is read alone. */
const attachmentBytes = 2_000_000;

interface Revision {
  readonly id: string;
  readonly rev: string;
}

/** Some of the revisions that were asked for, and as many of them as could be read. */
interface Group {
  readonly asked: readonly Revision[];
  readonly reads: readonly RevisionRead[];
}

const sizes = z.object({ _attachments: z.record(z.string(), z.looseObject({ length: z.optional(z.number()) })) });

/**
 * Reads revisions with their attachments, in groups that fit into memory: first without the attachments, whose sizes are
 * known then. Attachments that `stubsOf` names come as stubs; where those are all that a document has, nothing is read of
 * them.
 */
export async function* readBounded(
  local: LocalDatabase,
  wanted: readonly Revision[],
  stubsOf: StubsOf = () => Promise.resolve(new Map()),
): AsyncGenerator<Group> {
  for (let at = 0; at < wanted.length; at += readAtOnce) {
    const asked = wanted.slice(at, at + readAtOnce);
    const plain = new Map(
      (await local.readRevisions(asked)).map((read) => [nameOf(read.id, read.doc._rev ?? ''), read]),
    );
    const found = await stubsOf([...plain.values()]);
    const stubs = new Map([...found].map(([{ id, doc }, some]) => [nameOf(id, doc._rev ?? ''), some]));
    const sizeOf = ({ id, rev }: Revision): number => {
      const read = plain.get(nameOf(id, rev));
      return read === undefined || isAllStubs(read, stubs.get(nameOf(id, rev))) ? 0 : bytesOf(read);
    };
    const asSent = (reads: readonly RevisionRead[]): readonly RevisionRead[] =>
      reads.map((read) => withStubs(read, stubs.get(nameOf(read.id, read.doc._rev ?? ''))));
    const without = asked.filter((one) => sizeOf(one) === 0);
    yield { asked: without, reads: asSent(without.flatMap(({ id, rev }) => plain.get(nameOf(id, rev)) ?? [])) };
    for (const group of grouped(asked, sizeOf)) yield { asked: group, reads: asSent(await local.readWhole(group)) };
  }
}

/** Those with attachments, so many together as are small enough. */
function grouped(asked: readonly Revision[], sizeOf: (one: Revision) => number): Revision[][] {
  const groups: Revision[][] = [];
  let size = Infinity;
  for (const one of asked) {
    const bytes = sizeOf(one);
    if (bytes === 0) continue;
    if (size + bytes > attachmentBytes) {
      groups.push([]);
      size = 0;
    }
    groups[groups.length - 1]?.push(one);
    size += bytes;
  }
  return groups;
}

/** Bytes of its attachments: at least one where it has any. */
function bytesOf(read: RevisionRead): number {
  const parsed = sizes.safeParse(read.doc);
  if (!parsed.success) return 0;
  return Object.values(parsed.data._attachments).reduce((sum, { length = 0 }) => sum + length, 1);
}

function nameOf(id: string, rev: string): string {
  return JSON.stringify([id, rev]);
}
