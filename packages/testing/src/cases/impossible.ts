import type { Case } from './read.js';
import type { StorageFault } from './schema.js';

const steps = ['wipe'];
const points = ['after-wipe'];
const indexSteps = ['build-index', 'query-index', 'resume-index'];

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
      const rollback = fault.do.server_rollback;
      if (rollback !== undefined && rollback !== true) return `server_rollback ${JSON.stringify(rollback)}`;
      if (!happens(fault, given)) return `a storage fault at the point ${String(fault.when.point)}`;
    }
    if (fault.at === 'process' && points.includes(fault.when.point ?? '')) return `point ${String(fault.when.point)}`;
  }
  return undefined;
}

/** The step stands for the point; without it there is one point at which a server can be set back. */
function happens({ when, do: todo }: StorageFault, { steps: all }: Case): boolean {
  if (todo.server_rollback === undefined) return when.point === undefined;
  return when.point === 'after-first-sync' || all.some((step) => step.do === 'server-rollback');
}
