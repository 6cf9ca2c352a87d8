import type { Database } from './database.js';
import { isObject } from './json.js';

/** A document as the changes feed has it. */
export interface FeedEntry {
  readonly id: string;
  readonly rev: string;
  readonly deleted: boolean;
}

/**
 * Whether who reads the changes of a database from the beginning learns of every document, once and as it is now. `ids`: of
 * these documents in any case. Answers with what is wrong.
 */
export async function checkFeed(
  name: string,
  database: Database,
  ids: readonly string[] = [],
): Promise<readonly string[]> {
  const wrong: string[] = [];
  const entries = await database.feed();
  const times = new Map<string, number>();
  for (const { id, rev, deleted } of entries) {
    times.set(id, (times.get(id) ?? 0) + 1);
    const winner = await database.winner(id);
    if (winner?.rev !== rev || winner.deleted !== deleted) {
      wrong.push(`changes_feed_whole ${name}: ${id} is ${winner?.rev ?? 'absent'}, but the feed says ${rev}`);
    }
  }
  for (const id of new Set([...(await database.liveIds()), ...ids])) {
    if ((times.get(id) ?? 0) !== 1)
      wrong.push(`changes_feed_whole ${name}: ${id} comes ${String(times.get(id) ?? 0)} times`);
  }
  return wrong;
}

/** Reads the answer of a changes feed, without design documents. */
export function feedOf(answer: unknown): readonly FeedEntry[] {
  const results = isObject(answer) && Array.isArray(answer['results']) ? (answer['results'] as unknown[]) : [];
  return results.flatMap((one) => {
    const changes = isObject(one) && Array.isArray(one['changes']) ? (one['changes'] as unknown[]) : [];
    const first = changes[0];
    if (!isObject(one) || !isObject(first) || String(one['id']).startsWith('_design/')) return [];
    return [{ id: String(one['id']), rev: String(first['rev']), deleted: one['deleted'] === true }];
  });
}
