import type { Header, StoredOperation } from './stored.js';

/**
 * The idempotency key of a mutation (O1), and where it comes from: `o` the caller gave it for the operation, `b` it is the
 * bulk operation's with the index; `p` a plan gave it, within its bulk operation; `r` before these: that bulk operation has
 * a derived key; a `~` behind it: a retry derived it from another one; `q` a person took it out of quarantine. Two
 * mutations never have both the same.
 */
export interface MutationKey {
  readonly key: string;
  readonly origin: string;
}

/** The key of an operation of this bulk operation. */
export function keyOf(
  header: Pick<Header, 'key' | 'derived' | 'taken'>,
  operation: Pick<StoredOperation, 'k' | 'o'> | undefined,
  index: number,
): MutationKey {
  const { k, o } = operation ?? {};
  const isTaken = header.taken !== undefined;
  if (k !== undefined) {
    // The caller gave this key to what was refused: it may stand for something else by now.
    if (isTaken && o === undefined) return { key: `${k}${header.key.slice(header.key.lastIndexOf('~'))}`, origin: 'q' };
    return { key: k, origin: o ?? 'o' };
  }
  const origin = header.derived === true ? 'rb' : 'b';
  return { key: `${header.key}:${String(index)}`, origin: isTaken ? 'q' : origin };
}

/**
 * The keys that a plan gave its operations count only within its bulk operation: planned anew, it gives them again. The last
 * `:` is ours, so that no other key of a bulk operation with another of its plan makes the same.
 */
export function plannedKeys(
  header: Pick<Header, 'key' | 'derived' | 'taken'>,
  operations: readonly StoredOperation[],
): readonly StoredOperation[] {
  const origin = header.taken === undefined ? (header.derived === true ? 'rp' : 'p') : 'pq';
  return operations.map((operation) =>
    operation.k === undefined
      ? operation
      : { ...operation, k: `${header.key}:${operation.k.replace(/[%:]/g, encodeURIComponent)}`, o: origin },
  );
}

/** What a second version is known by when a person takes it out of quarantine: `key~` and eight digits of its hash. */
export function takenKey(key: string, hash: string): MutationKey {
  return { key: `${key}~${hash.slice(0, 8)}`, origin: 'q' };
}

/** The id of a mutation's event: two devices that use the same key do not collide (O1). */
export function eventIdOf(storeId: string, mutation: MutationKey): string {
  return eventIdNamed(storeId, eventNameOf(mutation));
}

/** What the ids of a mutation's event have in common, whatever the store. */
export function eventNameOf({ key, origin }: MutationKey): string {
  return `${origin}:${key}`;
}

/** The id of the event of this name. */
export function eventIdNamed(storeId: string, name: string): string {
  return `${storeId}:${name}`;
}

/** What a retry of this mutation is known by (R19). */
export function derivedFrom({ key, origin }: MutationKey): MutationKey {
  const isDerived = origin.endsWith('~');
  return { key: derivedKey(key, isDerived), origin: isDerived ? origin : `${origin}~` };
}

/** `key`, `key~1`, `key~2` … A key that was not derived may end like one that was: that end is a part of it. */
export function derivedKey(key: string, isDerived: boolean): string {
  const [, base = key, number = '0'] = (isDerived ? /^(.*)~(\d+)$/s.exec(key) : null) ?? [];
  return `${base}~${String(Number(number) + 1)}`;
}

/** A key that was not given by the caller, as an operation keeps it. */
export function storedKey({ key, origin }: MutationKey): Pick<StoredOperation, 'k' | 'o'> {
  return origin === 'o' ? { k: key } : { k: key, o: origin };
}
