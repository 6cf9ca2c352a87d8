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

/**
 * Removes all indexes of a client, of any name and version. Where an engine does not list its databases: those of these
 * definitions and their older versions.
 */
export async function removeIndexes(
  factory: IDBFactory,
  client: string,
  definitions: readonly Pick<IndexDefinition, 'name' | 'version'>[],
): Promise<void> {
  const prefix = prefixOf(client, '').replace(/-v$/, '');
  const names = (await listed(factory))?.filter((name) => name.startsWith(prefix));
  const guessed = definitions.flatMap(({ name, version }) =>
    Array.from({ length: Math.min(mostOlder, version) }, (_, place) =>
      databaseName(client, { name, version: version - place }),
    ),
  );
  for (const name of names ?? guessed) await remove(factory, name);
}

/** Names of all databases; undefined where the engine does not list them. */
async function listed(factory: IDBFactory): Promise<readonly string[] | undefined> {
  // Firefox before 126.
  const list = (factory as Partial<IDBFactory>).databases;
  try {
    return (await list?.call(factory))?.flatMap(({ name }) => name ?? []);
  } catch {
    return undefined;
  }
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
  if ((factory as Partial<IDBFactory>).databases === undefined) {
    return Array.from({ length: Math.min(mostOlder, version - 1) }, (_, place) => version - 1 - place);
  }
  return ((await listed(factory)) ?? []).flatMap((name) => {
    const found = name.startsWith(prefix) ? Number(name.slice(prefix.length)) : Number.NaN;
    return Number.isInteger(found) && found < version ? [found] : [];
  });
}

function prefixOf(client: string, index: string): string {
  return `${client}-afield-index-${index}-v`;
}
