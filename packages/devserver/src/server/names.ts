/** An error in CouchDB's form: the status and the JSON body of the answer. */
export interface CouchError {
  readonly status: number;
  readonly error: string;
  readonly reason: string;
}

const systemDatabases = new Set(['_users', '_replicator', '_global_changes']);

/** CouchDB's rule for database names (documentation of `PUT /{db}`). */
const legalName = /^[a-z][a-z0-9_$()+/-]*$/;

/** The longest name that CouchDB takes, in characters. */
const longestName = 238;

/** Databases of the server's own, which CouchDB doesn't have. */
const internalPrefix = 'pouch__';

/**
 * Says what is wrong with the name of a database that is to be created, or `undefined` if nothing is.
 * A `/` is legal in CouchDB, but this server would drop it from the name, so it is refused with a reason of its own.
 */
export function databaseNameError(name: string): CouchError | undefined {
  if (systemDatabases.has(name)) return undefined;
  if (name.length > longestName) {
    return { status: 400, error: 'database_name_too_long', reason: `At specified name: '${name}'.` };
  }
  if (name.includes('/') || name.startsWith(internalPrefix)) {
    return illegal(
      `Name: '${name}'. This development server takes no names with a / and none of its own (${internalPrefix}).`,
    );
  }
  if (legalName.test(name)) return undefined;
  return illegal(
    `Name: '${name}'. Only lowercase characters (a-z), digits (0-9), and any of the characters ` +
      '_, $, (, ), +, -, and / are allowed. Must begin with a letter.',
  );
}

/** Whether a database is one that only this server has and that nobody should see. */
export function isInternalDatabase(name: string): boolean {
  return name.startsWith(internalPrefix);
}

function illegal(reason: string): CouchError {
  return { status: 400, error: 'illegal_database_name', reason };
}

/** The decoded segments of a request's path, without empty ones at the end. A malformed escape stays as it is. */
export function pathSegments(url: string): string[] {
  const path = (url.split('?', 1)[0] ?? '').replace(/^\/+/, '').replace(/\/+$/, '');
  return path === '' ? [] : path.split('/').map(decodeSegment);
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
