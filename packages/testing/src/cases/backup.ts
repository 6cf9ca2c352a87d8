import type { JsonObject } from './json.js';
import { isObject } from './json.js';

/** Asks a database of the server itself, past all faults; throws for any other status. */
export type Ask = (method: string, path: string, body: unknown, statuses: readonly number[]) => Promise<unknown>;

/** All leaves of all documents with their histories and attachments, as a backup of the database has them. */
export async function backUp(ask: Ask): Promise<readonly JsonObject[]> {
  const feed = await ask('GET', '/_changes?style=all_docs', undefined, [200]);
  const docs = listOf(feed, 'results').flatMap((one) =>
    listOf(one, 'changes').flatMap((change) =>
      isObject(one) && isObject(change) ? [{ id: one['id'], rev: change['rev'] }] : [],
    ),
  );
  const answer = await ask('POST', '/_bulk_get?revs=true&attachments=true', { docs }, [200]);
  return listOf(answer, 'results').flatMap((one) =>
    listOf(one, 'docs').flatMap((leaf) => (isObject(leaf) && isObject(leaf['ok']) ? [leaf['ok']] : [])),
  );
}

/** The database is made anew and has what the backup has, and nothing else: no `_local` document of a device either. */
export async function restore(ask: Ask, backup: readonly JsonObject[]): Promise<void> {
  await ask('DELETE', '', undefined, [200, 202]);
  await ask('PUT', '', undefined, [201, 202]);
  await ask('POST', '/_bulk_docs', { docs: backup, new_edits: false }, [201, 202]);
}

function listOf(value: unknown, field: string): readonly unknown[] {
  const list = isObject(value) ? value[field] : undefined;
  return Array.isArray(list) ? (list as unknown[]) : [];
}
