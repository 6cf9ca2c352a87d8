import type { PlanRequest } from '../model/client.js';
import type { AnyPlan } from '../model/plan.js';
import { checkCommon, firstNotJson, Issues, pathOf, saidBy, validated } from './request.js';

const fields = new Set(['target', 'plan', 'request', 'key', 'lane']);

/** A request of a plan that may be queued. */
export interface CheckedPlanRequest {
  readonly plan: AnyPlan;
  /** As its schema gave it back. */
  readonly request: unknown;
  /** The documents that the plan declared; undefined: it declares none. */
  readonly subjects: readonly string[] | undefined;
}

/** Whether someone means a plan: what is wrong with it is said by `checkPlanRequest`. */
export function isPlanRequest(request: unknown): request is PlanRequest {
  if (typeof request !== 'object' || request === null) return false;
  const { plan, request: content } = request as Partial<PlanRequest>;
  return plan !== undefined || content !== undefined;
}

/** Checks a whole request before anything of it is stored (S9). */
export async function checkPlanRequest(
  request: PlanRequest,
  plans: ReadonlyMap<string, AnyPlan>,
  hasServer: boolean,
): Promise<CheckedPlanRequest> {
  const issues = new Issues();
  checkCommon(request, fields, hasServer, issues);
  const plan = typeof request.plan === 'string' ? plans.get(request.plan) : undefined;
  if (plan === undefined) issues.request('plan', `names the plan "${String(request.plan)}", which is not defined`);
  const inTarget = plan === undefined ? undefined : wrongInTarget(plan, request.target);
  if (inTarget !== undefined) issues.request('target', inTarget);
  if (plan === undefined) throw issues.error();
  issues.throwIfAny();
  const result = await validated(plan.request, request.request);
  if (result.issues !== undefined) {
    for (const issue of result.issues) issues.request(inRequest(pathOf(issue.path)), `${saidBy(issue)} (${plan.name})`);
    throw issues.error();
  }
  const wrong = firstNotJson({ request: result.value });
  if (wrong !== undefined) issues.request(wrong, 'cannot be stored as JSON');
  issues.throwIfAny();
  const subjects = plan.subjects === undefined ? undefined : declared(plan, result.value, issues);
  issues.throwIfAny();
  return { plan, request: result.value, subjects };
}

/** Indexes know the documents of this device, and nothing of the server's. */
export function wrongInTarget({ name, indexes = [] }: AnyPlan, target: unknown): string | undefined {
  if (indexes.length === 0 || target !== 'server') return undefined;
  return `must be "local": the plan "${name}" asks an index, which knows only the documents of this device`;
}

function declared(plan: AnyPlan, request: unknown, issues: Issues): readonly string[] | undefined {
  try {
    const subjects: unknown = plan.subjects?.(request);
    if (Array.isArray(subjects) && subjects.every((id) => typeof id === 'string')) return [...(subjects as string[])];
    issues.request('plan', 'declares subjects that are not a list of ids');
  } catch (error) {
    issues.request('plan', `cannot say its subjects: ${error instanceof Error ? error.name : 'something'} was thrown`);
  }
  return undefined;
}

function inRequest(path: string): string {
  return path === '' ? 'request' : `request.${path}`;
}
