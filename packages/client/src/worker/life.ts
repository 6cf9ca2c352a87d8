import type { Locks } from '../model/environment.js';
import { noLocks, webLocks } from '../tabs/locks.js';
import { newUuid } from '../tabs/new-uuid.js';
import { TabLock } from '../tabs/tab-lock.js';

/** The lock that says that this page, or this worker, lives: no engine tells of a worker's or a page's death by itself. */
export function lifeOf(locks: Locks = engineLocks()): TabLock {
  return new TabLock(locks, 'worker', newUuid());
}

function engineLocks(): Locks {
  return typeof navigator === 'object' && 'locks' in navigator ? webLocks(navigator.locks) : noLocks;
}
