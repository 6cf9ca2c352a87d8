import type { Plan } from '../model/plan.js';

/** Declares a plan: a request that becomes operations only when it runs. */
export function definePlan<Request>(plan: Plan<Request>): Plan<Request> {
  return { ...plan };
}
