import type { IndexShape } from '../setup/indexes.js';

/** Failures of all devices in the order of time, and of one user or one device; devices by when they were last seen. */
export const resultIndexes = [
  { ddoc: 'afield-by-time', name: 'by-time', fields: ['type', 'lastAt'] },
  { ddoc: 'afield-by-user', name: 'by-user', fields: ['type', 'user', 'lastAt'] },
  { ddoc: 'afield-by-store', name: 'by-store', fields: ['type', 'store', 'lastAt'] },
  { ddoc: 'afield-by-seen', name: 'by-seen', fields: ['type', 'seenAt'] },
] as const satisfies readonly IndexShape[];
