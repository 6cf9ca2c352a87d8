import { InvalidRequestError } from '../model/errors.js';

/** Events that one call lists at most. */
const mostListed = 1000;

/** Which events are asked for, checked. Throws `InvalidRequestError`. */
export function checkListing(given: {
  readonly after?: { readonly sequence: number; readonly index: number };
  readonly limit?: number;
}): { readonly after: { readonly sequence: number; readonly index: number }; readonly limit: number } {
  const { after = { sequence: 0, index: -1 }, limit = mostListed } = given;
  const issues: { index: number; field: string; message: string }[] = [];
  if (!Number.isInteger(limit) || limit < 1 || limit > mostListed) {
    issues.push({ index: -1, field: 'limit', message: `must be a whole number from 1 to ${String(mostListed)}` });
  }
  for (const field of ['sequence', 'index'] as const) {
    if (Number.isInteger((after as Partial<typeof after> | null)?.[field])) continue;
    issues.push({ index: -1, field: `after.${field}`, message: 'must be a whole number' });
  }
  if (issues.length > 0) throw new InvalidRequestError(issues);
  return { after: { ...after }, limit };
}
