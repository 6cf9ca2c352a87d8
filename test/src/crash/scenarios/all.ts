import type { Scenario } from '../scenario.js';
import { conflictingDuplicate, duplicate } from './duplicates.js';
import { heal, regain } from './heal.js';
import { move } from './move.js';
import { publish } from './publish.js';
import { cancel, conflict, lateLeader, redrive, silence, takeOver } from './trouble.js';
import { apply, enqueue, partialFailure, results } from './work.js';

export const scenarios: readonly Scenario[] = [
  enqueue,
  apply,
  partialFailure,
  conflict,
  silence,
  results,
  duplicate,
  conflictingDuplicate,
  publish,
  move,
  heal,
  regain,
  cancel,
  redrive,
  takeOver,
  lateLeader,
];
