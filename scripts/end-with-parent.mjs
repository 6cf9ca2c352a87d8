/*
 * Loaded into every process that the commands start (NODE_OPTIONS --import): when the parent is gone, killed or not, the
 * child ends too, so that nothing keeps a port, a lock or a processor.
 */
import { isMainThread } from 'node:worker_threads';
import { endWithParent } from './parents.mjs';

if (isMainThread) endWithParent();
