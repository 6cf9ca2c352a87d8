import type { Locks } from '@afield/client';

interface Wanted {
  readonly tab: FakeTabLocks;
  readonly take: () => void;
}

/** The locks of one browser, in this process: one holder per name, first come first served. */
export class FakeLocks {
  readonly #holders = new Map<string, FakeTabLocks>();
  readonly #waiting = new Map<string, Wanted[]>();

  /** The locks as one tab sees them. */
  tab(): FakeTabLocks {
    return new FakeTabLocks(this);
  }

  holder(name: string): FakeTabLocks | undefined {
    return this.#holders.get(name);
  }

  /** For `FakeTabLocks`. */
  want(name: string, wanted: Wanted): void {
    this.#waiting.set(name, [...(this.#waiting.get(name) ?? []), wanted]);
    this.#hand(name);
  }

  /** For `FakeTabLocks`: the holder lets go. */
  release(name: string, tab: FakeTabLocks): void {
    if (this.#holders.get(name) === tab) this.#holders.delete(name);
    this.#hand(name);
  }

  /** For `FakeTabLocks`: waits no longer. */
  forget(name: string, isGone: (wanted: Wanted) => boolean): void {
    const waiting = this.#waiting.get(name) ?? [];
    this.#waiting.set(
      name,
      waiting.filter((wanted) => !isGone(wanted)),
    );
  }

  #hand(name: string): void {
    if (this.#holders.has(name)) return;
    const next = this.#waiting.get(name)?.shift();
    if (next === undefined) return;
    this.#holders.set(name, next.tab);
    next.take();
  }
}

/** One tab's view of the locks; `die()` is what the browser does when the tab's process ends. */
export class FakeTabLocks implements Locks {
  readonly #locks: FakeLocks;
  readonly #names = new Set<string>();
  #alive = true;

  constructor(locks: FakeLocks) {
    this.#locks = locks;
  }

  async request(name: string, signal: AbortSignal, whileHeld: () => Promise<void>): Promise<void> {
    signal.throwIfAborted();
    if (!this.#alive) return new Promise(() => undefined);
    this.#names.add(name);
    await new Promise<void>((resolve, reject) => {
      const wanted = {
        tab: this,
        take: () => {
          signal.removeEventListener('abort', giveUp);
          resolve();
        },
      };
      const giveUp = (): void => {
        this.#locks.forget(name, (other) => other === wanted);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#locks.want(name, wanted);
    });
    try {
      await whileHeld();
    } finally {
      if (this.#alive) this.#locks.release(name, this);
    }
  }

  /** Lets go of everything at once, as when the process is killed. */
  die(): void {
    this.#alive = false;
    for (const name of this.#names) {
      this.#locks.forget(name, (wanted) => wanted.tab === this);
      this.#locks.release(name, this);
    }
  }
}
