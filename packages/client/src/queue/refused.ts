import { IdempotencyConflictError, type KeyConflict } from '../model/errors.js';
import type { Entry } from './content-hash.js';
import type { Contents } from './contents.js';
import type { WantedKey } from './claims.js';
import type { Conflicting, KeyedRequest } from './keyed-intake.js';
import { partsOf } from './new-header.js';
import { quarantineIdOf, type NewQuarantineEntry, type Quarantine } from './quarantine.js';
import { shownOperation } from './quarantined.js';
import type { StoredClaim, StoredQuarantine } from './stored.js';

/** Keeps what was refused because of a key, both versions of it, before anyone is told (O4). */
export class Refused {
  readonly #quarantine: Quarantine;
  readonly #contents: Contents;
  readonly #newId: () => string;
  readonly #payloadOf: (id: string) => string;
  readonly #planRequestOf: (id: string) => string;

  constructor(parts: {
    quarantine: Quarantine;
    contents: Contents;
    newId: () => string;
    payloadOf: (id: string) => string;
    planRequestOf: (id: string) => string;
  }) {
    this.#quarantine = parts.quarantine;
    this.#contents = parts.contents;
    this.#newId = parts.newId;
    this.#payloadOf = parts.payloadOf;
    this.#planRequestOf = parts.planRequestOf;
  }

  /** The key of the whole was used before. The second version is stored as a bulk operation is, all but the header. */
  async whole(request: KeyedRequest, { hash }: WantedKey, held: StoredClaim): Promise<IdempotencyConflictError> {
    const { key = '' } = request;
    const { bulkOperationId } = held;
    const entry = { kind: 'bulk-operation', key, hash, bulkOperationId, against: bulkOperationId } as const;
    const quarantineId = quarantineIdOf(entry);
    await this.#quarantine.ready();
    if (this.#quarantine.get(quarantineId) === undefined) {
      await this.#quarantine.add([{ ...entry, content: await this.#stored(request) }]);
    }
    return new IdempotencyConflictError([{ index: -1, key, bulkOperationId, quarantineId }]);
  }

  /** Keys of operations were used before. */
  async operations(request: KeyedRequest, conflicting: readonly Conflicting[]): Promise<IdempotencyConflictError> {
    const entries = conflicting.map((conflict) => entryOf(request, conflict));
    await this.#quarantine.add(entries);
    const conflicts = entries.slice(0, 20).map((entry, place): KeyConflict => ({
      index: conflicting[place]?.wanted.index ?? -1,
      key: entry.key,
      bulkOperationId: entry.bulkOperationId ?? undefined,
      quarantineId: quarantineIdOf(entry),
    }));
    return new IdempotencyConflictError(conflicts, entries.length);
  }

  async #stored({ target, lane, entries, plan }: KeyedRequest): Promise<StoredQuarantine['content']> {
    const id = this.#newId();
    const payload = this.#payloadOf(id);
    const common = { target, lane: lane ?? null, payload, parts: partsOf(entries), total: entries.length };
    if (plan === undefined) {
      const operations = entries.map(({ operation }) => operation);
      return { ...common, subjects: await this.#contents.write(payload, operations) };
    }
    const request = this.#planRequestOf(id);
    const subjects = await this.#contents.writePlan(request, payload, plan.request, plan.subjects);
    return { ...common, plan: { name: plan.name, request, planned: false }, subjects };
  }
}

function entryOf({ target, lane, entries }: KeyedRequest, conflict: Conflicting): NewQuarantineEntry {
  const { wanted, held, first } = conflict;
  const [earlier, entry] = [entries[first?.index ?? -1], entries[wanted.index]];
  const operation = entry?.operation ?? { c: null };
  const common = {
    kind: 'operation',
    key: operation.k ?? '',
    hash: wanted.hash,
    second: JSON.stringify(operation),
    as: { target, lane: lane ?? null, action: entry?.action ?? '' },
  } as const;
  if (held !== undefined) {
    const { bulkOperationId, index } = held;
    return { ...common, bulkOperationId, index, against: bulkOperationId };
  }
  return {
    ...common,
    bulkOperationId: null,
    ...firstOf(target, earlier),
    against: `same-request-${first?.hash.slice(0, 32) ?? ''}`,
  };
}

/** Neither of the two is queued: the first is kept beside the second. */
function firstOf(target: string, earlier: Entry | undefined): { first?: string } {
  return earlier === undefined ? {} : { first: JSON.stringify(shownOperation(target, earlier)) };
}
