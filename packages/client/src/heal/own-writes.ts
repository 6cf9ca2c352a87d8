import type { Doc } from '../model/json.js';
import type { LocalDatabase } from '../store/local-database.js';
import { withoutHistory } from '../model/revision.js';
import { sameJson } from '../model/same-json.js';
import { findOwnRevisions } from '../run/history.js';
import type { Found, FoundOperation } from './examined.js';
import { replay } from './replay.js';
import { asReplayed } from './treatment.js';
import { inOrder, type Leaf } from './tree.js';

/** An operation with an intent, and a revision that may be what came of it. */
interface Trace {
  readonly examined: Found;
  readonly operation: FoundOperation;
  /** The revision on which it was tried. */
  readonly base: string;
  /** What follows the base, on each branch. */
  readonly next: readonly string[];
}

/**
 * What was written before a stop of the process, though no outcome says so. A revision is our write when it follows the
 * base of the intent and is just what the operations make of that; in the winner's history it is enough that the operation
 * is applied there, whatever came later (R3).
 */
export async function findOwnWrites(examined: readonly Found[], local: LocalDatabase): Promise<readonly Found[]> {
  const traces = examined.flatMap(tracesOf);
  if (traces.length === 0) return examined;
  const wanted = traces.flatMap(({ examined: { id }, base, next }) => [base, ...next].map((rev) => ({ id, rev })));
  const bodies = new Map<string, Doc>();
  for (const { id, doc } of await local.readRevisions(wanted)) bodies.set(nameOf(id, doc._rev), withoutHistory(doc));

  const found = new Map<FoundOperation, string>();
  for (const trace of traces) {
    const rev = exact(trace, bodies);
    if (rev !== undefined) found.set(trace.operation, rev);
  }
  const open = traces.filter(({ operation }) => !found.has(operation));
  for (const [operation, rev] of await likely(open, local)) found.set(operation, rev);
  if (found.size === 0) return examined;
  return examined.map((one) => ({
    ...one,
    own: one.own.map((operation) => {
      const rev = found.get(operation);
      return rev === undefined ? operation : { ...operation, revs: [...operation.revs, rev] };
    }),
  }));
}

function tracesOf(examined: Found): readonly Trace[] {
  return examined.own.flatMap((operation) => {
    const base = operation.row.g;
    if (base === undefined) return [];
    const next = new Set(examined.leaves.flatMap(({ ancestors }) => ancestors[ancestors.indexOf(base) - 1] ?? []));
    return next.size === 0 ? [] : [{ examined, operation, base, next: [...next] }];
  });
}

function exact({ examined, base, next }: Trace, bodies: ReadonlyMap<string, Doc>): string | undefined {
  const before = bodies.get(nameOf(examined.id, base));
  if (before === undefined) return undefined;
  const first = examined.own.findIndex(({ row }) => row.g === base);
  const operations = examined.own.filter(({ standing }, place) => place >= first && standing === 'counts');
  const { doc } = replay(
    before,
    operations.flatMap((one) => asReplayed(one, one.row.g === base)),
  );
  if (doc === undefined) return undefined;
  return next.find((rev) => sameJson(withoutRev(bodies.get(nameOf(examined.id, rev))), withoutRev(doc)));
}

async function likely(traces: readonly Trace[], local: LocalDatabase): Promise<ReadonlyMap<FoundOperation, string>> {
  const found = new Map<FoundOperation, string>();
  // The history is asked by document: one operation of each at a time.
  for (const { examined, operation, base } of traces) {
    const [winner] = inOrder(examined.leaves) as readonly [Leaf?];
    const [given] = asReplayed(operation, true);
    if (winner === undefined || winner.deleted || given === undefined || !winner.ancestors.slice(1).includes(base))
      continue;
    const isOwn = (doc: Doc): boolean =>
      doc._deleted === true
        ? given.action.missing === 'applied'
        : given.action.isApplied(withoutHistory(doc), given.content);
    const answers = await findOwnRevisions(local, [{ id: examined.id, rev: winner.rev, base, isOwn }]);
    const rev = answers.get(examined.id)?.rev;
    if (rev !== undefined) found.set(operation, rev);
  }
  return found;
}

function withoutRev(doc: Doc | undefined): unknown {
  if (doc === undefined) return undefined;
  const rest: Record<string, unknown> = { ...doc };
  delete rest['_rev'];
  return rest;
}

function nameOf(id: string, rev: string | undefined): string {
  return JSON.stringify([id, rev]);
}
