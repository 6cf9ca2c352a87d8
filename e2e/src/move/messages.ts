/* What the page and the one who runs it say to each other. */
import type { BulkOperationStatus } from '@afield/client';

/** The one request, however often it is made. */
export const moveRequest = {
  target: 'local',
  plan: 'move-contact',
  request: { id: 'centre-1', parent: 'district-2' },
} as const;

/** What the page is to do, told again with each answer. */
export interface Config {
  readonly records: string;
  readonly results: string;
  readonly events: string;
  /** So many documents the device is to have. */
  readonly documents: number;
  readonly online: boolean;
  /** Keys under which the request is to be queued, in their order; before each the page says what it would do. */
  readonly requests: readonly string[];
  /** Whether the page is to tell all that it has. */
  readonly tellAll: boolean;
  /** A mistake of the app, that must be noticed: its plan passes over reports. */
  readonly skipsReports: boolean;
}

/** What the device shows of itself. */
export interface Shown {
  readonly documents: number;
  readonly index: string;
  readonly bulks: readonly Pick<
    BulkOperationStatus,
    'key' | 'state' | 'cursor' | 'total' | 'applied' | 'alreadyApplied' | 'failed' | 'lastError'
  >[];
  readonly push: string;
  /** Attempts of the push that did not succeed, in this life. */
  readonly failedPushes: number;
  /** All is done, here and at the server. */
  readonly isSettled: boolean;
}

/** A task of the page that took more than 50 ms. Milliseconds. */
export interface LongTask {
  /** What the client was at. */
  readonly during: Stage;
  readonly took: number;
}
export type Stage = 'pull and index' | 'dry run' | 'planning' | 'applying' | 'push' | 'at rest';

export type Told =
  /** The page has begun, on the store of this name, with so many documents. */
  | { readonly alive: string; readonly documents: number }
  | { readonly shown: Shown }
  /** What the request would do: operations by their actions; and how long it took to say so. Milliseconds. */
  | { readonly dryRun: Readonly<Record<string, number>>; readonly took: number }
  /** `enqueue` resolved. */
  | { readonly confirmed: string }
  | { readonly longTasks: readonly LongTask[] }
  /** Rows of `_all_docs` with documents; codes of the failures. */
  | { readonly rows: unknown; readonly failures: readonly string[] }
  | { readonly problem: string };
