import type { EnqueueReceipt, EnqueueRequest, PlanRequest } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import type { AnyAction } from '../model/handler.js';
import type { AnyPlan } from '../model/plan.js';
import { copyOf, planCopyOf } from './copy.js';
import { newHeader } from './new-header.js';
import { checkPlanRequest, isPlanRequest, type CheckedPlanRequest } from './plan-request.js';
import type { Queue } from './queue.js';
import { checkRequest } from './request.js';
import { sequenceOf, type Header } from './stored.js';

export interface IntakeParts {
  readonly queue: Queue;
  readonly actions: ReadonlyMap<string, AnyAction>;
  readonly plans: ReadonlyMap<string, AnyPlan>;
  readonly hasServer: boolean;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly breathe: () => Promise<void>;
  /** How the ids of the payloads of a bulk operation begin. */
  readonly payloadOf: (bulkOperationId: string) => string;
  /** The id of the request of a plan. */
  readonly planRequestOf: (bulkOperationId: string) => string;
  /** Resolves when the store is open. */
  readonly open: () => Promise<unknown>;
}

/** Takes requests in: checks them whole, then makes them durable as one bulk operation each (S9). */
export class Intake {
  readonly #parts: IntakeParts;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /** Resolves when it is durable. Throws `InvalidRequestError` before anything is stored. */
  async append(request: EnqueueRequest | PlanRequest): Promise<EnqueueReceipt> {
    const header = await (isPlanRequest(request) ? this.#appendPlan(request) : this.#append(request));
    return { bulkOperationId: header.id, sequence: sequenceOf(header._id), key: header.key, total: header.total };
  }

  /** The request of a plan, checked; stores nothing. */
  async checkedPlan(given: PlanRequest): Promise<CheckedPlanRequest & { readonly asked: PlanRequest }> {
    const { plans, hasServer } = this.#parts;
    const asked = planCopyOf(given);
    return { asked, ...(await checkPlanRequest(asked, plans, hasServer)) };
  }

  async #append(given: EnqueueRequest): Promise<Header> {
    const { queue, actions, hasServer, breathe, open } = this.#parts;
    // The caller may empty its list as soon as it has called: what is queued is what was given.
    const request = copyOf(given);
    const { parts, operations } = await checkRequest(request, actions, hasServer, breathe);
    await open();
    const made = { ...this.#named(request), parts: parts.map((part) => ({ ...part })) };
    return queue.append(newHeader(made, operations), operations);
  }

  async #appendPlan(given: PlanRequest): Promise<Header> {
    const { queue, open, planRequestOf } = this.#parts;
    const { asked, plan, request, subjects } = await this.checkedPlan(given);
    await open();
    const made = newHeader({ ...this.#named(asked), parts: [] }, []);
    const named = { name: plan.name, request: planRequestOf(made.id), planned: false };
    return queue.appendPlan({ ...made, plan: named }, request, subjects);
  }

  #named({ key, target, lane }: EnqueueRequest | PlanRequest): Pick<
    Header,
    'id' | 'key' | 'target' | 'payload' | 'queuedAt'
  > & {
    lane: string | undefined;
  } {
    const { newId, payloadOf, clock } = this.#parts;
    const id = newId();
    return {
      id,
      key: key ?? newId(),
      target,
      lane,
      payload: payloadOf(id),
      queuedAt: clock.wall(),
    };
  }
}
