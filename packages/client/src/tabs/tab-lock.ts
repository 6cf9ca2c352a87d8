import type { Locks } from '../model/environment.js';

/**
 * The lock that says that a tab lives: held from the first use of the store until the client is closed. The engine frees
 * it when the tab dies.
 */
export class TabLock {
  readonly #locks: Locks;
  readonly #nameOf: (tab: string) => string;
  readonly #released = new AbortController();
  #holding: Promise<boolean> | undefined;

  constructor(
    locks: Locks,
    store: string,
    readonly tab: string,
  ) {
    this.#locks = locks;
    this.#nameOf = (one) => `afield:${store}:tab:${one}`;
  }

  /** Resolves with true when it is held, with false when the engine gives no lock. */
  hold(): Promise<boolean> {
    this.#holding ??= new Promise<boolean>((resolve) => {
      const { signal } = this.#released;
      const untilReleased = async (): Promise<void> => {
        resolve(true);
        await aborted(signal);
      };
      this.#locks.request(this.#nameOf(this.tab), signal, untilReleased).catch(() => {
        resolve(false);
      });
    });
    return this.#holding;
  }

  release(): void {
    this.#released.abort();
  }

  /**
   * Resolves when the lock of another tab is free: with true when this proves that the tab is gone, with false when the
   * engine's locks prove nothing. Rejects when `signal` aborts first.
   */
  async whenFree(tab: string, signal: AbortSignal): Promise<boolean> {
    if (!(await this.hold())) return false;
    // Ours is held: an engine that gives it a second time gives every lock to everyone.
    let isExclusive = true;
    this.#locks
      .request(this.#nameOf(this.tab), signal, () => {
        isExclusive = signal.aborted || this.#released.signal.aborted;
        return Promise.resolve();
      })
      .catch(() => undefined); // not given, as it should be
    await this.#locks.request(this.#nameOf(tab), signal, () => Promise.resolve());
    return isExclusive;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
}
