import { z } from 'zod/mini';
import { defineDocumentAction } from './define.js';

/** `delete`: no live document remains. A document that is gone, or never was, is a success that writes nothing (R6). */
export const deleteAction = defineDocumentAction({
  name: 'delete',
  operation: z.strictObject({}),
  missing: 'applied',
  isApplied: (doc) => doc._deleted === true,
  apply: (doc) => ({ _id: doc._id, ...(doc._rev === undefined ? {} : { _rev: doc._rev }), _deleted: true }),
});
