import type { Database } from './database.js';
import { editByAnother, type FaultBook } from './fault-book.js';
import { isObject, type JsonObject } from './json.js';
import { namesOf } from './publications.js';
import type { Before, RequestFault, RowFault } from './schema.js';
import { eventsWord } from './server-databases.js';
import { docsOf, idsNamed, isOfServer, rowsOf, type SeenRequest, type Traffic } from './traffic.js';

/** An answer to the client. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What the client gets: an answer, or an error of the network. */
export type Outcome = Answer | { readonly networkError: 'reset' | 'refused' | 'dns' };

/** Passes a request on to the server, with another body if one is given. */
export type Forward = (body?: string) => Promise<Answer>;

export interface InterceptionOptions {
  readonly faults: FaultBook;
  readonly traffic: Traffic;
  /** The word of case files for a database (`main`, `results`, `_users`). */
  readonly wordOf: (databaseName: string) => string;
  readonly database: (word: string) => Database;
  /** The server carried out a bulk write, with these rows; the client does not have its answer yet. */
  readonly carriedOut: (word: string, docs: readonly JsonObject[], rows: readonly unknown[]) => void;
  /** Another actor changed this document. */
  readonly edited: (id: string) => void;
  readonly now: () => number;
}

const json = { 'content-type': 'application/json' };

/** Stands between client and server: counts the requests and makes the request and row faults of a case happen. */
export class Interception {
  constructor(private readonly options: InterceptionOptions) {}

  async answer(request: SeenRequest, forward: Forward): Promise<Outcome> {
    const word = this.options.wordOf(request.database);
    if (word === 'main' || isOfServer(request)) this.options.traffic.count(request);
    const passOn: Forward = async (body) => {
      const answer = await forward(body);
      const docs = docsOf(body === undefined ? request : { ...request, body });
      if (docs !== undefined && answer.status < 300) {
        this.options.carriedOut(word, docs, listIn(answer.body) ?? []);
      }
      return answer;
    };
    const hits = this.options.faults
      .of('request')
      .filter(
        (fault) => (isMeant(fault, request) || (fault.when.db ?? 'main') === word) && concerns(fault, request, word),
      )
      .filter((fault) => this.options.faults.occurs(fault) === 'now');
    // A fault that only lets someone edit first leaves the answer to the next one.
    // What the server does, it does row by row: a row that is refused is so, whatever becomes of the answer.
    const byRows: Forward = (body) => {
      const asked = body === undefined ? request : { ...request, body };
      return this.#rows(word, asked, (changedBody) => passOn(changedBody ?? body));
    };
    for (const fault of hits) {
      const outcome = await this.#requestFault(fault, request, byRows);
      if (outcome !== undefined) return outcome;
    }
    return byRows();
  }

  async #requestFault(fault: RequestFault, request: SeenRequest, forward: Forward): Promise<Outcome | undefined> {
    const todo = fault.do;
    await this.#before(todo.before);
    if (todo.forward === true || todo.answer_ids !== undefined) {
      const body = todo.commit_ids === undefined ? undefined : onlyThese(request, todo.commit_ids);
      return changed(await forward(body), { ...todo, headers: this.#dated(todo.headers ?? {}) });
    }
    if (todo.commit_ids !== undefined) await forward(onlyThese(request, todo.commit_ids));
    else if (todo.commit === true) await forward();
    if (todo.network_error !== undefined) return { networkError: todo.network_error };
    if (todo.status === undefined && todo.text === undefined && todo.body === undefined) {
      const isDone = todo.commit === true || todo.commit_ids !== undefined;
      return isDone ? { status: 200, headers: json, body: '' } : undefined;
    }
    return {
      status: todo.status ?? 200,
      headers: { ...(todo.body === undefined ? {} : json), ...this.#dated(todo.headers ?? {}) },
      body: todo.text ?? (todo.body === undefined ? '' : JSON.stringify(todo.body)),
    };
  }

  async #rows(word: string, request: SeenRequest, forward: Forward): Promise<Answer> {
    const docs = docsOf(request);
    if (docs === undefined) return forward();
    const faulty = new Map<string, RowFault>();
    for (const doc of docs) {
      const id = String(doc['_id']);
      const names = namesOf(doc, word === eventsWord);
      for (const fault of this.options.faults.of('row')) {
        if ((fault.when.db ?? 'main') !== word || !names.some((name) => fault.when.ids.includes(name))) continue;
        if (this.options.faults.occurs(fault, id) === 'now' && !faulty.has(id)) faulty.set(id, fault);
      }
    }
    if (faulty.size === 0) return forward();
    for (const fault of faulty.values()) await this.#before(fault.do.before);
    return this.#mixed(request, docs, faulty, forward);
  }

  /** Carries out the rows that are to be stored, and answers the others as their faults say. */
  async #mixed(
    request: SeenRequest,
    docs: readonly JsonObject[],
    faulty: ReadonlyMap<string, RowFault>,
    forward: Forward,
  ): Promise<Answer> {
    const isKept = (id: string): boolean => {
      const todo = faulty.get(id)?.do;
      if (todo?.error !== undefined) return todo.commit === true;
      return todo?.ok === undefined || todo.commit !== false;
    };
    const kept = docs.map((doc) => String(doc['_id'])).filter(isKept);
    const answer =
      kept.length === 0 ? { status: 201, headers: json, body: '[]' } : await forward(onlyThese(request, kept));
    const rows = listIn(answer.body);
    if (rows === undefined) return answer;
    const mixed = docs.flatMap((doc) => {
      const id = String(doc['_id']);
      const row = rows.find((one) => isObject(one) && one['id'] === id);
      const todo = faulty.get(id)?.do;
      if (todo?.error !== undefined) return [{ id, error: todo.error, reason: todo.reason ?? '' }];
      if (todo?.ok === undefined) return row === undefined ? [] : [row];
      const told = isObject(row) ? row : { id, rev: String(doc['_rev'] ?? '1-0') };
      return [{ ...told, ok: todo.ok, ...(todo.accepted === undefined ? {} : { accepted: todo.accepted }) }];
    });
    const status = [...faulty.values()].find((fault) => fault.do.status !== undefined)?.do.status ?? answer.status;
    return { status, headers: withoutLength(answer.headers), body: JSON.stringify(mixed) };
  }

  async #before(before: Before | undefined): Promise<void> {
    if (before === undefined) return;
    await editByAnother(before, this.options.database(before.db ?? 'main'));
    this.options.edited(before._id);
  }

  /** Every server dates its answers: those of the faults carry the time of the harness, not of this machine. */
  #dated(headers: Readonly<Record<string, string>>): Record<string, string> {
    const dated = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => {
        const later = /^\$now(?:\+(\d+))?$/.exec(value);
        if (later === null) return [name, value];
        return [name, new Date(this.options.now() + Number(later[1] ?? 0) * 1000).toUTCString()];
      }),
    );
    const hasDate = Object.keys(headers).some((name) => name.toLowerCase() === 'date');
    return hasDate ? dated : { date: new Date(this.options.now()).toUTCString(), ...dated };
  }
}

function concerns(fault: RequestFault, request: SeenRequest, word: string): boolean {
  const { method, path, rows_over: rowsOver, bytes_over: bytesOver, contains_id: id } = fault.when;
  if (method !== undefined && method !== '*' && method !== request.method) return false;
  if (path !== undefined && path !== '*' && !waysOf(request).some((way) => way.endsWith(path))) return false;
  if (rowsOver !== undefined && rowsOf(request) <= rowsOver) return false;
  if (bytesOver !== undefined && Buffer.byteLength(request.body) <= bytesOver) return false;
  return id === undefined || idsNamed(request, word === eventsWord).includes(id);
}

/** Whether a fault names a request that belongs to no database, such as `GET /_session`, or one to `/_users`. */
function isMeant({ when: { db, path = '*' } }: RequestFault, request: SeenRequest): boolean {
  if (db !== undefined || path === '*') return false;
  return isOfServer(request) || (request.database === '_users' && path.startsWith('/_users'));
}

/** What the path of a fault may be the end of: as it was asked and as a person writes it, with the database where it is the server's. */
function waysOf({ database, path }: SeenRequest): readonly string[] {
  const asked = database.startsWith('_') ? `/${database}${path}` : path;
  return [asked, decoded(asked)];
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** The true answer, cut or with other rows. */
function changed(answer: Answer, todo: RequestFault['do']): Answer {
  let body = answer.body;
  if (todo.keep_rows !== undefined) body = withRows(body, (rows) => rows.slice(0, todo.keep_rows));
  const ids = todo.answer_ids;
  if (ids !== undefined)
    body = withRows(body, (rows) => ids.flatMap((id) => rows.filter((row) => idOfRow(row) === id)));
  if (todo.cut_bytes_at !== undefined) {
    const bytes = Buffer.from(body);
    body = bytes.subarray(0, Math.floor(bytes.length * todo.cut_bytes_at)).toString('utf8');
  }
  return { status: todo.status ?? answer.status, headers: withoutLength({ ...answer.headers, ...todo.headers }), body };
}

function withRows(body: string, change: (rows: readonly unknown[]) => readonly unknown[]): string {
  const answer = jsonOf(body);
  if (Array.isArray(answer)) return JSON.stringify(change(answer as unknown[]));
  if (!isObject(answer)) return body;
  const field = ['rows', 'results', 'docs'].find((name) => Array.isArray(answer[name]));
  return field === undefined ? body : JSON.stringify({ ...answer, [field]: change(answer[field] as unknown[]) });
}

function idOfRow(row: unknown): unknown {
  return isObject(row) ? (row['id'] ?? row['key']) : undefined;
}

function onlyThese(request: SeenRequest, ids: readonly string[]): string {
  const body = JSON.parse(request.body) as JsonObject;
  return JSON.stringify({ ...body, docs: (docsOf(request) ?? []).filter((doc) => ids.includes(String(doc['_id']))) });
}

function listIn(body: string): readonly unknown[] | undefined {
  const answer = jsonOf(body);
  return Array.isArray(answer) ? (answer as unknown[]) : undefined;
}

function jsonOf(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function withoutLength(headers: Readonly<Record<string, string>>): Record<string, string> {
  const framing = ['content-length', 'transfer-encoding', 'content-encoding'];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !framing.includes(name.toLowerCase())));
}
