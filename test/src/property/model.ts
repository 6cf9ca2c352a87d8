import type { RevisionTree } from '@afield/testing';
import { kindOf, type Change, type DocumentKind } from './documents.js';

/**
 * What should be true at the end: the operations one after another, in the order in which they were queued, on plain
 * values. It knows nothing of batches, attempts, conflicts or outages.
 */

/** `done`: applied or already applied, and either is right. */
export type Expected =
  { readonly is: 'applied' | 'already-applied' | 'done' } | { readonly is: 'failed'; readonly code: string };

export interface Queued {
  readonly target: 'local' | 'server';
  readonly changes: readonly Change[];
}

interface ModelDocument {
  isLive: boolean;
  parent: string | undefined;
  contact: string | undefined;
  readonly marks: string[];
  /** Changes that operations made. */
  writes: number;
}

const applied: Expected = { is: 'applied' };
const already: Expected = { is: 'already-applied' };
const failed = (code: string): Expected => ({ is: 'failed', code });

/** The code of a document whose change the server refuses for good. */
const refusals: Partial<Record<DocumentKind, string>> = { refused: 'forbidden', large: 'too_large', odd: 'unexpected' };

export class Model {
  readonly documents = new Map<string, ModelDocument>();

  /** What the operations of a bulk operation come to; undefined where only the history of a contested document tells. */
  run({ target, changes }: Queued): (Expected | undefined)[] {
    return changes.map((change) => this.#outcome(target, change));
  }

  #outcome(target: 'local' | 'server', change: Change): Expected | undefined {
    if (change.id === undefined) return failed('no_id');
    const id = String(change.id);
    if (id.startsWith('_')) return failed('invalid_id');
    const kind = kindOf(id);
    if (kind === 'contested') return undefined;
    const refusal = refusals[kind];
    const doc = this.#document(id, kind);
    const found = decide(change, doc);
    if (found !== undefined) return found;
    if (refusal !== undefined && target === 'server') return failed(refusal);
    write(change, doc);
    // A document of the local store that the server refuses: what was applied becomes a failure.
    if (refusal !== undefined) return failed(refusal);
    return change.action === 'note-all' ? { is: 'done' } : applied;
  }

  #document(id: string, kind: DocumentKind): ModelDocument {
    const known = this.documents.get(id);
    if (known !== undefined) return known;
    const doc: ModelDocument = {
      isLive: kind !== 'missing',
      parent: 'home',
      contact: undefined,
      marks: [],
      writes: 0,
    };
    this.documents.set(id, doc);
    return doc;
  }
}

/** The outcome of a change that writes nothing; undefined when it is to be written. */
function decide({ action, content }: Change, doc: ModelDocument): Expected | undefined {
  if (!doc.isLive) return action === 'delete' ? already : failed('missing');
  switch (action) {
    case 'set-parent':
      return compared(doc.parent, content['parent'], content['current_parent_id']);
    case 'set-contact':
      return compared(doc.contact, content['contact'], content['current_contact_id']);
    default:
      return undefined;
  }
}

function compared(present: string | undefined, wanted: unknown, expected: unknown): Expected | undefined {
  if (present === nameOf(wanted)) return already;
  if (expected === undefined || expected === (present ?? null)) return undefined;
  return failed('guard_mismatch');
}

function write({ action, content, mark }: Change, doc: ModelDocument): void {
  doc.writes += 1;
  switch (action) {
    case 'set-parent':
      doc.parent = nameOf(content['parent']);
      break;
    case 'set-contact':
      doc.contact = nameOf(content['contact']);
      break;
    case 'delete':
      doc.isLive = false;
      break;
    default:
      doc.marks.push(mark);
  }
}

function nameOf(place: unknown): string {
  return String((place as { _id?: unknown })._id);
}

/**
 * The marks of the operations that wrote a contested document, in the order of its history. Throws when one wrote twice,
 * or a revision came from no one.
 */
export function writersOf(tree: RevisionTree, foreign: ReadonlySet<string>): string[] {
  const path = [...tree.path(tree.winner?.rev ?? '')].reverse().slice(1);
  return path.flatMap((rev) => {
    if (foreign.has(rev)) return [];
    const body = JSON.parse(tree.get(rev)?.body ?? '{}') as { parent?: { mark?: string } };
    return [body.parent?.mark ?? 'nobody'];
  });
}
