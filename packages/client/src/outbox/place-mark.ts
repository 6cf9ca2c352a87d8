import { z } from 'zod/mini';
import type { PublishContext, Publisher } from '../model/event.js';
import { classifyError } from '../retry/classify.js';
import type { Progress } from './progress.js';

/** What is kept at the place: a name of its own, and what the place has at least. */
const leftMark = z.object({ id: z.string(), upTo: z.int() });

/**
 * Looks whether a publisher's place is the one that it was. Another mark there than the last one of ours: the place was made
 * anew, or restored, and has what that mark says, or nothing. A mark is remembered here before it is left there: an end in between costs a few
 * repeats.
 */
export class PlaceMark {
  readonly #publisher: Publisher;
  readonly #storeId: string;
  readonly #newId: () => string;
  readonly #context: (attempt: number) => PublishContext;
  #isWanted: boolean;
  /** Something was taken since the last mark, as far as this run knows. */
  #isBehind = false;
  /** A mark that is remembered here already, and is to be left there. */
  #toLeave: string | undefined;

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

  /** Whether a look comes next, before anything is published. */
  get isDue(): boolean {
    return this.#isWanted;
  }

  want(): void {
    this.#isWanted = this.#publisher.marks !== undefined;
  }

  /** The place has taken something. */
  taken(): void {
    this.#isBehind = true;
  }

  /**
   * What the place has by its mark; the same object when nothing has changed. A look that fails holds up nothing: what is
   * wrong there, publishing tells, and the next look is not far.
   */
  async look(progress: Progress): Promise<Progress> {
    const { marks } = this.#publisher;
    this.#isWanted = false;
    if (marks === undefined) return progress;
    try {
      return await this.#look(progress, marks);
    } catch (error) {
      if (classifyError(error).kind === 'bug') throw error;
      return progress;
    }
  }

  async #look(progress: Progress, marks: NonNullable<Publisher['marks']>): Promise<Progress> {
    const context = this.#context(1);
    const toLeave = this.#toLeave;
    this.#toLeave = undefined;
    if (toLeave !== undefined) {
      if (await marks.leave(this.#storeId, toLeave, context)) return progress;
      return { upTo: progress.upTo, open: progress.open };
    }
    const there = await marks.read(this.#storeId, context);
    const isKnown = progress.mark === undefined || there === progress.mark;
    if (isKnown && progress.mark !== undefined && !this.#isBehindOf(progress)) return progress;
    const has = isKnown ? progress : backTo(progress, Math.min(progress.upTo, upToOf(there)));
    const text = JSON.stringify({ id: this.#newId(), upTo: has.upTo });
    this.#isBehind = false;
    this.#toLeave = text;
    this.#isWanted = true;
    return { upTo: has.upTo, open: has.open, mark: text };
  }

  #isBehindOf({ upTo, open, mark }: Progress): boolean {
    return this.#isBehind || open.length > 0 || upToOf(mark) !== upTo;
  }
}

/** All after this number is to be taken again. What waits from before it waits on. */
function backTo({ open }: Progress, upTo: number): Progress {
  return { upTo, open: open.filter(({ s }) => s <= upTo) };
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
