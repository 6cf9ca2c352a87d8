import type { Case } from './read.js';

const steps = ['wipe', 'server-rollback'];
const points = ['after-first-sync', 'after-wipe'];
const indexSteps = ['build-index', 'query-index', 'resume-index'];

/** Fields of `expect` that are read but not checked yet. */
export const uncheckedFields = ['server_results', 'changes_feed_whole'] as const;

/** Why the runner cannot run a case yet; undefined when it can. */
export function impossible(given: Case): string | undefined {
  const step = given.steps.find((one) => steps.includes(one.do));
  if (step !== undefined) return `step ${step.do}`;
  const ofIndex = given.steps.find((one) => indexSteps.includes(one.do));
  if (ofIndex !== undefined && given.config.index === undefined) return `step ${ofIndex.do} without config.index`;
  if (given.config.watchdog_s !== undefined) return 'another watchdog time (config.watchdog_s)';
  for (const fault of given.faults) {
    if (fault.at === 'storage') {
      if (fault.do.wipe === true) return 'fault wipe';
      if (fault.do.server_rollback !== undefined) return 'fault server_rollback';
      if (fault.when.point !== undefined) return `a storage fault at the point ${fault.when.point}`;
    }
    if (fault.at === 'process' && points.includes(fault.when.point ?? '')) return `point ${String(fault.when.point)}`;
  }
  return undefined;
}
