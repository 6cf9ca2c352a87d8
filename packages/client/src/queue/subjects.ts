/** More subjects than this are kept as "all": the header stays small. */
const most = 256;

/** Hashes of document ids: two equal ids have equal hashes, so that a digest never holds back too little. */
export function digestOf(ids: readonly unknown[]): number[] | null {
  const hashes = new Set<number>();
  for (const id of ids) {
    if (typeof id !== 'string') continue;
    hashes.add(hash(id));
    if (hashes.size > most) return null;
  }
  return [...hashes];
}

/** FNV-1a over UTF-16 code units, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
  }
  return value;
}
