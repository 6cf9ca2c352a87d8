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
 * @throws ServerCommandError with code `database_missing` when there is none
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
  if (layout !== 'shared' && user !== undefined) {
    const database = databaseOfUser(results, user);
    if (await isThere(couch, database)) return yield { database, user };
  } else if (layout !== 'shared') {
    let isAny = false;
    for await (const database of databasesOf(couch, `${results}-`)) {
      const owner = userOfDatabase(results, database);
      if (owner === undefined) continue;
      isAny = true;
      yield { database, user: owner };
    }
    if (isAny) return;
  }
  throw new ServerCommandError(
    'database_missing',
    `There are no results: no database ${results}${layout === 'shared' ? '' : ', and none of a user'}. Has "afield-server setup" been run? --results gives another name.`,
  );
}

async function isThere(couch: Couch, database: string): Promise<boolean> {
  const { status } = await couch.send('GET', `/${pathPart(database)}`, { accept: [404] });
  return status !== 404;
}
