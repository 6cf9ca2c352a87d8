import { createHash, randomUUID } from 'node:crypto';
import { isObject } from '../cases/json.js';
import { nameOf, RevisionTree, type Revision } from './revision-tree.js';

/** A document as it goes in and comes out. */
export type StoredDocument = Record<string, unknown>;

/** What was refused, with CouchDB's status and words. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly error: string,
    readonly reason: string,
  ) {
    super(`${error}: ${reason}`);
  }
}

export type WriteRow =
  | { readonly id: string; readonly ok: true; readonly rev: string }
  | { readonly id: string; readonly ok: false; readonly refusal: Refusal };

/** A judge of each write, like a validation function: a refusal, or undefined when the document may be stored. */
export type Validate = (doc: StoredDocument, before: StoredDocument | undefined) => Refusal | undefined;

const conflict = new Refusal(409, 'conflict', 'Document update conflict.');
const special = new Set(['_id', '_rev', '_deleted', '_attachments', '_revisions']);

/** One database in the memory of this process: revision trees, a sequence, local documents. No HTTP, no waiting. */
export class MemoryDatabase {
  readonly #trees = new Map<string, RevisionTree>();
  /** The sequence of each document's last change, in the order of the changes. */
  readonly #changed = new Map<string, number>();
  /** A name of its own: another one when the database is made anew. */
  readonly id = randomUUID();
  readonly #locals = new Map<string, string>();
  readonly #saltOf: (id: string) => string;
  readonly #isPouch: boolean;
  #sequence = 0;
  #live = 0;
  /** Judges each write from now on. */
  validate: Validate | undefined;

  /**
   * `hashIds`: names of revisions depend on the id, as PouchDB's do and CouchDB's do not. CouchDB also refuses a write that
   * names the revision of a deletion; PouchDB takes it.
   */
  constructor(options: { readonly hashIds?: boolean } = {}) {
    this.#isPouch = options.hashIds === true;
    this.#saltOf = options.hashIds === true ? (id) => id : () => '';
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** How many documents are not deleted. */
  get liveCount(): number {
    return this.#live;
  }

  /** Ids that have at least one revision, in their order. */
  ids(): readonly string[] {
    return [...this.#trees.keys()].sort((a, b) => (a < b ? -1 : 1));
  }

  tree(id: string): RevisionTree | undefined {
    return this.#trees.get(id);
  }

  /** The revision as a document; without `rev` the winner, also when it is deleted. Undefined when it is not there. */
  read(
    id: string,
    rev?: string,
    options: { revs?: boolean; attachments?: boolean; conflicts?: boolean } = {},
  ): StoredDocument | undefined {
    const tree = this.#trees.get(id);
    const revision = rev === undefined ? tree?.winner : tree?.get(rev);
    if (tree === undefined || revision?.body === undefined) return undefined;
    const body = JSON.parse(revision.body) as StoredDocument;
    showAttachments(body, options.attachments === true);
    const doc: StoredDocument = { _id: id, _rev: revision.rev, ...body };
    if (revision.deleted) doc['_deleted'] = true;
    if (options.conflicts === true) {
      const losing = tree
        .leaves()
        .slice(1)
        .filter(({ deleted }) => !deleted);
      if (losing.length > 0) doc['_conflicts'] = losing.map(({ rev: name }) => name);
    }
    if (options.revs === true) {
      const path = tree.path(revision.rev);
      doc['_revisions'] = {
        start: Number.parseInt(revision.rev, 10),
        ids: path.map((name) => name.slice(name.indexOf('-') + 1)),
      };
    }
    return doc;
  }

  /**
   * Writes documents one after another. A document that no database would take refuses the whole write; it throws a
   * `Refusal`, and nothing is stored. With `newEdits` false revisions are stored as they are, and never conflict.
   */
  write(docs: readonly unknown[], newEdits = true): WriteRow[] {
    const checked = docs.map(checkDocument);
    return checked.map((doc) => {
      const id = typeof doc['_id'] === 'string' ? doc['_id'] : randomUUID().replaceAll('-', '');
      try {
        return { id, ok: true, rev: newEdits ? this.#edit(id, doc) : this.#graft(id, doc) };
      } catch (error) {
        if (error instanceof Refusal && error.status !== 412) return { id, ok: false, refusal: error };
        throw error;
      }
    });
  }

  /** Which of these revisions are not there. */
  missing(id: string, revs: readonly string[]): readonly string[] {
    const tree = this.#trees.get(id);
    return revs.filter((rev) => tree?.get(rev) === undefined);
  }

  /** Documents whose last change came after `since`, oldest change first. */
  changes(since: number, limit = Infinity): readonly { readonly id: string; readonly seq: number }[] {
    const found: { id: string; seq: number }[] = [];
    for (const [id, seq] of this.#changed) {
      if (found.length >= limit) break;
      if (seq > since) found.push({ id, seq });
    }
    return found;
  }

  local(id: string): StoredDocument | undefined {
    const text = this.#locals.get(id);
    return text === undefined ? undefined : (JSON.parse(text) as StoredDocument);
  }

  putLocal(id: string, doc: StoredDocument): string {
    const before = this.local(id)?.['_rev'];
    if ((before ?? doc['_rev'] ?? undefined) !== (doc['_rev'] ?? undefined)) throw conflict;
    const rev = `0-${String(before === undefined ? 1 : Number(String(before).slice(2)) + 1)}`;
    this.#locals.set(id, JSON.stringify({ ...doc, _id: id, _rev: rev }));
    return rev;
  }

  /** Only the leaves keep their bodies from now on. */
  compact(): void {
    for (const tree of this.#trees.values()) tree.forget();
  }

  #edit(id: string, doc: StoredDocument): string {
    const tree = this.#trees.get(id) ?? new RevisionTree();
    const { winner } = tree;
    const given = doc['_rev'];
    if (given === undefined ? winner?.deleted === false : !tree.isLeaf(String(given))) throw conflict;
    if (given !== undefined && winner?.deleted === true && !this.#isPouch) throw conflict;
    const parent = given === undefined ? winner?.rev : String(given);
    this.#judge(id, doc, parent);
    const deleted = doc['_deleted'] === true;
    const body = bodyOf(doc, parent === undefined ? undefined : tree.get(parent));
    const rev = nameOf(parent, deleted, body, this.#saltOf(id));
    this.#store(id, tree, [{ rev, parent, deleted, body }]);
    return rev;
  }

  #graft(id: string, doc: StoredDocument): string {
    const tree = this.#trees.get(id) ?? new RevisionTree();
    const rev = String(doc['_rev']);
    if (tree.get(rev) !== undefined) return rev;
    this.#judge(id, doc, undefined);
    const path = pathOf(doc);
    const line: Revision[] = path.map((name, age) => ({
      rev: name,
      parent: path[age + 1],
      deleted: age === 0 && doc['_deleted'] === true,
      body: age === 0 ? bodyOf(doc, undefined) : undefined,
    }));
    this.#store(id, tree, line.reverse());
    return rev;
  }

  #judge(id: string, doc: StoredDocument, parent: string | undefined): void {
    const refusal = this.validate?.({ ...doc, _id: id }, this.read(id, parent));
    if (refusal !== undefined) throw refusal;
  }

  /** The oldest revision first. */
  #store(id: string, tree: RevisionTree, line: readonly Revision[]): void {
    const wasLive = tree.winner?.deleted === false;
    for (const revision of line) tree.add(revision);
    const isLive = tree.winner?.deleted === false;
    this.#live += Number(isLive) - Number(wasLive);
    this.#trees.set(id, tree);
    this.#changed.delete(id);
    this.#changed.set(id, ++this.#sequence);
  }
}

function checkDocument(doc: unknown): StoredDocument {
  if (!isObject(doc)) throw new Refusal(400, 'bad_request', 'Document must be a JSON object');
  const id = doc['_id'];
  if (id !== undefined && (typeof id !== 'string' || id === '')) {
    throw new Refusal(400, 'illegal_docid', 'Document id must be a non-empty string');
  }
  if (typeof id === 'string' && id.startsWith('_') && !/^_(design|local)\/./.test(id)) {
    throw new Refusal(400, 'illegal_docid', 'Only reserved document ids may start with underscore.');
  }
  const wrong = Object.keys(doc).find((field) => field.startsWith('_') && !special.has(field));
  if (wrong !== undefined) throw new Refusal(400, 'doc_validation', `Bad special document member: ${wrong}`);
  return doc;
}

function pathOf(doc: StoredDocument): string[] {
  const revisions = doc['_revisions'];
  if (!isObject(revisions) || !Array.isArray(revisions['ids'])) return [String(doc['_rev'])];
  const start = Number(revisions['start']);
  return revisions['ids'].map((hash, age) => `${String(start - age)}-${String(hash)}`);
}

/** The body as text: no field of CouchDB's own but the attachments, whole. */
function bodyOf(doc: StoredDocument, parent: Revision | undefined): string {
  const body: StoredDocument = {};
  for (const [field, value] of Object.entries(doc)) if (!special.has(field)) body[field] = value;
  const given = doc['_attachments'];
  if (!isObject(given)) return JSON.stringify(body);
  const before: unknown = parent?.body === undefined ? undefined : JSON.parse(parent.body);
  const kept = isObject(before) && isObject(before['_attachments']) ? before['_attachments'] : {};
  const attachments: StoredDocument = {};
  for (const [name, value] of Object.entries(given)) {
    if (isObject(value) && typeof value['data'] === 'string') attachments[name] = wholeAttachment(value, doc);
    else if (kept[name] !== undefined) attachments[name] = kept[name];
    else throw new Refusal(412, 'missing_stub', `Invalid attachment stub in ${String(doc['_id'])} for ${name}`);
  }
  return JSON.stringify({ ...body, _attachments: attachments });
}

function wholeAttachment(value: Readonly<Record<string, unknown>>, doc: StoredDocument): StoredDocument {
  const bytes = Buffer.from(String(value['data']), 'base64');
  const rev = doc['_rev'];
  return {
    content_type: value['content_type'] ?? 'application/octet-stream',
    revpos: value['revpos'] ?? (rev === undefined ? 1 : Number.parseInt(String(rev), 10) + 1),
    digest: `md5-${createHash('md5').update(bytes).digest('base64')}`,
    length: bytes.length,
    data: value['data'],
  };
}

/** Attachments with their data, or as stubs without. */
function showAttachments(body: StoredDocument, whole: boolean): void {
  const attachments = body['_attachments'];
  if (!isObject(attachments)) return;
  const all: StoredDocument = {};
  for (const [name, value] of Object.entries(attachments)) {
    const shown = { ...(isObject(value) ? value : {}), ...(whole ? {} : { stub: true }) };
    Reflect.deleteProperty(shown, whole ? 'length' : 'data');
    all[name] = shown;
  }
  body['_attachments'] = all;
}
