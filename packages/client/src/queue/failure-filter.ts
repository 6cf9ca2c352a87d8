import { z } from 'zod/mini';
import type { FailureFilter, RetryOptions } from '../model/client.js';
import { InvalidRequestError } from '../model/errors.js';

const names = z.union([z.string(), z.array(z.string())]);
const time = z.number().check(z.nonnegative());
const timeFields = new Set(['since', 'before']);
const filterShape = z.strictObject({
  failureId: z.optional(names),
  bulkOperationId: z.optional(names),
  code: z.optional(names),
  action: z.optional(names),
  id: z.optional(names),
  since: z.optional(time),
  before: z.optional(time),
});

const quarantineFilterShape = z.strictObject({ resolved: z.optional(z.boolean()) });

/** One operation a day: a rest that is longer would look like one that never ends, or could not be stored. */
const leastRate = 1 / 86_400;
const optionsShape = z.strictObject({ ratePerSecond: z.optional(z.number().check(z.gte(leastRate), z.lt(Infinity))) });

/** Whether resolved conflicts are meant. */
export function checkQuarantineFilter(filter: unknown): boolean {
  const parsed = quarantineFilterShape.safeParse(filter);
  if (parsed.success) return parsed.data.resolved ?? false;
  const message = 'must be an object with no other field than `resolved`, true or false';
  throw new InvalidRequestError([{ index: -1, field: 'filter', message }], undefined, 'read');
}

/**
 * A copy of a filter, as it may be used. A misspelt field, or one that is there but undefined, would choose more than was
 * meant, so it is refused.
 */
export function checkFilter(filter: unknown): FailureFilter {
  const parsed = filterShape.safeParse(filter);
  const open = Object.entries(parsed.success ? parsed.data : {}).flatMap(([name, value]) =>
    value === undefined ? [name] : [],
  );
  if (open.length > 0) {
    const message = 'is undefined: leave the field out to mean all';
    throw new InvalidRequestError(open.map((name) => ({ index: -1, field: `filter.${name}`, message })));
  }
  if (parsed.success) return parsed.data as FailureFilter;
  throw new InvalidRequestError(
    parsed.error.issues.map((issue) => ({
      index: -1,
      field: ['filter', ...issue.path.map(String)].join('.'),
      message:
        issue.code === 'unrecognized_keys'
          ? `has unknown fields: ${issue.keys.join(', ')}`
          : issue.path.length === 0
            ? 'must be an object; {} means all'
            : timeFields.has(String(issue.path[0]))
              ? 'must be milliseconds since 1970'
              : 'must be a text or a list of texts',
    })),
  );
}

/** A filter of a list: open failures, or with `resolved` those that someone has decided about. */
export type ListFilter = FailureFilter & { readonly resolved?: boolean };

/** A copy of the filter of a list, as it may be used. */
export function checkListFilter({ resolved, ...filter }: ListFilter): ListFilter {
  const checked = checkFilter(filter);
  if (resolved !== undefined && typeof (resolved as unknown) !== 'boolean') {
    throw new InvalidRequestError([{ index: -1, field: 'filter.resolved', message: 'must be true or false' }]);
  }
  return { ...checked, resolved: resolved === true };
}

/** A copy of the options of a retry: a misspelt one would retry faster than was meant, so it is refused. */
export function checkRetryOptions(options: unknown): RetryOptions {
  const parsed = optionsShape.safeParse(options);
  if (parsed.success) return parsed.data as RetryOptions;
  throw new InvalidRequestError(
    parsed.error.issues.map((issue) =>
      issue.code === 'unrecognized_keys'
        ? { index: -1, field: 'options', message: `has unknown fields: ${issue.keys.join(', ')} (ratePerSecond)` }
        : issue.path.length === 0
          ? { index: -1, field: 'options', message: 'must be an object { ratePerSecond }' }
          : { index: -1, field: 'ratePerSecond', message: 'must be a number above 0: one a day (1 / 86400) or more' },
    ),
  );
}
