import type { Doc, PouchLike } from '@afield/client';
import type { MemoryDatabase } from '@afield/testing';
import * as z from 'zod';

/** A leaf of a document: its revision and all before it, newest first. */
export interface Leaf {
  readonly rev: string;
  readonly deleted: boolean;
  readonly history: readonly string[];
}

/** A document as one database has it. */
export interface Tree {
  /** The one that counts first. */
  readonly leaves: readonly Leaf[];
  /** The revisions that the database still has. */
  readonly bodies: ReadonlyMap<string, Doc>;
}

/** A database with the documents: of a device, or the server's. Read past all faults. */
export interface Place {
  readonly name: string;
  read(id: string): Promise<Tree>;
  /** Another text after each write. */
  sequence(): Promise<string>;
}

const document = z.custom<Doc>((value) => typeof value === 'object' && value !== null && '_id' in value);
const leafRow = z.object({ ok: document });
const revisions = z.object({ _revisions: z.object({ start: z.number(), ids: z.array(z.string()) }) });
const bulkGet = z.array(z.object({ docs: z.array(z.looseObject({ ok: z.optional(document) })) }));
const information = z.object({ update_seq: z.union([z.string(), z.number()]) });

/** A PouchDB, or a CouchDB through PouchDB's http adapter. */
export function pouchPlace(name: string, database: PouchLike): Place {
  return {
    name,
    sequence: async () => String(information.parse(await database.info()).update_seq),
    read: async (id) => {
      const leaves = (await leavesOf(database, id)).sort(inOrder);
      const revs = [...new Set(leaves.flatMap(({ history }) => history))];
      if (revs.length === 0) return { leaves, bodies: new Map() };
      const { results } = await database.bulkGet({ docs: revs.map((rev) => ({ id, rev })) });
      const docs = bulkGet.parse(results).flatMap((result) => result.docs.flatMap(({ ok }) => ok ?? []));
      return { leaves, bodies: new Map(docs.map((doc) => [String(doc._rev), doc])) };
    },
  };
}

async function leavesOf(database: PouchLike, id: string): Promise<Leaf[]> {
  try {
    const rows = z.array(leafRow).parse(await database.get(id, { open_revs: 'all', revs: true }));
    return rows.map(({ ok }) => {
      const { start, ids } = revisions.parse(ok)._revisions;
      const history = ids.map((hash, age) => `${String(start - age)}-${hash}`);
      return { rev: String(ok._rev), deleted: ok._deleted === true, history };
    });
  } catch (error) {
    if ((error as { status?: number }).status === 404) return [];
    throw error;
  }
}

/** A database in the memory of this process. */
export function memoryPlace(name: string, database: MemoryDatabase): Place {
  return {
    name,
    sequence: () => Promise.resolve(String(database.sequence)),
    read: (id) => {
      const tree = database.tree(id);
      const leaves = (tree?.leaves() ?? []).map(({ rev, deleted }) => ({
        rev,
        deleted,
        history: tree?.path(rev) ?? [],
      }));
      const revs = new Set(leaves.flatMap(({ history }) => history));
      const docs = [...revs].flatMap((rev) => (database.read(id, rev) ?? []) as Doc | []);
      return Promise.resolve({
        leaves: leaves.sort(inOrder),
        bodies: new Map(docs.map((doc) => [String(doc._rev), doc])),
      });
    },
  };
}

/** As everyone chooses the revision that counts: live before deleted, the longer history, the name. */
function inOrder(a: Leaf, b: Leaf): number {
  if (a.deleted !== b.deleted) return a.deleted ? 1 : -1;
  const [ofA, ofB] = [Number.parseInt(a.rev, 10), Number.parseInt(b.rev, 10)];
  return ofB - ofA || (a.rev < b.rev ? 1 : -1);
}
