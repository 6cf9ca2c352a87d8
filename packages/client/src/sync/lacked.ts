import type { ServerDatabase } from '../http/server-database.js';

/** A document's revisions, newest first. */
export interface History {
  readonly id: string;
  readonly revs: readonly string[];
}

/**
 * The revisions of each history that the server lacks, newest first. It has a revision when it has a later one of the same
 * history (S2), whatever it says of the earlier one: a server that is a PouchDB calls revisions missing that it knows only
 * as ancestors.
 */
export async function lackedOf(
  server: Pick<ServerDatabase, 'missing'>,
  histories: readonly History[],
): Promise<readonly (readonly string[])[]> {
  if (histories.length === 0) return [];
  const asked = new Map<string, Set<string>>();
  for (const { id, revs } of histories) asked.set(id, new Set([...(asked.get(id) ?? []), ...revs]));
  const missing = await server.missing(new Map([...asked].map(([id, revs]) => [id, [...revs]])));
  return histories.map(({ id, revs }) => {
    const absent = new Set(missing.get(id));
    const known = revs.findIndex((rev) => !absent.has(rev));
    return known < 0 ? revs : revs.slice(0, known);
  });
}
