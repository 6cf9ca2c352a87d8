import { z } from 'zod/mini';
import { DivisibleError, RetryableError, SignInRequiredError } from '../model/errors.js';
import type { Doc } from '../model/json.js';
import type { DocRow, DocumentStore, RevisionRead, WriteAnswer, WriteRow } from '../model/pouch.js';
import { sameJson } from '../model/same-json.js';
import { askInRequests, writeInRequests } from '../retry/divide.js';
import { bodyOf, inRequests, sendable, type Frame, type Sendable } from '../retry/request-size.js';
import { allDocsRows, bulkGetResults, docRowsByKey, revisionReads, writeRow, writeRows } from '../model/rows.js';
import { sessionUrlOf, type RequestScope, type Requests } from './requests.js';

const allDocsAnswer = z.object({ rows: allDocsRows });
const bulkGetAnswer = z.object({ results: bulkGetResults });
const isRecord = z.custom<Record<string, unknown>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
);
const withAttachments = z.object({ _attachments: isRecord });
const wholeAttachment = z.object({ data: z.string() });
/** A `_local` document, whatever is in it. */
const localDocument = z.looseObject({ _rev: z.string() });
const diffEntry = z.object({
  missing: z.array(z.string()),
  possible_ancestors: z.catch(z.optional(z.array(z.string())), undefined),
});

/** What a server lacks of the revisions that it was asked about, by document. */
export interface Difference {
  readonly missing: ReadonlyMap<string, readonly string[]>;
  /** Its own leaves that those may come after, where it names them. */
  readonly possibleAncestors: ReadonlyMap<string, readonly string[]>;
}

/** Documents in one answer of a read by range. */
const perPage = 1000;

/** Asked with every question for what is missing: an answer that does not name it is no answer, however it looks. */
const nowhere = { id: 'afield:no-such-document', rev: '1-00000000000000000000000000000000' };

const edits: Frame = { before: '{"docs":[', after: ']}' };
const revisions: Frame = { before: '{"docs":[', after: '],"new_edits":false}' };
const keys: Frame = { before: '{"keys":[', after: ']}' };
const wantedRevisions: Frame = { before: '{"docs":[', after: ']}' };
const diff: Frame = {
  before: '{',
  after: `,${JSON.stringify(nowhere.id)}:${JSON.stringify([nowhere.rev])}}`,
};

/** A CouchDB database over HTTP, in requests of a bounded size, through our own judgement of every answer. */
export class ServerDatabase implements DocumentStore {
  readonly refusesDeletions = true;
  readonly #url: string;
  readonly #requests: Requests;
  readonly #forbidden: 'sign-in' | 'retry';

  /** `url` is the address of the database, without credentials. */
  constructor(url: string, requests: Requests, forbidden: 'sign-in' | 'retry' = 'sign-in') {
    this.#url = url.replace(/\/+$/, '');
    this.#requests = requests;
    this.#forbidden = forbidden;
  }

  /** The same for one scope. */
  within(scope: RequestScope): ServerDatabase {
    return new ServerDatabase(this.#url, this.#requests.within(scope), this.#forbidden);
  }

  /** Resolves when the server has said who is signed in, if it does. Costs no request: whatever comes first asks that. */
  identified(): Promise<void> {
    return this.#requests.identified();
  }

  async read(ids: readonly string[]): Promise<readonly DocRow[]> {
    if (ids.length === 0) return [];
    const found = new Map<string, DocRow>();
    const items = ids.map((id) => sendable(id, JSON.stringify(id)));
    for (const part of inRequests(items, keys, this.#requests.limit)) {
      const { rows } = await this.#post('/_all_docs?conflicts=true&include_docs=true', bodyOf(keys, part), (json) =>
        parsed(allDocsAnswer, json),
      );
      for (const [id, row] of docRowsByKey(rows)) found.set(id, row);
    }
    return ids.map((id) => {
      const row = found.get(id);
      if (row === undefined) throw shortAnswer();
      return row;
    });
  }

  /** Live documents between two ids, both included, in the order of their ids. */
  async range(startId: string, endId: string): Promise<readonly Doc[]> {
    const found: Doc[] = [];
    for (let start = startId; ;) {
      const rows = await this.#page(start, endId);
      const docs = rows.slice(0, perPage).flatMap(({ key, doc }) => (doc?._id === key ? doc : []));
      const next = rows[perPage]?.key;
      // A row without a document, or a page that leads back to itself, is not CouchDB's.
      if (docs.length < Math.min(rows.length, perPage) || next === start) throw notCouchdb();
      found.push(...docs);
      if (next === undefined) return found;
      start = next;
    }
  }

  async #page(startId: string, endId: string): Promise<z.infer<typeof allDocsRows>> {
    const keys = `startkey=${encodeURIComponent(JSON.stringify(startId))}&endkey=${encodeURIComponent(JSON.stringify(endId))}`;
    const { rows } = await this.#requests.json({
      method: 'GET',
      url: `${this.#url}/_all_docs?include_docs=true&limit=${String(perPage + 1)}&${keys}`,
      shape: (json) => parsed(allDocsAnswer, json),
      forbidden: this.#forbidden,
    });
    return rows;
  }

  async write(docs: readonly Doc[]): Promise<WriteAnswer> {
    const answer = await writeInRequests(docs, edits, this.#requests.limit, async (part, body) => {
      const rows = await this.#bulkDocs(body);
      const complete = part.every(({ _id }) => rows.some((row) => row.id === _id));
      return complete ? { rows } : { rows, error: shortAnswer() };
    });
    return this.#withTrueRefusals(answer);
  }

  /** Writes revisions as they are. The answer names refused rows only: what is not named is to be checked with `missing`. */
  writeRevisions(docs: readonly Doc[]): Promise<WriteAnswer> {
    return this.#writeRevisions(docs, (error) => {
      throw error;
    });
  }

  /**
   * The same, for documents whose attachments are stubs in part. A request that is refused for a stub is not divided: which
   * of its documents are there is not known then, and each of them has a row `missing_stub`.
   */
  writeWithStubs(docs: readonly Doc[]): Promise<WriteAnswer> {
    return this.#writeRevisions(docs, (error, part) => {
      if (!(error instanceof DivisibleError) || error.code !== 'missing_stub') throw error;
      return part.map(({ _id: id }) => ({ id, ok: false, error: error.code, reason: error.message }));
    });
  }

  async #writeRevisions(
    docs: readonly Doc[],
    failed: (error: unknown, part: readonly Sendable[]) => readonly WriteRow[],
  ): Promise<WriteAnswer> {
    const answer = await writeInRequests(docs, revisions, this.#requests.limit, async (part, body) => ({
      rows: await this.#bulkDocs(body).catch((error: unknown) => failed(error, part)),
    }));
    return this.#withTrueRefusals(answer);
  }

  /** Revisions cut into writes that are one request each, by the limit as it is when the next is asked for. */
  *inRequests(reads: readonly RevisionRead[]): Generator<readonly RevisionRead[]> {
    const items = reads.map((read) => ({ ...sendable(read.id, JSON.stringify(read.doc)), read }));
    for (const part of inRequests(items, revisions, this.#requests.limit)) yield part.map(({ read }) => read);
  }

  async readRevisions(
    wanted: readonly { readonly id: string; readonly rev: string }[],
  ): Promise<readonly RevisionRead[]> {
    if (wanted.length === 0) return [];
    const items = wanted.map(({ id, rev }) => {
      const text = JSON.stringify({ id, rev });
      return sendable(text, text);
    });
    const reads: RevisionRead[] = [];
    await askInRequests(items, wantedRevisions, this.#requests.limit, async (body) => {
      const { results } = await this.#post('/_bulk_get?revs=true', body, (json) => parsed(bulkGetAnswer, json));
      reads.push(...revisionReads(results));
    });
    return reads;
  }

  /** The attachments of a revision, by their names, as base64. In one answer that is JSON, so that it can be judged. */
  async attachments(id: string, rev: string): Promise<ReadonlyMap<string, string>> {
    const url = `${this.#url}/${encodeURIComponent(id)}?attachments=true&rev=${encodeURIComponent(rev)}`;
    const doc = await this.#requests.json({ method: 'GET', url, shape: (json) => parsed(withAttachments, json) });
    const entries = Object.entries(doc._attachments).map(([name, value]) => {
      const attachment = wholeAttachment.safeParse(value);
      if (!attachment.success) throw notCouchdb();
      return [name, attachment.data.data] as const;
    });
    return new Map(entries);
  }

  /** Which of these revisions the server does not have. What it refuses to be asked about counts as missing. */
  async missing(asked: ReadonlyMap<string, readonly string[]>): Promise<ReadonlyMap<string, readonly string[]>> {
    return (await this.difference(asked)).missing;
  }

  /** The same, and what the server has of their documents. */
  async difference(asked: ReadonlyMap<string, readonly string[]>): Promise<Difference> {
    const missing = new Map(asked);
    const possibleAncestors = new Map<string, readonly string[]>();
    // As text: an id `__proto__` is a plain key.
    const items = [...asked].map(([id, revs]) => sendable(id, `${JSON.stringify(id)}:${JSON.stringify(revs)}`));
    await askInRequests(items, diff, this.#requests.limit, async (body, part) => {
      const answer = await this.#post('/_revs_diff', body, (json) => parsed(isRecord, json));
      if (!Object.prototype.hasOwnProperty.call(answer, nowhere.id)) throw notCouchdb();
      for (const { _id } of part) missing.delete(_id);
      for (const [id, value] of Object.entries(answer)) {
        if (id === nowhere.id) continue;
        const entry = diffEntry.safeParse(value);
        if (!entry.success) throw notCouchdb();
        missing.set(id, entry.data.missing);
        possibleAncestors.set(id, entry.data.possible_ancestors ?? []);
      }
    });
    return { missing, possibleAncestors };
  }

  /** A `_local` document, which no replication carries; undefined when there is none. Its content is the caller's to check. */
  async readLocal(name: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    try {
      return await this.#requests.json({
        method: 'GET',
        url: this.#localUrl(name),
        shape: (json) => parsed(localDocument, json),
        forbidden: this.#forbidden,
      });
    } catch (error) {
      // CouchDB has one word for a document and for a database that is not there: who writes next is told which.
      if (error instanceof RetryableError && error.code === 'database-missing') return undefined;
      if (error instanceof DivisibleError) return undefined;
      throw error;
    }
  }

  /**
   * Writes a `_local` document over the revision that it carries. False when the server knows us and takes none from us:
   * a user who may only read, or a server that has no such documents.
   */
  async writeLocal(name: string, content: Readonly<Record<string, unknown>>): Promise<boolean> {
    try {
      await this.#requests.json({
        method: 'PUT',
        url: this.#localUrl(name),
        text: JSON.stringify(content),
        shape: (json) => (parsed(isRecord, json)?.['ok'] === true ? true : undefined),
        forbidden: 'told',
      });
      return true;
    } catch (error) {
      if (error instanceof DivisibleError) return false;
      // A request that was repeated on its way meets itself.
      if (error instanceof RetryableError && error.class === 'conflict' && (await this.#hasLocal(name, content)))
        return true;
      // At a database that is none of the client's own, nobody is asked to sign in.
      if (error instanceof SignInRequiredError && this.#forbidden === 'retry') return false;
      if (!(error instanceof SignInRequiredError) || error.code === 'proxy-unauthorized') throw error;
      if (await this.isSignedIn()) return false;
      throw error;
    }
  }

  async #hasLocal(name: string, content: Readonly<Record<string, unknown>>): Promise<boolean> {
    const there = await this.readLocal(name);
    return Object.entries(content).every(([field, value]) => field === '_rev' || sameJson(there?.[field], value));
  }

  #localUrl(name: string): string {
    return `${this.#url}/_local/${encodeURIComponent(name)}`;
  }

  isSignedIn(): Promise<boolean> {
    return this.#requests.isSignedIn(sessionUrlOf(this.#url));
  }

  /**
   * A row `forbidden` counts only when the server still knows us as who we are: one question for the whole answer
   * (R12). Someone else, or no one: it is a matter of signing in. No answer: the rows are tried again.
   */
  async #withTrueRefusals(answer: WriteAnswer): Promise<WriteAnswer> {
    const isRefusal = (row: WriteRow): boolean => !row.ok && row.error === 'forbidden';
    if (!answer.rows.some(isRefusal)) return answer;
    let isUs: boolean;
    try {
      isUs = await this.isSignedIn();
    } catch (error) {
      return { rows: answer.rows.filter((row) => !isRefusal(row)), error: answer.error ?? error };
    }
    if (isUs) return answer;
    const rows = answer.rows.map((row) => (isRefusal(row) ? { ...row, error: 'unauthorized' } : row));
    return { ...answer, rows };
  }

  async #bulkDocs(text: string): Promise<readonly WriteRow[]> {
    const rows = await this.#requests.json({
      method: 'POST',
      url: `${this.#url}/_bulk_docs`,
      text,
      rows: true,
      shape: (json) => parsed(writeRows, json),
      forbidden: this.#forbidden,
    });
    const known = rows.flatMap((row) => writeRow(row) ?? []);
    if (known.some((row) => !row.ok && row.error === 'unauthorized')) this.#requests.refusedByRow();
    return known;
  }

  #post<Value>(path: string, text: string, shape: (json: unknown) => Value | undefined): Promise<Value> {
    return this.#requests.json({ method: 'POST', url: this.#url + path, text, shape, forbidden: this.#forbidden });
  }
}

function parsed<Value>(schema: z.ZodMiniType<Value>, json: unknown): Value | undefined {
  const result = schema.safeParse(json);
  return result.success ? result.data : undefined;
}

function notCouchdb(): RetryableError {
  return new RetryableError('The server answered in another shape.', { class: 'network', code: 'not-couchdb' });
}

function shortAnswer(): RetryableError {
  return new RetryableError('The server answered with fewer rows than were asked for.', {
    class: 'network',
    code: 'short-answer',
  });
}
