import type { Channel } from '@afield/client';

/** The channels between the tabs of one browser, in this process. News arrives in a later microtask, never at once. */
export class FakeChannels {
  readonly #listeners = new Map<string, Set<() => void>>();

  open(name: string, news: () => void): Channel {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners);
    listeners.add(news);
    return {
      announce: () => {
        for (const listener of listeners) {
          if (listener === news) continue;
          queueMicrotask(() => {
            if (listeners.has(listener)) listener();
          });
        }
      },
      close: () => {
        listeners.delete(news);
      },
    };
  }
}
