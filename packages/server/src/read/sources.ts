import { pathPart, type Couch } from '../couch.js';
import { checkedName, databaseOfUser, userOfDatabase, type Layout } from '../databases.js';
import { ServerCommandError } from '../errors.js';
import { databasesOf } from './pages.js';

/** A database of results; `user`: it is of this user alone. */
export interface Source {
  readonly database: string;
  readonly user?: string;
}

/**
 * Where results are: the one shared database when it is there, else a database of each user. `layout` says it when both are.
 *
 * @param user whose results are wanted; with the layout `per-user` only that one database is read
 * @throws ServerCommandError with code `database_missing` when there is none, `forbidden` when this user may not look for them
 */
export async function* sourcesOf(
  couch: Couch,
  results: string,
  layout: Layout | undefined,
  user: string | undefined,
): AsyncGenerator<Source> {
  checkedName(results);
  const isShared = layout !== 'per-user' && (await isThere(couch, results));
  if (isShared) return yield { database: results };
  const sought = layout === 'per-user' ? '' : `no database ${results}, and `;
  if (layout === 'shared') throw missing(`no database ${results}`);
  if (user !== undefined) {
    const database = databaseOfUser(results, user);
    if (await isThere(couch, database)) return yield { database, user };
    throw missing(`${sought}no database ${database} of this user`);
  }
  let isAny = false;
  try {
    for await (const database of databasesOf(couch, `${results}-`)) {
      const owner = userOfDatabase(results, database);
      if (owner === undefined) continue;
      isAny = true;
      yield { database, user: owner };
    }
  } catch (error) {
    if (isAny || !(error instanceof ServerCommandError) || error.code !== 'forbidden') throw error;
    const otherwise = layout === 'per-user' ? '' : `There is no database ${results}, or --results has another name. `;
    throw new ServerCommandError(
      'forbidden',
      `${otherwise}Only an admin may look for the databases of all users (GET /_all_dbs): name a user with --user.`,
    );
  }
  if (!isAny) throw missing(`${sought}no database of a user`);
}

function missing(what: string): ServerCommandError {
  return new ServerCommandError(
    'database_missing',
    `There are no results: ${what}. Has "afield-server setup" been run? --results gives another name.`,
  );
}

async function isThere(couch: Couch, database: string): Promise<boolean> {
  const { status } = await couch.send('GET', `/${pathPart(database)}`, { accept: [404] });
  return status !== 404;
}
