import type { EnqueueRequest, OperationInput, PlanRequest } from '../model/client.js';

/** The request with lists and operations of its own, as far as it has them: what is wrong is said by `checkRequest`. */
export function copyOf(request: EnqueueRequest): EnqueueRequest {
  const parts: unknown = (request as EnqueueRequest | undefined | null)?.actions;
  if (!Array.isArray(parts)) return request;
  const actions = (parts as EnqueueRequest['actions']).map((part) => {
    const operations: unknown = (part as typeof part | undefined | null)?.operations;
    return Array.isArray(operations)
      ? { ...part, operations: (operations as typeof part.operations).map(operationCopyOf) }
      : part;
  });
  return { ...request, actions };
}

/** The same for one operation. */
export function operationCopyOf(operation: OperationInput): OperationInput {
  return isObject(operation) ? { ...operation } : operation;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same for the request of a plan. */
export function planCopyOf(given: PlanRequest): PlanRequest {
  if (!isObject(given)) return given;
  const { request } = given;
  return { ...given, request: isObject(request) ? { ...request } : request };
}
