import { AfieldError, RetryableError } from '../model/errors.js';
import type { IndexDefinition, IndexKey } from '../model/lookup.js';
import { nameOf } from '../retry/classify.js';
import { connectionErrors } from '../retry/table.js';
import type { ChangedDoc, LocalDatabase } from '../store/local-database.js';
import { noChanges, type IndexChanges, type IndexStore, type Meta } from './index-store.js';
import { judge } from './keys.js';

/** The turn of what was never written. */
const notStored = 0;

/** A document for which the definition's function is wrong: the index stops there (B7). */
export class WrongKeysError extends AfieldError {
  constructor(
    readonly id: string,
    cause: unknown,
  ) {
    super('keys', 'The function `keys` of an index is wrong for this document.', { cause });
  }
}

export interface PassParts {
  readonly definition: IndexDefinition;
  readonly documents: LocalDatabase;
  readonly store: IndexStore;
  /** What was stored a moment ago. */
  readonly before: Meta | undefined;
  /** Ends a call that does not settle. */
  readonly within: <Value>(call: Promise<Value>) => Promise<Value>;
  readonly breathe: () => Promise<void>;
  readonly closed: AbortSignal;
  /** A batch and its resume point are stored. */
  readonly stored: (meta: Meta) => void;
  /** How many live documents the database has. */
  readonly counted: (live: number) => void;
  /** Begins from the start, whatever is stored. */
  readonly anew: boolean;
}

/**
 * One pass over the documents' changes, from the resume point to the end. Throws what has stopped it. Everything before the
 * resume point is stored at any moment: rows and point are one write (B3).
 */
export async function runPass(given: PassParts): Promise<void> {
  const { closed, stored, breathe } = given;
  let parts = given;
  while (!closed.aborted) {
    const { meta: begun, head } = await begin(parts);
    let meta = begun;
    // Undefined: someone else has written meanwhile. What they have stored counts, and is looked at again.
    while (meta !== undefined && !closed.aborted) {
      if (isWhole(meta, head)) return;
      const done = await batch(parts, meta, head);
      meta = done.meta;
      if (meta !== undefined) stored(meta);
      if (meta !== undefined && done.isLast) return;
      await breathe();
    }
    // Who was overtaken before it had cleared still has to.
    const anew = parts.anew && begun === undefined;
    if (!closed.aborted) parts = { ...parts, anew, before: await parts.within(parts.store.meta()) };
  }
}

/** Whether nothing is left to do up to this sequence. */
export function isWhole(meta: Meta, sequence: number | string): boolean {
  return meta.complete && meta.parked === undefined && covers(meta, sequence);
}

/** Whether all changes up to this sequence are stored. */
export function covers({ seq }: Pick<Meta, 'seq'>, sequence: number | string): boolean {
  return seq === sequence || (typeof seq === 'number' && typeof sequence === 'number' && seq > sequence);
}

/** Whether more is stored than the database has: it was set back, if it still is so. */
export function exceeds({ seq }: Pick<Meta, 'seq'>, sequence: number | string): boolean {
  return seq !== sequence && typeof sequence === 'number' && covers({ seq }, sequence);
}

/** Whether an error of a store comes and goes (B1); every other stops the index at once (B2). */
export function isTransient(error: unknown): boolean {
  return (connectionErrors as readonly string[]).includes(reasonOf(error));
}

/** The short name of what has stopped a pass. */
export function reasonOf(error: unknown): string {
  if (error instanceof RetryableError || error instanceof AfieldError) return error.code;
  const name = nameOf(error);
  const reason = (error as { reason?: unknown } | null | undefined)?.reason;
  return name === 'indexed_db_went_bad' && typeof reason === 'string' ? reason : name;
}

/**
 * What is stored, if it goes on from there; else everything is cleared, once (B5). What is stored is read before the end
 * of the feed: an end that lies before it then is one of a database that was set back.
 */
async function begin({
  documents,
  store,
  before: meta,
  anew,
  within,
  stored,
  counted,
}: PassParts): Promise<{ readonly meta: Meta | undefined; readonly head: number | string }> {
  const source = await within(documents.id());
  const { sequence: head, live } = await within(documents.extent());
  counted(live);
  const isAhead = meta !== undefined && exceeds(meta, head);
  if (!anew && meta?.source === source && !isAhead) return { meta, head };
  const fresh = { source, seq: 0, rows: 0, skipped: 0, complete: false };
  // Nothing is stored that says anything: what may be there is cleared with the first batch.
  if (meta === undefined) return { meta: { v: 1, turn: notStored, ...fresh }, head };
  const begun = await within(store.write(meta, { ...noChanges, clear: true }, fresh));
  if (begun !== undefined) stored(begun);
  return { meta: begun, head };
}

/** Reads and stores one batch. Without `meta` someone else has written, and nothing was stored. */
async function batch(
  { definition, documents, store, within }: PassParts,
  meta: Meta,
  head: number | string,
): Promise<{ readonly meta: Meta | undefined; readonly isLast: boolean }> {
  const size = definition.batchSize ?? 100;
  const { changes, last } = await within(documents.changedDocs(meta.seq, size));
  const { rows, indexed, wrong } = indexedOf(definition, changes, meta.skipped > 0);
  const isLast = wrong === undefined && changes.length < size;
  // What the feed passes over at its end (a leaf that lost) has been seen, too.
  const reached = isLast ? later(later(last, head), meta.seq) : (changes[rows - 1]?.seq ?? meta.seq);
  const next: Omit<Meta, 'turn' | 'v'> = {
    source: meta.source,
    seq: reached,
    rows: meta.rows + rows,
    skipped: meta.skipped,
    // All that was there when the pass began is done: who writes without a pause does not hold up the end.
    complete: meta.complete || isLast || covers({ seq: reached }, head),
  };
  if (wrong === undefined || rows > 0) {
    const isFirst = meta.turn === notStored;
    const written = await within(store.write(isFirst ? undefined : meta, { ...indexed, clear: isFirst }, next));
    if (written === undefined || wrong === undefined) return { meta: written, isLast };
  }
  throw wrong;
}

/** What is to be stored of these changes: of the first `rows`, which are all before the one that is wrong. */
function indexedOf(
  definition: IndexDefinition,
  changes: readonly ChangedDoc[],
  mayUnskip: boolean,
): { readonly rows: number; readonly indexed: IndexChanges; readonly wrong: WrongKeysError | undefined } {
  const put: [string, readonly IndexKey[]][] = [];
  const [remove, skip, unskip]: [string[], [string, string][], string[]] = [[], [], []];
  let rows = 0;
  let wrong: WrongKeysError | undefined;
  for (const { id, doc } of changes) {
    const judged = doc === undefined || id.startsWith('_design/') ? { keys: [] } : judge(definition, doc);
    if ('wrong' in judged && definition.onError !== 'skip') {
      wrong = new WrongKeysError(id, judged.error);
      break;
    }
    rows += 1;
    if ('keys' in judged && judged.keys.length > 0) put.push([id, judged.keys]);
    else remove.push(id);
    if ('wrong' in judged) skip.push([id, judged.wrong]);
    else if (mayUnskip) unskip.push(id);
  }
  return { rows, indexed: { put, remove, skip, unskip }, wrong };
}

function later(a: number | string, b: number | string): number | string {
  return typeof a === 'number' && typeof b === 'number' ? Math.max(a, b) : a;
}
