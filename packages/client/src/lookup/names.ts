import type { IndexDefinition } from '../model/lookup.js';

/** Older versions that are looked for where an engine does not list its databases. */
const mostOlder = 100;

/** The database of one version of an index. */
export function databaseName(client: string, { name, version }: Pick<IndexDefinition, 'name' | 'version'>): string {
  return `${prefixOf(client, name)}${String(version)}`;
}

/** Removes older versions of an index: the newer one has taken their place. What cannot be removed now goes at the next start. */
export async function removeOlder(
  factory: IDBFactory,
  client: string,
  { name, version }: Pick<IndexDefinition, 'name' | 'version'>,
): Promise<void> {
  const older = await olderVersions(factory, prefixOf(client, name), version);
  for (const one of older) await remove(factory, databaseName(client, { name, version: one }));
}

function remove(factory: IDBFactory, database: string): Promise<void> {
  return new Promise((resolve) => {
    try {
      const request = factory.deleteDatabase(database);
      request.onsuccess = request.onerror = () => {
        resolve();
      };
    } catch {
      resolve(); // the engine does not let anyone remove it
    }
  });
}

async function olderVersions(factory: IDBFactory, prefix: string, version: number): Promise<readonly number[]> {
  // Some engines do not list their databases (Firefox before 126).
  const list = (factory as Partial<IDBFactory>).databases;
  if (list === undefined) {
    return Array.from({ length: Math.min(mostOlder, version - 1) }, (_, place) => version - 1 - place);
  }
  try {
    const all = await list.call(factory);
    return all.flatMap(({ name = '' }) => {
      const found = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : Number.NaN;
      return Number.isInteger(found) && found < version ? [found] : [];
    });
  } catch {
    return [];
  }
}

function prefixOf(client: string, index: string): string {
  return `${client}-afield-index-${index}-v`;
}
