/** What is wrong with a list of document ids, for a sentence about it; undefined when nothing is. */
export function wrongInDocIds(given: unknown): string | undefined {
  if (!Array.isArray(given)) return 'must be a list of document ids';
  const place = (given as unknown[]).findIndex((id) => typeof id !== 'string' || id === '' || id.startsWith('_'));
  return place < 0 ? undefined : `must hold ids of documents: number ${String(place)} is none`;
}
