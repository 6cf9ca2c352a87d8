import { BehaviorSubject, catchError, defer, EMPTY, from, map, switchMap, type Observable } from 'rxjs';
import type { BulkOperationStatus, ClientStatus, FailedOperation } from './model/states.js';
import type { QuarantineEntry } from './model/quarantine.js';
import type { OpenConflicts } from './heal/open-conflicts.js';
import type { OpenConflict } from './model/conflict.js';
import type { Failures } from './queue/failures.js';
import type { Quarantine } from './queue/quarantine.js';
import type { Queue } from './queue/queue.js';
import type { Reports } from './queue/reports.js';
import { sequenceOf } from './queue/stored.js';
import type { Scheduler } from './retry/scheduler.js';
import { waitKey } from './run/bookkeeping.js';
import { bulkOperationStatus, clientStatus, type StatusParts } from './status.js';

export interface ShownParts {
  readonly queue: Queue;
  readonly reports: Reports;
  readonly failures: Failures;
  readonly quarantine: Quarantine;
  readonly openConflicts: OpenConflicts;
  readonly scheduler: Scheduler;
  readonly closed: AbortSignal;
  /** Resolves when the store is open. */
  readonly open: () => Promise<unknown>;
  /** What is to be shown of the client itself. */
  readonly warn: (line: string) => void;
  readonly now: () => Omit<StatusParts, 'bulkOperations'>;
}

/** What an app sees: the states of bulk operations, of the client, and what has failed. */
export class Shown {
  readonly bulkOperations$: Observable<readonly BulkOperationStatus[]>;
  readonly status$: Observable<ClientStatus>;
  readonly failures$: Observable<readonly FailedOperation[]>;
  readonly quarantine$: Observable<readonly QuarantineEntry[]>;
  readonly conflicts$: Observable<readonly OpenConflict[]>;
  readonly #parts: ShownParts;
  readonly #bulkOperations = new BehaviorSubject<readonly BulkOperationStatus[]>([]);
  readonly #status: BehaviorSubject<ClientStatus>;
  readonly #failed = new BehaviorSubject<void>(undefined);
  readonly #quarantined = new BehaviorSubject<void>(undefined);
  readonly #conflicting = new BehaviorSubject<void>(undefined);
  #dirty = false;

  constructor(parts: ShownParts) {
    const { failures, quarantine, openConflicts, open, warn, now } = parts;
    this.#parts = parts;
    this.#status = new BehaviorSubject(clientStatus({ bulkOperations: [], ...now() }));
    this.bulkOperations$ = this.#bulkOperations.asObservable();
    this.status$ = this.#status.asObservable();
    this.failures$ = defer(() => from(open().then(() => failures.load()))).pipe(
      switchMap(() => this.#failed),
      map(() => failures.list()),
    );
    const listed = (): Observable<readonly QuarantineEntry[]> =>
      from(quarantine.list(false)).pipe(
        catchError(() => {
          warn('What is in quarantine could not be read. It is read again when there is more.');
          return EMPTY;
        }),
      );
    this.quarantine$ = defer(() => from(open().then(() => quarantine.ready()))).pipe(
      switchMap(() => this.#quarantined),
      switchMap(listed),
    );
    this.conflicts$ = defer(() => from(open().then(() => openConflicts.ready()))).pipe(
      switchMap(() => this.#conflicting),
      map(() => openConflicts.list()),
    );
  }

  /** Shows what is true now, once for all that changed in this turn. */
  changed(): void {
    if (this.#dirty) return;
    this.#dirty = true;
    queueMicrotask(() => {
      this.#dirty = false;
      const { queue, reports, scheduler, closed, now } = this.#parts;
      if (closed.aborted) return;
      const bulkOperations = queue
        .headers()
        .map((header) => bulkOperationStatus(header, reports, scheduler.dueAt(waitKey(sequenceOf(header._id)))));
      this.#bulkOperations.next(bulkOperations);
      this.#status.next(clientStatus({ bulkOperations, ...now() }));
    });
  }

  failuresChanged(): void {
    this.#failed.next();
    this.changed();
  }

  quarantineChanged(): void {
    this.#quarantined.next();
    this.changed();
  }

  conflictsChanged(): void {
    this.#conflicting.next();
    this.changed();
  }

  complete(): void {
    for (const subject of [this.#bulkOperations, this.#status, this.#failed, this.#quarantined, this.#conflicting])
      subject.complete();
  }
}
