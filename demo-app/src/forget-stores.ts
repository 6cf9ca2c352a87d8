const prefix = '_pouch_afield-demo';

/**
 * Removes what demos before this one left in the browser: the embedded server keeps nothing, so with every start of it
 * a new store begins, and the old ones have no server any more. Asks nothing where the browser can't list databases.
 */
export async function forgetOtherStores(name: string): Promise<void> {
  if (typeof indexedDB.databases !== 'function') return;
  const stores = await indexedDB.databases();
  for (const store of stores) {
    if (!store.name?.startsWith(prefix) || store.name.startsWith(`_pouch_${name}`)) continue;
    indexedDB.deleteDatabase(store.name);
  }
}
