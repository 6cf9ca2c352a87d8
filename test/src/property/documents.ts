import { defineAction, defineDocumentAction, RetryableError, type EnqueueRequest } from '@afield/client';
import { setContact, setParent } from '@afield/contacts';
import { z } from 'zod/mini';
import type { ActionName, ScriptBulk, ScriptOperation } from './script.js';

/**
 * The documents of a run, by what is special about them:
 *
 * - `plain`: other editors touch a field that no operation touches.
 * - `contested`: other editors overwrite the very field that the operations set.
 * - `refused`, `large`, `odd`: the server takes no change of them (`forbidden`, 413, 400). Locally they are plain.
 * - `missing`: there is no such document.
 */
export type DocumentKind = 'plain' | 'contested' | 'refused' | 'large' | 'odd' | 'missing';

const names = [
  'plain-0',
  'plain-1',
  'plain-2',
  'plain-3',
  'plain-4',
  'contested-0',
  'contested-1',
  'contested-2',
  'refused-0',
  'large-0',
  'odd-0',
  'missing-0',
] as const;

export function idOf(target: 'local' | 'server', doc: number): string {
  return `${target}-${names[doc % names.length] ?? names[0]}`;
}

export function kindOf(id: string): DocumentKind {
  return (id.split('-')[1] ?? 'missing') as DocumentKind;
}

/** The documents as they are before anything happens. */
export function firstDocuments(target: 'local' | 'server'): { readonly _id: string }[] {
  return names
    .filter((name) => !name.startsWith('missing'))
    .map((name) => ({ _id: `${target}-${name}`, type: 'person', parent: { _id: 'home' }, marks: [], edits: 0 }));
}

export interface Change {
  /** Undefined or of a shape that no document can have, where the operation has no usable id. */
  readonly id: unknown;
  readonly action: ActionName;
  /** Names the operation in what it writes. */
  readonly mark: string;
  readonly content: Record<string, unknown>;
}

/** The operations of a bulk operation, in their order. */
export function changesOf(bulk: ScriptBulk, number: number): Change[] {
  let index = 0;
  return bulk.parts.flatMap(({ action, operations }) =>
    operations.map((operation) => changeOf(bulk, action, operation, `${String(number)}:${String(index++)}`)),
  );
}

export function requestOf(bulk: ScriptBulk, changes: readonly Change[], key: string): EnqueueRequest {
  let at = 0;
  const actions = bulk.parts.map(({ action, operations }) => ({
    action,
    operations: changes
      .slice(at, (at += operations.length))
      .map(({ id, content }) => ({ ...(id === undefined ? {} : { id }), ...content })),
  }));
  return { target: bulk.target, key, actions, ...(bulk.lane === undefined ? {} : { lane: bulk.lane }) };
}

function changeOf(bulk: ScriptBulk, action: ActionName, operation: ScriptOperation, mark: string): Change {
  const asked = idOf(bulk.target, operation.doc);
  const isContested = kindOf(asked) === 'contested';
  // Only `set-parent` knows what to do with a contested field. Of what a handler of whole batches wrote, Afield does not
  // know the revision: a later refusal of the push is an edit that failed, not an operation.
  const isUnknown = action === 'note-all' && bulk.target === 'local' && kindOf(asked) !== 'missing';
  const isPlain = isContested ? action !== 'set-parent' : isUnknown;
  const doc = isPlain ? operation.doc % 5 : operation.doc;
  const id = operation.id === 'none' ? undefined : operation.id === 'bad' ? '_bad' : idOf(bulk.target, doc);
  return { id, action, mark, content: contentOf(action, operation, mark, isContested && operation.id === 'good') };
}

function contentOf(
  action: ActionName,
  { value, guard }: ScriptOperation,
  mark: string,
  isContested: boolean,
): Record<string, unknown> {
  const given = { _id: `place-${String(value)}` };
  const expected = { none: {}, value: 'place-0', null: null, first: 'home' }[guard];
  switch (action) {
    case 'set-parent':
      if (isContested) {
        return { parent: { _id: 'home', mark }, ...(guard === 'none' ? {} : { current_parent_id: 'home' }) };
      }
      return { parent: given, ...(guard === 'none' ? {} : { current_parent_id: expected }) };
    case 'set-contact':
      return { contact: given, ...(guard === 'none' ? {} : { current_contact_id: expected }) };
    case 'add-mark':
    case 'note-all':
      return { mark };
    case 'delete':
      return {};
  }
}

const marked = z.strictObject({ mark: z.string() });
const marksOf = (doc: Readonly<Record<string, unknown>>): readonly unknown[] =>
  Array.isArray(doc['marks']) ? (doc['marks'] as unknown[]) : [];

/** Merges something into a document. */
const addMark = defineDocumentAction({
  name: 'add-mark',
  operation: marked,
  isApplied: (doc, { mark }) => marksOf(doc).includes(mark),
  apply: (doc, { mark }) => ({ ...doc, marks: [...marksOf(doc), mark] }),
});

/** The same as a handler of whole batches, as an app would write it. */
const noteAll = defineAction({
  name: 'note-all',
  operation: marked,
  run: async (batch, { db, fence }) => {
    const rows = await db.read(batch.map(({ id }) => id));
    const failed: { index: number; code: string; reason: string }[] = [];
    const alreadyApplied: number[] = [];
    const writes = batch.flatMap(({ index, content }, place) => {
      const doc = rows[place]?.doc;
      if (doc === undefined) failed.push({ index, code: 'missing', reason: 'not there' });
      else if (marksOf(doc).includes(content.mark)) alreadyApplied.push(index);
      else return [{ ...doc, marks: [...marksOf(doc), content.mark] }];
      return [];
    });
    await fence();
    const answer = writes.length === 0 ? { rows: [] } : await db.write(writes);
    for (const row of answer.rows) {
      if (row.ok) continue;
      const { index } = batch.find(({ id }) => id === row.id) ?? { index: -1 };
      if (!['forbidden', 'too_large', 'unexpected'].includes(row.error)) throw new RetryableError(row.error);
      failed.push({ index, code: row.error, reason: row.reason });
    }
    if (answer.error !== undefined) throw answer.error as Error;
    return { failed, alreadyApplied };
  },
});

export const actions = [setParent, setContact, addMark, noteAll];
