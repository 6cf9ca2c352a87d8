import { randomBytes } from 'node:crypto';
import { requestJson, withoutCredentials } from './request-json.js';
import type { Credentials } from './server/dev-server.js';
import type { SecurityObject } from './server/security.js';

/** A database that lives as long as a test. */
export interface TemporaryDatabase {
  /** Unique on the server, such as `test-4f1c09ab-main`. */
  readonly name: string;
  /** Address without credentials. */
  readonly url: string;
}

/** What a new database is given. */
export interface TemporaryDatabaseOptions {
  /** Who may use it. `everyone` lets in whoever comes, signed in or not; by default the server decides (admins only). */
  readonly security?: SecurityObject | 'everyone';
  /** Documents to begin with, design documents included; written as they are. */
  readonly docs?: readonly object[];
}

/** Databases and users of a test, removed together. */
export interface TemporaryDatabases {
  /** Makes a database. The label is part of its name: lowercase letters, digits and `-`; `db` by default. */
  create(label?: string, options?: TemporaryDatabaseOptions): Promise<TemporaryDatabase>;
  /** Makes a user with a unique name and a random password. */
  createUser(options?: { readonly label?: string; readonly roles?: readonly string[] }): Promise<Credentials>;
  /** Removes what was made, in whatever state it is. Can be called again. */
  dispose(): Promise<void>;
}

const openToEveryone: SecurityObject = {
  admins: { names: [], roles: ['_admin'] },
  members: { names: [], roles: [] },
};

/**
 * Makes databases with unique names on a server, embedded or real, and removes them on `dispose`. Every call throws
 * DevServerError with code `request_failed` when the server refuses.
 *
 * @param serverUrl address of the server; credentials in it are left out
 * @param admin who may create databases there
 */
export function temporaryDatabases(serverUrl: string, admin: Credentials): TemporaryDatabases {
  const { url } = withoutCredentials(serverUrl);
  const databases = new Set<string>();
  const users = new Set<string>();
  const send = (method: string, path: string, body?: unknown, accepted: readonly number[] = []) =>
    requestJson(method, `${url}/${path}`, { credentials: admin, body, accepted });

  const dispose = async (): Promise<void> => {
    for (const name of databases) await send('DELETE', name, undefined, [404]);
    databases.clear();
    for (const name of users) await removeUser(name);
    users.clear();
  };

  const removeUser = async (name: string): Promise<void> => {
    const path = userPath(name);
    const { status, body } = await send('GET', path, undefined, [404]);
    const revision = (body as { readonly _rev?: string })._rev;
    if (status !== 404 && revision !== undefined)
      await send('DELETE', `${path}?rev=${revision}`, undefined, [404, 409]);
  };

  return {
    async create(label = 'db', { security, docs = [] } = {}) {
      const name = `test-${uniquePart()}-${label}`;
      databases.add(name);
      await send('PUT', name);
      if (security !== undefined) {
        await send('PUT', `${name}/_security`, security === 'everyone' ? openToEveryone : security);
      }
      if (docs.length > 0) await send('POST', `${name}/_bulk_docs`, { docs });
      return { name, url: `${url}/${name}` };
    },
    async createUser({ label = 'user', roles = [] } = {}) {
      const username = `test-${uniquePart()}-${label}`;
      const password = randomBytes(12).toString('hex');
      await send('PUT', '_users', undefined, [412]);
      users.add(username);
      await send('PUT', userPath(username), { name: username, password, roles, type: 'user' });
      return { username, password };
    },
    dispose,
  };
}

function userPath(name: string): string {
  return `_users/org.couchdb.user:${encodeURIComponent(name)}`;
}

function uniquePart(): string {
  return randomBytes(6).toString('hex');
}
