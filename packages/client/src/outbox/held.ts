import type { Target } from '../model/states.js';
import { hashOf } from '../queue/subjects.js';

/** How many events of each document wait, by the document's hash: too much may be held back, never too little. */
export class Held {
  readonly #counts = new Map<number, number>();

  has(hash: number): boolean {
    return this.#counts.has(hash);
  }

  change(hash: number, step: 1 | -1): void {
    const count = (this.#counts.get(hash) ?? 0) + step;
    if (count > 0) this.#counts.set(hash, count);
    else this.#counts.delete(hash);
  }
}

/** A local document and one of the server are two, even if they have one id. */
export function hashOfDocument({ target, documentId }: { target: Target; documentId: string }): number {
  return hashOf(`${target} ${documentId}`);
}
