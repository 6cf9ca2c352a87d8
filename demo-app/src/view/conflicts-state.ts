import {
  IdempotencyConflictError,
  type EnqueueReceipt,
  type QuarantineDecision,
  type QuarantineEntry,
} from '@afield/client';
import type { Demo } from '../demo.js';
import { otherPhone } from '../practice.js';
import type { Mood } from '../words.js';

/** What is shown of duplicates and conflicts. */
export interface ConflictsState {
  readonly open: readonly QuarantineEntry[];
  /** Those that a person has decided on, the newest first. */
  readonly resolved: readonly QuarantineEntry[];
  readonly key: string;
  readonly phone: string;
  readonly isQueuing: boolean;
  /** What came of the last request or decision. */
  readonly said: { readonly text: string; readonly mood: Mood } | undefined;
}

export const noConflicts: ConflictsState = {
  open: [],
  resolved: [],
  key: 'visit-1',
  phone: '+100 200 301',
  isQueuing: false,
  said: undefined,
};

/** What a person does with keys and conflicts (O4, O5). */
export class Conflicts {
  constructor(
    private readonly demo: Demo,
    private readonly state: () => ConflictsState,
    private readonly change: (change: Partial<ConflictsState>) => void,
  ) {}

  setKey(key: string): void {
    this.change({ key });
  }

  setPhone(phone: string): void {
    this.change({ phone });
  }

  queue(): void {
    this.#queuePhone(this.state().phone.trim());
  }

  /** Under the same key, so it must be refused when the request of the form was queued before. */
  queueOther(): void {
    this.#queuePhone(otherPhone(this.state().phone.trim()));
  }

  createAgain(): void {
    this.#do(async () => {
      const { sequence } = await this.demo.createAgain();
      return {
        text: `Queued as #${String(sequence)}. The record is there already: it will fail, and both versions come to the list below.`,
        mood: 'waiting',
      };
    });
  }

  resolve(quarantineId: string, decision: QuarantineDecision): void {
    this.#do(async () => {
      const receipt = await this.demo.client.resolveQuarantined(quarantineId, decision);
      return { text: decided(decision, receipt), mood: 'good' };
    });
  }

  #queuePhone(phone: string): void {
    const key = this.state().key.trim();
    if (key === '') {
      this.change({
        said: { text: 'Write a key first: without one, nothing can be found to be the same.', mood: 'bad' },
      });
      return;
    }
    this.#do(async () => {
      const { duplicate, sequence } = await this.demo.changePhone(key, phone);
      return duplicate
        ? {
            text: `A duplicate: the same request was queued before, as #${String(sequence)}. Nothing was queued again.`,
            mood: 'good',
          }
        : { text: `Queued as #${String(sequence)}: the phone becomes ${phone}.`, mood: 'good' };
    });
  }

  /** One thing at a time, and what came of it is said. */
  #do(work: () => Promise<NonNullable<ConflictsState['said']>>): void {
    if (this.state().isQueuing) return;
    this.change({ isQueuing: true });
    work()
      .catch((error: unknown) => ({ text: this.#wordsOf(error), mood: 'bad' as const }))
      .then((said) => this.change({ said, isQueuing: false }))
      .catch(() => undefined); // drawing reports its own errors
  }

  #wordsOf(error: unknown): string {
    if (error instanceof IdempotencyConflictError) {
      return 'Not queued: this key was used before, with other content. Both versions are kept. Compare them below and choose one, or use another key if this is a new request.';
    }
    return error instanceof Error ? error.message : String(error);
  }
}

function decided(decision: QuarantineDecision, receipt: EnqueueReceipt | undefined): string {
  if (decision === 'keep-first') return 'The first one is kept. Nothing was changed.';
  if (decision === 'discard') return 'The second one is discarded. Nothing was changed.';
  return receipt === undefined
    ? 'The second one counts now.'
    : `The second one is queued, as #${String(receipt.sequence)}.`;
}
