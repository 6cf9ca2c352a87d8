import { generationOf } from '../model/revision.js';
import {
  storeDoc,
  claimDoc,
  claimId,
  failureDoc,
  failurePrefix,
  isOutcome,
  isUnplanned,
  payloadSize,
  sequenceOf,
  type Header,
  type StoredOperation,
  type StoredQuarantine,
} from '../queue/stored.js';
import { partAt } from '../queue/parts.js';
import { AfieldError } from '../model/errors.js';
import type { Clock } from '../model/environment.js';
import type { AnyAction } from '../model/handler.js';
import type { EditFailures } from '../sync/edit-failures.js';
import type { LocalDatabase } from '../store/local-database.js';
import { placeOf } from '../run/places.js';
import { Documents } from './documents.js';
import { carriedConflict, carriedFailure, carriedHeader, carriedStanding, fileFormat, fileVersion } from './format.js';
import { FileWriter } from './file-writer.js';
import { Moment, Standing } from './moment.js';
import { pagesOf } from './pages.js';
import { select, type Chosen, type SelectionParts } from './selection.js';

export interface ExportParts extends SelectionParts {
  readonly local: LocalDatabase;
  readonly edits: EditFailures;
  readonly actions: ReadonlyMap<string, AnyAction>;
  readonly clock: Clock;
}

/**
 * Everything of this store that is not over for good, as one file (S7).
 *
 *   what is open, and how far ─▶ documents ─▶ bulk operations, as the documents show them ─▶ failed edits, quarantine
 *
 * Reads only; whoever writes meanwhile is not held up. Documents come after the first look at the queue and before the second,
 * so that what the file says of an operation fits the documents in it (`moment.ts`).
 */
export class Export {
  readonly #parts: ExportParts;
  readonly #file: FileWriter;
  readonly #documents: Documents;
  readonly #moment: Moment;

  constructor(parts: ExportParts) {
    this.#parts = parts;
    this.#file = new FileWriter(parts.breathe);
    this.#documents = new Documents(parts.local);
    this.#moment = new Moment(parts.queue, this.#documents, (header, index) => {
      const { action } = partAt(header, index);
      return placeOf(header.target, parts.actions.get(action)) === 'local';
    });
  }

  async file(): Promise<Blob> {
    const { queue, clock, edits, quarantine } = this.#parts;
    const store = await queue.docs.read('hs', storeDoc);
    if (store === undefined) throw new AfieldError('store_unreadable', 'The local store has lost its name.');
    const madeAt = clock.wall();
    const { chosen, documents } = await select(this.#parts);
    for await (const { doc } of this.#documents.read(documents)) {
      await this.#file.add({ kind: 'document', doc });
      this.#file.count({ documents: 1 });
    }
    const reports = (await queue.refreshAll()).reports;
    this.#parts.reports.loaded(reports);
    for (const one of chosen) await this.#bulkOperation(one, store.storeId);
    edits.changed();
    for (const failure of await edits.list()) {
      if (failure.resolution === undefined)
        await this.#file.add({ kind: 'failed-edit', failure: carriedFailure.parse(failure) });
    }
    for (const entry of quarantine.entries()) if (entry.resolution === undefined) await this.#conflict(entry);
    const { storeId, user, server } = store;
    return this.#file.end({
      format: fileFormat,
      version: fileVersion,
      store: storeId,
      ...(user === undefined ? {} : { user }),
      ...(server === undefined ? {} : { server }),
      madeAt,
    });
  }

  async #bulkOperation(chosen: Chosen, storeId: string): Promise<void> {
    const { queue, reports } = this.#parts;
    const then = chosen.header;
    const sequence = sequenceOf(then._id);
    // Before its batches: they may be further than it says, as after a crash, and never less far.
    const stored = await this.#present(sequence);
    if (stored === undefined) return;
    // Planned since: its operations were not known when the documents were chosen. It is planned anew.
    const now: Header = isUnplanned(then) && !isUnplanned(stored) ? { ...then, state: 'queued' } : stored;
    const report = reports.of(now);
    const changes = generationOf(now._rev) + generationOf(report._rev) + (now.origin?.changes ?? 0);
    const key = await this.#keyOf(now);
    await this.#file.add({
      kind: 'bulk-operation',
      sequence,
      header: carriedHeader.parse(now),
      origin: { store: storeId, sequence, ...now.origin, changes },
      ...(key === undefined ? {} : { key }),
    });
    await this.#content(now, now.id);
    const standing = new Standing(then, now);
    const open = new Set<number>();
    let end = 0;
    const batches = isUnplanned(now)
      ? []
      : this.#moment.batches(chosen, () => {
          standing.undone();
        });
    for await (const batch of batches) {
      standing.passed(batch);
      end = batch.from + batch.rows.length;
      batch.rows.forEach((row, place) => {
        if (!isOutcome(row)) open.add(batch.from + place);
      });
      await this.#file.add({ kind: 'batch', from: batch.from, at: batch.at, rows: [...batch.rows] });
    }
    // Of the failures in the file, whatever becomes of others meanwhile: what is counted must be there.
    const counts = { refused: 0, resolved: 0, chunks: report.chunks };
    for await (const page of pagesOf(queue.docs, failurePrefix(sequence), failureDoc)) {
      for (const failure of page) {
        const { index, refused, buried, resolution } = failure;
        // The operation is done again: what has become of it since is not known.
        if (index === null || index >= end || open.has(index)) continue;
        await this.#file.add({ kind: 'failure', failure: carriedFailure.parse(failure) });
        if (refused !== null || buried !== undefined) counts.refused++;
        if (resolution !== undefined) counts.resolved++;
      }
    }
    await this.#file.add({
      kind: 'standing',
      standing: carriedStanding.parse(standing.header()),
      report: counts,
    });
    this.#file.count({ bulkOperations: 1, operations: now.total });
  }

  /** Undefined: nothing is left to do of it since, and it was removed. */
  async #present(sequence: number): Promise<Header | undefined> {
    try {
      return await this.#parts.queue.headers.refresh(sequence);
    } catch (error) {
      if (error instanceof AfieldError && error.code === 'unknown_bulk_operation') return undefined;
      throw error;
    }
  }

  /** Its request, or its operations with the keys that were given. */
  async #content(
    content: Pick<Header, 'plan' | 'total' | 'payload' | 'subjects'>,
    owner: string | undefined,
  ): Promise<void> {
    const { queue } = this.#parts;
    const { plan, total, subjects } = content;
    if (plan !== undefined) {
      const request = JSON.stringify({ request: await queue.contents.planRequest({ plan }) });
      await this.#file.add({ kind: 'request', request });
    }
    if (plan?.planned === false && subjects !== null) await this.#subjects(subjects);
    for (let from = 0; from < total; from += payloadSize) {
      const operations = await queue.contents.operations(content, from, payloadSize);
      await this.#file.add({
        kind: 'operations',
        from,
        operations: [...operations],
        keys: await this.#keysOf(operations, owner),
      });
    }
  }

  async #subjects(subjects: NonNullable<Header['subjects']>): Promise<void> {
    const hashes = Array.isArray(subjects) ? subjects : await this.#parts.queue.contents.digest(subjects);
    if (hashes === undefined)
      throw new AfieldError('store_unreadable', 'The subjects of a plan are missing in the store.');
    for (let from = 0; from < hashes.length; from += hashesInLine) {
      await this.#file.add({ kind: 'subjects', hashes: [...hashes.slice(from, from + hashesInLine)] });
    }
  }

  async #conflict(entry: StoredQuarantine): Promise<void> {
    await this.#file.add({ kind: 'conflict', entry: carriedConflict.parse(entry) });
    if (entry.content !== undefined) await this.#content(entry.content, undefined);
  }

  async #keyOf({ id, key }: Header): Promise<Key | undefined> {
    const claim = await this.#parts.queue.docs.read(claimId('b', key), claimDoc);
    return claim?.bulkOperationId === id ? { index: claim.index, hash: claim.hash } : undefined;
  }

  /** Of operations whose keys were given, as far as these are theirs: a duplicate has the record of another one. */
  async #keysOf(operations: readonly StoredOperation[], owner: string | undefined): Promise<[number, Key][]> {
    const given = operations.flatMap(({ k, o }, place) =>
      k === undefined || o !== undefined ? [] : [{ place, id: claimId('o', k) }],
    );
    if (owner === undefined || given.length === 0) return [];
    const claims = await this.#parts.queue.docs.readMany(
      given.map(({ id }) => id),
      claimDoc,
    );
    return given.flatMap(({ place, id }): [number, Key][] => {
      const claim = claims.get(id);
      return claim?.bulkOperationId === owner ? [[place, { index: claim.index, hash: claim.hash }]] : [];
    });
  }
}

const hashesInLine = 10_000;

interface Key {
  readonly index: number;
  readonly hash: string;
}
