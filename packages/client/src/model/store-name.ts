import { AfieldError } from './errors.js';
import { wrongInAddress } from './address.js';

/** Whose store it is, and of which server. */
export interface Owner {
  /** The name of the person at the server; undefined: not known yet. */
  readonly user: string | undefined;
  /** Address of the app's database there, in one spelling; undefined: none. */
  readonly server: string | undefined;
}

/**
 * One name for the local stores of each user at each server (S7): for `ClientOptions.name`. The same three always give the
 * same name, and no others do. `server` is the address of the app's database; `app` tells several apps of one origin apart.
 * The name of the user is in it as it is. Throws `AfieldError` (`invalid_option`).
 */
export function storeNameOf({ user, server, app }: { user: string; server: string; app: string }): string {
  if (typeof user !== 'string' || user === '') throw wrong('`user` must be a text that is not empty');
  if (typeof app !== 'string' || app === '') throw wrong('`app` must be a text that is not empty');
  const inServer = wrongInAddress(server, 'database');
  if (inServer !== undefined) throw wrong(`\`server\` ${inServer}`);
  return [app, user, addressOf(server)].map(encodeURIComponent).join('@');
}

/** An address of a database in the one spelling that all ways to write it share. */
export function addressOf(server: string): string {
  const { origin, pathname } = new URL(server);
  return origin + pathname.replace(/\/+$/, '');
}

function wrong(what: string): AfieldError {
  return new AfieldError('invalid_option', `storeNameOf: ${what}.`);
}
