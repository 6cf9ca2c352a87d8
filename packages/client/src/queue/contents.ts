import { z } from 'zod/mini';
import { AfieldError } from '../model/errors.js';
import type { StoredDocs } from './stored-docs.js';
import {
  digestDoc,
  numberedId,
  payloadDoc,
  payloadSize,
  planRequestDoc,
  storedOperations,
  storedVersion,
  type Header,
  type StoredOperation,
} from './stored.js';
import { digestsOf, hashesOf, inHeader, subjectsOf } from './subjects.js';

/**
 * What bulk operations are made of: their operations, the requests of plans, and the subjects that are too many for a header.
 * Immutable, written under names that no one has used: without a header, or an entry in quarantine, nothing of it counts.
 */
export class Contents {
  readonly #docs: StoredDocs;
  readonly #breathe: () => Promise<void>;
  /** The payload that was read last. */
  #cached: { id: string; operations: readonly StoredOperation[] } | undefined;

  /** `breathe` gives the page a turn in the middle of long work. */
  constructor(docs: StoredDocs, breathe: () => Promise<void>) {
    this.#docs = docs;
    this.#breathe = breathe;
  }

  /** Stores payloads and digests under a prefix. Answers with what the header says of the subjects. */
  async write(prefix: string, operations: readonly StoredOperation[]): Promise<Header['subjects']> {
    for (let start = 0; start < operations.length; start += payloadSize * payloadsPerWrite) {
      await this.#docs.writeAll(payloadsOf(prefix, operations, start));
    }
    return this.#writeSubjects(prefix, idsOf(operations));
  }

  /** The same for the request of a plan, under an id, and the subjects that it declared (undefined: everything). */
  async writePlan(
    id: string,
    prefix: string,
    request: unknown,
    declared: readonly string[] | undefined,
  ): Promise<Header['subjects']> {
    const stored: z.infer<typeof planRequestDoc> = { _id: id, v: storedVersion, request: JSON.stringify({ request }) };
    await this.#docs.writeAll([stored]);
    return declared === undefined ? null : this.#writeSubjects(prefix, declared);
  }

  async #writeSubjects(payload: string, ids: Iterable<unknown>): Promise<Header['subjects']> {
    return this.writeHashes(payload, await subjectsOf(ids, this.#breathe));
  }

  /** Stores what is kept in order, where it is more than a header holds. Answers with what the header says of it. */
  async writeHashes(payload: string, hashes: ReadonlySet<number> | null): Promise<Header['subjects']> {
    const prefix = payload.replace(/^p:/, 'd:');
    const subjects = inHeader(hashes, prefix);
    if (hashes === null || subjects === null || Array.isArray(subjects)) return subjects;
    for (const digest of digestsOf(hashes, prefix)) await this.#docs.writeAll([digest]);
    return subjects;
  }

  /** The subjects that a header keeps beside itself; undefined when they cannot be made out any more. */
  async digest({ digest, count }: { digest: string; count: number }): Promise<Uint32Array | undefined> {
    return hashesOf(await this.#docs.readRange(digest, digestDoc), count, this.#breathe);
  }

  /** The request of a plan, as it was queued. */
  async planRequest({ plan }: Pick<Header, 'plan'>): Promise<unknown> {
    const doc = plan === undefined ? undefined : await this.#docs.read(plan.request, planRequestDoc);
    if (doc === undefined) throw new AfieldError('store_unreadable', 'The request of a plan is missing in the store.');
    return storedRequest.parse(JSON.parse(doc.request)).request;
  }

  /** The operations from `from`, at most `count` of them. */
  async operations(
    header: Pick<Header, 'payload' | 'total'>,
    from: number,
    count: number,
  ): Promise<readonly StoredOperation[]> {
    const found: StoredOperation[] = [];
    const end = Math.min(from + count, header.total);
    for (let at = from; at < end;) {
      const page = await this.#payload(payloadIdOf(header, at));
      const offset = at % payloadSize;
      const slice = page.slice(offset, offset + end - at);
      if (slice.length === 0) throw operationsMissing();
      found.push(...slice);
      at += slice.length;
    }
    return found;
  }

  /** Operations by their places in this bulk operation, in one read. */
  async operationsAt(header: Header, indexes: readonly number[]): Promise<ReadonlyMap<number, StoredOperation>> {
    const ids = [...new Set(indexes.map((index) => payloadIdOf(header, index)))];
    const docs = await this.#docs.readMany(ids, payloadDoc, payloadName);
    const pages = new Map(ids.map((id) => [id, operationsOf(docs.get(id))]));
    const found = new Map<number, StoredOperation>();
    for (const index of indexes) {
      const operation = pages.get(payloadIdOf(header, index))?.[index % payloadSize];
      if (operation !== undefined) found.set(index, operation);
    }
    return found;
  }

  async #payload(id: string): Promise<readonly StoredOperation[]> {
    if (this.#cached?.id === id) return this.#cached.operations;
    const operations = operationsOf(await this.#docs.read(id, payloadDoc, payloadName));
    this.#cached = { id, operations };
    return operations;
  }
}

type Payload = z.infer<typeof payloadDoc>;

const payloadName = 'A list of operations';
const storedRequest = z.object({ request: z.optional(z.unknown()) });

/** Payloads that are written in one call: their text is made and hashed without a turn for the page in between. */
const payloadsPerWrite = 10;

function payloadIdOf({ payload }: Pick<Header, 'payload'>, index: number): string {
  return numberedId(payload, Math.floor(index / payloadSize));
}

function payloadsOf(prefix: string, operations: readonly StoredOperation[], from: number): Payload[] {
  const payloads: Payload[] = [];
  const end = Math.min(from + payloadSize * payloadsPerWrite, operations.length);
  for (let start = from; start < end; start += payloadSize) {
    payloads.push({
      _id: numberedId(prefix, start / payloadSize),
      v: storedVersion,
      operations: JSON.stringify(operations.slice(start, start + payloadSize)),
    });
  }
  return payloads;
}

function operationsOf(payload: Payload | undefined): readonly StoredOperation[] {
  if (payload === undefined) throw operationsMissing();
  return storedOperations.parse(JSON.parse(payload.operations));
}

function operationsMissing(): AfieldError {
  return new AfieldError('store_unreadable', 'Operations of a bulk operation are missing in the store.');
}

function* idsOf(operations: readonly StoredOperation[]): Generator {
  for (const { i } of operations) yield i;
}
