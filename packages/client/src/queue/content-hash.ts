import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Target } from '../model/states.js';
import { canonicalJson } from './canonical-json.js';
import type { StoredOperation } from './stored.js';

/** An operation with the action that it belongs to. */
export interface Entry {
  readonly action: string;
  readonly operation: StoredOperation;
}

/** Operations that are hashed before the page gets a turn. */
const perTurn = 500;

/*
 * Hashes of what was given under a key, after the schema: equal hashes are the same content (O4). The order of the fields
 * of an object does not count, the order of a list does.
 */

/** Of an operation with a key of its own. */
export function operationHash(target: Target, { action, operation: { i, c } }: Entry): string {
  return hashOf(canonicalJson({ action, target, id: i, content: c }));
}

/** Of a bulk operation: its operations with their own keys, in their order. */
export async function requestHash(
  target: Target,
  entries: readonly Entry[],
  breathe: () => Promise<void>,
): Promise<string> {
  const hash = sha256.create().update(textBytes(canonicalJson({ target })));
  for (const [index, { action, operation }] of entries.entries()) {
    const { i, k, c } = operation;
    // A line each: in JSON text a line ends only where we end it.
    hash.update(textBytes(`\n${canonicalJson({ action, id: i, key: k, content: c })}`));
    if (index % perTurn === perTurn - 1) await breathe();
  }
  return bytesToHex(hash.digest());
}

/** Of the request of a plan. */
export function planHash(target: Target, plan: string, request: unknown): string {
  return hashOf(canonicalJson({ target, plan, request }));
}

/** Of any other JSON value. */
export function valueHash(value: unknown): string {
  return hashOf(canonicalJson({ value }));
}

function hashOf(text: string): string {
  return bytesToHex(sha256(textBytes(text)));
}

function textBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
