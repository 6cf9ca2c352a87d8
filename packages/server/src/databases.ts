import { ServerCommandError } from './errors.js';

/**
 * Who shares a database. `shared`: all devices, which see each other's ids, codes and names of fields.
 * `per-user`: each user has one of its own, so the content of failures is allowed there.
 */
export type Layout = 'per-user' | 'shared';

/** What devices have as a role: they write their own results. */
export const deviceRole = 'afield-device';
/** What supervisors have as a role: they read all results and events, and write nothing. */
export const supervisorRole = 'afield-supervisor';

/** CouchDB's limit for the name of a database. */
const mostCharacters = 238;
const allowedName = /^[a-z][a-z0-9_$()+/-]*$/;

/** The database of one user: `<name>-<the user's name, its UTF-8 bytes in hexadecimal>`. */
export function databaseOfUser(name: string, user: string): string {
  return checkedName(`${name}-${Buffer.from(user, 'utf8').toString('hex')}`);
}

/** Whose database this is; undefined when no user has it. */
export function userOfDatabase(name: string, database: string): string | undefined {
  if (!database.startsWith(`${name}-`)) return undefined;
  const hex = database.slice(name.length + 1);
  if (hex === '' || !/^([0-9a-f]{2})+$/.test(hex)) return undefined;
  const user = Buffer.from(hex, 'hex').toString('utf8');
  return Buffer.from(user, 'utf8').toString('hex') === hex ? user : undefined;
}

/** @throws ServerCommandError with code `usage` when CouchDB allows no database of this name */
export function checkedName(name: string): string {
  if (name.length > mostCharacters) {
    throw new ServerCommandError('usage', `A database's name may have ${String(mostCharacters)} characters: ${name}`);
  }
  if (!allowedName.test(name)) {
    throw new ServerCommandError(
      'usage',
      `CouchDB allows no database of this name (lower case letters, digits and _$()+/-): ${name}`,
    );
  }
  return name;
}
