import { isObject } from '../cases/json.js';
import { Refusal, type MemoryDatabase, type StoredDocument, type WriteRow } from './memory-database.js';

/** A request as it reached the server. */
export interface MemoryRequest {
  readonly method: string;
  /** The decoded path, such as `/records/_bulk_docs`. */
  readonly path: string;
  readonly database: string | undefined;
  /** The path after the database, such as `_bulk_docs` or `_local/x`; empty for the database itself. */
  readonly resource: string;
  readonly query: URLSearchParams;
  /** The body as JSON; undefined when there is none. */
  readonly body: unknown;
  /** Who sends it; undefined when no one is signed in. */
  readonly user: string | undefined;
}

/** An answer before it is a `Response`. */
export interface MemoryAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** What a database answers; undefined when it does not know the request. Throws `Refusal`. */
export function databaseAnswer(database: MemoryDatabase, request: MemoryRequest): MemoryAnswer | undefined {
  const { method, resource } = request;
  switch (`${method} ${resource.split('/')[0] ?? ''}`) {
    case 'GET ':
      return ok({
        db_name: request.database,
        update_seq: `${String(database.sequence)}-m`,
        doc_count: database.liveCount,
      });
    case 'GET _all_docs':
    case 'POST _all_docs':
      return ok(allDocs(database, request));
    case 'POST _bulk_docs':
      return { status: 201, body: bulkDocs(database, request.body) };
    case 'POST _bulk_get':
      return ok(bulkGet(database, request));
    case 'POST _revs_diff':
      return ok(revsDiff(database, request.body));
    case 'GET _changes':
    case 'POST _changes':
      return ok(changes(database, request));
    case 'GET _local':
    case 'PUT _local':
      return localDocument(database, request);
  }
  if (method === 'GET' && !resource.startsWith('_')) return ok(oneDocument(database, request));
  return undefined;
}

export function ok(body: unknown): MemoryAnswer {
  return { status: 200, body };
}

function allDocs(database: MemoryDatabase, { body, query }: MemoryRequest): unknown {
  const show = { docs: query.get('include_docs') === 'true', conflicts: query.get('conflicts') === 'true' };
  const keys = isObject(body) ? body['keys'] : undefined;
  const total_rows = database.liveCount;
  if (Array.isArray(keys)) {
    return { total_rows, offset: null, rows: keys.map((key) => rowByKey(database, String(key), show)) };
  }
  const rows = database.ids().flatMap((id) => {
    const row = rowByKey(database, id, show);
    return 'id' in row && row.value.deleted !== true ? [row] : [];
  });
  return { total_rows, offset: 0, rows };
}

type Row =
  | { key: string; error: 'not_found' }
  | { id: string; key: string; value: { rev: string; deleted?: true }; doc?: StoredDocument | null };

function rowByKey(database: MemoryDatabase, key: string, show: { docs: boolean; conflicts: boolean }): Row {
  const winner = database.tree(key)?.winner;
  if (winner === undefined) return { key, error: 'not_found' };
  const value = { rev: winner.rev, ...(winner.deleted ? { deleted: true as const } : {}) };
  if (!show.docs) return { id: key, key, value };
  const { conflicts } = show;
  return { id: key, key, value, doc: winner.deleted ? null : (database.read(key, undefined, { conflicts }) ?? null) };
}

function bulkDocs(database: MemoryDatabase, body: unknown): unknown {
  const docs = isObject(body) ? body['docs'] : undefined;
  if (!Array.isArray(docs)) throw new Refusal(400, 'bad_request', 'POST body must include `docs` parameter.');
  const newEdits = !isObject(body) || body['new_edits'] !== false;
  const rows = database.write(docs, newEdits).map(couchRow);
  // Revisions that are stored as they are have no row: only refused ones are named.
  return newEdits ? rows : rows.filter((row) => !('ok' in row));
}

function couchRow(row: WriteRow): object {
  if (row.ok) return { ok: true, id: row.id, rev: row.rev };
  return { id: row.id, error: row.refusal.error, reason: row.refusal.reason };
}

function bulkGet(database: MemoryDatabase, { body, query }: MemoryRequest): unknown {
  const docs = isObject(body) ? body['docs'] : undefined;
  if (!Array.isArray(docs)) throw new Refusal(400, 'bad_request', 'Missing JSON list of `docs`.');
  const options = { revs: query.get('revs') === 'true', attachments: query.get('attachments') === 'true' };
  const results = docs.filter(isObject).map(({ id: wanted, rev }) => {
    const id = String(wanted);
    const tree = database.tree(id);
    const asked = typeof rev === 'string' ? [rev] : (tree?.leaves().map((leaf) => leaf.rev) ?? ['undefined']);
    const revs = query.get('latest') === 'true' ? asked.flatMap((one) => latest(database, id, one)) : asked;
    return { id, docs: revs.map((one) => revisionOrError(database, id, one, options)) };
  });
  return { results };
}

function latest(database: MemoryDatabase, id: string, rev: string): readonly string[] {
  const leaves = database.tree(id)?.leavesAfter(rev) ?? [];
  return leaves.length > 0 ? leaves : [rev];
}

function revisionOrError(
  database: MemoryDatabase,
  id: string,
  rev: string,
  options: { revs: boolean; attachments: boolean },
): object {
  const doc = database.read(id, rev, options);
  return doc === undefined ? { error: { id, rev, error: 'not_found', reason: 'missing' } } : { ok: doc };
}

function revsDiff(database: MemoryDatabase, body: unknown): unknown {
  if (!isObject(body)) throw new Refusal(400, 'bad_request', 'Request body must be a JSON object');
  const answer = Object.create(null) as Record<string, unknown>;
  for (const [id, revs] of Object.entries(body)) {
    if (!Array.isArray(revs))
      throw new Refusal(400, 'bad_request', `'revs' should be an array, got \`${typeof revs}\``);
    const missing = database.missing(id, revs.map(String));
    if (missing.length > 0) answer[id] = { missing };
  }
  return answer;
}

/** Sequences are opaque text, as CouchDB's are. */
function changes(database: MemoryDatabase, { query, body }: MemoryRequest): unknown {
  const since = Number.parseInt(query.get('since') ?? '0', 10) || 0;
  const limit = query.get('limit') === null ? Infinity : Number(query.get('limit'));
  const all = database.changes(since);
  const ids = isObject(body) && Array.isArray(body['doc_ids']) ? new Set<unknown>(body['doc_ids']) : undefined;
  const selector = isObject(body) && isObject(body['selector']) ? body['selector'] : {};
  const wanted = all.filter(({ id }) => ids?.has(id) !== false && selects(selector, database.read(id))).slice(0, limit);
  const results = wanted.map(({ id, seq }) => {
    const leaves = database.tree(id)?.leaves() ?? [];
    const shown = query.get('style') === 'all_docs' ? leaves : leaves.slice(0, 1);
    return {
      seq: `${String(seq)}-m`,
      id,
      changes: shown.map(({ rev }) => ({ rev })),
      ...(leaves[0]?.deleted === true ? { deleted: true } : {}),
      ...(query.get('include_docs') === 'true' ? { doc: database.read(id) } : {}),
    };
  });
  const last = wanted.at(-1)?.seq ?? since;
  return { results, last_seq: `${String(last)}-m`, pending: all.length - wanted.length };
}

/** Of selectors it knows fields and their values, nothing else. */
function selects(selector: Readonly<Record<string, unknown>>, doc: StoredDocument | undefined): boolean {
  return Object.entries(selector).every(([field, value]) => {
    if (field.startsWith('$') || typeof value === 'object')
      throw new Refusal(400, 'invalid_operator', `Invalid operator: ${field}`);
    return doc?.[field] === value;
  });
}

function localDocument(database: MemoryDatabase, { method, resource, body }: MemoryRequest): MemoryAnswer {
  if (method === 'PUT') {
    if (!isObject(body)) throw new Refusal(400, 'bad_request', 'Document must be a JSON object');
    return { status: 201, body: { ok: true, id: resource, rev: database.putLocal(resource, { ...body }) } };
  }
  const doc = database.local(resource);
  if (doc === undefined) throw new Refusal(404, 'not_found', 'missing');
  return ok(doc);
}

function oneDocument(database: MemoryDatabase, { resource: id, query }: MemoryRequest): StoredDocument {
  const rev = query.get('rev') ?? undefined;
  const options = { revs: query.get('revs') === 'true', attachments: query.get('attachments') === 'true' };
  const doc = database.read(id, rev, options);
  if (doc === undefined) throw new Refusal(404, 'not_found', 'missing');
  if (rev === undefined && doc['_deleted'] === true) throw new Refusal(404, 'not_found', 'deleted');
  return doc;
}
