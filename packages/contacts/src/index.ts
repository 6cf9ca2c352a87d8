export { setParent } from './set-parent.js';
export { setContact } from './set-contact.js';
