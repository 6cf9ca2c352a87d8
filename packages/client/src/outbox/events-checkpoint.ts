import { z } from 'zod/mini';
import { AfieldError } from '../model/errors.js';

const shape = z.object({
  v: z.literal(1),
  /** How far the changes feed was read. */
  seq: z.union([z.number(), z.string()]),
  /** Events that wait for their previous one, and since when: milliseconds since 1970. */
  held: z.array(z.tuple([z.string(), z.number()])),
  /** Events that were delivered last, oldest first. */
  seen: z.array(z.string()),
});

/** Where a reader of events is; for the app it is a text. */
export type EventsCheckpoint = z.infer<typeof shape>;

/** Throws `AfieldError` (`invalid_since`): a reader that began anew by mistake would repeat everything. */
export function checkpointOf(since: string | undefined): EventsCheckpoint {
  if (since === undefined) return { v: 1, seq: 0, held: [], seen: [] };
  const parsed = shape.safeParse(json(since));
  if (parsed.success) return parsed.data;
  throw new AfieldError('invalid_since', 'readEvents: `since` must be what readEvents() gave, or undefined to begin.');
}

export function textOf(checkpoint: EventsCheckpoint): string {
  return JSON.stringify(checkpoint);
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // no checkpoint of ours
  }
}
