import type { Indexes } from '../lookup/indexes.js';
import type { ActionPart, DryRun } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import { InvalidRequestError } from '../model/errors.js';
import type { AnyAction } from '../model/handler.js';
import type { IndexReader } from '../model/lookup.js';
import type { AnyPlan, DocumentReader } from '../model/plan.js';
import type { Target } from '../model/states.js';
import { plannedKeys } from '../queue/keys.js';
import type { Queue } from '../queue/queue.js';
import { wrongInTarget } from '../queue/plan-request.js';
import { checkActions, type CheckedRequest } from '../queue/request.js';
import type { Header, PlanHeader } from '../queue/stored.js';
import { hashOf } from '../queue/subjects.js';
import { untilAborted } from './handlers.js';

export interface PlanningParts {
  readonly queue: Queue;
  readonly plans: ReadonlyMap<string, AnyPlan>;
  readonly actions: ReadonlyMap<string, AnyAction>;
  readonly readers: Readonly<Record<Target, DocumentReader | undefined>>;
  readonly indexes: Indexes;
  readonly handlerFetch: typeof fetch;
  readonly clock: Clock;
  readonly closed: AbortSignal;
  readonly breathe: () => Promise<void>;
  /** How the ids of payloads begin that no one has used. */
  readonly newPayload: () => string;
}

/**
 * Turns the request of a plan into operations.
 *
 *   queued ─▶ planning ─ operations stored under a new name, then named by the header ─▶ running
 *
 * A crash before the header names them leaves payloads that nobody reads; the next attempt writes others.
 */
export class Planning {
  readonly #parts: PlanningParts;

  constructor(parts: PlanningParts) {
    this.#parts = parts;
  }

  knows({ plan }: PlanHeader): boolean {
    return this.#parts.plans.has(plan.name);
  }

  /** Whether all indexes that the plan asks can be asked now. */
  isReady({ plan }: PlanHeader): boolean {
    return this.#parts.indexes.areReady(this.#parts.plans.get(plan.name)?.indexes ?? []);
  }

  /** What was asked of the plan. */
  request(header: PlanHeader): Promise<unknown> {
    return this.#parts.queue.contents.planRequest(header);
  }

  /** One attempt: the plan's operations, checked as if they were queued. Throws what the plan throws. */
  async run(header: PlanHeader, request: unknown): Promise<CheckedRequest> {
    const plan = this.#parts.plans.get(header.plan.name);
    if (plan === undefined) throw new TypeError('The plan is not there.');
    const { checked } = await this.#operations(plan, request, header.target, header.attempt);
    await this.#assertDeclared(header, checked);
    return checked;
  }

  /** Makes the operations durable. Answers with the header that names them, to be written under its revision. */
  async store(header: PlanHeader, { parts, operations: planned }: CheckedRequest): Promise<Header> {
    const operations = plannedKeys(header, planned);
    const payload = this.#parts.newPayload();
    const subjects = await this.#parts.queue.contents.write(payload, operations);
    const total = operations.length;
    const next: Header = {
      ...header,
      plan: { ...header.plan, planned: true },
      parts: parts.map((part) => ({ ...part })),
      payload,
      subjects,
      total,
      attempt: 0,
    };
    return total === 0 ? { ...next, state: 'done', lease: null } : { ...next, state: 'running' };
  }

  /** What a plan would do now. Stores nothing. */
  async dryRun(plan: AnyPlan, request: unknown, target: Target): Promise<DryRun> {
    const { actions, checked } = await this.#operations(plan, request, target, 1);
    return { actions, total: checked.operations.length };
  }

  async #operations(
    plan: AnyPlan,
    request: unknown,
    target: Target,
    attempt: number,
  ): Promise<{ actions: readonly ActionPart[]; checked: CheckedRequest }> {
    const { readers, indexes, handlerFetch, clock, closed, actions: known, breathe } = this.#parts;
    const db = readers[target];
    if (db === undefined) throw new TypeError('The target of the plan is not there.');
    const wrong = wrongInTarget(plan, target);
    if (wrong !== undefined) throw new InvalidRequestError([{ index: -1, field: 'target', message: wrong }]);
    const index = (name: string): IndexReader => {
      if (plan.indexes?.includes(name) !== true) {
        throw new TypeError(`The plan "${plan.name}" does not name the index "${name}" in its \`indexes\`.`);
      }
      return indexes.get(name);
    };
    const context = { db: readOnly(db), index, fetch: handlerFetch, signal: closed, attempt, now: clock.wall() };
    const run = async (): Promise<readonly ActionPart[]> => plan.plan(request, context);
    const actions = await untilAborted(run(), closed);
    const checked = await checkActions(actions, known, readers.server !== undefined, breathe, undefined, true);
    assertKeysDiffer(checked);
    return { actions, checked };
  }

  /** A plan that said which documents it changes has let later ones pass on the others: it must not touch those (R17). */
  async #assertDeclared({ subjects }: Header, { operations }: CheckedRequest): Promise<void> {
    if (subjects === null) return;
    const list = Array.isArray(subjects) ? subjects : await this.#parts.queue.contents.digest(subjects);
    // What cannot be made out any more has held back everything.
    if (list === undefined) return;
    const declared = new Set<number>(list);
    const index = operations.findIndex(({ i }) => typeof i === 'string' && !declared.has(hashOf(i)));
    if (index < 0) return;
    const message = 'is not among the subjects that the plan has declared';
    throw new InvalidRequestError([{ index, field: 'id', message }]);
  }
}

/** Two mutations of one key would have one event (O1). */
function assertKeysDiffer({ operations }: CheckedRequest): void {
  const seen = new Set<string>();
  operations.forEach(({ k }, index) => {
    if (k === undefined) return;
    if (seen.has(k))
      throw new InvalidRequestError([{ index, field: 'key', message: 'is the key of another one, too' }]);
    seen.add(k);
  });
}

function readOnly(db: DocumentReader): DocumentReader {
  return { read: (ids) => db.read(ids), range: (startId, endId) => db.range(startId, endId) };
}
