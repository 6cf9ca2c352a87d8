import { OtherStoreError } from '../model/errors.js';
import type { Owner } from '../model/store-name.js';
import type { StoredStore } from './stored.js';

/** Throws `OtherStoreError` when a store is not for this user, or not for this server (S7). What one side does not know passes. */
export function assertOwner(stored: Pick<StoredStore, 'user' | 'server'>, asked: Owner): void {
  if (differ(stored.user, asked.user)) throw new OtherStoreError('other_user');
  if (differ(stored.server, asked.server)) throw new OtherStoreError('other_server');
}

/** The store with what was not known of it before; undefined when nothing is new. */
export function claimed(stored: StoredStore, { user, server }: Owner): StoredStore | undefined {
  const next = { ...stored, user: stored.user ?? user, server: stored.server ?? server };
  return next.user === stored.user && next.server === stored.server ? undefined : next;
}

function differ(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && other !== undefined && one !== other;
}
