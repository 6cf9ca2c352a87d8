import type { Endings } from '../queue/endings.js';
import type { Queue } from '../queue/queue.js';
import { sequenceOf } from '../queue/stored.js';
import type { LocalDatabase } from '../store/local-database.js';
import { standingOf, type Found, type FoundOperation } from './examined.js';
import type { HealedRows } from './healed-rows.js';
import { afterFailed, regainedIn } from './regained.js';

/** The place of an operation in the queue. */
export interface RegainedPlace {
  readonly sequence: number;
  readonly index: number;
}

export interface RegainingParts {
  readonly local: LocalDatabase;
  readonly queue: Queue;
  readonly endings: Endings;
  /**
   * These operations have events again: whoever has passed them looks once more. Durable when it resolves. False: not now, it
   * is to be asked again.
   */
  readonly regained: (places: readonly RegainedPlace[]) => Promise<boolean>;
  /** There are fewer failures. */
  readonly failed: () => void;
}

/**
 * Turns operations that have failed when they were run again into applied ones, where the branch that holds them has won
 * since (S2). What a person has decided about the failure stays.
 *
 *   failed ─ in the winner's history ─▶ row is applied ─▶ its event is looked at again ─▶ failure removed, counted
 *
 * The failure goes last: as long as it is there, the next look finds what is left to do.
 */
export class Regaining {
  readonly #parts: RegainingParts;

  constructor(parts: RegainingParts) {
    this.#parts = parts;
  }

  /** Answers with the documents as they are then. Adds to `again` those that must be looked at once more. */
  async regain(examined: readonly Found[], rows: HealedRows, again: Set<string>): Promise<readonly Found[]> {
    const standing = await this.#standing(examined);
    await this.#keepRows(examined, standing, rows, again);
    const open = [...standing].filter(({ writer }) => rows.of(writer) !== undefined);
    if (open.length === 0) return examined;
    const areTold = await this.#parts.regained(open.map(placeOf));
    const done = areTold
      ? await this.#parts.endings.takeBack(open.flatMap(({ failure }) => failure ?? []))
      : new Set<string>();
    for (const { writer, failure } of open) {
      if (!done.has(failure?._id ?? '')) again.add(writer.operation.i as string);
    }
    if (done.size === 0) return examined;
    this.#parts.failed();
    return examined.map((found) => withRegained(found, rows, done));
  }

  /** The failed operations that stand in what has won. */
  async #standing(examined: readonly Found[]): Promise<ReadonlySet<FoundOperation>> {
    const wanted = examined.flatMap(({ id, leaves, own }) => afterFailed(leaves, own).map((rev) => ({ id, rev })));
    const reads = wanted.length === 0 ? [] : await this.#parts.local.readRevisions(wanted);
    const deletions = new Map<string, Set<string>>();
    for (const { id, doc } of reads) {
      if (doc._deleted === true) deletions.set(id, (deletions.get(id) ?? new Set()).add(doc._rev ?? ''));
    }
    return new Set(
      examined.flatMap(({ id, leaves, own }) =>
        regainedIn(leaves, own, deletions.get(id) ?? new Set()).flatMap((place) => own[place] ?? []),
      ),
    );
  }

  /** A row says `applied` where its operation stands, and `failed` where it does not, or a person has decided meanwhile. */
  async #keepRows(
    examined: readonly Found[],
    standing: ReadonlySet<FoundOperation>,
    rows: HealedRows,
    again: Set<string>,
  ): Promise<void> {
    const concerned = examined.flatMap(({ own }) => own.filter(({ failure }) => failure?.buried !== undefined));
    for (const operation of concerned) {
      const s = standing.has(operation) ? 'applied' : 'failed';
      if (operation.row.s !== s) rows.change(operation.writer, (row) => ({ ...row, s }));
    }
    const records = rows.changed();
    if (records.length === 0) return;
    const { revs } = await this.#parts.queue.docs.write(records);
    rows.written(revs);
    // Another tab has the word on what was not written.
    for (const { writer } of concerned) if (rows.of(writer) === undefined) again.add(writer.operation.i as string);
  }
}

function withRegained(found: Found, rows: HealedRows, done: ReadonlySet<string>): Found {
  if (!found.own.some(({ failure }) => done.has(failure?._id ?? ''))) return found;
  const own = found.own.map((one): FoundOperation => {
    const row = rows.of(one.writer);
    if (row === undefined || !done.has(one.failure?._id ?? '')) return one;
    return { ...one, row, failure: undefined, standing: standingOf(row, one.action, undefined) };
  });
  return { ...found, own, isHeld: found.isRefused || own.some(({ standing }) => standing === 'held') };
}

function placeOf({ writer: { header, index } }: FoundOperation): RegainedPlace {
  return { sequence: sequenceOf(header._id), index };
}
