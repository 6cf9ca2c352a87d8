import { z } from 'zod/mini';
import { InvalidRequestError } from '../model/errors.js';
import { classifyRow } from '../retry/classify.js';

const id = z.string().check(z.minLength(1));
/** As PouchDB's replication and CouchDB's answers name them; what else they hold is passed over. */
const deniedShape = z.object({
  id,
  rev: z.optional(z.string()),
  error: z.optional(z.unknown()),
  name: z.optional(z.unknown()),
  reason: z.optional(z.unknown()),
  message: z.optional(z.unknown()),
});
const seenShape = z.strictObject({
  denied: z.optional(z.array(deniedShape)),
  conflict: z.optional(z.array(z.object({ id }))),
  pushedUpTo: z.optional(z.union([z.string(), z.number().check(z.nonnegative())])),
});

/** A document that the server has refused the app's own replication, as it is kept until it was judged. */
export const deniedDocument = z.object({
  id: z.string(),
  rev: z.optional(z.string()),
  code: z.string(),
  reason: z.string(),
});
export type Denied = z.infer<typeof deniedDocument>;

/** What an app has told, as it may be used. */
export interface Seen {
  readonly denied: readonly Denied[];
  readonly conflicting: readonly string[];
  /** All local changes up to some sequence are said to be at the server. */
  readonly isPushed: boolean;
}

/** A copy of what an app tells, checked. Throws `InvalidRequestError`, and nothing of it counts then. */
export function checkSeen(seen: unknown): Seen {
  const parsed = seenShape.safeParse(seen);
  if (!parsed.success) {
    throw new InvalidRequestError(
      parsed.error.issues.map((issue) => ({
        index: typeof issue.path[1] === 'number' ? issue.path[1] : -1,
        field: issue.path.map(String).join('.') || 'seen',
        message:
          issue.code === 'unrecognized_keys'
            ? `has unknown fields: ${issue.keys.join(', ')} (denied, conflict, pushedUpTo)`
            : messageFor(issue.path),
      })),
      undefined,
      'read',
    );
  }
  const { denied = [], conflict = [], pushedUpTo } = parsed.data;
  return {
    denied: denied.flatMap((one) => deniedOf(one) ?? []),
    conflicting: conflict.map((one) => one.id),
    isPushed: pushedUpTo !== undefined,
  };
}

function messageFor([field, , part]: readonly PropertyKey[]): string {
  if (part !== undefined) return 'must be a text';
  if (field === 'pushedUpTo') return 'must be a sequence of the local changes feed: a number or a text';
  if (field === undefined) return 'must be an object { denied, conflict, pushedUpTo }';
  return 'must be a list of objects with the `id` of a document';
}

/** Undefined: the server will take it another time, as the app's replication knows. */
function deniedOf({ id, rev, error, name, reason, message }: z.infer<typeof deniedShape>): Denied | undefined {
  const text = (values: readonly unknown[]): string | undefined => values.find((value) => typeof value === 'string');
  const meaning = classifyRow(text([error, name]) ?? 'forbidden');
  // A replication that was not signed in has passed it over all the same: it is sent again after a sign-in.
  const code = meaning.kind === 'failed' ? meaning.code : meaning.kind === 'auth' ? 'forbidden' : undefined;
  if (code === undefined) return undefined;
  return { id, ...(rev === undefined ? {} : { rev }), code, reason: text([reason, message]) ?? '' };
}
