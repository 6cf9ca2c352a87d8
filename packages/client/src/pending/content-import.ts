import type { z } from 'zod/mini';
import type { Queue } from '../queue/queue.js';
import {
  failureId,
  numberedId,
  payloadSize,
  sequenceOf,
  storedVersion,
  type Header,
  type payloadDoc,
  type planRequestDoc,
  type StoredOperation,
} from '../queue/stored.js';
import { hashOf, mostSubjects } from '../queue/subjects.js';
import type { FileLine } from './format.js';

export interface ContentParts {
  readonly queue: Queue;
  readonly newId: () => string;
  readonly payloadOf: (id: string) => string;
  readonly planRequestOf: (id: string) => string;
}

/** The lines of a bulk operation's content. */
export type ContentLine = Extract<FileLine, { kind: 'request' | 'subjects' | 'operations' }>;

export function isContent(line: FileLine): line is ContentLine {
  return line.kind === 'request' || line.kind === 'subjects' || line.kind === 'operations';
}

/** Stores what was queued, under names that no one has used: without a header, or an entry in quarantine, nothing of it counts. */
export class ContentImport {
  readonly #queue: Queue;
  readonly #payload: string;
  readonly #request: string;
  readonly #plan: { readonly name: string; readonly planned: boolean } | undefined;
  /** The number that a bulk operation has here, by the one in the file. */
  readonly #sequences: ReadonlyMap<number, number>;
  readonly #hashes = new Set<number>();
  /** Nothing said which documents: it counts as all of them. */
  #isEverything: boolean;

  constructor(
    parts: ContentParts,
    plan: { readonly name: string; readonly planned: boolean } | undefined,
    sequences: ReadonlyMap<number, number>,
  ) {
    this.#queue = parts.queue;
    this.#plan = plan;
    this.#sequences = sequences;
    this.#isEverything = plan?.planned === false;
    const id = parts.newId();
    this.#payload = parts.payloadOf(id);
    this.#request = parts.planRequestOf(id);
  }

  async take(line: ContentLine): Promise<void> {
    switch (line.kind) {
      case 'request': {
        const doc: z.infer<typeof planRequestDoc> = { _id: this.#request, v: storedVersion, request: line.request };
        return this.#queue.docs.writeAll([doc]);
      }
      case 'subjects':
        this.#isEverything = false;
        for (const hash of line.hashes) this.#hashes.add(hash);
        return;
      case 'operations': {
        for (const { i } of line.operations) if (typeof i === 'string') this.#hashes.add(hashOf(i));
        const doc: z.infer<typeof payloadDoc> = {
          _id: numberedId(this.#payload, line.from / payloadSize),
          v: storedVersion,
          operations: JSON.stringify(line.operations.map((operation) => this.#renamed(operation))),
        };
        return this.#queue.docs.writeAll([doc]);
      }
    }
  }

  /** What a header says of it. */
  async named(): Promise<Pick<Header, 'payload' | 'subjects' | 'plan'>> {
    const isAll = this.#isEverything || this.#hashes.size > mostSubjects;
    return {
      payload: this.#payload,
      subjects: await this.#queue.contents.writeHashes(this.#payload, isAll ? null : this.#hashes),
      ...(this.#plan === undefined ? {} : { plan: { ...this.#plan, request: this.#request } }),
    };
  }

  /** The failure that it took over has another number here, or is not here: then no other one may be taken for it. */
  #renamed(operation: StoredOperation): StoredOperation {
    if (operation.f === undefined) return operation;
    const { f, ...rest } = operation;
    const sequence = this.#sequences.get(sequenceOf(f));
    return sequence === undefined ? rest : { ...rest, f: failureId(sequence, Number(f.slice(f.lastIndexOf(':') + 1))) };
  }
}
