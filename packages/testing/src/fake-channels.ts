import type { Channel } from '@afield/client';

/** The channels between the tabs of one browser, in this process. News arrives in a later microtask, never at once. */
export class FakeChannels {
  readonly #listeners = new Map<string, Set<(message?: unknown) => void>>();

  open(name: string, news: (message?: unknown) => void): Channel {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(news);
    return {
      announce: (message) => {
        for (const listener of listeners) {
          if (listener === news) continue;
          queueMicrotask(() => {
            if (listeners.has(listener)) listener(structuredClone(message));
          });
        }
      },
      close: () => {
        listeners.delete(news);
      },
    };
  }
}
