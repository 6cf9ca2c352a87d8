/**
 * Knows when the world is at rest: no call is under way, and for many turns of the event loop none began. A test waits
 * for this instead of sleeping.
 */
export class InFlight {
  #count = 0;
  #begun = 0;
  #whenNone: (() => void)[] = [];

  /** Calls under way now. */
  get count(): number {
    return this.#count;
  }

  /** A call begins; the answer is called when it ends, once. */
  enter(): () => void {
    this.#count += 1;
    this.#begun += 1;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#count -= 1;
      if (this.#count === 0) for (const wake of this.#whenNone.splice(0)) wake();
    };
  }

  /** Counts a call until its promise settles. */
  async track<T>(call: () => Promise<T>): Promise<T> {
    const leave = this.enter();
    try {
      return await call();
    } finally {
      leave();
    }
  }

  /** Resolves when nothing was under way for so many turns of the event loop in a row. */
  async rest(turns = 40): Promise<void> {
    for (let quiet = 0, begun = this.#begun; quiet < turns; quiet += 1) {
      if (this.#count > 0) await new Promise<void>((resolve) => this.#whenNone.push(resolve));
      await new Promise<void>((resolve) => setImmediate(resolve));
      if (this.#count > 0 || this.#begun !== begun) {
        begun = this.#begun;
        quiet = 0;
      }
    }
  }
}
