import { isRecord } from './answers.js';

/** The calls of a database that ask for revisions, as far as they are wrapped here. */
export interface AskedDatabase {
  revsDiff(asked: unknown, options: unknown, callback: Callback): unknown;
  _getRevisionTree(id: string, callback: Callback): unknown;
}

type Callback = (error: unknown, result?: unknown) => void;

const taught = new WeakSet<AskedDatabase>();

/**
 * Lets `_revs_diff` know every revision of a document's history, as CouchDB does. PouchDB calls one missing whose body is
 * not there: one that came only as an ancestor, or was compacted away. Names `possible_ancestors`, as CouchDB does: the
 * leaves of an earlier generation.
 */
export function knowAncestors(database: AskedDatabase): void {
  if (taught.has(database)) return;
  taught.add(database);
  const { revsDiff } = database;
  database.revsDiff = (asked, options, callback) =>
    revsDiff.call(database, asked, options, (error, result) => {
      if (error !== null || !isRecord(result)) return callback(error, result);
      withoutKnown(database, result).then(
        (rest) => {
          callback(null, rest);
        },
        (reason: unknown) => {
          callback(reason);
        },
      );
    });
}

async function withoutKnown(database: AskedDatabase, result: Record<string, unknown>): Promise<unknown> {
  const rest: [string, unknown][] = [];
  for (const [id, entry] of Object.entries(result)) {
    if (!isRecord(entry) || !Array.isArray(entry['missing'])) continue;
    const known = await revisionsOf(database, id);
    const missing = entry['missing'].filter((rev) => !known.has(String(rev)));
    if (missing.length === 0) continue;
    const newest = Math.max(...missing.map(generationOf));
    const ancestors = [...known].flatMap(([rev, isLeaf]) => (isLeaf && generationOf(rev) < newest ? [rev] : []));
    rest.push([id, { ...entry, missing, ...(ancestors.length === 0 ? {} : { possible_ancestors: ancestors }) }]);
  }
  return Object.fromEntries(rest);
}

function generationOf(rev: unknown): number {
  return Number.parseInt(String(rev), 10);
}

/** All revisions of a document that its tree names, and whether they are leaves. A document that is not there has none. */
function revisionsOf(database: AskedDatabase, id: string): Promise<ReadonlyMap<string, boolean>> {
  return new Promise((resolve, reject) => {
    database._getRevisionTree(id, (error, tree) => {
      if (error === null || error === undefined) resolve(new Map(Array.isArray(tree) ? tree.flatMap(branch) : []));
      else if (isRecord(error) && error['status'] === 404) resolve(new Map());
      else reject(error instanceof Error ? error : new Error('The revisions could not be read.'));
    });
  });
}

/** The revisions of one branch: `{ pos, ids: [hash, state, [child, …]] }`. */
function branch(start: unknown): [string, boolean][] {
  const found: [string, boolean][] = [];
  const open: { generation: number; node: unknown }[] = [];
  if (isRecord(start)) open.push({ generation: Number(start['pos']), node: start['ids'] });
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { generation, node } = next;
    if (!Array.isArray(node)) continue;
    const [hash, , children] = node as unknown[];
    const isLeaf = !Array.isArray(children) || children.length === 0;
    found.push([`${String(generation)}-${String(hash)}`, isLeaf]);
    if (!Array.isArray(children)) continue;
    for (const child of children as unknown[]) open.push({ generation: generation + 1, node: child });
  }
  return found;
}
