import { z } from 'zod/mini';
import type { PublishContext, Publisher } from '../model/event.js';
import { nothingTaken, type Progress } from './progress.js';

/** What is kept at the place: a name of its own, and what the place has at least. */
const leftMark = z.object({ id: z.string(), upTo: z.int() });

/**
 * Looks whether a publisher's place is the one that it was. Another mark there than the last one of ours: the place was made
 * anew, or restored, and has what that mark says, or nothing. A lost answer to a mark costs a few repeats.
 */
export class PlaceMark {
  readonly #publisher: Publisher;
  readonly #storeId: string;
  readonly #newId: () => string;
  readonly #context: (attempt: number) => PublishContext;
  #isWanted: boolean;
  #hasFailed = false;
  /** Something was taken since the last mark, as far as is known. */
  #isBehind = true;

  constructor(parts: {
    publisher: Publisher;
    storeId: string;
    newId: () => string;
    context: (attempt: number) => PublishContext;
  }) {
    this.#publisher = parts.publisher;
    this.#storeId = parts.storeId;
    this.#newId = parts.newId;
    this.#context = parts.context;
    this.#isWanted = parts.publisher.marks !== undefined;
  }

  /** Before anything is published; after a look that has failed, when nothing else is left to do. */
  isDue(nothingElse: boolean): boolean {
    return this.#isWanted && (nothingElse || !this.#hasFailed);
  }

  want(): void {
    this.#isWanted = this.#publisher.marks !== undefined;
  }

  /** The place has taken something. */
  taken(): void {
    this.#isBehind = true;
  }

  /** What the place has by its mark; the same object when nothing has changed. */
  async look(progress: Progress): Promise<Progress> {
    const { marks } = this.#publisher;
    this.#isWanted = false;
    if (marks === undefined) return progress;
    this.#hasFailed = true;
    try {
      const looked = await this.#look(progress, marks);
      this.#hasFailed = false;
      return looked;
    } catch (error) {
      this.#isWanted = true;
      throw error;
    }
  }

  async #look(progress: Progress, marks: NonNullable<Publisher['marks']>): Promise<Progress> {
    const context = this.#context(1);
    const there = await marks.read(this.#storeId, context);
    const isKnown = progress.mark === undefined || there === progress.mark;
    if (isKnown && progress.mark !== undefined && !this.#isBehind) return progress;
    const has = isKnown ? progress : { ...nothingTaken, upTo: Math.min(progress.upTo, upToOf(there)) };
    const text = JSON.stringify({ id: this.#newId(), upTo: has.upTo });
    this.#isBehind = false;
    const isLeft = await marks.leave(this.#storeId, text, context);
    return { upTo: has.upTo, open: has.open, ...(isLeft ? { mark: text } : {}) };
  }
}

function upToOf(text: string | undefined): number {
  if (text === undefined) return 0;
  try {
    const parsed = leftMark.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data.upTo : 0;
  } catch {
    return 0; // not ours: as if nothing were there
  }
}
