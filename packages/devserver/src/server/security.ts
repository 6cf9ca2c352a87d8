import type { Caller } from './answers.js';
import type { CouchError } from './names.js';

/** A database's `_security` object; every part may be missing. */
export interface SecurityObject {
  readonly admins?: { readonly names?: readonly string[]; readonly roles?: readonly string[] };
  readonly members?: { readonly names?: readonly string[]; readonly roles?: readonly string[] };
}

/** Who may use a database that nobody gave a `_security` object. */
export type DefaultSecurity = 'admin-only' | 'everyone';

/** What CouchDB 3 gives every new database (`[couchdb] default_security = admin_only`). */
const adminOnly: SecurityObject = {
  members: { roles: ['_admin'] },
  admins: { roles: ['_admin'] },
};

/** The `_security` object in force: the stored one, or the default when there is none. */
export function securityInForce(stored: SecurityObject, fallback: DefaultSecurity): SecurityObject {
  const isStored = stored.admins !== undefined || stored.members !== undefined;
  return isStored || fallback === 'everyone' ? stored : adminOnly;
}

/** The refusal that CouchDB gives who is neither member nor admin: 401 when signed out, 403 when signed in. */
export function membershipError(caller: Caller, security: SecurityObject): CouchError | undefined {
  if (isServerAdmin(caller) || isIn(caller, security.admins) || isMember(caller, security)) return undefined;
  return caller.name === null
    ? { status: 401, error: 'unauthorized', reason: 'You are not authorized to access this db.' }
    : { status: 403, error: 'forbidden', reason: 'You are not allowed to access this db.' };
}

/** Whether the caller is an admin of the whole server. */
export function isServerAdmin(caller: Caller): boolean {
  return caller.roles.includes('_admin');
}

function isMember(caller: Caller, { members }: SecurityObject): boolean {
  const someoneIsNamed = (members?.names?.length ?? 0) > 0 || (members?.roles?.length ?? 0) > 0;
  return !someoneIsNamed || isIn(caller, members);
}

function isIn(caller: Caller, section: SecurityObject['members']): boolean {
  const byName = caller.name !== null && (section?.names ?? []).includes(caller.name);
  return byName || (section?.roles ?? []).some((role) => caller.roles.includes(role));
}
