export { setParent } from './set-parent.js';
export { deleteUser } from './delete-user.js';
export { setContact } from './set-contact.js';
