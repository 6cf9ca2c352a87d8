import type { ImportReceipt } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import { endStates } from '../model/states.js';
import type { Claims, WantedKey } from '../queue/claims.js';
import { newHeader } from '../queue/new-header.js';
import { removed, type StoredDoc } from '../queue/stored-docs.js';
import {
  claimId,
  failureId,
  isUnplanned,
  recordId,
  reportId,
  sequenceOf,
  storedVersion,
  type BatchRecord,
  type Header,
  type Report,
  type StoredFailure,
} from '../queue/stored.js';
import { ContentImport, isContent, type ContentParts } from './content-import.js';
import type { FileLine, LineOf } from './format.js';

const docsPerWrite = 50;

export interface BulkImportParts extends ContentParts {
  readonly claims: Claims;
  readonly clock: Clock;
  readonly breathe: () => Promise<void>;
}

/** What is known of the bulk operation whose lines are being read. */
interface Open {
  readonly line: LineOf<'bulk-operation'>;
  /** Undefined: its content is here already. */
  readonly content: ContentImport | undefined;
  readonly keys: WantedKey[];
  docs: StoredDoc[];
  /** As it is here; undefined until its content is. */
  header: Header | undefined;
}

/**
 * Takes bulk operations in, in their order.
 *
 *   content, keys ─▶ header, `importing` and paused ─▶ batches, failures ─▶ header as it stood
 *
 * Until the last step nothing of it runs, and later ones on its documents wait. After a crash the same file goes on where
 * that stands.
 */
export class BulkImport {
  readonly #parts: BulkImportParts;
  /** The number that a bulk operation has here, by the one in the file. */
  readonly #sequences = new Map<number, number>();
  readonly #counts = { bulkOperations: 0, operations: 0, duplicates: 0, paused: 0 };
  #open: Open | undefined;

  constructor(parts: BulkImportParts) {
    this.#parts = parts;
  }

  counts(): Omit<ImportReceipt, 'documents'> {
    return { ...this.#counts };
  }

  async take(line: FileLine): Promise<void> {
    if (line.kind === 'bulk-operation') {
      this.#open = await this.#begin(line);
      return;
    }
    const open = this.#open;
    if (open === undefined) return;
    if (isContent(line)) {
      if (line.kind === 'operations') open.keys.push(...keysOf(line));
      await open.content?.take(line);
      return;
    }
    const header = (open.header ??= await this.#store(open));
    if (header === undefined) {
      this.#open = undefined;
      return;
    }
    const sequence = sequenceOf(header._id);
    if (line.kind === 'batch') open.docs.push(recordOf(sequence, line));
    else if (line.kind === 'failure') open.docs.push(failureOf(sequence, line));
    else if (line.kind === 'standing') {
      open.docs.push(reportOf(sequence, line));
      await this.#write(open);
      await this.#end(header, line);
      this.#open = undefined;
    }
    if (open.docs.length >= docsPerWrite) await this.#write(open);
  }

  /** Undefined when it is here already. */
  async #begin(line: LineOf<'bulk-operation'>): Promise<Open | undefined> {
    const { queue, claims } = this.#parts;
    const { id, key, plan } = line.header;
    const known = queue.headers.known(id);
    if (known !== undefined) {
      this.#sequences.set(line.sequence, sequenceOf(known._id));
      if (known.importing === true) return { line, content: undefined, keys: [], docs: [], header: known };
    }
    const held = line.key === undefined ? undefined : (await claims.read([claimId('b', key)])).get(claimId('b', key));
    // Queued here since, under the same key with the same content.
    const isHeld =
      held !== undefined && held.bulkOperationId !== id && queue.headers.known(held.bulkOperationId) !== undefined;
    if (known !== undefined || isHeld) {
      this.#counts.duplicates++;
      return undefined;
    }
    return {
      line,
      content: new ContentImport(this.#parts, plan, this.#sequences),
      keys: [],
      docs: [],
      header: undefined,
    };
  }

  /** Makes it known, with its keys. Undefined: someone else has its key meanwhile. */
  async #store({ line, content, keys }: Open): Promise<Header | undefined> {
    const { queue, claims } = this.#parts;
    if (content === undefined) return undefined;
    const { plan, total, ...given } = line.header;
    void plan;
    const whole = line.key === undefined ? [] : [{ _id: claimId('b', given.key), ...line.key }];
    claims.begin(given.id);
    try {
      const held = await claims.take(given.id, whole);
      if (held.size > 0) {
        this.#counts.duplicates++;
        return undefined;
      }
      // What another one holds by now stays its own: the operation runs, and finds that it is done.
      await claims.take(given.id, keys);
      const named = await content.named();
      const made = newHeader({ ...given, ...named }, []);
      const header = await queue.numbers.take({
        ...made,
        total,
        subjects: named.subjects,
        state: 'paused',
        origin: line.origin,
        importing: true,
      });
      const first = queue.headers.all().find((other) => other.id === given.id && other._id < header._id);
      this.#sequences.set(line.sequence, sequenceOf((first ?? header)._id));
      if (first === undefined) return header;
      // Two tabs import at the same moment, in an engine without locks: the one that came first stays.
      await queue.docs.write([removed(header._id, header._rev)]);
      queue.headers.forget([sequenceOf(header._id)]);
      queue.headers.keep(first);
      this.#counts.duplicates++;
      return undefined;
    } catch (error) {
      await claims.giveBack(
        given.id,
        [...whole, ...keys].map(({ _id }) => _id),
      );
      throw error;
    } finally {
      claims.end(given.id);
    }
  }

  /** What another import of this file has stored already stays. */
  async #write(open: Open): Promise<void> {
    const docs = open.docs;
    open.docs = [];
    await this.#parts.queue.docs.write(docs);
    await this.#parts.breathe();
  }

  /** From here on it counts, as it stood. What a person has decided of it meanwhile stays. */
  async #end({ _id, total }: Header, { standing }: LineOf<'standing'>): Promise<void> {
    const { header, isChanged } = await this.#parts.queue.headers.change(sequenceOf(_id), (stored) => {
      if (stored.importing !== true) return undefined;
      const { importing, ...rest } = stored;
      void importing;
      const state = stored.state === 'cancelled' ? 'cancelled' : this.#stateOf(stored, standing.state);
      return { ...rest, ...standing, state, wait: null, lease: null };
    });
    if (!isChanged) {
      this.#counts.duplicates++;
      return;
    }
    this.#counts.bulkOperations++;
    this.#counts.operations += total;
    if (header.state === 'paused') this.#counts.paused++;
  }

  /**
   * Waiting begins anew. A plan that looks at local documents waits for a person: here are those alone that the file
   * brought, until a pull has brought the others.
   */
  #stateOf(header: Header, state: Header['state']): Header['state'] {
    if (endStates.has(state) || state === 'paused') return state;
    return isUnplanned(header) && header.target === 'local' ? 'paused' : 'queued';
  }
}

function keysOf({ operations, keys }: LineOf<'operations'>): WantedKey[] {
  return keys.map(([place, { index, hash }]) => ({ _id: claimId('o', operations[place]?.k ?? ''), index, hash }));
}

function recordOf(sequence: number, { from, at, rows }: LineOf<'batch'>): BatchRecord {
  const _id = recordId(sequence, from);
  return { _id, v: storedVersion, from, count: rows.length, lease: 'imported', at, rows: JSON.stringify(rows) };
}

function failureOf(sequence: number, { failure }: LineOf<'failure'>): StoredFailure {
  return { ...failure, _id: failureId(sequence, failure.index ?? 0), v: storedVersion };
}

function reportOf(sequence: number, { report }: LineOf<'standing'>): Report {
  return { _id: reportId(sequence), v: storedVersion, ...report, delivered: null };
}
