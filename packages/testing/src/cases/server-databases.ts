import { HttpDatabase, type Database } from './database.js';
import { isUserId } from './own-users.js';
import type { Case } from './read.js';
import type { CaseServer } from './server.js';

/** What case files call the database that events are published to. */
export const eventsWord = 'events';

/** The server databases of one case, each with a name of its own, and what case files call them. */
export class ServerDatabases {
  /** Undefined when the case has to do with no server. */
  readonly main: HttpDatabase | undefined;
  readonly results: HttpDatabase | undefined;
  /** Every case has one: the mutations of any case give events. */
  readonly events: HttpDatabase;
  /** The server's `_users`, when the case has to do with users. */
  readonly users: HttpDatabase | undefined;
  readonly #names: ReadonlyMap<string, string>;
  readonly #words: ReadonlyMap<string, string>;

  constructor(
    private readonly given: Case,
    private readonly server: CaseServer,
    run: string,
  ) {
    this.#names = new Map([
      ['main', `${given.config.server_db ?? 'main'}-${run}`],
      ['results', `results-${run}`],
      [eventsWord, `afield-events-${run}`],
      ['_users', '_users'],
    ]);
    this.#words = new Map([...this.#names].map(([word, name]) => [name, word]));
    const isThere = hasServer(given);
    this.main = isThere ? this.#database('main') : undefined;
    this.results = isThere ? this.#database('results') : undefined;
    this.events = this.#database(eventsWord);
    this.users = this.userIds.length > 0 ? this.#database('_users') : undefined;
  }

  /** Ids of all users that the case has or names. */
  get userIds(): readonly string[] {
    const { serverUsers, operations } = this.given;
    return [
      ...new Set([...serverUsers.map((user) => user['_id']), ...operations.map(({ id }) => id)].filter(isUserId)),
    ];
  }

  /** The word for a database of this name; the name itself where the case has no word for it. */
  wordOf(name: string): string {
    return this.#words.get(name) ?? name;
  }

  /** The address of a database behind the proxy. */
  addressOf(word: string): string {
    return `${this.server.proxyUrl}/${encodeURIComponent(this.#names.get(word) ?? word)}`;
  }

  of(word: string): Database | undefined {
    const { main, results, events, users } = this;
    return new Map([
      ['main', main],
      ['server', main],
      ['results', results],
      [eventsWord, events],
      ['_users', users],
    ]).get(word);
  }

  async create(): Promise<void> {
    await this.main?.create();
    await this.results?.create();
    await this.events.create();
    await this.users?.create(true);
  }

  /** Removes the databases and the users. */
  async drop(): Promise<void> {
    for (const id of this.userIds) {
      const user = await this.users?.winner(id);
      if (user?.deleted === false) await this.users?.write({ _id: id, _rev: user.rev, _deleted: true });
    }
    await this.main?.drop();
    await this.results?.drop();
    await this.events.drop();
  }

  #database(word: string): HttpDatabase {
    const name = this.#names.get(word) ?? word;
    return new HttpDatabase(`${this.server.url}/${encodeURIComponent(name)}`, this.server.authorization);
  }
}

/** A local case has a server when it brings documents for it, lets it fail, or expects something of it. */
function hasServer({ target, serverDocs, serverUsers, faults, expect }: Case): boolean {
  if (target === 'server' || serverDocs.length > 0 || serverUsers.length > 0) return true;
  const { server_docs, server_users, server_untouched, server_deleted, server_results } = expect;
  const { same_rev_both_sides, requests_max } = expect;
  const asks = [server_docs, server_users, server_untouched, server_deleted, server_results];
  if ([...asks, same_rev_both_sides, requests_max].some((one) => one !== undefined)) return true;
  return faults.some((one) => (one.at === 'request' || one.at === 'row') && (one.when.db ?? 'main') === 'main');
}
