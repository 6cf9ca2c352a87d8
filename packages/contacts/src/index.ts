export { setParent } from './set-parent.js';
export { deleteUser } from './delete-user.js';
export { setContact } from './set-contact.js';
export { contactsIndex } from './contacts-index.js';
export { moveContact } from './move-contact.js';
export { mergeContacts } from './merge-contacts.js';
export { deleteContact } from './delete-contact.js';
