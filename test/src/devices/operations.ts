import { createAction, deleteAction, updateAction, type Doc, type DocumentAction } from '@afield/client';
import { setContact, setParent } from '@afield/contacts';
import type { Random } from './random.js';

/** The actions that the devices queue. */
export const actions: Readonly<Record<string, DocumentAction>> = Object.fromEntries(
  [setParent, setContact, createAction, updateAction, deleteAction].map((action) => [
    action.name,
    action as DocumentAction,
  ]),
);

/** One operation as a device has queued it. */
export interface Asked {
  readonly device: string;
  readonly key: string;
  readonly id: string;
  readonly action: string;
  /** Its own fields. */
  readonly content: Readonly<Record<string, unknown>>;
  /** The field that it sets; undefined: the whole document. */
  readonly field: string | undefined;
  /** It sets a value that no other operation sets. */
  readonly isUnique: boolean;
}

const kinds = { 'set-parent': 25, 'set-contact': 20, update: 32, create: 14, delete: 9 };
/** Values that many operations share, so that some find their change there already. */
const few = ['red', 'green', 'blue'];

export function idsOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `person/${String(at).padStart(4, '0')}`);
}

/** The documents that all devices begin with: four of five. The others are made by operations. */
export function firstDocuments(ids: readonly string[]): readonly Doc[] {
  return ids
    .filter((_, at) => at % 5 !== 4)
    .map((_id) => ({ _id, type: 'person', name: `Person ${_id}`, parent: { _id: 'red' }, note: 'red' }));
}

/** A random operation. `present` is the document as its device has it, for guards that hold now. */
export function randomOperation(
  random: Random,
  names: { readonly device: string; readonly key: string; readonly id: string },
  present: Readonly<Record<string, unknown>> | undefined,
): Asked {
  const action = random.weighted(kinds);
  const isUnique = random.isTrue(0.75);
  const value = isUnique ? names.key : random.oneOf(few);
  const asked = (content: Asked['content'], field?: string): Asked => ({
    ...names,
    action,
    content,
    field,
    isUnique: isUnique && action !== 'delete',
  });
  const guarded = (field: string, name: string): Record<string, unknown> => {
    if (random.isTrue(0.5)) return {};
    const now = (present?.[field] as { _id?: string } | undefined)?._id ?? null;
    return { [name]: random.isTrue(0.8) ? now : random.oneOf(few) };
  };
  switch (action) {
    case 'set-parent':
      return asked({ parent: { _id: value }, ...guarded('parent', 'current_parent_id') }, 'parent');
    case 'set-contact':
      return asked({ contact: { _id: value }, ...guarded('contact', 'current_contact_id') }, 'contact');
    case 'update': {
      const now = present?.['note'] ?? null;
      const expected = random.isTrue(0.5) ? {} : { expected: { note: random.isTrue(0.8) ? now : random.oneOf(few) } };
      return asked({ patch: { note: value }, ...expected }, 'note');
    }
    case 'create':
      return asked({ doc: { type: 'person', name: `Created ${value}`, note: value } });
    case 'delete':
      return asked({});
  }
}

/** Whether a revision is as the operation wants the document. */
export function isEffect(doc: Doc, { action, content }: Asked): boolean {
  if (doc._deleted === true) return action === deleteAction.name;
  return actions[action]?.isApplied(doc, content) === true;
}
