import type { OpenConflict } from '../model/conflict.js';
import { sameJson } from '../model/same-json.js';
import type { Queue } from '../queue/queue.js';
import {
  conflictDoc,
  conflictId,
  conflictPrefix,
  storedVersion,
  withRev,
  type StoredConflict,
} from '../queue/stored.js';

/** What is to be kept of one document; undefined: it has no conflict that is left alone. */
export type ConflictState =
  { readonly winner: string; readonly losing: readonly string[]; readonly decided?: readonly string[] } | undefined;

/** The conflicts that are left alone, because no operation of ours has caused them. Read when someone first asks. */
export class OpenConflicts {
  readonly #queue: Queue;
  readonly #changed: () => void;
  readonly #known = new Map<string, StoredConflict>();
  #loading: Promise<void> | undefined;

  constructor(queue: Queue, changed: () => void) {
    this.#queue = queue;
    this.#changed = changed;
  }

  /** Resolves when they were read once. */
  ready(): Promise<void> {
    this.#loading ??= this.#read().catch((error: unknown) => {
      this.#loading = undefined;
      throw error;
    });
    return this.#loading;
  }

  /** Reads them again, if they were ever read: another tab may have found some. */
  async reload(): Promise<void> {
    if (this.#loading === undefined) return;
    await this.#loading.catch(() => undefined);
    this.#loading = undefined;
    await this.ready();
  }

  get(id: string): StoredConflict | undefined {
    return this.#known.get(id);
  }

  /** Oldest first; needs `ready` before. */
  list(): readonly OpenConflict[] {
    return [...this.#known]
      .flatMap(([id, { winner, losing, at }]) => (losing.length === 0 ? [] : [{ id, winner, losing, foundAt: at }]))
      .sort((a, b) => a.foundAt - b.foundAt || (a.id < b.id ? -1 : 1));
  }

  /** How many. Asked whenever anything is shown: nothing is sorted for it. */
  get count(): number {
    let count = 0;
    for (const { losing } of this.#known.values()) if (losing.length > 0) count++;
    return count;
  }

  /** Keeps what was found of these documents: durable when it resolves. Answers whether anything is new. */
  async keep(found: ReadonlyMap<string, ConflictState>, now: number): Promise<boolean> {
    const changes = [...found].flatMap(([id, state]) => {
      const known = this.#known.get(id);
      if (known === undefined && state === undefined) return [];
      if (state === undefined) return known === undefined ? [] : [{ ...known, _deleted: true as const }];
      const { at = now, ...before } = known ?? {};
      const { winner, losing, decided } = state;
      const next: StoredConflict = {
        ...before,
        _id: conflictId(id),
        v: storedVersion,
        at,
        winner,
        losing: [...losing],
        ...(decided === undefined ? {} : { decided: [...decided] }),
      };
      return sameJson(known, next) ? [] : [next];
    });
    if (changes.length === 0) return false;
    const { revs, conflicts } = await this.#queue.docs.write(changes);
    for (const change of changes) {
      const id = change._id.slice(conflictPrefix.length);
      if (conflicts.has(change._id)) continue;
      if ('_deleted' in change) this.#known.delete(id);
      else this.#known.set(id, withRev(change, revs));
    }
    if (conflicts.size > 0) await this.reload();
    this.#changed();
    return true;
  }

  async #read(): Promise<void> {
    const stored = await this.#queue.docs.readRange(conflictPrefix, conflictDoc);
    this.#known.clear();
    for (const conflict of stored) this.#known.set(conflict._id.slice(conflictPrefix.length), conflict);
    this.#changed();
  }
}
