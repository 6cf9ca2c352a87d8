import type { MemoryDatabase, StoredDocument } from '@afield/testing';
import { z } from 'zod/mini';

/*
 * What the queue's store holds, read past the client and with schemas of our own: a harness that reads with the code that
 * it judges would believe its mistakes.
 */

const headerDoc = z.looseObject({
  _id: z.string(),
  id: z.string(),
  key: z.string(),
  target: z.enum(['local', 'server']),
  parts: z.array(z.object({ action: z.string(), count: z.number() })),
  payload: z.string(),
  total: z.number(),
  state: z.string(),
  cursor: z.number(),
  applied: z.number(),
  alreadyApplied: z.number(),
  failed: z.number(),
  lease: z.nullable(z.string()),
  unsettled: z.optional(z.unknown()),
  plan: z.optional(z.looseObject({ request: z.string(), planned: z.boolean() })),
  continues: z.optional(z.string()),
  withdrawn: z.optional(z.boolean()),
});
export type StoredHeader = z.infer<typeof headerDoc> & { readonly sequence: number };

const rows = z.array(
  z.looseObject({
    s: z.enum(['open', 'intent', 'applied', 'already-applied', 'failed']),
    b: z.optional(z.string()),
    r: z.optional(z.string()),
    h: z.optional(z.array(z.string())),
    g: z.optional(z.string()),
  }),
);
export type StoredRow = z.infer<typeof rows>[number];

const recordDoc = z.looseObject({ _id: z.string(), from: z.number(), lease: z.string(), rows: z.string() });
export interface StoredRecord {
  readonly sequence: number;
  readonly from: number;
  readonly lease: string;
  readonly rows: readonly StoredRow[];
}

const failureDoc = z.looseObject({
  _id: z.string(),
  bulkOperationId: z.nullable(z.string()),
  index: z.nullable(z.number()),
  id: z.nullable(z.string()),
  code: z.string(),
  operation: z.nullable(z.string()),
  /** The revision that the server refused. */
  refused: z.nullable(z.string()),
  /** The revision that lost, of an operation that failed when it was run again. */
  buried: z.optional(z.string()),
  resolution: z.optional(z.looseObject({ how: z.string() })),
});
export type StoredFailure = z.infer<typeof failureDoc>;

const operations = z.array(
  z.looseObject({
    i: z.optional(z.unknown()),
    k: z.optional(z.string()),
    o: z.optional(z.string()),
    c: z.optional(z.unknown()),
  }),
);
const payloadDoc = z.looseObject({ operations: z.string() });
const quarantineDoc = z.looseObject({ content: z.optional(z.looseObject({ payload: z.string() })) });

/** One operation of a bulk operation, with what is known of it. */
export interface Mutation {
  readonly header: StoredHeader;
  readonly index: number;
  readonly action: string;
  readonly id: unknown;
  readonly key: string;
  /** The caller gave it, and no retry made it. */
  readonly isOwnKey: boolean;
  readonly content: unknown;
  /** Undefined before its batch has a record. */
  readonly row: StoredRow | undefined;
  /** Who wrote that record last. */
  readonly lease: string | undefined;
}

export const sequenceOf = (id: string): number => Number(id.split(':')[1]);

export function headerOf(doc: StoredDocument): StoredHeader {
  const header = headerDoc.parse(doc);
  return { ...header, sequence: sequenceOf(header._id) };
}

export function recordOf(doc: StoredDocument): StoredRecord {
  const record = recordDoc.parse(doc);
  const stored = rows.parse(JSON.parse(record.rows));
  return { sequence: sequenceOf(record._id), from: record.from, lease: record.lease, rows: stored };
}

/** Whether this row says that its operation is at its end. */
export function isOutcome(row: StoredRow | undefined): boolean {
  return row !== undefined && row.s !== 'open' && row.s !== 'intent';
}

/** Whether its operation had written, lost to another version, and failed when it was run on that. */
export function isOverruled(row: StoredRow | undefined): boolean {
  return row?.s === 'failed' && row.r !== undefined;
}

/** The queue's store as it is at this moment. */
export class StoredQueue {
  #known: { readonly sequence: number; readonly mutations: readonly Mutation[] } | undefined;
  readonly #operations = new Map<string, z.infer<typeof operations>>();

  constructor(private readonly database: MemoryDatabase) {}

  /** Live documents whose ids begin so. */
  documents(prefix: string): StoredDocument[] {
    return this.database.ids().flatMap((id) => {
      const doc = id.startsWith(prefix) ? this.database.read(id) : undefined;
      return doc === undefined || doc['_deleted'] === true ? [] : [doc];
    });
  }

  headers(): StoredHeader[] {
    return this.documents('h:').map(headerOf);
  }

  header(sequence: number): StoredHeader | undefined {
    return this.headers().find((header) => header.sequence === sequence);
  }

  /** How the ids of content begin that a bulk operation, or a second version in quarantine, has. */
  namedContent(): string[] {
    const seconds = this.documents('u:').flatMap((doc) => quarantineDoc.parse(doc).content ?? []);
    return [...this.headers(), ...seconds].map(({ payload }) => payload);
  }

  records(sequence: number): StoredRecord[] {
    return this.documents(`b:${String(sequence).padStart(12, '0')}:`).map(recordOf);
  }

  failures(): StoredFailure[] {
    return this.documents('f:').map((doc) => failureDoc.parse(doc));
  }

  /** The operations of a bulk operation, as far as they are stored, each with what its record says. */
  mutations(header: StoredHeader): Mutation[] {
    const actions = header.parts.flatMap(({ action, count }) => Array<string>(count).fill(action));
    const known = new Map<number, { row: StoredRow; lease: string }>();
    for (const { from, lease, rows: stored } of this.records(header.sequence)) {
      for (const [place, row] of stored.entries()) known.set(from + place, { row, lease });
    }
    const stored = this.documents(header.payload).flatMap((doc) =>
      this.#operationsOf(payloadDoc.parse(doc).operations),
    );
    return stored.map(({ i, k, o, c }, index) => ({
      header,
      index,
      action: actions[index] ?? '',
      id: i,
      key: k ?? `${header.key}:${String(index)}`,
      isOwnKey: k !== undefined && o === undefined && header.continues === undefined,
      content: c,
      row: known.get(index)?.row,
      lease: known.get(index)?.lease,
    }));
  }

  allMutations(): readonly Mutation[] {
    const { sequence } = this.database;
    if (this.#known?.sequence !== sequence) {
      this.#known = { sequence, mutations: this.headers().flatMap((header) => this.mutations(header)) };
    }
    return this.#known.mutations;
  }

  #operationsOf(text: string): z.infer<typeof operations> {
    const known = this.#operations.get(text) ?? operations.parse(JSON.parse(text));
    this.#operations.set(text, known);
    return known;
  }
}
