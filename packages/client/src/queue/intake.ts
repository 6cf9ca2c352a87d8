import type { EnqueueReceipt, EnqueueRequest, PlanRequest } from '../model/client.js';
import type { Clock } from '../model/environment.js';
import type { AnyAction } from '../model/handler.js';
import type { AnyPlan } from '../model/plan.js';
import type { Claims } from './claims.js';
import type { Entry } from './content-hash.js';
import { copyOf, planCopyOf } from './copy.js';
import { KeyedIntake, type KeyedRequest } from './keyed-intake.js';
import { newHeader, partsOf } from './new-header.js';
import { checkPlanRequest, isPlanRequest, type CheckedPlanRequest } from './plan-request.js';
import type { Queue } from './queue.js';
import { receiptOf } from './receipt.js';
import type { Refused } from './refused.js';
import { checkRequest, type CheckedRequest } from './request.js';
import type { Header } from './stored.js';

export interface IntakeParts {
  readonly queue: Queue;
  readonly claims: Claims;
  readonly refused: Refused;
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
  readonly #keyed: KeyedIntake;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    this.#keyed = new KeyedIntake({
      ...parts,
      store: (id, request, entries) => this.#store(id, request, entries),
    });
  }

  /**
   * Resolves when it is durable. Throws `InvalidRequestError` before anything is stored, and `IdempotencyConflictError`
   * when a key stands for other content already (O4).
   */
  append(request: EnqueueRequest | PlanRequest): Promise<EnqueueReceipt> {
    return isPlanRequest(request) ? this.#appendPlan(request) : this.#append(request);
  }

  /** The request of a plan, checked; stores nothing. */
  async checkedPlan(given: PlanRequest): Promise<CheckedPlanRequest & { readonly asked: PlanRequest }> {
    const { plans, hasServer } = this.#parts;
    const asked = planCopyOf(given);
    return { asked, ...(await checkPlanRequest(asked, plans, hasServer)) };
  }

  async #append(given: EnqueueRequest): Promise<EnqueueReceipt> {
    const { queue, actions, hasServer, breathe, newId, open } = this.#parts;
    // The caller may empty its list as soon as it has called: what is queued is what was given.
    const request = copyOf(given);
    const checked = await checkRequest(request, actions, hasServer, breathe);
    const { parts, operations } = checked;
    await open();
    const { target, lane, key } = request;
    if (key !== undefined || operations.some(({ k }) => k !== undefined)) {
      return this.#keyed.append({ target, lane, key, entries: entriesOf(checked) });
    }
    const made = { ...this.#named(newId(), request), parts: parts.map((part) => ({ ...part })) };
    return receiptOf(await queue.append(newHeader(made, operations), operations));
  }

  async #appendPlan(given: PlanRequest): Promise<EnqueueReceipt> {
    const { newId, open } = this.#parts;
    const { asked, plan, request, subjects } = await this.checkedPlan(given);
    await open();
    const { target, lane, key } = asked;
    const wanted = { target, lane, key, entries: [], plan: { name: plan.name, request, subjects } };
    return key === undefined ? receiptOf(await this.#store(newId(), wanted, [])) : this.#keyed.append(wanted);
  }

  #store(id: string, request: KeyedRequest, entries: readonly Entry[]): Promise<Header> {
    const { queue, planRequestOf } = this.#parts;
    const { plan } = request;
    const named = { ...this.#named(id, request), parts: partsOf(entries) };
    if (plan === undefined) {
      const operations = entries.map(({ operation }) => operation);
      return queue.append(newHeader(named, operations), operations);
    }
    const header = { ...newHeader(named, []), plan: { name: plan.name, request: planRequestOf(id), planned: false } };
    return queue.appendPlan(header, plan.request, plan.subjects);
  }

  #named(
    id: string,
    { key, target, lane }: Pick<KeyedRequest, 'key' | 'target' | 'lane'> | EnqueueRequest,
  ): Pick<Header, 'id' | 'key' | 'target' | 'payload' | 'queuedAt'> & { lane: string | undefined } {
    const { newId, payloadOf, clock } = this.#parts;
    return { id, key: key ?? newId(), target, lane, payload: payloadOf(id), queuedAt: clock.wall() };
  }
}

function entriesOf({ parts, operations }: CheckedRequest): Entry[] {
  const actions = parts.flatMap(({ action, count }) => Array<string>(count).fill(action));
  return operations.map((operation, index) => ({ action: actions[index] ?? '', operation }));
}
