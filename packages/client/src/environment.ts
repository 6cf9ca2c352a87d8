import type { Clock, Connectivity, Environment, Presence } from './model/environment.js';
import { broadcastChannel } from './tabs/channel.js';
import { noLocks, webLocks } from './tabs/locks.js';

/** The effects of the browser or of Node that the client uses when none are handed in. */
export function defaultEnvironment(): Environment {
  return {
    clock: systemClock,
    fetch: (input, init) => globalThis.fetch(input, init),
    locks: typeof navigator === 'object' && 'locks' in navigator ? webLocks(navigator.locks) : noLocks,
    connectivity: browserConnectivity,
    presence: pagePresence(),
    channel: broadcastChannel,
    indexedDB: typeof indexedDB === 'object' ? indexedDB : undefined,
    breathe: nextTask,
    random: Math.random,
    newId: newUuid,
    warn: () => undefined,
  };
}

const systemClock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer: (run, delayMs) => setTimeout(run, delayMs),
  clearTimer: (timer) => {
    clearTimeout(timer as ReturnType<typeof setTimeout>);
  },
};

const browserConnectivity: Connectivity = {
  online: () => typeof navigator !== 'object' || (navigator.onLine as boolean | undefined) !== false,
  subscribe: (changed) => {
    const events: [EventTarget, string][] = [];
    if (typeof addEventListener === 'function') {
      events.push([globalThis, 'online'], [globalThis, 'offline']);
    }
    if (typeof document === 'object') events.push([document, 'visibilitychange']);
    for (const [target, name] of events) target.addEventListener(name, changed);
    return () => {
      for (const [target, name] of events) target.removeEventListener(name, changed);
    };
  },
};

/**
 * The page's visibility, and notes in local storage, which is the only store that writes at once. Where there is no page
 * (a worker, Node) nobody looks, and where there is no local storage nothing is noted.
 */
function pagePresence(): Presence {
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
    noted: (name) => {
      try {
        return localStorage.getItem(name) ?? undefined;
      } catch {
        return undefined; // closed to this page
      }
    },
  };
}

/** The next task: a message comes sooner than a timer, which browsers hold back. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/** A random UUID, also where `crypto.randomUUID` is missing (pages that are not served over HTTPS). */
function newUuid(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}
