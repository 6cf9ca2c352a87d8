import type { Presence } from '../model/environment.js';

/** What a page answers at once. */
export interface OwnPresence extends Presence {
  note(name: string, text: string): void;
  noted(name: string): string | undefined;
  forget?(name: string): void;
}

/**
 * The page's visibility, and notes in local storage, which is the only store that writes at once. Where there is no page
 * (a worker, Node) nobody looks, and where there is no local storage nothing is noted.
 */
export function ownPresence(): OwnPresence {
  let isLeft = false;
  return {
    visible: () => typeof document === 'object' && document.visibilityState === 'visible' && !isLeft,
    subscribe: (changed) => {
      if (typeof document !== 'object') return () => undefined;
      // A page that is left or reloaded is not visible any more, whatever it says of itself.
      const left = (): void => {
        isLeft = true;
        changed();
      };
      const back = (): void => {
        isLeft = false;
        changed();
      };
      document.addEventListener('visibilitychange', changed);
      addEventListener('pagehide', left);
      addEventListener('pageshow', back);
      return () => {
        document.removeEventListener('visibilitychange', changed);
        removeEventListener('pagehide', left);
        removeEventListener('pageshow', back);
      };
    },
    note: (name, text) => {
      try {
        localStorage.setItem(name, text);
      } catch {
        // Full, or closed to this page: then stops of the process are not counted, and nothing else is lost.
      }
    },
    forget: (name) => {
      try {
        localStorage.removeItem(name);
      } catch {
        // Closed to this page: then there is nothing of ours in it.
      }
    },
    noted: (name) => {
      try {
        return localStorage.getItem(name) ?? undefined;
      } catch {
        return undefined; // closed to this page
      }
    },
  };
}
