import { z } from 'zod/mini';
import type { FailureFilter } from '../model/client.js';
import { InvalidRequestError } from '../model/errors.js';

const names = z.union([z.string(), z.array(z.string())]);
const time = z.number().check(z.nonnegative());
const filterShape = z.strictObject({
  failureId: z.optional(names),
  bulkOperationId: z.optional(names),
  code: z.optional(names),
  action: z.optional(names),
  id: z.optional(names),
  since: z.optional(time),
  before: z.optional(time),
});

/** A filter as it may be used. A misspelt field would choose more than was meant, so it is refused. */
export function checkFilter(filter: unknown): FailureFilter {
  const parsed = filterShape.safeParse(filter);
  if (parsed.success) return filter as FailureFilter;
  throw new InvalidRequestError(
    parsed.error.issues.map((issue) => ({
      index: -1,
      field: ['filter', ...issue.path.map(String)].join('.'),
      message:
        issue.code === 'unrecognized_keys'
          ? `has unknown fields: ${issue.keys.join(', ')}`
          : 'is not of the shape that is asked for',
    })),
  );
}

/** Operations a second: above 0. */
export function checkRate(ratePerSecond: unknown): void {
  if (ratePerSecond === undefined) return;
  if (typeof ratePerSecond === 'number' && Number.isFinite(ratePerSecond) && ratePerSecond > 0) return;
  throw new InvalidRequestError([{ index: -1, field: 'ratePerSecond', message: 'must be a number above 0' }]);
}
