import { z } from 'zod/mini';
import { InvalidRequestError } from '../model/errors.js';

/** Events that one call lists at most. */
const mostListed = 1000;

const shape = z.strictObject({
  // An event that was listed says the place, too.
  after: z.optional(z.object({ store: z.optional(z.string()), sequence: z.int(), index: z.int() })),
  limit: z.optional(z.int().check(z.gte(1), z.lte(mostListed))),
});

/** Of an event: its number is the one in the store where it was queued first. */
export interface Place {
  readonly store?: string | undefined;
  readonly sequence: number;
  readonly index: number;
}

/** Which events are asked for, checked. Throws `InvalidRequestError`. */
export function checkListing(given: unknown): {
  readonly after: Place;
  readonly limit: number;
} {
  const parsed = shape.safeParse(given);
  if (parsed.success) {
    const { after = { sequence: 0, index: -1 }, limit = mostListed } = parsed.data;
    return { after, limit };
  }
  throw new InvalidRequestError(
    parsed.error.issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys'
        ? issue.keys.map((field) => ({ index: -1, field, message: 'is not an option of listEvents (after, limit)' }))
        : [{ index: -1, field: issue.path.map(String).join('.') || 'options', message: saidOf(issue.path) }],
    ),
    undefined,
    'read',
  );
}

function saidOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'must be an object { after, limit }';
  if (path[0] === 'limit') return `must be a whole number from 1 to ${String(mostListed)}`;
  return path.length === 1 ? 'must be an object { sequence, index }' : 'must be a whole number';
}
