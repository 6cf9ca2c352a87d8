import type { z } from 'zod/mini';
import { numberedId, storedVersion, type digestDoc, type Header } from './stored.js';

/** More subjects than this are kept beside the header: it is rewritten with every batch and stays small. */
export const mostInHeader = 256;
/** More subjects than this count as everything of the target. */
export const mostSubjects = 200_000;
/** Hashes in one digest document (64 kB, 86 kB as text). */
const perDocument = 16_384;
/** Ids that are hashed before the page gets a turn. */
const perTurn = 5_000;

/** What a bulk operation keeps in order: hashes of document ids; null stands for everything of its target. */
export type Subjects = readonly number[] | Uint32Array | null;
export type Digest = z.infer<typeof digestDoc>;

/** Distinct hashes of document ids: two equal ids have equal hashes, so that too much may be held back, never too little. */
export async function subjectsOf(
  ids: Iterable<unknown>,
  breathe: () => Promise<void>,
): Promise<ReadonlySet<number> | null> {
  const hashes = new Set<number>();
  let seen = 0;
  for (const id of ids) {
    if (++seen % perTurn === 0) await breathe();
    if (typeof id !== 'string') continue;
    hashes.add(hashOf(id));
    if (hashes.size > mostSubjects) return null;
  }
  return hashes;
}

/** What the header says of its subjects: they themselves when they are few, else where they are. */
export function inHeader(hashes: ReadonlySet<number> | null, prefix: string): Header['subjects'] {
  if (hashes === null) return null;
  return hashes.size <= mostInHeader ? [...hashes] : { digest: prefix, count: hashes.size };
}

/** The documents that hold many subjects, one after another as they are asked for. Ids begin with `prefix`. */
export function* digestsOf(hashes: ReadonlySet<number>, prefix: string): Generator<Digest> {
  let part: number[] = [];
  let number = 0;
  for (const hash of hashes) {
    part.push(hash);
    if (part.length < perDocument) continue;
    yield digestOf(numberedId(prefix, number++), part);
    part = [];
  }
  if (part.length > 0) yield digestOf(numberedId(prefix, number), part);
}

/** Four bytes a hash, the lowest first, as base64. */
function digestOf(_id: string, hashes: readonly number[]): Digest {
  let text = '';
  for (const hash of hashes) {
    text += String.fromCharCode(hash & 0xff, (hash >>> 8) & 0xff, (hash >>> 16) & 0xff, hash >>> 24);
  }
  return { _id, v: storedVersion, hashes: btoa(text) };
}

/** The hashes of all documents of a digest; undefined when some of them are missing or damaged. */
export async function hashesOf(
  digests: readonly Digest[],
  count: number,
  breathe: () => Promise<void>,
): Promise<Uint32Array | undefined> {
  const hashes = new Uint32Array(count);
  let at = 0;
  for (const digest of digests) {
    const text = decoded(digest.hashes);
    if (text === undefined || text.length % 4 !== 0 || at + text.length / 4 > count) return undefined;
    for (let byte = 0; byte < text.length; byte += 4) {
      const low = text.charCodeAt(byte) | (text.charCodeAt(byte + 1) << 8);
      hashes[at++] = low | (text.charCodeAt(byte + 2) << 16) | (text.charCodeAt(byte + 3) << 24);
    }
    await breathe();
  }
  return at === count ? hashes : undefined;
}

function decoded(base64: string): string | undefined {
  try {
    return atob(base64);
  } catch {
    return undefined;
  }
}

/** FNV-1a over UTF-16 code units, 32 bits. */
export function hashOf(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
  }
  return value;
}
