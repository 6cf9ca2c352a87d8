import { z } from 'zod/mini';
import {
  AfieldError,
  ClientClosedError,
  DivisibleError,
  IdempotencyConflictError,
  IndexNotReadyError,
  InvalidRequestError,
  OtherStoreError,
  NotDrainedError,
  PendingFileError,
  PlanRefusedError,
  RetryableError,
  SignInRequiredError,
  StoreLeftError,
  StoreTooNewError,
  UnsyncedWorkError,
} from '../model/errors.js';

/** Our errors, the most special first, with the fields that each of them has. */
const classes = {
  InvalidRequestError: {
    of: InvalidRequestError,
    fields: z.object({ code: z.string(), issues: z.array(z.unknown()), issueCount: z.number() }),
  },
  IdempotencyConflictError: {
    of: IdempotencyConflictError,
    fields: z.object({ code: z.string(), conflicts: z.array(z.unknown()), conflictCount: z.number() }),
  },
  NotDrainedError: {
    of: NotDrainedError,
    fields: z.object({ code: z.string(), counts: z.record(z.string(), z.number()) }),
  },
  ClientClosedError: { of: ClientClosedError, fields: z.object({ code: z.string() }) },
  StoreLeftError: { of: StoreLeftError, fields: z.object({ code: z.string() }) },
  UnsyncedWorkError: {
    of: UnsyncedWorkError,
    fields: z.object({ code: z.string(), counts: z.record(z.string(), z.number()) }),
  },
  OtherStoreError: { of: OtherStoreError, fields: z.object({ code: z.string() }) },
  PendingFileError: {
    of: PendingFileError,
    fields: z.object({ code: z.string(), line: z.optional(z.number()), field: z.optional(z.string()) }),
  },
  StoreTooNewError: { of: StoreTooNewError, fields: z.object({ code: z.string() }) },
  IndexNotReadyError: {
    of: IndexNotReadyError,
    fields: z.object({
      code: z.string(),
      class: z.string(),
      notBeforeMs: z.number(),
      index: z.string(),
      state: z.string(),
      reason: z.optional(z.string()),
    }),
  },
  RetryableError: {
    of: RetryableError,
    fields: z.object({ code: z.string(), class: z.string(), notBeforeMs: z.number() }),
  },
  PlanRefusedError: { of: PlanRefusedError, fields: z.object({ code: z.string(), class: z.string() }) },
  SignInRequiredError: { of: SignInRequiredError, fields: z.object({ code: z.string(), class: z.string() }) },
  DivisibleError: {
    of: DivisibleError,
    fields: z.object({ code: z.string(), class: z.string(), status: z.optional(z.number()) }),
  },
  AfieldError: { of: AfieldError, fields: z.object({ code: z.string() }) },
} as const;
type ClassName = keyof typeof classes;
const classNames = Object.keys(classes) as ClassName[];

/** An error as it goes from the worker to the page. */
export const wireError = z.object({
  /** Which of ours it is; undefined for any other error. Not its `name`: a bundler may have changed that. */
  class: z.optional(z.enum(classNames as [ClassName, ...ClassName[]])),
  name: z.string(),
  message: z.string(),
  stack: z.optional(z.string()),
  fields: z.record(z.string(), z.unknown()),
  get cause() {
    return z.optional(wireError);
  },
});
export type WireError = z.infer<typeof wireError>;

/** Causes of causes: more says nothing. */
const deepest = 4;

/** What of an error goes over: its class and the fields that this has; of an error that is not ours name and message. */
export function wireErrorOf(error: unknown, depth = 0): WireError {
  try {
    return partsOf(error, depth);
  } catch {
    // Something of the app's own, with getters that throw. Without an answer its call would stay open.
    const message = 'The worker threw something that cannot be read.';
    return { class: 'AfieldError', name: 'AfieldError', message, fields: { code: 'unreadable_error' } };
  }
}

function partsOf(error: unknown, depth: number): WireError {
  if (typeof error !== 'object' || error === null) return { name: 'Error', message: String(error), fields: {} };
  const { name, message, stack, cause } = error as Record<'name' | 'message' | 'stack' | 'cause', unknown>;
  const known = classOf(error);
  return {
    class: known?.name,
    name: typeof name === 'string' ? name : 'Error',
    message: typeof message === 'string' ? message : String(message ?? error),
    stack: typeof stack === 'string' ? stack : undefined,
    fields: known?.fields ?? {},
    cause: cause === undefined || depth === deepest ? undefined : wireErrorOf(cause, depth + 1),
  };
}

/** Of which class of ours it is, with what this class has; what a subclass of an app adds stays where it is. */
function classOf(error: object): { name: ClassName; fields: Record<string, unknown> } | undefined {
  for (const name of classNames) {
    if (!(error instanceof classes[name].of)) continue;
    const fields = classes[name].fields.safeParse(error);
    if (fields.success) return { name, fields: fields.data };
  }
  return undefined;
}

/** The error as the page's code knows it: of our class, where it was one of ours. */
export function errorOf(wire: WireError): Error {
  const cause = wire.cause === undefined ? undefined : { cause: errorOf(wire.cause) };
  const error = new Error(wire.message, cause);
  if (wire.class !== undefined) {
    const { of, fields } = classes[wire.class];
    // Not constructed: the constructors make messages, and this one has its own.
    Object.setPrototypeOf(error, of.prototype as object);
    Object.assign(error, fields.parse(wire.fields));
  }
  error.name = wire.name;
  if (wire.stack !== undefined) error.stack = wire.stack;
  return error;
}
