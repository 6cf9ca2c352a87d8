import { isObject, setOwn } from './json.js';
import type { Case } from './read.js';

const prefix = 'org.couchdb.user:';

/**
 * The case with users whose names are its own: all databases of a server share its users, those of real people too. Each
 * `org.couchdb.user:NAME`, wherever it stands, becomes `org.couchdb.user:NAME-run`; the field `name` of such a document
 * follows, because the server wants the two to agree.
 */
export function withOwnUsers(given: Case, run: string): Case {
  const hasUsers = given.serverUsers.length > 0 || given.operations.some(({ action }) => action === 'delete-user');
  if (!hasUsers) return given;
  return renamed(given, (name) => `${name}-${run}`) as Case;
}

/** Whether an id is that of a user. */
export function isUserId(id: unknown): id is string {
  return typeof id === 'string' && id.startsWith(prefix) && id.length > prefix.length;
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (typeof value === 'string') return renamedText(value, rename);
  if (Array.isArray(value)) return value.map((item: unknown) => renamed(item, rename));
  if (!isObject(value)) return value;
  const result = {};
  for (const [key, inner] of Object.entries(value)) {
    const isName = key === 'name' && value['_id'] === `${prefix}${String(inner)}`;
    setOwn(result, renamedText(key, rename), isName ? rename(String(inner)) : renamed(inner, rename));
  }
  return result;
}

/** Also after the name of a database, as in `main:ID`, and at the end of a path. */
function renamedText(text: string, rename: (name: string) => string): string {
  const [, id] = /^(?:main:|.*\/)?(org\.couchdb\.user:.*)$/.exec(text) ?? [];
  return isUserId(id) ? rename(text) : text;
}
