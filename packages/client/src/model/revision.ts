/** The number before the dash of a revision; 0 when there is none. */
export function generationOf(rev: string | undefined): number {
  return rev === undefined ? 0 : Number.parseInt(rev, 10);
}
