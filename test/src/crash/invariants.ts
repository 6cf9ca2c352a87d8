import { documentInvariants } from './document-invariants.js';
import { eventInvariants } from './event-invariants.js';
import type { Invariant } from './invariant.js';
import { queueInvariants } from './queue-invariants.js';

/** All invariants, in the order of the design. */
export const invariants: readonly Invariant[] = [...queueInvariants, ...documentInvariants, ...eventInvariants].sort(
  (a, b) => a.design - b.design,
);
