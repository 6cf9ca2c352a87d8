import { z } from 'zod';
import { parsed, pathPart, type Couch } from '../couch.js';
import { ServerCommandError } from '../errors.js';
import type { IndexShape } from '../setup/indexes.js';

/** Documents in one answer: failures documents have up to 500 kB each, and a page is all that is in memory. */
const perPage = 20;
const names = 1000;

const found = z.object({ docs: z.array(z.unknown()), bookmark: z.optional(z.string()) });
const listed = z.object({ rows: z.array(z.object({ id: z.string(), doc: z.optional(z.unknown()) })) });
const databaseNames = z.array(z.string());

/**
 * Documents that fit, in the order of an index. One that is written meanwhile may come twice: then it has moved on in the
 * order. @throws ServerCommandError with code `index_missing`
 */
export async function* findDocuments(
  couch: Couch,
  database: string,
  index: IndexShape,
  selector: Readonly<Record<string, unknown>>,
): AsyncGenerator<unknown> {
  const query = {
    selector,
    use_index: [index.ddoc, index.name],
    sort: index.fields.map((field) => ({ [field]: 'asc' })),
    limit: perPage,
    conflicts: true,
  };
  let place: object = {};
  for (let seen = 0; ;) {
    const path = `/${pathPart(database)}/_find`;
    const { status, body } = await couch.send('POST', path, { body: { ...query, ...place }, accept: [400] });
    if (status === 400) {
      throw new ServerCommandError(
        'index_missing',
        `The database ${database} has no index ${index.name}: run "afield-server setup" for it.`,
      );
    }
    const { docs, bookmark } = parsed(found, body);
    yield* docs;
    seen += docs.length;
    if (docs.length < perPage) return;
    // The embedded server knows no bookmarks.
    place = bookmark === undefined ? { skip: seen } : { bookmark };
  }
}

/** Documents whose ids begin so, in the order of their ids; none when there is no such database. */
export async function* listDocuments(couch: Couch, database: string, prefix: string): AsyncGenerator<unknown> {
  let from: string = prefix;
  for (;;) {
    const query = new URLSearchParams({
      include_docs: 'true',
      conflicts: 'true',
      limit: String(perPage),
      startkey: JSON.stringify(from),
      endkey: JSON.stringify(`${prefix}\uffff`),
    });
    const path = `/${pathPart(database)}/_all_docs?${query.toString()}`;
    const { status, body } = await couch.send('GET', path, { accept: [404] });
    if (status === 404) return;
    const { rows } = parsed(listed, body);
    for (const { doc } of rows) yield doc;
    const last = rows[rows.length - 1];
    if (last === undefined || rows.length < perPage) return;
    // The sign U+0000 is the smallest one: the next id after the last.
    from = `${last.id}\u0000`;
  }
}

/** Names of databases that begin so. CouchDB tells them to admins only. */
export async function* databasesOf(couch: Couch, prefix: string): AsyncGenerator<string> {
  let from: string | undefined;
  for (;;) {
    const query = new URLSearchParams({
      startkey: JSON.stringify(from ?? prefix),
      endkey: JSON.stringify(`${prefix}\uffff`),
      limit: String(names),
    });
    const { body } = await couch.send('GET', `/_all_dbs?${query.toString()}`);
    const all = parsed(databaseNames, body);
    // The embedded server answers with all names, whatever is asked for.
    const fitting = all.filter((name) => name.startsWith(prefix) && (from === undefined || name > from)).sort();
    yield* fitting;
    const last = fitting[fitting.length - 1];
    if (last === undefined || all.length < names) return;
    from = last;
  }
}
