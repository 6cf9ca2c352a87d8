import type { DuplicateOperation, EnqueueReceipt } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import type { Target } from '../model/states.js';
import { sinceNow, takeOverAfterMs } from './claim-wait.js';
import type { Claims, WantedKey } from './claims.js';
import { operationHash, planHash, requestHash, type Entry } from './content-hash.js';
import { keyOf } from './keys.js';
import { duplicateReceiptOf, receiptOf } from './receipt.js';
import type { Queue } from './queue.js';
import type { Refused } from './refused.js';
import { claimId, type Header, type StoredClaim } from './stored.js';
import { withdraw } from './withdrawal.js';

/** A request with a given key somewhere in it, checked, as it would be queued. */
export interface KeyedRequest {
  readonly target: Target;
  readonly lane: string | undefined;
  /** The key that was given for the whole. */
  readonly key: string | undefined;
  readonly entries: readonly Entry[];
  readonly plan?: {
    readonly name: string;
    readonly request: unknown;
    readonly subjects: readonly string[] | undefined;
  };
}

/** The keys that were given in a request. */
export interface GivenKeys {
  readonly whole: WantedKey | undefined;
  /** For each operation: its key, or undefined. A second one with the same key is not made again. */
  readonly own: readonly (OwnKey | undefined)[];
}

interface OwnKey extends WantedKey {
  readonly key: string;
  /** The first operation of the request that has this key. */
  readonly first: OwnKey | undefined;
}

/** A key that stands for other content already: in the queue, or before in the same request. */
export interface Conflicting {
  readonly wanted: WantedKey;
  readonly held: StoredClaim | undefined;
  /** The operation before it in the same request. */
  readonly first: WantedKey | undefined;
}

export interface KeyedIntakeParts {
  readonly queue: Queue;
  readonly claims: Claims;
  readonly refused: Refused;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly breathe: () => Promise<void>;
  /** Makes a bulk operation of these operations durable, under this id. */
  readonly store: (bulkOperationId: string, request: KeyedRequest, entries: readonly Entry[]) => Promise<Header>;
}

/**
 * Takes requests in whose keys were given (O4).
 *
 *   key of the whole ─ known ─▶ same content: a duplicate ─ other: a conflict
 *   keys of operations ─ one conflict ─▶ all of it is refused, both versions in quarantine
 *                      ─ all known ─▶ a duplicate
 *                      ─ else ─▶ the rest is queued, the known ones are listed
 */
export class KeyedIntake {
  readonly #parts: KeyedIntakeParts;

  constructor(parts: KeyedIntakeParts) {
    this.#parts = parts;
  }

  async append(request: KeyedRequest): Promise<EnqueueReceipt> {
    const keys = await givenKeys(request, this.#parts.breathe);
    for (;;) {
      const receipt = await this.#try(request, keys);
      if (receipt !== undefined) return receipt;
    }
  }

  /** Undefined when a key was taken over meanwhile: then all is looked at again. */
  async #try(request: KeyedRequest, keys: GivenKeys): Promise<EnqueueReceipt | undefined> {
    const { queue, claims, newId } = this.#parts;
    const id = newId();
    const ids = wantedOf(keys).map(({ _id }) => _id);
    let duplicates: readonly DuplicateOperation[] = [];
    claims.begin(id);
    try {
      return await this.#tryAs(id, request, keys, (found) => (duplicates = found));
    } catch (error) {
      await claims.giveBack(id, ids);
      const header = queue.headers.known(id);
      // What is durable is queued, whatever went wrong after that.
      if (header === undefined || header.withdrawn === true) throw error;
      return receiptOf(header, duplicates);
    } finally {
      claims.end(id);
    }
  }

  async #tryAs(
    id: string,
    request: KeyedRequest,
    keys: GivenKeys,
    note: (duplicates: readonly DuplicateOperation[]) => void,
  ): Promise<EnqueueReceipt | undefined> {
    const { claims, refused, clock, store } = this.#parts;
    const elapsed = sinceNow(clock);
    const { whole, own } = keys;
    const holder = whole === undefined ? undefined : (await claims.take(id, [whole])).get(whole._id);
    if (whole !== undefined && holder !== undefined) {
      if (holder.hash !== whole.hash) throw await refused.whole(request, whole, holder);
      return this.#wasQueued(request, keys, holder);
    }
    const first = firstsOf(own);
    const held = await claims.take(id, first);
    const conflicts = conflictsOf(own, held);
    if (conflicts.length > 0) throw await refused.operations(request, conflicts);
    const duplicates = duplicatesOf(own, held, id);
    note(duplicates);
    const known = new Set(duplicates.map(({ index }) => index));
    const rest = request.entries.filter((_entry, index) => !known.has(index));
    const mine = wantedOf(keys).flatMap(({ _id }) => (held.has(_id) ? [] : [_id]));
    if (rest.length === 0 && request.entries.length > 0) {
      await claims.giveBack(id, mine);
      return duplicateReceiptOf(this.#headerOf(duplicates[0]?.bulkOperationId), duplicates);
    }
    const areOurs = async (): Promise<boolean> => elapsed() < takeOverAfterMs / 2 || (await claims.areOurs(id, mine));
    if (!(await areOurs())) return this.#again(id, mine);
    const header = await store(id, request, rest);
    if (!(await areOurs()) && (await this.#withdraw(header))) return this.#again(id, mine);
    return receiptOf(header, duplicates);
  }

  async #again(id: string, mine: readonly string[]): Promise<undefined> {
    await this.#parts.claims.giveBack(id, mine);
    return undefined;
  }

  /** Someone has taken one of its keys over before it was there. Answers whether it is out of the way, before it has run. */
  async #withdraw(late: Header): Promise<boolean> {
    return (await withdraw(this.#parts.queue.headers, late, { withdrawn: true })).withdrawn === true;
  }

  /** All of it was queued before under the key of the whole: says which bulk operation holds each operation. */
  async #wasQueued(request: KeyedRequest, { own }: GivenKeys, holder: StoredClaim): Promise<EnqueueReceipt> {
    const header = this.#headerOf(holder.bulkOperationId);
    const held = await this.#parts.claims.read(firstsOf(own).map(({ _id }) => _id));
    let place = 0;
    const duplicates = request.entries.map((_entry, index): DuplicateOperation => {
      const one = own[index];
      const by = (one && held.get(one._id)?.bulkOperationId) ?? header.id;
      const isQueued = by === header.id && one?.first === undefined;
      const { key } = keyOf(header, one && { k: one.key }, place);
      if (isQueued) place++;
      return { index, key, bulkOperationId: by };
    });
    return duplicateReceiptOf(header, duplicates);
  }

  #headerOf(bulkOperationId: string | undefined): Header {
    const header = this.#parts.queue.headers.known(bulkOperationId ?? '');
    if (header === undefined) throw new TypeError('A key counts whose bulk operation is not known.');
    return header;
  }
}

async function givenKeys(
  { target, key, entries, plan }: KeyedRequest,
  breathe: () => Promise<void>,
): Promise<GivenKeys> {
  const own: (OwnKey | undefined)[] = [];
  const firsts = new Map<string, OwnKey>();
  for (const [index, entry] of entries.entries()) {
    const { k } = entry.operation;
    if (k === undefined) {
      own.push(undefined);
      continue;
    }
    const first = firsts.get(k);
    const one = { _id: claimId('o', k), key: k, index, hash: operationHash(target, entry), first };
    if (first === undefined) firsts.set(k, one);
    own.push(one);
    if (own.length % 500 === 0) await breathe();
  }
  if (key === undefined) return { whole: undefined, own };
  const hash =
    plan === undefined ? await requestHash(target, entries, breathe) : planHash(target, plan.name, plan.request);
  return { whole: { _id: claimId('b', key), index: -1, hash }, own };
}

/** Of each key that operations were given, the first one that has it. */
function firstsOf(own: GivenKeys['own']): OwnKey[] {
  return own.flatMap((one) => (one === undefined || one.first !== undefined ? [] : [one]));
}

function wantedOf({ whole, own }: GivenKeys): WantedKey[] {
  const first = firstsOf(own);
  return whole === undefined ? first : [whole, ...first];
}

function conflictsOf(own: GivenKeys['own'], held: ReadonlyMap<string, StoredClaim>): Conflicting[] {
  return own.flatMap((wanted) => {
    if (wanted === undefined) return [];
    const claim = held.get(wanted._id);
    const hash = claim?.hash ?? wanted.first?.hash ?? wanted.hash;
    return hash === wanted.hash ? [] : [{ wanted, held: claim, first: wanted.first }];
  });
}

/** `mine` is the bulk operation that is about to be: it holds the first of two of one request. */
function duplicatesOf(
  own: GivenKeys['own'],
  held: ReadonlyMap<string, StoredClaim>,
  mine: string,
): DuplicateOperation[] {
  return own.flatMap((wanted) => {
    if (wanted === undefined) return [];
    const claim = held.get(wanted._id);
    if (claim === undefined && wanted.first === undefined) return [];
    return [{ index: wanted.index, key: wanted.key, bulkOperationId: claim?.bulkOperationId ?? mine }];
  });
}
