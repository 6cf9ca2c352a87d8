import { defineIndex, type Doc, type IndexKey } from '@afield/client';
import { idsIn, levelOf, ownField } from './lineage.js';
import { codeOf, isReport, subjectsOf } from './report.js';

/** Levels of one lineage that are indexed: more than any may have, so that those that are too deep are found. */
const mostLevels = 60;

/** How ids of user settings begin, and of accounts. */
export const userPrefix = 'org.couchdb.user:';

/** Contacts in whose lineage this one is, at any level. */
export const below = (id: string): IndexKey => ['below', id];
/** Contacts whose parent is this one. */
export const childOf = (id: string): IndexKey => ['child', id];
/** Places whose contact is this one. */
export const placeOf = (id: string): IndexKey => ['contact', id];
/** Reports that this one has sent. */
export const reportBy = (id: string): IndexKey => ['report-by', id];
/** Places in the lineage of whose contact this one is. */
export const placeOfBelow = (id: string): IndexKey => ['contact-below', id];
/** Reports in the lineage of whose sender this one is. */
export const reportByBelow = (id: string): IndexKey => ['report-by-below', id];
/** Reports about the contact with this id or short code. */
export const reportAbout = (code: string): IndexKey => ['about', code];
/** Settings of users who are this person, or are responsible for this place. */
export const userOf = (id: string): IndexKey => ['user', id];

/**
 * What the plans of this package ask: who is below whom, who is whose contact, whom reports are about. Give it to
 * `createClient` in `indexes`.
 *
 * Contacts are all documents with a lineage in `parent` that are neither reports nor user settings. A value of another
 * shape is passed over: no document stops the index.
 */
export const contactsIndex = defineIndex({ name: 'contacts', version: 1, keys: keysOf });

function keysOf(doc: Doc): readonly IndexKey[] {
  if (doc._id.startsWith(userPrefix)) return userIds(doc).map(userOf);
  const report = isReport(doc);
  const keys: IndexKey[] = report ? subjectsOf(doc).map(reportAbout) : [];
  const contact = ownField(doc, 'contact');
  const named = levelOf(contact);
  if (named !== undefined) keys.push(report ? reportBy(named._id) : placeOf(named._id));
  for (const id of new Set(idsIn(ownField(contact, 'parent'), mostLevels)))
    keys.push(report ? reportByBelow(id) : placeOfBelow(id));
  if (report) return keys;
  const parent = levelOf(ownField(doc, 'parent'));
  if (parent !== undefined) keys.push(childOf(parent._id));
  for (const id of new Set(idsIn(parent, mostLevels))) keys.push(below(id));
  return keys;
}

/** The contact and the places of a user. */
function userIds(settings: Doc): readonly string[] {
  return [...new Set([...facilitiesOf(settings), ...contactOf(settings)])];
}

/** The places of a user: a list, or one id in old documents. */
export function facilitiesOf(settings: Doc): readonly string[] {
  const value = ownField(settings, 'facility_id');
  return (Array.isArray(value) ? (value as unknown[]) : [value]).map(codeOf).filter((id) => id !== undefined);
}

function contactOf(settings: Doc): readonly string[] {
  const id = codeOf(ownField(settings, 'contact_id'));
  return id === undefined ? [] : [id];
}
