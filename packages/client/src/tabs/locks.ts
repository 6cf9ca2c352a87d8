import type { Locks } from '../model/environment.js';

/** Web Locks: one holder for all tabs, freed by the browser when a tab dies. */
export function webLocks(manager: LockManager): Locks {
  return {
    request: async (name, signal, whileHeld) => {
      await manager.request(name, { signal }, whileHeld);
    },
  };
}

/** For engines without Web Locks: everyone holds the lock. Safe, because no write rests on a single leader (DESIGN, 7). */
export const noLocks: Locks = {
  request: (_name, _signal, whileHeld) => whileHeld(),
};
