/** Why a command could not do its work. */
export type ServerCommandErrorCode =
  /** An argument or an environment variable is wrong or missing. */
  | 'usage'
  /** Nothing answers at the address, or the certificate is not trusted. */
  | 'unreachable'
  /** Something answers that is no CouchDB: a login page, a proxy, another web server. */
  | 'not_couchdb'
  /** Name or password were not accepted. */
  | 'unauthorized'
  /** Signed in, but without the right that this needs. */
  | 'forbidden'
  /** The database is not there. */
  | 'database_missing'
  /** An index that a command reads by is not there. */
  | 'index_missing'
  /** The server has a trouble of its own; the same command may work later. */
  | 'server';

/** An error of a command. The message says what to do, and never holds a password. */
export class ServerCommandError extends Error {
  override readonly name = 'ServerCommandError';
  readonly code: ServerCommandErrorCode;

  constructor(code: ServerCommandErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
