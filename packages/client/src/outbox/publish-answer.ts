import { z } from 'zod/mini';
import type { DocumentEvent, Publisher } from '../model/event.js';
import type { PublishError } from './publish-error.js';

const publishAnswer = z.object({
  accepted: z.array(z.string()),
  conflicts: z.optional(z.array(z.object({ id: z.string(), stored: z.unknown() }))),
  error: z.optional(
    z.object({
      class: z.optional(z.enum(['network', 'server', 'auth', 'storage', 'conflict', 'throttled', 'bug'])),
      code: z.string(),
      notBeforeMs: z.optional(z.number()),
    }),
  ),
});

/** What became of the events that were sent, each of them in at most one of the two. */
export interface JudgedAnswer {
  readonly accepted: readonly DocumentEvent[];
  readonly conflicts: readonly EventConflict[];
  readonly error: PublishError | undefined;
}

/** An event that the publisher's place has with other content. */
export interface EventConflict {
  readonly event: DocumentEvent;
  readonly stored: unknown;
}

/**
 * What a publisher answers, checked and matched with what was sent: silence, an answer in another shape, and an id that
 * was not sent are not success, and an event that is named as a conflict too is none (O4).
 */
export function judgeAnswer(publisher: Publisher, sent: readonly DocumentEvent[], answer: unknown): JudgedAnswer {
  const parsed = publishAnswer.safeParse(answer);
  if (!parsed.success) {
    throw new TypeError(`The publisher "${publisher.name}" must answer { accepted: [ids], conflicts, error }.`);
  }
  const { accepted, conflicts = [], error } = parsed.data;
  const stored = new Map(conflicts.map((conflict) => [conflict.id, conflict.stored]));
  const ids = new Set(accepted);
  return {
    accepted: sent.filter(({ id }) => ids.has(id) && !stored.has(id)),
    conflicts: sent.filter(({ id }) => stored.has(id)).map((event) => ({ event, stored: stored.get(event.id) })),
    error: error === undefined ? undefined : errorOf(error),
  };
}

function errorOf({
  class: errorClass,
  code,
  notBeforeMs,
}: NonNullable<z.infer<typeof publishAnswer>['error']>): PublishError {
  return {
    code,
    ...(errorClass === undefined ? {} : { class: errorClass }),
    ...(notBeforeMs === undefined ? {} : { notBeforeMs }),
  };
}
