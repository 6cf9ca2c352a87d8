import type { Clock } from '../model/environment.js';
import { RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import { documentConflict } from '../queue/conflicts.js';
import { keyOf } from '../queue/keys.js';
import { partAt } from '../queue/parts.js';
import type { Quarantine } from '../queue/quarantine.js';
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
import { examine, type ExaminingParts, type Found, type FoundOperation } from './examined.js';
import { HealedRows } from './healed-rows.js';
import { findOwnWrites } from './own-writes.js';
import { Regaining, type RegainingParts } from './regaining.js';
import type { Settling } from './settling.js';
import { afterTreatment, losingLeaves, treatmentOf, type Treatment } from './treatment.js';

export interface HealingParts extends ExaminingParts, RegainingParts {
  readonly reports: Reports;
  readonly quarantine: Quarantine;
  readonly settling: Settling;
  readonly clock: Clock;
  readonly appVersion: string | undefined;
  readonly closed: AbortSignal;
  /** Documents were written. */
  readonly wrote: () => void;
  /** Operations have failed that were applied before, or the other way round. */
  readonly failed: () => void;
}

/** What a look at some documents brought. */
export interface Healed {
  /** Documents with an operation that was buried and is not any more. */
  readonly healed: number;
  /** Those that must be looked at again. */
  readonly later: readonly string[];
  /** Those that must be looked at again when a failure has changed, or an action is there. */
  readonly held: readonly string[];
  readonly error: unknown;
}

/** A treatment on its way. */
interface Patient extends Treatment<FoundOperation> {
  readonly found: Found;
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
  readonly #regaining: Regaining;

  constructor(parts: HealingParts) {
    this.#parts = parts;
    this.#regaining = new Regaining(parts);
  }

  /** One look at these documents. Throws what the store throws. */
  async heal(ids: readonly string[]): Promise<Healed> {
    const rows = new HealedRows(this.#parts.queue);
    const examined = await findOwnWrites(await examine(ids, rows, this.#parts), this.#parts.local);
    const later = new Set(examined.filter(({ isBusy }) => isBusy).map(({ id }) => id));
    const again = new Set<string>();
    const idle = examined.filter(({ isBusy }) => !isBusy);
    const free = await this.#regaining.regain(
      idle.filter(({ isRefused }) => !isRefused),
      rows,
      again,
    );
    const ready = [...free, ...idle.filter(({ isRefused }) => isRefused)];
    const patients = free.flatMap((one) => this.#patientOf(one, later));
    await this.#intend(patients, rows, later);
    await this.#write(patients, later);
    this.#keepFound(ready, patients, rows);
    await this.#record(patients, rows, later);
    const treated = new Map(patients.map((patient) => [patient.found, patient]));
    const after = ready.flatMap((one) => {
      const patient = treated.get(one);
      if (later.has(one.id)) return [];
      return [patient?.rev === undefined ? one : { ...one, ...afterTreatment(one, patient, patient.rev) }];
    });
    for (const id of await this.#parts.settling.settle(after)) later.add(id);
    const held = ready.flatMap(({ id, isHeld }) => (isHeld ? [id] : []));
    const error = new RetryableError('Some conflicts could not be healed now.', {
      class: 'conflict',
      code: 'not-healed',
    });
    return {
      healed: patients.filter(({ rev }) => rev !== undefined).length,
      later: [...new Set([...later, ...again])],
      held,
      error,
    };
  }

  /** What is to be done about one document; nothing where no operation is buried. */
  #patientOf(found: Found, later: Set<string>): Patient[] {
    try {
      const treatment = treatmentOf(found);
      if (treatment === undefined) return [];
      const rev = treatment.replay.doc === undefined ? treatment.judgement.winner.rev : undefined;
      return [{ ...treatment, found, rev }];
    } catch (error) {
      if (!(error instanceof RetryableError)) throw error;
      later.add(found.id);
      return [];
    }
  }

  /** Makes durable on which revisions operations are about to be run again. */
  async #intend(patients: readonly Patient[], rows: HealedRows, later: Set<string>): Promise<void> {
    for (const { found, judgement, operations, replay } of patients) {
      if (later.has(found.id)) continue;
      for (const [place, { kind }] of replay.outcomes) {
        const operation = operations[place];
        if (kind !== 'written' || operation === undefined || operation.row.g === judgement.winner.rev) continue;
        rows.change(operation.writer, (row) => ({ ...row, h: healedIn(operation), g: judgement.winner.rev }));
      }
    }
    const records = rows.changed();
    if (records.length === 0) return;
    const { revs } = await this.#parts.queue.docs.write(records);
    rows.written(revs);
    this.#dropLost(patients, rows, later);
  }

  /** What another tab has changed is its own now. */
  #dropLost(patients: readonly Patient[], rows: HealedRows, later: Set<string>): void {
    for (const { found, operations } of patients) {
      if (operations.some(({ writer }) => rows.of(writer) === undefined)) later.add(found.id);
    }
  }

  async #write(patients: readonly Patient[], later: Set<string>): Promise<void> {
    const { local, settling, wrote, closed } = this.#parts;
    const open = patients.filter(({ found, replay }) => replay.doc !== undefined && !later.has(found.id));
    if (open.length === 0 || closed.aborted) return;
    // What is deleted goes as a whole: the winner last, or another version would be the document for a moment (S8).
    const deleted = open.filter(({ replay }) => replay.doc?._deleted === true);
    const losing = deleted.map(({ found, judgement }) => ({ id: found.id, revs: losingLeaves(found, judgement) }));
    for (const id of await settling.remove(losing)) later.add(id);
    const ready = open.filter(({ found }) => !later.has(found.id));
    const answer = await local.write(ready.flatMap(({ replay }) => replay.doc ?? []));
    if (answer.rows.some(({ ok }) => ok)) wrote();
    const revs = new Map(answer.rows.flatMap((row) => (row.ok && row.rev !== undefined ? [[row.id, row.rev]] : [])));
    for (const patient of ready) {
      patient.rev = revs.get(patient.found.id);
      // Someone has written meanwhile, or no one knows: the next look finds out.
      if (patient.rev === undefined) later.add(patient.found.id);
    }
    if (answer.error !== undefined) throw answer.error as Error;
  }

  /** What was found written after a stop is stored, where nothing more is to be done about it. */
  #keepFound(ready: readonly Found[], patients: readonly Patient[], rows: HealedRows): void {
    const treated = new Set(patients.flatMap(({ operations }) => operations));
    for (const operation of ready.flatMap(({ own }) => own)) {
      if (treated.has(operation) || healedIn(operation).length === (operation.row.h?.length ?? 0)) continue;
      rows.change(operation.writer, (row) => withoutIntent({ ...row, h: healedIn(operation) }));
    }
  }

  /** Stores what became of the operations: in which revision they are, or that they have failed. */
  async #record(patients: readonly Patient[], rows: HealedRows, later: Set<string>): Promise<void> {
    const { queue, failures, reports, quarantine, failed } = this.#parts;
    const added: StoredFailure[] = [];
    const conflicting: StoredQuarantine[] = [];
    for (const patient of patients) {
      const { found, operations, replay, rev } = patient;
      if (rev === undefined || later.has(found.id)) continue;
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
    const counted = changesOf(queue.headers.all(), added, (report, count) => ({
      ...report,
      refused: report.refused + count,
    }));
    const revs = await reports.write(counted, [...records, ...known, ...conflicting]);
    rows.written(revs);
    this.#dropLost(patients, rows, later);
    const lost = new Set(
      operationsOf(patients).flatMap((one) => (rows.of(one.writer) === undefined ? nameOf(one) : [])),
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
    const counted = changesOf(queue.headers.all(), failures, (report, count) => ({
      ...report,
      refused: Math.max(0, report.refused - count),
    }));
    await reports.write(
      counted,
      failures.map((failure) => ({ ...withRev(failure, revs), _deleted: true })),
    );
  }

  #failureOf({ writer, row }: FoundOperation, code: string, reason: string): StoredFailure {
    const { clock, appVersion } = this.#parts;
    const { header, index, operation } = writer;
    return {
      _id: failureId(sequenceOf(header._id), index),
      v: storedVersion,
      bulkOperationId: header.id,
      index,
      ...keyOf(header, operation, index),
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

  #conflictOf({ writer }: FoundOperation, found: Doc): StoredQuarantine {
    const { header, index, operation } = writer;
    const { key, origin } = keyOf(header, operation, index);
    const id = operation.i as string;
    const { action } = partAt(header, index);
    const conflict = { index, action, mutation: { key, origin }, id, content: operation.c, found };
    return this.#parts.quarantine.docOf(documentConflict(header, conflict));
  }
}

/** The revisions in which an operation was found or healed, as they are to be stored. */
function healedIn({ revs }: FoundOperation): string[] {
  return revs.slice(1);
}

function withoutIntent(row: RowState): RowState {
  const rest = { ...row };
  delete rest.g;
  return rest;
}

function operationsOf(patients: readonly Patient[]): readonly FoundOperation[] {
  return patients.flatMap(({ operations }) => operations);
}

/** The name of its failure. */
function nameOf({ writer: { header, index } }: FoundOperation): string {
  return failureId(sequenceOf(header._id), index);
}
