/*
 * Loaded into every process that the commands start (NODE_OPTIONS --import): when the parent is gone, killed or not, the
 * child ends too, so that nothing keeps a port, a lock or a processor.
 */
import { isMainThread } from 'node:worker_threads';

if (isMainThread) endWithParent();

export function endWithParent() {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.exit(1);
  }, 500).unref();
}
