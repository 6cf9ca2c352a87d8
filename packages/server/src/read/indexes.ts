import type { IndexShape } from '../setup/indexes.js';

/** Failures of all devices in the order of time. */
export const byTime = { ddoc: 'afield-by-time', name: 'by-time', fields: ['type', 'lastAt'] } as const;
/** Failures of one user in the order of time. */
export const byUser = { ddoc: 'afield-by-user', name: 'by-user', fields: ['type', 'user', 'lastAt'] } as const;
/** Failures of one device in the order of time. */
export const byStore = { ddoc: 'afield-by-store', name: 'by-store', fields: ['type', 'store', 'lastAt'] } as const;
/** Devices by when they were last heard of. */
export const bySeen = { ddoc: 'afield-by-seen', name: 'by-seen', fields: ['type', 'seenAt'] } as const;

/** All that a shared database of results has. */
export const resultIndexes: readonly IndexShape[] = [byTime, byUser, byStore, bySeen];
