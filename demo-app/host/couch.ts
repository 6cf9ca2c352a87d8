import { DemoError } from './demo-error.js';

/** Admin access to a CouchDB, straight over HTTP. The address carries no credentials. */
export interface Couch {
  readonly address: string;
  readonly username: string;
  readonly password: string;
}

export interface CouchAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** One document as the server stores it. */
export interface StoredDocument {
  readonly _id: string;
  readonly _rev: string;
  readonly [field: string]: unknown;
}

/** @param address may carry credentials, as `http://admin:secret@127.0.0.1:5984` does */
export function couchAt(address: string): Couch {
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) {
    // The message must not repeat the address: it may hold a password.
    throw new DemoError('COUCHDB_URL must be an address such as http://NAME:PASSWORD@127.0.0.1:5984.');
  }
  const url = new URL(address);
  const username = decodeURIComponent(url.username) || 'admin';
  const password = decodeURIComponent(url.password) || 'secret';
  url.username = '';
  url.password = '';
  return { address: url.href.replace(/\/+$/, ''), username, password };
}

export async function ask(couch: Couch, method: string, path: string, body?: unknown): Promise<CouchAnswer> {
  const token = Buffer.from(`${couch.username}:${couch.password}`).toString('base64');
  const response = await fetch(`${couch.address}/${path}`, {
    method,
    headers: { authorization: `Basic ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    throw new DemoError(`No CouchDB answers at ${couch.address}`, { cause: error });
  });
  const answer: unknown = await response.json().catch((error: unknown) => {
    throw new DemoError(`What answers at ${couch.address} is no CouchDB`, { cause: error });
  });
  return { status: response.status, body: answer };
}

/** Like `ask`, and throws with the server's words when it says no. */
export async function askFor(couch: Couch, method: string, path: string, body?: unknown): Promise<unknown> {
  const answer = await ask(couch, method, path, body);
  if (answer.status < 300) return answer.body;
  throw new Error(`${method} ${path}: ${String(answer.status)} ${JSON.stringify(answer.body)}`);
}

/** All live documents with their conflicts, by id. */
export async function allDocuments(couch: Couch, database: string): Promise<Map<string, StoredDocument>> {
  const body = await askFor(couch, 'GET', `${database}/_all_docs?include_docs=true&conflicts=true`);
  const { rows } = body as { rows: { id: string; doc: StoredDocument }[] };
  return new Map(rows.map(({ id, doc }) => [id, doc]));
}
