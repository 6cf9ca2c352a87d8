import { BehaviorSubject, catchError, defer, EMPTY, from, map, Observable, retry, switchMap, throwError } from 'rxjs';
import type { Clock } from './model/environment.js';
import { RetryableError } from './model/errors.js';
import type { BulkOperationStatus, ClientStatus, FailedOperation } from './model/states.js';
import type { QuarantineEntry } from './model/quarantine.js';
import type { OpenConflicts } from './heal/open-conflicts.js';
import type { OpenConflict } from './model/conflict.js';
import type { Failures } from './queue/failures.js';
import type { Quarantine } from './queue/quarantine.js';
import type { Queue } from './queue/queue.js';
import type { Reports } from './queue/reports.js';
import { sequenceOf } from './queue/stored.js';
import type { RetryPolicy } from './retry/policy.js';
import type { Scheduler } from './retry/scheduler.js';
import { beginWait } from './retry/wait.js';
import { waitKey } from './run/bookkeeping.js';
import { bulkOperationStatus, clientStatus, type StatusParts } from './status.js';

export interface ShownParts {
  readonly queue: Queue;
  readonly reports: Reports;
  readonly failures: Failures;
  readonly quarantine: Quarantine;
  readonly openConflicts: OpenConflicts;
  readonly scheduler: Scheduler;
  readonly policy: RetryPolicy;
  readonly clock: Clock;
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
  #loads = 0;

  constructor(parts: ShownParts) {
    const { failures, quarantine, openConflicts, warn, now } = parts;
    this.#parts = parts;
    this.#status = new BehaviorSubject(clientStatus({ bulkOperations: [], ...now() }));
    this.bulkOperations$ = this.#bulkOperations.asObservable();
    this.status$ = this.#status.asObservable();
    this.failures$ = this.#loaded(() => failures.load()).pipe(
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
    this.quarantine$ = this.#loaded(() => quarantine.ready()).pipe(
      switchMap(() => this.#quarantined),
      switchMap(listed),
    );
    this.conflicts$ = this.#loaded(() => openConflicts.ready()).pipe(
      switchMap(() => this.#conflicting),
      map(() => openConflicts.list()),
    );
  }

  /** Comes when the store is open and this is read; a store that fails is asked again on the ramp (R2), as long as someone looks. */
  #loaded(load: () => Promise<void>): Observable<void> {
    const { open, closed } = this.#parts;
    return defer(() => from(open().then(load))).pipe(
      retry({
        delay: (error: unknown, failures) =>
          error instanceof RetryableError && !closed.aborted ? this.#waited(failures) : throwError(() => error),
      }),
    );
  }

  #waited(failures: number): Observable<void> {
    const { scheduler, policy, clock } = this.#parts;
    return new Observable((due) => {
      const key = `shown:${String((this.#loads += 1))}`;
      scheduler.wait(key, beginWait(clock, policy.delay(failures, 0).delayMs), () => {
        due.next();
      });
      return () => {
        scheduler.clear(key);
      };
    });
  }

  /** Shows what is true now, once for all that changed in this turn. */
  changed(): void {
    if (this.#dirty) return;
    this.#dirty = true;
    queueMicrotask(() => {
      this.#dirty = false;
      const { queue, reports, scheduler, closed, now } = this.#parts;
      if (closed.aborted) return;
      const bulkOperations = queue.headers
        .all()
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
