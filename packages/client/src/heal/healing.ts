import type { Clock } from '../model/environment.js';
import { RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import { documentConflict } from '../queue/conflicts.js';
import { keyOf } from '../queue/keys.js';
import { partAt } from '../queue/parts.js';
import type { Quarantine } from '../queue/quarantine.js';
import type { Queue } from '../queue/queue.js';
import { changesOf, type Reports } from '../queue/reports.js';
import {
  failureId,
  sequenceOf,
  storedVersion,
  withRev,
  type RowState,
  type StoredFailure,
  type StoredQuarantine,
} from '../queue/stored.js';
import { asReplayed, examine, plain, type Examined, type ExaminingParts, type OwnOperation } from './examined.js';
import { HealedRows } from './healed-rows.js';
import { findOwnWrites } from './own-writes.js';
import { replay, type Replay } from './replay.js';
import type { Settling } from './settling.js';
import { judge, type Judgement, type Leaf } from './tree.js';

export interface HealingParts extends ExaminingParts {
  readonly queue: Queue;
  readonly reports: Reports;
  readonly quarantine: Quarantine;
  readonly settling: Settling;
  readonly clock: Clock;
  readonly appVersion: string | undefined;
  readonly closed: AbortSignal;
  /** Documents were written. */
  readonly wrote: () => void;
  /** Operations have failed that were applied before. */
  readonly failed: () => void;
}

/** What a look at some documents brought. */
export interface Healed {
  /** Documents with an operation that was buried and is not any more. */
  readonly healed: number;
  /** Those that must be looked at again. */
  readonly later: readonly string[];
  readonly error: unknown;
}

/** A document with a buried operation, and what is to be done. */
interface Treatment {
  readonly examined: Examined;
  readonly judgement: Judgement;
  /** The operations that are run, in their order: the first is a buried one. */
  readonly operations: readonly OwnOperation[];
  readonly replay: Replay;
  /** The revision in which the operations are in the end; undefined: not known, or not written. */
  rev: string | undefined;
}

/**
 * Brings operations back that a replication conflict has buried (S2), and removes losing versions of which nothing would
 * be lost.
 *
 *   buried ─ run on the winner ─▶ intent ─▶ winner written ─▶ outcome durable ─▶ losing leaves removed
 *                    └─ its guard, or its error ─▶ failed, its content kept ──────────┘
 *
 * After a stop at any point the next look goes on: an intent says on which revision it was tried, and what was written
 * there is found (R3).
 */
export class Healing {
  readonly #parts: HealingParts;

  constructor(parts: HealingParts) {
    this.#parts = parts;
  }

  /** One look at these documents. Throws what the store throws. */
  async heal(ids: readonly string[]): Promise<Healed> {
    const rows = new HealedRows(this.#parts.queue);
    const examined = await findOwnWrites(await examine(ids, rows, this.#parts), this.#parts.local);
    const later = new Set(
      examined.filter(({ isBusy, waitsForAction }) => isBusy || waitsForAction).map(({ id }) => id),
    );
    const ready = examined.filter(({ isBusy }) => !isBusy);
    const treatments = ready.flatMap((one) => this.#treatmentOf(one, later));
    await this.#intend(treatments, rows, later);
    await this.#write(treatments, later);
    await this.#record(treatments, rows, later);
    const after = ready.flatMap((one) =>
      later.has(one.id) && !one.waitsForAction ? [] : [afterTreatment(one, treatments)],
    );
    for (const id of await this.#parts.settling.settle(after)) later.add(id);
    const error = new RetryableError('Some conflicts could not be healed now.', {
      class: 'conflict',
      code: 'not-healed',
    });
    return { healed: treatments.filter(({ rev }) => rev !== undefined).length, later: [...later], error };
  }

  /** What is to be done about one document; nothing where no operation is buried. */
  #treatmentOf(examined: Examined, later: Set<string>): Treatment[] {
    const { id, leaves, docs, own } = examined;
    const judgement = judge(leaves, own);
    const [first] = judgement?.buried ?? [];
    if (judgement === undefined || first === undefined) return [];
    const buried = new Set(judgement.buried.flatMap((place) => own[place] ?? []));
    const { rev } = judgement.winner;
    if (judgement.isGone) {
      // Whatever it changed, the document was deleted since. Nothing is written; a later document of this id is not its own.
      const outcomes = new Map([...buried].map((_, place) => [place, { kind: 'there' } as const]));
      return [{ examined, judgement, operations: [...buried], replay: { doc: undefined, outcomes }, rev }];
    }
    const winner = docs.get(judgement.winner.rev);
    if (winner === undefined) return [];
    const operations = own.filter(({ standing }, place) => place >= first && standing === 'counts');
    try {
      const done = replay(
        winner,
        operations.flatMap((one) => asReplayed(one, buried.has(one))),
      );
      return [{ examined, judgement, operations, replay: done, rev: done.doc === undefined ? rev : undefined }];
    } catch (error) {
      if (!(error instanceof RetryableError)) throw error;
      later.add(id);
      return [];
    }
  }

  /** Makes durable on which revisions operations are about to be run again. */
  async #intend(treatments: readonly Treatment[], rows: HealedRows, later: Set<string>): Promise<void> {
    for (const { examined, judgement, operations, replay } of treatments) {
      if (later.has(examined.id)) continue;
      for (const [place, { kind }] of replay.outcomes) {
        const operation = operations[place];
        if (kind !== 'written' || operation === undefined || operation.row.g === judgement.winner.rev) continue;
        rows.change(operation.writer, (row) => ({ ...row, h: healedIn(operation), g: judgement.winner.rev }));
      }
    }
    const records = rows.changed();
    if (records.length === 0) return;
    const { revs } = await this.#parts.queue.write(records);
    rows.written(revs);
    this.#dropLost(treatments, rows, later);
  }

  /** What another tab has changed is its own now. */
  #dropLost(treatments: readonly Treatment[], rows: HealedRows, later: Set<string>): void {
    for (const { examined, operations } of treatments) {
      if (operations.some(({ writer }) => rows.of(writer) === undefined)) later.add(examined.id);
    }
  }

  async #write(treatments: readonly Treatment[], later: Set<string>): Promise<void> {
    const { local, settling, wrote, closed } = this.#parts;
    const open = treatments.filter(({ examined, replay }) => replay.doc !== undefined && !later.has(examined.id));
    if (open.length === 0 || closed.aborted) return;
    // What is deleted goes as a whole: the winner last, or another version would be the document for a moment (S8).
    const deleted = open.filter(({ replay }) => replay.doc?._deleted === true);
    const losing = deleted.map(({ examined: { id, leaves }, judgement: { winner } }) => ({
      id,
      revs: leaves.flatMap((leaf) => (leaf.deleted || leaf === winner ? [] : [leaf.rev])),
    }));
    for (const id of await settling.remove(losing)) later.add(id);
    const ready = open.filter(({ examined }) => !later.has(examined.id));
    const answer = await local.write(ready.flatMap(({ replay }) => replay.doc ?? []));
    if (answer.rows.some(({ ok }) => ok)) wrote();
    const revs = new Map(answer.rows.flatMap((row) => (row.ok && row.rev !== undefined ? [[row.id, row.rev]] : [])));
    for (const treatment of ready) {
      treatment.rev = revs.get(treatment.examined.id);
      // Someone has written meanwhile, or no one knows: the next look finds out.
      if (treatment.rev === undefined) later.add(treatment.examined.id);
    }
    if (answer.error !== undefined) throw answer.error as Error;
  }

  /** Stores what became of the operations: in which revision they are, or that they have failed. */
  async #record(treatments: readonly Treatment[], rows: HealedRows, later: Set<string>): Promise<void> {
    const { queue, failures, reports, quarantine, failed } = this.#parts;
    const added: StoredFailure[] = [];
    const conflicting: StoredQuarantine[] = [];
    for (const treatment of treatments) {
      const { examined, operations, replay, rev } = treatment;
      if (rev === undefined || later.has(examined.id)) continue;
      for (const [place, outcome] of replay.outcomes) {
        const operation = operations[place];
        if (operation === undefined) continue;
        if (outcome.kind !== 'failed') {
          rows.change(operation.writer, (row) => withoutIntent({ ...row, h: [...healedIn(operation), rev] }));
          continue;
        }
        rows.change(operation.writer, (row) => withoutIntent({ ...row, s: 'failed', h: healedIn(operation) }));
        const { code, reason } = outcome.failure;
        added.push(this.#failureOf(operation, code, reason));
        if (outcome.conflict !== undefined) conflicting.push(this.#conflictOf(operation, outcome.conflict));
      }
    }
    const records = rows.changed();
    if (records.length === 0) return;
    const known = added.map((failure) => ({ ...failure, _rev: failures.get(failure._id)?._rev }));
    const counted = changesOf(queue.headers(), added, (report, count) => ({
      ...report,
      refused: report.refused + count,
    }));
    const revs = await reports.write(counted, [...records, ...known, ...conflicting]);
    rows.written(revs);
    this.#dropLost(treatments, rows, later);
    const lost = new Set(
      operationsOf(treatments).flatMap((one) => (rows.of(one.writer) === undefined ? nameOf(one) : [])),
    );
    await this.#takeBack(
      known.filter(({ _id }) => lost.has(_id)),
      revs,
    );
    failures.added(known.flatMap((failure) => (lost.has(failure._id) ? [] : [withRev(failure, revs)])));
    quarantine.added(conflicting.flatMap((entry) => (revs.has(entry._id) ? [withRev(entry, revs)] : [])));
    if (added.length > 0) failed();
  }

  /** Another tab has the word on these operations: that they have failed was said too early. */
  async #takeBack(failures: readonly StoredFailure[], revs: ReadonlyMap<string, string>): Promise<void> {
    if (failures.length === 0) return;
    const { queue, reports } = this.#parts;
    const counted = changesOf(queue.headers(), failures, (report, count) => ({
      ...report,
      refused: Math.max(0, report.refused - count),
    }));
    await reports.write(
      counted,
      failures.map((failure) => ({ ...withRev(failure, revs), _deleted: true })),
    );
  }

  #failureOf({ writer, row }: OwnOperation, code: string, reason: string): StoredFailure {
    const { clock, appVersion } = this.#parts;
    const { header, index, operation } = writer;
    return {
      _id: failureId(sequenceOf(header._id), index),
      v: storedVersion,
      bulkOperationId: header.id,
      index,
      ...keyAndOrigin(writer),
      id: operation.i as string,
      action: partAt(header, index).action,
      code,
      reason,
      operation: JSON.stringify({ id: operation.i, content: operation.c }),
      mayHaveBeenApplied: false,
      refused: null,
      buried: row.r ?? '',
      at: clock.wall(),
      ...(appVersion === undefined ? {} : { app: appVersion }),
    };
  }

  #conflictOf({ writer }: OwnOperation, found: Doc): StoredQuarantine {
    const { header, index, operation } = writer;
    const { key, origin } = keyOf(header, operation, index);
    const id = operation.i as string;
    const { action } = partAt(header, index);
    const conflict = { index, action, mutation: { key, origin }, id, content: operation.c, found };
    return this.#parts.quarantine.docOf(documentConflict(header, conflict));
  }
}

/** The tree and our operations as they are after a treatment: what is left to be removed is judged by that. */
function afterTreatment(examined: Examined, treatments: readonly Treatment[]): Examined {
  const treatment = treatments.find((one) => one.examined === examined);
  if (treatment?.rev === undefined) return examined;
  const { judgement, operations, replay, rev } = treatment;
  const outcomeOf = new Map(
    [...replay.outcomes].flatMap(([place, one]) => {
      const operation = operations[place];
      return operation === undefined ? [] : [[operation, one] as const];
    }),
  );
  const own = examined.own.map((one): OwnOperation => {
    const outcome = outcomeOf.get(one);
    if (outcome === undefined) return one;
    return outcome.kind === 'failed' ? { ...one, standing: 'over' } : { ...one, revs: [...one.revs, rev] };
  });
  if (replay.doc === undefined) return { ...examined, own };
  const { winner } = judgement;
  const deleted = replay.doc._deleted === true;
  const written: Leaf = { rev, deleted, ancestors: [rev, ...winner.ancestors] };
  // Of a document that was deleted nothing is left to be removed.
  const others = deleted ? [] : examined.leaves.filter((leaf) => leaf !== winner);
  const docs = new Map([...examined.docs, [rev, plain({ ...replay.doc, _rev: rev })] as const]);
  return { ...examined, own, leaves: [written, ...others], docs };
}

/** The revisions in which an operation was found or healed, as they are to be stored. */
function healedIn({ revs }: OwnOperation): string[] {
  return revs.slice(1);
}

function withoutIntent(row: RowState): RowState {
  const rest = { ...row };
  delete rest.g;
  return rest;
}

function operationsOf(treatments: readonly Treatment[]): readonly OwnOperation[] {
  return treatments.flatMap(({ operations }) => operations);
}

/** The name of its failure. */
function nameOf({ writer: { header, index } }: OwnOperation): string {
  return failureId(sequenceOf(header._id), index);
}

function keyAndOrigin({ header, operation, index }: OwnOperation['writer']): { key: string; origin: string } {
  return keyOf(header, operation, index);
}
