import { deviceRole } from '../databases.js';

/*
 * The functions below run inside CouchDB (`validate_doc_update`), in an engine that knows ES5 only. They are text: a
 * bundler or compiler must not touch what is compared with what a server has.
 *
 * A direct write brings the revision that it stands on, or none. Replication (`new_edits: false`) brings the new one, and
 * could put it beside or above a document of another user without ever showing that document to the validation.
 */

const common = `
  function refuse(reason) { throw ({ forbidden: reason }); }
  function has(list, value) { return !!list && list.indexOf(value) !== -1; }
  function isAdmin() {
    var admins = (secObj && secObj.admins) || {};
    var roles = admins.roles || [];
    if (has(userCtx.roles, '_admin')) return true;
    if (userCtx.name && has(admins.names, userCtx.name)) return true;
    for (var i = 0; i < roles.length; i++) if (has(userCtx.roles, roles[i])) return true;
    return false;
  }
  if (isAdmin()) return;
  if (!userCtx.name) throw ({ unauthorized: 'Please sign in.' });
  if (newDoc._rev && (!oldDoc || oldDoc._rev !== newDoc._rev)) refuse('Written directly, not with new_edits: false.');`;

const deviceOnly = `
  if (!has(userCtx.roles, ${JSON.stringify(deviceRole)})) refuse('Only users with the role ${deviceRole} write here.');`;

const ownerOnly = (owner: string): string => `
  if (userCtx.name !== ${asciiText(owner)}) refuse('Only the user of this database writes here.');`;

const resultShape = `
  if (newDoc._deleted) refuse('Only an admin removes results.');
  if (newDoc._attachments) refuse('Results have no attachments.');
  if (typeof newDoc.type !== 'string' || newDoc.type.indexOf('afield-') !== 0) refuse('This is no result of Afield.');
  if (typeof newDoc.store !== 'string' || newDoc.store === '') refuse('The field store is missing.');
  var name = newDoc.type.slice(7) + ':' + newDoc.store;
  if (newDoc._id !== name && newDoc._id.indexOf(name + ':') !== 0) refuse('The id does not fit the type and the store.');`;

const ownResults = `
  if (newDoc.user !== userCtx.name) refuse('The field user must be the name of who is signed in.');
  if (oldDoc && !oldDoc._deleted && oldDoc.user !== userCtx.name) refuse('This document belongs to another user.');`;

/** CouchDB has no read rights for single documents: who may read one may read all (S1). */
const noContent = `
  var rows = newDoc.operations || [];
  for (var i = 0; i < rows.length; i++) {
    if (rows[i] && (rows[i].reason !== undefined || rows[i].content !== undefined)) {
      refuse('This database is shared: no reasons and no content of failures.');
    }
  }`;

const ownersResults = (owner: string): string => `
  if (newDoc.user !== undefined && newDoc.user !== ${asciiText(owner)}) refuse('The field user names somebody else.');`;

const newEvents = `
  if (oldDoc && !oldDoc._deleted) refuse('An event that is there is never changed.');
  if (newDoc._deleted) refuse('Only an admin removes events.');
  if (newDoc._attachments) refuse('Events have no attachments.');
  if (typeof newDoc.name !== 'string' || newDoc.name.indexOf('documents.') !== 0) refuse('This is no event of Afield.');
  if (typeof newDoc.store !== 'string' || newDoc.store === '') refuse('The field store is missing.');`;

/** What the database is for. */
export type Purpose = 'results' | 'events';

/**
 * The validation of a database that devices share (`owner` undefined) or of one user alone.
 *
 * Results: a device writes documents that carry the signed-in user's name, over none but its own (S1). Events: it makes new
 * ones and changes none. Admins of the server and of the database are held to nothing: they mend and tidy up.
 */
export function validationText(purpose: Purpose, owner?: string): string {
  const who = owner === undefined ? deviceOnly : ownerOnly(owner);
  const results = resultShape + (owner === undefined ? ownResults + noContent : ownersResults(owner));
  return `function (newDoc, oldDoc, userCtx, secObj) {${common}${who}${purpose === 'results' ? results : newEvents}\n}`;
}

/** A text as ES5 source in ASCII: line separators in a name would end the line, other signs depend on encodings. */
function asciiText(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\uffff]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
