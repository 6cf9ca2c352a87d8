import type { Clock } from '../model/environment.js';
import type { AnyAction, ServerAccess } from '../model/handler.js';
import type { DocumentStore } from '../model/pouch.js';
import type { Target } from '../model/states.js';
import type { Failures } from '../queue/failures.js';
import type { QuarantineControl } from '../queue/quarantine-control.js';
import type { Quarantine } from '../queue/quarantine.js';
import type { Queue } from '../queue/queue.js';
import type { TakenOver } from '../queue/taken-over.js';
import type { PageEvents } from '../outbox/page-events.js';
import type { Trail } from '../outbox/trail.js';
import type { RetryPolicy } from '../retry/policy.js';
import type { Scheduler } from '../retry/scheduler.js';
import type { EventSource } from './documents.js';
import type { Gate } from './gate.js';
import type { Planning } from './planning.js';

/** What is handed in to run what is queued. */
export interface RunParts {
  readonly queue: Queue;
  readonly failures: Failures;
  readonly quarantine: Quarantine;
  readonly takenOver: TakenOver;
  readonly quarantineControl: QuarantineControl;
  readonly planning: Planning;
  readonly actions: ReadonlyMap<string, AnyAction>;
  readonly events: EventSource;
  readonly trail: Trail;
  readonly pageEvents: PageEvents;
  readonly stores: Readonly<Record<Target, DocumentStore | undefined>>;
  readonly server: ServerAccess;
  readonly scheduler: Scheduler;
  readonly policy: RetryPolicy;
  readonly clock: Clock;
  readonly gate: Gate;
  readonly batchSize: number;
  /** Kept with what fails, so that a later version of the app can try it again. */
  readonly appVersion: string | undefined;
  /** How long another runner may be busy with one attempt before it counts as gone. Milliseconds. */
  readonly otherRunnerMs: number;
  /** The name of this run of the client: whoever takes a bulk operation over writes another one into its header. */
  readonly lease: string;
  readonly handlerFetch: typeof fetch;
  readonly closed: AbortSignal;
  /** Gives the page a turn in the middle of long work. */
  readonly breathe: () => Promise<void>;
  /** Something that is shown has changed. */
  readonly changed: () => void;
  /** A bulk operation came to its end, or documents were written there. */
  readonly wrote: (place: Target) => void;
  readonly warn: (line: string) => void;
}
