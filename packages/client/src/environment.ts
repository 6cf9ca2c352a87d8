import type { Clock, Connectivity, Environment } from './model/environment.js';
import { broadcastChannel } from './tabs/channel.js';
import { noLocks, webLocks } from './tabs/locks.js';
import { newUuid } from './tabs/new-uuid.js';
import { ownPresence } from './tabs/own-presence.js';

/** The effects of the browser or of Node that the client uses when none are handed in. */
export function defaultEnvironment(): Environment {
  return {
    clock: systemClock,
    fetch: (input, init) => globalThis.fetch(input, init),
    locks: typeof navigator === 'object' && 'locks' in navigator ? webLocks(navigator.locks) : noLocks,
    connectivity: browserConnectivity,
    presence: ownPresence(),
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
