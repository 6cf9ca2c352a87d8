import { omit } from 'es-toolkit/object';
import type { ServerDatabase } from '../http/server-database.js';
import { RetryableError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { DocRow, WriteRow } from '../model/pouch.js';
import { sameJson } from '../model/same-json.js';
import { jsonBytes, withoutContents } from './failure-chunks.js';
import { failuresDocument } from './result-documents.js';

/** Documents that are held in memory at once: about three requests. */
const bytesAtOnce = 2_900_000;

/** Documents that count together: of one bulk operation, or of the app's own edits. */
export interface Parcel {
  readonly name: string;
  /** The document whose age decides for all of them. */
  readonly oldestBy: string;
  docs(): Iterable<Doc>;
}

/** The one document that goes with every delivery, made from what the server has of it. */
export interface Companion {
  readonly id: string;
  /** What the server has, when it is known without a question. */
  readonly known: Present | undefined;
  /** Undefined: what is there says it already. */
  make(present: Present | undefined): Doc | undefined;
}

export type Present = Pick<DocRow, 'rev' | 'doc' | 'deleted'>;

export interface Delivery {
  /** Names of the parcels that the server has as a whole. */
  readonly delivered: ReadonlySet<string>;
  /** The companion as it was written, with its revision; undefined: the server did not take it. */
  readonly companion: Doc | undefined;
  /** Why a single parcel, or the companion, was not taken. */
  readonly refusal?: unknown;
  /** Another tab has sent something newer. */
  readonly isOld: boolean;
  /** Why the delivery ended early. */
  readonly error?: unknown;
}

interface Item {
  readonly parcel: Parcel;
  readonly doc: Doc;
}

/**
 * Writes parcels over what is there under their ids, and the companion last. A parcel that the server does not take, or
 * has newer, holds up no other.
 */
export async function deliver(
  server: ServerDatabase,
  parcels: readonly Parcel[],
  companion: Companion,
  breathe: () => Promise<void>,
): Promise<Delivery> {
  const writer = new Writer(server, companion);
  let items: Item[] = [];
  let bytes = 0;
  for (const parcel of parcels) {
    for (const doc of parcel.docs()) {
      const size = jsonBytes(doc);
      if (items.length > 0 && bytes + size > bytesAtOnce) {
        await writer.write(items);
        if (writer.error !== undefined) return writer.outcome([]);
        await breathe();
        items = [];
        bytes = 0;
      }
      items.push({ parcel, doc });
      bytes += size;
    }
  }
  await writer.write(items, true);
  return writer.outcome(parcels);
}

class Writer {
  readonly #server: ServerDatabase;
  readonly #companion: Companion;
  readonly #lost = new Set<string>();
  #written: Doc | undefined;
  #refusal: unknown;
  #isOld = false;
  error: unknown;

  constructor(server: ServerDatabase, companion: Companion) {
    this.#server = server;
    this.#companion = companion;
  }

  outcome(parcels: readonly Parcel[]): Delivery {
    const ended = this.error !== undefined;
    return {
      delivered: new Set(ended ? [] : parcels.flatMap(({ name }) => (this.#lost.has(name) ? [] : [name]))),
      companion: this.#written,
      refusal: this.#refusal,
      isOld: this.#isOld,
      ...(ended ? { error: this.error } : {}),
    };
  }

  async write(items: readonly Item[], isLast = false): Promise<void> {
    try {
      if (isLast && items.length === 0 && this.#companion.known !== undefined) {
        if (await this.#writeCompanion(this.#companion.known)) return;
      }
      await this.#write(items, isLast);
    } catch (error) {
      this.error = error;
    }
  }

  async #write(items: readonly Item[], isLast: boolean): Promise<void> {
    const present = await this.#present(items, isLast);
    for (const { parcel, doc } of items) {
      // A tab that wakes late must not write an older truth over a newer one.
      const ages = [present.get(parcel.oldestBy), present.get(doc._id)].map(ageOf);
      if (!ages.some((age) => age > ageOf({ doc }))) continue;
      this.#isOld = true;
      this.#lost.add(parcel.name);
    }
    const fresh = items.filter(
      ({ parcel, doc }) => !this.#lost.has(parcel.name) && !isThere(doc, present.get(doc._id)),
    );
    const docs = fresh.map(({ doc }) => onTop(doc, present.get(doc._id)));
    const own = isLast ? this.#companion.make(present.get(this.#companion.id)) : undefined;
    const rows = await this.#send([...docs, ...(own === undefined ? [] : [own])]);
    const smaller = docs.flatMap((doc) => (isTooLarge(rows.get(doc._id)) ? lessOf(doc) : []));
    if (smaller.length > 0) for (const [id, row] of await this.#send(smaller)) rows.set(id, row);
    for (const { parcel, doc } of fresh) if (!this.#isTaken(rows.get(doc._id))) this.#lost.add(parcel.name);
    if (own !== undefined) this.#keep(own, rows.get(own._id));
  }

  /** What the server has under these ids, and of parcels that began before: whether it is newer. */
  async #present(items: readonly Item[], isLast: boolean): Promise<ReadonlyMap<string, Present>> {
    const ids = new Set(items.flatMap(({ parcel, doc }) => [parcel.oldestBy, doc._id]));
    if (isLast) ids.add(this.#companion.id);
    const rows = await this.#server.read([...ids]);
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** False when the server has another one than is known. */
  async #writeCompanion(known: Present): Promise<boolean> {
    const own = this.#companion.make(known);
    if (own === undefined) return true;
    const row = (await this.#send([own])).get(own._id);
    if (row?.ok === false && row.error === 'conflict') return false;
    this.#keep(own, row);
    return true;
  }

  #keep(own: Doc, row: WriteRow | undefined): void {
    if (this.#isTaken(row)) this.#written = { ...own, _rev: row.rev ?? '' };
  }

  async #send(docs: readonly Doc[]): Promise<Map<string, WriteRow>> {
    if (docs.length === 0) return new Map();
    const answer = await this.#server.write(docs);
    if (answer.error !== undefined) throw answer.error as Error;
    return new Map(answer.rows.map((row) => [row.id, row]));
  }

  #isTaken(row: WriteRow | undefined): row is Extract<WriteRow, { ok: true }> {
    if (row?.ok === true) return true;
    const code = `results-${row?.error ?? 'unanswered'}`;
    this.#refusal ??= new RetryableError('The server did not take a result.', { class: 'server', code });
    return false;
  }
}

function isTooLarge(row: WriteRow | undefined): boolean {
  return row?.ok === false && row.error === 'too_large';
}

/** Without its contents a document may be small enough. */
function lessOf(doc: Doc): Doc[] {
  const parsed = failuresDocument.safeParse(doc);
  if (!parsed.success || parsed.data.operations.every(({ content }) => content === undefined)) return [];
  return [withoutContents(parsed.data) as unknown as Doc];
}

function onTop(doc: Doc, present: Present | undefined): Doc {
  return present?.rev === undefined || present.deleted ? doc : { ...doc, _rev: present.rev };
}

/** Whether the server has it as it is: sent before, and the answer got lost. */
function isThere(doc: Doc, present: Present | undefined): boolean {
  if (present?.doc === undefined || present.deleted) return false;
  return sameJson(omit(present.doc, ['_rev']), doc);
}

/** Grows with each change of what a document is made of. */
function ageOf(present: Pick<Present, 'doc'> | undefined): number {
  const age = present?.doc?.['changes'];
  return typeof age === 'number' ? age : 0;
}
