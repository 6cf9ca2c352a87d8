import { AfieldError } from '../model/errors.js';
import type { ServerAccess } from '../model/handler.js';
import type { Requests } from './requests.js';
import { ServerDatabase } from './server-database.js';

/** Names of databases, as CouchDB has them; `_users` and its like included. */
const databaseName = /^[a-z_][a-z0-9_$()+/-]*$/;

/** The databases of the server that the client was made for, for handlers. */
export class ServerDatabases implements ServerAccess {
  readonly #url: string | undefined;
  readonly #requests: Requests;

  /** `url` is the address of the app's own database there, without credentials. */
  constructor(url: string | undefined, requests: Requests) {
    this.#url = url;
    this.#requests = requests;
  }

  get documents(): ServerDatabase {
    return new ServerDatabase(this.#own(), this.#requests);
  }

  /** Bound: a handler may take it out of its context. */
  readonly database = (name: string): ServerDatabase => {
    if (!databaseName.test(name)) throw new TypeError('This cannot be the name of a database.');
    const { origin, pathname } = new URL(this.#own());
    // The server may live under a path: the sibling is where the app's own database is.
    const path = pathname.replace(/\/+$/, '');
    const above = path.slice(0, path.lastIndexOf('/'));
    return new ServerDatabase(`${origin}${above}/${encodeURIComponent(name)}`, this.#requests);
  };

  #own(): string {
    if (this.#url === undefined) throw new AfieldError('no_server', 'The client was made without `server`.');
    return this.#url;
  }
}
