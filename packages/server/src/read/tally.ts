import { z } from 'zod';

const withConflicts = z.object({ _conflicts: z.array(z.string()).min(1) });

/** What was met while reading that is no row of the list. */
export class Tally {
  #unreadable = 0;
  #conflicting = 0;

  /** A document or row that is not of the shape that it should have. */
  unreadable(): void {
    this.#unreadable++;
  }

  /** A document was read. */
  read(doc: unknown): void {
    if (withConflicts.safeParse(doc).success) this.#conflicting++;
  }

  /** Sentences for the person who reads the list; none when there is nothing to say. */
  sentences(): string[] {
    return [
      ...(this.#unreadable === 0
        ? []
        : [`${String(this.#unreadable)} left out: not of the shape that this version knows. Is there a newer Afield?`]),
      ...(this.#conflicting === 0
        ? []
        : [
            `${String(this.#conflicting)} documents have a second version in conflict: no device of Afield writes that. Only the winning one is listed.`,
          ]),
    ];
  }
}
