import type { FailedOperation } from '../model/states.js';
import type { ListFilter } from './failure-filter.js';
import type { StoredDocs } from './stored-docs.js';
import { failureDoc, type StoredFailure } from './stored.js';

/** The operations that failed for good. Read from the store when someone first asks for them. */
export class Failures {
  readonly #docs: StoredDocs;
  readonly #changed: () => void;
  readonly #known = new Map<string, { stored: StoredFailure; shown: FailedOperation }>();
  /** Names of the failures of documents that the server refused, by document. */
  readonly #refused = new Map<string, Set<string>>();
  /** Names in their order; undefined when they must be sorted anew. */
  #order: string[] | undefined = [];
  #version = 0;
  #loading: Promise<void> | undefined;
  #isRead = false;
  /** Names of those that were added or removed since the present reading began; undefined while nothing is read. */
  #touched: Set<string> | undefined;

  constructor(docs: StoredDocs, changed: () => void) {
    this.#docs = docs;
    this.#changed = changed;
  }

  /** Another number after each change of any of them. */
  get version(): number {
    return this.#version;
  }

  /** Reads them again, if they were ever read: another tab may have added some. Those that are known stay till then. */
  async reload(): Promise<void> {
    if (this.#loading === undefined) return;
    // One reading after another: two at once would not know whose is the newer one.
    for (let before; before !== this.#loading && this.#loading !== undefined;) {
      before = this.#loading;
      await before.catch(() => undefined);
    }
    this.#loading = this.#reading();
    await this.#loading;
  }

  load(): Promise<void> {
    this.#loading ??= this.#reading();
    return this.#loading;
  }

  /** What was just stored. */
  added(failures: readonly StoredFailure[]): void {
    if (failures.length === 0) return;
    for (const failure of failures) {
      this.#keep(failure);
      this.#touched?.add(failure._id);
    }
    this.#changed();
  }

  removed(ids: readonly string[]): void {
    if (ids.length === 0) return;
    for (const id of ids) {
      this.#drop(id);
      this.#touched?.add(id);
    }
    this.#changed();
  }

  /** The one of this name; needs `load` before. */
  get(failureId: string): StoredFailure | undefined {
    return this.#known.get(failureId)?.stored;
  }

  /** Those of a document that the server refused; needs `load` before. */
  refusedOf(docId: string): readonly StoredFailure[] {
    return [...(this.#refused.get(docId) ?? [])].flatMap((id) => this.#known.get(id)?.stored ?? []);
  }

  /** Those of one bulk operation, in the order of its operations; needs `load` before. */
  of(bulkOperationId: string): readonly StoredFailure[] {
    return this.#inOrder().flatMap(({ stored }) => (stored.bulkOperationId === bulkOperationId ? [stored] : []));
  }

  /** Those of several bulk operations, by their ids, each in the order of its operations; needs `load` before. */
  ofAll(bulkOperationIds: ReadonlySet<string>): ReadonlyMap<string, readonly StoredFailure[]> {
    const found = new Map<string, StoredFailure[]>();
    for (const { stored } of this.#inOrder()) {
      const { bulkOperationId } = stored;
      if (bulkOperationId === null || !bulkOperationIds.has(bulkOperationId)) continue;
      const list = found.get(bulkOperationId);
      if (list === undefined) found.set(bulkOperationId, [stored]);
      else list.push(stored);
    }
    return found;
  }

  /** Those that are still open. */
  list(): readonly FailedOperation[] {
    return this.#inOrder().flatMap(({ shown }) => (shown.resolution === undefined ? [shown] : []));
  }

  /** Those that fit, open or not as the filter says, in their order; needs `load` before. */
  matching(filter: ListFilter): readonly { stored: StoredFailure; shown: FailedOperation }[] {
    const fits = fitting(filter);
    return this.#inOrder().filter(({ shown }) => fits(shown));
  }

  #keep(stored: StoredFailure): void {
    this.#version++;
    if (!this.#known.has(stored._id) && this.#order !== undefined) {
      const last = this.#order[this.#order.length - 1];
      if (last === undefined || last < stored._id) this.#order.push(stored._id);
      else this.#order = undefined;
    }
    this.#known.set(stored._id, { stored, shown: shownOf(stored) });
    if (stored.refused === null || stored.id === null) return;
    const names = this.#refused.get(stored.id) ?? new Set();
    this.#refused.set(stored.id, names.add(stored._id));
  }

  #drop(id: string): void {
    this.#version++;
    const docId = this.#known.get(id)?.stored.id;
    if (typeof docId === 'string') this.#refused.get(docId)?.delete(id);
    this.#known.delete(id);
    this.#order = undefined;
  }

  #inOrder(): { stored: StoredFailure; shown: FailedOperation }[] {
    this.#order ??= [...this.#known.keys()].sort();
    return this.#order.flatMap((id) => this.#known.get(id) ?? []);
  }

  #reading(): Promise<void> {
    return this.#read().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
  }

  /** Says so only when there is news: whoever lists failures because they have changed must not be told again. */
  async #read(): Promise<void> {
    const touched = (this.#touched = new Set());
    const stored = await this.#docs.readRange('f:', failureDoc);
    // Whoever wrote while these were read knows better.
    const found = stored.filter(({ _id }) => !touched.has(_id));
    const names = new Set(stored.map(({ _id }) => _id));
    const gone = [...this.#known.keys()].filter((id) => !names.has(id) && !touched.has(id));
    const fresh = found.filter(({ _id, _rev }) => this.#known.get(_id)?.stored._rev !== _rev);
    this.#touched = undefined;
    for (const id of gone) this.#drop(id);
    for (const failure of fresh) this.#keep(failure);
    const isFirst = !this.#isRead;
    this.#isRead = true;
    if (isFirst || gone.length + fresh.length > 0) this.#changed();
  }
}

function fitting(filter: ListFilter): (failure: FailedOperation) => boolean {
  // A list may be as long as the failures are many: each is looked up, not searched for.
  const one = (wanted: string | readonly string[] | undefined): ((value: string | undefined) => boolean) => {
    if (wanted === undefined) return () => true;
    const names = new Set(typeof wanted === 'string' ? [wanted] : wanted);
    return (value) => value !== undefined && names.has(value);
  };
  const { since, before, resolved = false } = filter;
  const failureId = one(filter.failureId);
  const bulkOperationId = one(filter.bulkOperationId);
  const code = one(filter.code);
  const action = one(filter.action);
  const id = one(filter.id);
  return (failure) =>
    failureId(failure.failureId) &&
    bulkOperationId(failure.bulkOperationId) &&
    code(failure.code) &&
    action(failure.action) &&
    id(failure.id) &&
    (since === undefined || failure.failedAt >= since) &&
    (before === undefined || failure.failedAt < before) &&
    (failure.resolution !== undefined) === resolved;
}

function shownOf(failure: StoredFailure): FailedOperation {
  return {
    failureId: failure._id,
    bulkOperationId: failure.bulkOperationId ?? undefined,
    index: failure.index ?? undefined,
    key: failure.key ?? undefined,
    id: failure.id ?? undefined,
    action: failure.action ?? undefined,
    code: failure.code,
    reason: failure.reason,
    operation: failure.operation === null ? undefined : (JSON.parse(failure.operation) as unknown),
    mayHaveBeenApplied: failure.mayHaveBeenApplied,
    failedAt: failure.at,
    appVersion: failure.app,
    localDocument: failure.local === undefined ? undefined : (JSON.parse(failure.local) as unknown),
    resolution: failure.resolution,
  };
}
