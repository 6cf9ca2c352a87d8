import type { Presence } from '../model/environment.js';
import { ownEndpoint, type Endpoint } from './endpoint.js';
import { PageAsking } from './page-asking.js';

/**
 * For the client of a worker: whether a person looks at the page, and notes in the page's local storage, which a worker has
 * not (R16). For `environment: { presence: pagePresence() }`. The client begins to run when a page has connected, and when
 * that page has noted its run.
 */
export function pagePresence(endpoint: Endpoint = ownEndpoint()): Presence {
  let isVisible = false;
  const listeners = new Set<() => void>();
  const page = new PageAsking(endpoint, (visible) => {
    if (visible === isVisible) return;
    isVisible = visible;
    for (const listener of [...listeners]) listener();
  });
  return {
    visible: () => isVisible,
    subscribe: (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    // Without an answer nothing is noted: then stops of the process are not counted, and nothing else is lost.
    note: (name, text) => page.ask({ of: 'note', name, text }).catch(() => undefined),
    forget: (name) => page.ask({ of: 'forget', name }).catch(() => undefined),
    noted: async (name) => {
      const text = await page.ask({ of: 'noted', name }).catch(() => undefined);
      return typeof text === 'string' ? text : undefined;
    },
  };
}
