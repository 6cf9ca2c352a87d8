import type { ActionPart } from '@afield/client';
import type { Entry, Places } from './catalogue.js';

/**
 * The two persons that practice requests are about: the same ones after a reload and in every tab, so that the same
 * request has the same content.
 */
export function practicePersons(places: Places): readonly [Entry, Entry] {
  const persons = [...places.entries()].filter(({ type, parentId }) => type === 'person' && parentId !== undefined);
  const [first, second] = persons.sort((a, b) => (a.id < b.id ? -1 : 1));
  if (first === undefined || second === undefined) {
    throw new Error('Import the sample first: this needs two persons who have a place.');
  }
  return [first, second];
}

/** One operation with a key of its own. */
export function phoneChange(id: string, key: string, phone: string): readonly ActionPart[] {
  return [{ action: 'update', operations: [{ id, key, patch: { phone } }] }];
}

/** Another phone number, always the same one for this one. */
export function otherPhone(phone: string): string {
  const last = Number(phone.slice(-1));
  return Number.isInteger(last) && phone !== '' ? `${phone.slice(0, -1)}${String((last + 1) % 10)}` : `${phone}1`;
}

/**
 * Creates a document that is there already, with another note: the kind of request that two people make who register the
 * same person.
 * @param doc the document as it is
 */
export function secondRegistration(doc: Readonly<Record<string, unknown>>, note: string): readonly ActionPart[] {
  const fields = Object.entries(doc).filter(([field]) => !field.startsWith('_'));
  const operation = { id: doc['_id'], doc: { ...Object.fromEntries(fields), note } };
  return [{ action: 'create', operations: [operation] }];
}
