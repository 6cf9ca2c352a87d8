import { BehaviorSubject, type Observable } from 'rxjs';
import { z } from 'zod/mini';
import type { Channel, Clock } from '../model/environment.js';
import type { IndexState } from '../model/lookup.js';

/** Other tabs hear of progress at most so often. */
const progressEveryMs = 250;

const counts = { rows: z.number(), skipped: z.number() };
const announced = z.discriminatedUnion('state', [
  z.object({
    state: z.literal('building'),
    ...counts,
    total: z.optional(z.number()),
    rowsPerSecond: z.optional(z.number()),
  }),
  z.object({ state: z.literal('ready'), ...counts }),
  z.object({
    state: z.literal('parked'),
    ...counts,
    reason: z.string(),
    id: z.optional(z.string()),
    resumePoint: z.union([z.number(), z.string()]),
  }),
]);

export interface AnnouncedStateParts {
  readonly channel: (news: (message?: unknown) => void) => Channel;
  readonly clock: Clock;
  /** It has become ready, or is not ready any more. */
  readonly changed: () => void;
  /** Another tab says so. */
  readonly heard: (state: IndexState) => void;
}

/** The state of an index, the same in every tab: whoever changes it tells the others. */
export class AnnouncedState {
  readonly #parts: AnnouncedStateParts;
  readonly #subject = new BehaviorSubject<IndexState>({ state: 'idle' });
  #channel: Channel | undefined;
  #announcedAt = -Infinity;
  #closed = false;

  constructor(parts: AnnouncedStateParts) {
    this.#parts = parts;
  }

  get value(): IndexState {
    return this.#subject.value;
  }

  get changes(): Observable<IndexState> {
    return this.#subject;
  }

  /** Hears the other tabs from now on. */
  listen(): void {
    if (this.#closed) return; // nobody would close what is opened now
    this.#channel ??= this.#parts.channel((message) => {
      const parsed = announced.safeParse(message);
      if (!parsed.success) return;
      const state = stateOf(parsed.data);
      this.#parts.heard(state);
      this.#show(state);
    });
  }

  /** Shows it here, and tells the other tabs. */
  set(state: IndexState): void {
    this.#show(state);
    const now = this.#parts.clock.monotonic();
    if (state.state === 'building' && now - this.#announcedAt < progressEveryMs) return;
    this.#announcedAt = state.state === 'building' ? now : -Infinity;
    this.#channel?.announce(state);
  }

  /** Shows what is stored: nobody has to be told. */
  found(state: IndexState): void {
    this.#show(state);
  }

  close(): void {
    this.#closed = true;
    this.#channel?.close();
    this.#subject.complete();
  }

  #show(state: IndexState): void {
    const wasReady = this.#subject.value.state === 'ready';
    this.#subject.next(state);
    if (wasReady !== (state.state === 'ready')) this.#parts.changed();
  }
}

/** What does not apply is undefined, not absent. */
function stateOf(parsed: z.infer<typeof announced>): IndexState {
  switch (parsed.state) {
    case 'building':
      return { ...parsed, total: parsed.total, rowsPerSecond: parsed.rowsPerSecond };
    case 'parked':
      return { ...parsed, id: parsed.id };
    case 'ready':
      return parsed;
  }
}
