import type { StoredDocument } from './couch.js';

export interface Difference {
  readonly id: string;
  readonly what: 'only on the device' | 'only on the server' | 'revision' | 'body' | 'conflict on the server';
}

/** Compares document by document, body and revision. `_conflicts` of the server is a difference of its own. */
export function differences(
  device: ReadonlyMap<string, StoredDocument>,
  server: ReadonlyMap<string, StoredDocument>,
): Difference[] {
  const found: Difference[] = [];
  for (const [id, here] of device) {
    const there = server.get(id);
    if (!there) found.push({ id, what: 'only on the device' });
    else if (here._rev !== there._rev) found.push({ id, what: 'revision' });
    else if ('_conflicts' in there) found.push({ id, what: 'conflict on the server' });
    else if (inOneOrder(here) !== inOneOrder(there)) found.push({ id, what: 'body' });
  }
  for (const id of server.keys()) {
    if (!device.has(id)) found.push({ id, what: 'only on the server' });
  }
  return found;
}

/** JSON in which the order of keys does not count. */
function inOneOrder(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
