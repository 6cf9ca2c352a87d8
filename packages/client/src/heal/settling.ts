import type { Clock } from '../model/environment.js';
import { ClientClosedError } from '../model/errors.js';
import type { ResolveConflict } from '../model/conflict.js';
import type { Doc } from '../model/json.js';
import type { LocalDatabase } from '../store/local-database.js';
import { documentFailure } from '../actions/document.js';
import { sameJson } from '../model/same-json.js';
import { removeLeaves } from '../run/remove-leaves.js';
import { losingLeaves, type Examined } from './treatment.js';
import { markOf } from './mark.js';
import type { ConflictState, OpenConflicts } from './open-conflicts.js';
import { judge, type Judgement, type OwnWrite } from './tree.js';

/** A resolver whose answers lose again and again is not asked any more: two that disagree would go on for ever. */
const mostDecisions = 5;

/** A document that may be one on which nothing may be built, or removed beside it. */
export type Settled = Examined & { readonly isRefused: boolean };

export interface SettlingParts {
  readonly local: LocalDatabase;
  readonly conflicts: OpenConflicts;
  readonly resolve: ResolveConflict | undefined;
  readonly clock: Clock;
  readonly closed: AbortSignal;
  readonly warn: (line: string) => void;
  /** Documents were written. */
  readonly wrote: () => void;
  /** The list of open conflicts has changed. */
  readonly found: () => void;
}

/** Removes losing versions of which nothing would be lost, and keeps account of those that are left alone. */
export class Settling {
  readonly #parts: SettlingParts;

  constructor(parts: SettlingParts) {
    this.#parts = parts;
  }

  /** Documents as they are now, with no operation of ours buried. Answers with those that must be looked at again. */
  async settle(examined: readonly Settled[]): Promise<readonly string[]> {
    const { conflicts, clock, local, found } = this.#parts;
    await conflicts.ready();
    const judged = examined.map((one) => ({ examined: one, judgement: judge(one.leaves, this.#answered(one)) }));
    const free = judged.filter(({ examined: { isRefused } }) => !isRefused);
    const later = new Set(
      await this.remove(free.map(({ examined: { id }, judgement }) => ({ id, revs: judgement?.removable ?? [] }))),
    );
    const marks = free.flatMap(
      ({ examined: { id }, judgement }) => judgement?.markable.map((mark) => markOf(id, mark)) ?? [],
    );
    if (marks.length > 0) {
      await local.writeRevisions(marks);
      this.#parts.wrote();
    }
    const states = new Map<string, ConflictState>();
    for (const { examined: one, judgement } of judged) states.set(one.id, await this.#stateOf(one, judgement, later));
    if (await conflicts.keep(states, clock.wall())) found();
    return [...later];
  }

  /**
   * Removes live losing leaves, one leaf of a document in each write. Answers with the documents where not all of it was
   * done. Throws what the store throws.
   */
  async remove(
    losing: readonly { readonly id: string; readonly revs: readonly string[] }[],
  ): Promise<ReadonlySet<string>> {
    const { local, closed, wrote } = this.#parts;
    const leaves = new Map(losing.flatMap(({ id, revs }) => (revs.length === 0 ? [] : [[id, revs] as const])));
    if (leaves.size === 0) return new Set();
    const goesOn = (): Promise<void> => (closed.aborted ? Promise.reject(new ClientClosedError()) : Promise.resolve());
    const { refused, error } = await removeLeaves(local, leaves, goesOn);
    wrote();
    if (error !== undefined) throw error as Error;
    return new Set(refused.map(({ id }) => id));
  }

  /** What the app has decided before is its own, and answered for. */
  #answered({ id, own }: Examined): readonly OwnWrite[] {
    const decided = this.#parts.conflicts.get(id)?.decided ?? [];
    return decided.length === 0 ? own : [...own, { revs: decided, standing: 'over' }];
  }

  async #stateOf(examined: Settled, judgement: Judgement | undefined, later: Set<string>): Promise<ConflictState> {
    const { conflicts } = this.#parts;
    const known = conflicts.get(examined.id);
    const decided = known?.decided ?? [];
    const kept = decided.length === 0 ? {} : { decided };
    if (judgement === undefined || judgement.foreign.length === 0) {
      return decided.length === 0 ? undefined : { winner: judgement?.winner.rev ?? '', losing: [], ...kept };
    }
    const left = { winner: judgement.winner.rev, losing: judgement.foreign, ...kept };
    if (examined.isRefused || decided.length >= mostDecisions) return left;
    const answer = this.#decision(examined, judgement);
    return answer === undefined ? left : this.#decide(examined, judgement, answer, left, later);
  }

  /** What the app’s resolver says; undefined: the conflict is left alone. */
  #decision({ id, docs }: Examined, { winner, foreign }: Judgement): Doc | undefined {
    const { resolve, warn } = this.#parts;
    const won = docs.get(winner.rev);
    if (resolve === undefined || won === undefined) return undefined;
    try {
      const answer: unknown = resolve({ id, winner: won, losing: foreign.flatMap((rev) => docs.get(rev) ?? []) });
      if (answer === undefined || answer === null) return undefined;
      const isPlain = Object.prototype.toString.call(answer) === '[object Object]' && !('then' in Object(answer));
      if (!isPlain) throw new TypeError('It must answer with a document, or undefined.');
      const doc = { ...(answer as Doc), _id: id, _rev: winner.rev };
      if (documentFailure(doc) !== undefined) throw new TypeError('What it answered cannot be stored.');
      return doc;
    } catch (error) {
      warn(`resolveConflict failed (${error instanceof Error ? error.name : 'error'}). The conflict is left alone.`);
      return undefined;
    }
  }

  /** The winner is written first, the losing leaves are removed second. */
  async #decide(
    examined: Examined,
    judgement: Judgement,
    doc: Doc,
    left: NonNullable<ConflictState>,
    later: Set<string>,
  ): Promise<ConflictState> {
    const { local, wrote } = this.#parts;
    const { id, docs } = examined;
    const { winner, foreign } = judgement;
    const decided = [...(left.decided ?? [])];
    if (doc._deleted === true) {
      for (const one of await this.remove([{ id, revs: losingLeaves(examined, judgement) }])) later.add(one);
      if (later.has(id)) return left;
    }
    if (!sameJson(doc, docs.get(winner.rev))) {
      const [row] = (await local.write([doc])).rows;
      if (row?.ok !== true) {
        later.add(id);
        return left;
      }
      wrote();
      decided.push(row.rev ?? '');
      await this.#parts.conflicts.keep(new Map([[id, { ...left, decided }]]), this.#parts.clock.wall());
    }
    if (doc._deleted !== true) {
      for (const one of await this.remove([{ id, revs: foreign }])) later.add(one);
    }
    const isLeft = later.has(id);
    if (!isLeft && decided.length === 0) return undefined;
    return {
      winner: decided.at(-1) ?? winner.rev,
      losing: isLeft ? foreign : [],
      ...(decided.length === 0 ? {} : { decided }),
    };
  }
}
