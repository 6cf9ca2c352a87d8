/* What the page does, and what it and the harness say to each other. */

export const bulkCount = 50;
export const perBulk = 40;
export const wanted = { _id: 'h2', parent: { _id: 'd1' } };
export const before = { _id: 'h1', parent: { _id: 'd1' } };

export const bulkKey = (bulk: number): string => `bulk-${String(bulk).padStart(2, '0')}`;

/** The documents that one bulk operation changes; no other one does. */
export function documentsOf(bulk: number): string[] {
  return Array.from({ length: perBulk }, (_, at) => `person-${String(bulk * perBulk + at).padStart(4, '0')}`);
}

export interface Config {
  readonly records: string;
  readonly results: string;
  readonly events: string;
  /** So many documents the device is to have. */
  readonly documents: number;
  /** So many bulk operations may be queued by now. */
  readonly allowed: number;
  /** The network is whole, and this page is not killed. */
  readonly isLast: boolean;
}

export interface ShownBulk {
  readonly key: string;
  readonly state: string;
  readonly applied: number;
  readonly total: number;
}

export type Told =
  /** The page has begun, on the store of this name, with so many documents. */
  | { readonly alive: string; readonly documents: number }
  /** `enqueue` resolved. */
  | { readonly confirmed: string }
  /** Operations with an outcome. */
  | { readonly done: number }
  | { readonly settled: { readonly rows: unknown; readonly bulks: readonly ShownBulk[] } }
  | { readonly problem: string };
