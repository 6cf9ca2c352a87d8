import type { z } from 'zod/mini';
import { storedVersion, type digestDoc, type Header } from './stored.js';

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
export async function subjectsOf(ids: Iterable<unknown>, breathe: () => Promise<void>): Promise<number[] | null> {
  const hashes = new Set<number>();
  let seen = 0;
  for (const id of ids) {
    if (++seen % perTurn === 0) await breathe();
    if (typeof id !== 'string') continue;
    hashes.add(hashOf(id));
    if (hashes.size > mostSubjects) return null;
  }
  return [...hashes];
}

/** How subjects are stored: few in the header itself, many in documents whose ids begin with `prefix`. */
export function storedSubjects(
  hashes: readonly number[] | null,
  prefix: string,
): { inHeader: Header['subjects']; digests: readonly (readonly number[])[] } {
  if (hashes === null || hashes.length <= mostInHeader) return { inHeader: hashes && [...hashes], digests: [] };
  const digests: (readonly number[])[] = [];
  for (let start = 0; start < hashes.length; start += perDocument) {
    digests.push(hashes.slice(start, start + perDocument));
  }
  return { inHeader: { digest: prefix, count: hashes.length }, digests };
}

/** One document of a digest: four bytes a hash, the lowest first, as base64. */
export function digestOf(_id: string, hashes: readonly number[]): Digest {
  const bytes = new DataView(new ArrayBuffer(hashes.length * 4));
  hashes.forEach((value, at) => {
    bytes.setUint32(at * 4, value, true);
  });
  let text = '';
  for (let at = 0; at < bytes.byteLength; at++) text += String.fromCharCode(bytes.getUint8(at));
  return { _id, v: storedVersion, hashes: btoa(text) };
}

/** The hashes of all documents of a digest; undefined when some of them are missing or damaged. */
export function hashesOf(digests: readonly Digest[], count: number): Uint32Array | undefined {
  const hashes = new Uint32Array(count);
  let at = 0;
  for (const digest of digests) {
    const text = decoded(digest.hashes);
    if (text === undefined || text.length % 4 !== 0 || at + text.length / 4 > count) return undefined;
    for (let byte = 0; byte < text.length; byte += 4) {
      const low = text.charCodeAt(byte) | (text.charCodeAt(byte + 1) << 8);
      hashes[at++] = low | (text.charCodeAt(byte + 2) << 16) | (text.charCodeAt(byte + 3) << 24);
    }
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
