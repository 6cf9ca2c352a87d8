import { isObject, type JsonObject } from './json.js';
import { namesOf } from './publications.js';

/** A request as the proxy saw it. */
export interface SeenRequest {
  readonly method: string;
  /** Name of the database, decoded. */
  readonly database: string;
  /** What follows the database's name, still encoded, without the query: `/_bulk_docs`. */
  readonly path: string;
  readonly body: string;
}

/** Takes a request's address apart. */
export function seenRequest(method: string, url: string, body: string): SeenRequest {
  const path = url.split('?')[0] ?? '';
  const [, database = '', rest = ''] = /^\/([^/]*)(.*)$/.exec(path) ?? [];
  return { method, database: decodeURIComponent(database), path: rest, body };
}

/** Whether the request belongs to no database: `/_session`, `/_up`. */
export function isOfServer(request: SeenRequest): boolean {
  return /^_(?!users$|replicator$|global_changes$)/.test(request.database);
}

/** The documents of a bulk write; undefined for any other request. */
export function docsOf(request: SeenRequest): readonly JsonObject[] | undefined {
  if (request.method !== 'POST' || request.path !== '/_bulk_docs') return undefined;
  const docs = bodyOf(request)?.['docs'];
  return Array.isArray(docs) ? docs.filter(isObject) : undefined;
}

export function bodyOf(request: SeenRequest): JsonObject | undefined {
  try {
    const body: unknown = JSON.parse(request.body);
    return isObject(body) ? body : undefined;
  } catch {
    return undefined;
  }
}

/** Ids that a request names: in its list of documents or keys, or in its path. Events name their documents and keys too. */
export function idsNamed(request: SeenRequest, ofEvents = false): readonly string[] {
  const body = bodyOf(request);
  const docs = Array.isArray(body?.['docs']) ? body['docs'].filter(isObject) : [];
  const keys = Array.isArray(body?.['keys']) ? body['keys'] : [];
  const asked = request.path === '/_revs_diff' ? Object.keys(body ?? {}) : [];
  return [
    ...docs.flatMap((doc) => namesOf(doc, ofEvents)),
    ...keys,
    ...asked,
    ...request.path.split('/').slice(1).map(decodeURIComponent),
  ].filter((id) => typeof id === 'string');
}

/** How many rows a request asks for or writes. */
export function rowsOf(request: SeenRequest): number {
  const body = bodyOf(request);
  for (const field of ['docs', 'keys']) {
    const list = body?.[field];
    if (Array.isArray(list)) return list.length;
  }
  return request.path === '/_revs_diff' ? Object.keys(body ?? {}).length : 0;
}

/** Counts what went to the main database, and what was written there or locally. */
export class Traffic {
  readonly requests = new Map<string, number>();
  readonly rowAttempts = new Map<string, number>();
  attachmentUploads = 0;

  /** `countsServerRows`: writes on the server are those that handlers make; else the local ones are. */
  constructor(
    private readonly isOfTheCase: (id: string) => boolean,
    readonly countsServerRows: boolean,
  ) {}

  count(request: SeenRequest): void {
    if (isOfServer(request)) {
      this.#add(this.requests, `${request.method} /${request.database}${request.path}`);
      return;
    }
    this.#add(this.requests, `${request.method} ${request.path}`);
    const docs = docsOf(request);
    if (docs !== undefined) {
      if (docs.some((doc) => this.isOfTheCase(String(doc['_id'])))) {
        this.#add(this.requests, `${request.method} ${request.path} docs`);
      }
      if (this.countsServerRows) this.countRows(docs);
      this.countUploads(docs);
    } else if (request.method === 'PUT' || request.method === 'DELETE') {
      const [, id = '', attachment] = request.path.split('/').map(decodeURIComponent);
      if (this.countsServerRows && id !== '_local' && id !== '') this.#add(this.rowAttempts, id);
      if (request.method === 'PUT' && attachment !== undefined && id !== '_local') this.attachmentUploads += 1;
    }
  }

  /** Documents that were part of a bulk write. */
  countRows(docs: readonly object[]): void {
    for (const doc of docs as readonly JsonObject[]) this.#add(this.rowAttempts, String(doc['_id']));
  }

  /** Attachments that were sent whole. */
  countUploads(docs: readonly object[]): void {
    for (const doc of docs as readonly JsonObject[]) {
      if (!isObject(doc['_attachments'])) continue;
      const whole = Object.values(doc['_attachments']).filter((one) => isObject(one) && one['stub'] !== true);
      this.attachmentUploads += whole.length;
    }
  }

  #add(counts: Map<string, number>, key: string): void {
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
}
