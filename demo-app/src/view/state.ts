import type { BulkOperationStatus, ClientStatus, DocumentEvent, FailedOperation, Target } from '@afield/client';
import type { Catalogue } from '../catalogue.js';
import type { ImportState } from '../demo.js';
import type { Conflicts, ConflictsState } from './conflicts-state.js';
import type { Decisions, DecisionsState } from './decisions.js';

export type Tab = 'places' | 'queue' | 'failures' | 'conflicts' | 'events' | 'import';

/** All that is drawn. */
export interface ViewState {
  readonly catalogue: Catalogue;
  readonly status: ClientStatus | undefined;
  readonly bulkOperations: readonly BulkOperationStatus[];
  readonly failures: readonly FailedOperation[];
  /** The last ones, the newest first. */
  readonly events: readonly DocumentEvent[];
  readonly conflicts: ConflictsState;
  readonly importState: ImportState;
  readonly outage: boolean | 'unknown';
  readonly now: number;
  readonly tab: Tab;
  readonly open: ReadonlySet<string>;
  readonly chosen: ReadonlySet<string>;
  /** How many rows of a long list are drawn, by place. */
  readonly shown: ReadonlyMap<string, number>;
  readonly move: MoveState | undefined;
  readonly failuresShown: number;
  readonly isQueuingFailures: boolean;
  readonly decisions: DecisionsState;
  /** What went wrong with the last thing the person did. */
  readonly notice: string | undefined;
}

export interface MoveState {
  readonly search: string;
  readonly targetId: string | undefined;
  readonly target: Target;
  readonly problem: string | undefined;
  /** Documents that change, once a place is chosen. */
  readonly size: number;
  readonly isQueuing: boolean;
}

/** What a person can do. */
export interface Actions {
  /** With bulk operations and failures. */
  readonly decide: Decisions;
  /** With duplicates and what is in quarantine. */
  readonly conflicts: Conflicts;
  selectTab(tab: Tab): void;
  toggleOpen(id: string): void;
  toggleChosen(id: string): void;
  clearChosen(): void;
  showMore(id: string): void;
  showMoreFailures(): void;
  startMove(): void;
  changeMove(change: Partial<MoveState>): void;
  cancelMove(): void;
  confirmMove(): void;
  setOutage(on: boolean): void;
  failOnPurpose(): void;
  meetFault(): void;
  syncNow(): void;
  importSample(): void;
  importFiles(files: FileList | null): void;
  dismissNotice(): void;
}
