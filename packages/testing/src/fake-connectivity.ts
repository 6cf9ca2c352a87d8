import type { Connectivity } from '@afield/client';

/** What the browser says about the network, as a test wishes. */
export class FakeConnectivity implements Connectivity {
  #online: boolean;
  readonly #listeners = new Set<() => void>();

  constructor(online = true) {
    this.#online = online;
  }

  online(): boolean {
    return this.#online;
  }

  subscribe(changed: () => void): () => void {
    this.#listeners.add(changed);
    return () => this.#listeners.delete(changed);
  }

  /** The network comes or goes. */
  set(online: boolean): void {
    this.#online = online;
    this.notify();
  }

  /** The browser calls back, as when a page becomes visible. */
  notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** How many still listen; none should after `close()`. */
  get listeners(): number {
    return this.#listeners.size;
  }
}
