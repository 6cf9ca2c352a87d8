import type { PouchLike } from '@afield/client';
import { feedOf, type FeedEntry } from './check-feed.js';
import type { Ask } from './backup.js';
import { isObject, type JsonObject } from './json.js';

/** The winning revision of a document. */
export interface Winner {
  readonly rev: string;
  readonly deleted: boolean;
  readonly doc: JsonObject | undefined;
}

/** What the harness itself does in a database, past all faults: the same for a server's and a local one. */
export interface Database {
  /** Undefined when there never was such a document. */
  winner(id: string): Promise<Winner | undefined>;
  /** All revisions the document ever had, on all its branches. */
  revisions(id: string): Promise<ReadonlySet<string>>;
  /** Writes one document on the revision that it carries. Throws when it is refused. */
  write(doc: JsonObject): Promise<void>;
  /** An attachment's data as base64; undefined when there is none. */
  attachment(id: string, name: string): Promise<string | undefined>;
  /** Ids of the live documents but the design documents. */
  liveIds(): Promise<readonly string[]>;
  /** What the changes feed says from its beginning. */
  feed(): Promise<readonly FeedEntry[]>;
}

/** Writes a document as a case file gives it: with `_deleted` it is written first and deleted then. */
export async function writeGiven(database: Database, doc: JsonObject): Promise<void> {
  const { _deleted: deleted, ...live } = doc;
  await database.write(live);
  const id = String(doc['_id']);
  if (deleted === true) await database.write({ _id: id, _rev: (await database.winner(id))?.rev, _deleted: true });
}

export class HttpDatabase implements Database {
  constructor(
    readonly url: string,
    readonly authorization: string,
  ) {}

  /** `mayBeThere`: a database of the server itself, such as `_users`. */
  async create(mayBeThere = false): Promise<void> {
    await this.#call('PUT', '', undefined, mayBeThere ? [201, 202, 412] : [201, 202]);
  }

  async drop(): Promise<void> {
    await this.#call('DELETE', '', undefined, [200, 202, 404]);
  }

  async winner(id: string): Promise<Winner | undefined> {
    const answer = await this.#call('POST', '/_all_docs?include_docs=true', { keys: [id] }, [200]);
    return winnerOf(listOf(answer, 'rows')[0]);
  }

  async revisions(id: string): Promise<ReadonlySet<string>> {
    const path = `/${encodeURIComponent(id)}?open_revs=all&revs=true`;
    const answer = await this.#call('GET', path, undefined, [200, 404]);
    return Array.isArray(answer) ? revisionsOf(answer) : new Set();
  }

  async write(doc: JsonObject): Promise<void> {
    const answer = await this.#call('POST', '/_bulk_docs', { docs: [doc] }, [201, 202]);
    const row: unknown = Array.isArray(answer) ? answer[0] : undefined;
    if (isObject(row) && row['error'] !== undefined)
      throw new Error(`the harness could not write: ${JSON.stringify(row)}`);
  }

  async attachment(id: string, name: string): Promise<string | undefined> {
    const answer = await this.#send('GET', `/${encodeURIComponent(id)}/${encodeURIComponent(name)}`, undefined);
    return answer.ok ? Buffer.from(await answer.arrayBuffer()).toString('base64') : undefined;
  }

  async liveIds(): Promise<readonly string[]> {
    return idsOf(listOf(await this.#call('GET', '/_all_docs', undefined, [200]), 'rows'));
  }

  async feed(): Promise<readonly FeedEntry[]> {
    return feedOf(await this.#call('GET', '/_changes', undefined, [200]));
  }

  /** Asks for anything else. */
  get ask(): Ask {
    return (method, path, body, statuses) => this.#call(method, path, body, statuses);
  }

  async #call(method: string, path: string, body: unknown, statuses: readonly number[]): Promise<unknown> {
    const answer = await this.#send(method, path, body);
    const text = await answer.text();
    if (!statuses.includes(answer.status)) {
      throw new Error(
        `the harness: ${method} ${this.url}${path} answered ${String(answer.status)} ${text.slice(0, 200)}`,
      );
    }
    return JSON.parse(text) as unknown;
  }

  #send(method: string, path: string, body: unknown): Promise<Response> {
    const headers = {
      authorization: this.authorization,
      accept: 'application/json',
      'content-type': 'application/json',
    };
    const init = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    return fetch(this.url + path, init);
  }
}

/** A local database; each call opens it anew, since the client's `close()` ends every handle of that name. */
export class LocalDatabase implements Database {
  constructor(readonly open: () => PouchLike) {}

  async winner(id: string): Promise<Winner | undefined> {
    return winnerOf((await this.open().allDocs({ keys: [id], include_docs: true })).rows[0]);
  }

  async revisions(id: string): Promise<ReadonlySet<string>> {
    try {
      return revisionsOf((await this.open().get(id, { open_revs: 'all', revs: true })) as unknown[]);
    } catch (error) {
      if (isObject(error) && error['status'] === 404) return new Set();
      throw error;
    }
  }

  async write(doc: JsonObject): Promise<void> {
    const row = (await this.open().bulkDocs([doc]))[0];
    if (isObject(row) && row['error'] !== undefined)
      throw new Error(`the harness could not write: ${JSON.stringify(row)}`);
  }

  async attachment(id: string, name: string): Promise<string | undefined> {
    const doc = (await this.open().get(id, { attachments: true })) as {
      _attachments?: Record<string, { data?: string }>;
    };
    return doc._attachments?.[name]?.data;
  }

  async liveIds(): Promise<readonly string[]> {
    return idsOf((await this.open().allDocs({})).rows);
  }

  async feed(): Promise<readonly FeedEntry[]> {
    return feedOf(await Promise.resolve(this.open().changes({ since: 0 })));
  }
}

function winnerOf(row: unknown): Winner | undefined {
  if (!isObject(row) || !isObject(row['value']) || typeof row['value']['rev'] !== 'string') return undefined;
  const deleted = row['value']['deleted'] === true;
  return { rev: row['value']['rev'], deleted, doc: isObject(row['doc']) ? row['doc'] : undefined };
}

function revisionsOf(leaves: readonly unknown[]): ReadonlySet<string> {
  const all = new Set<string>();
  for (const leaf of leaves) {
    const doc = isObject(leaf) ? leaf['ok'] : undefined;
    const chain = isObject(doc) ? doc['_revisions'] : undefined;
    if (!isObject(chain) || !Array.isArray(chain['ids'])) continue;
    chain['ids'].forEach((hash: unknown, back) => all.add(`${String(Number(chain['start']) - back)}-${String(hash)}`));
  }
  return all;
}

function listOf(answer: unknown, field: string): readonly unknown[] {
  const list = isObject(answer) ? answer[field] : undefined;
  return Array.isArray(list) ? (list as unknown[]) : [];
}

function idsOf(rows: readonly unknown[]): readonly string[] {
  return rows.map((row) => String(isObject(row) ? row['id'] : '')).filter((id) => !id.startsWith('_design/'));
}
