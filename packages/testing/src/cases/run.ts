import { takeBaseline } from './baseline.js';
import { checkExpectations } from './checks.js';
import { impossible } from './impossible.js';
import { withOwnUsers } from './own-users.js';
import type { Case } from './read.js';
import type { CaseServer } from './server.js';
import { takeSteps } from './steps.js';
import { World } from './world.js';

/** How a case ended. */
export interface CaseReport {
  readonly name: string;
  readonly title: string;
  /** Why the runner cannot run the case yet; nothing was run then. */
  readonly impossible: string | undefined;
  /** What was wrong, a line each; empty when it passed. */
  readonly failures: readonly string[];
}

/** Seconds of real time after which a case counts as one that does not end. */
const longestCaseS = 60;

/** Runs one case in databases of its own. An unhandled rejection or an uncaught error fails it, and so does no end. */
export async function runCase(given: Case, server: CaseServer): Promise<CaseReport> {
  const report = { name: given.name, title: given.title, impossible: impossible(given) };
  if (report.impossible !== undefined) return { ...report, failures: [`not possible yet: ${report.impossible}`] };
  const stray: string[] = [];
  const note = (what: string) => (error: unknown) => stray.push(`${what}: ${shown(error)}`);
  const [onRejection, onError] = [note('unhandled rejection'), note('uncaught error')];
  process.on('unhandledRejection', onRejection);
  process.on('uncaughtException', onError);
  try {
    const failures = await withinTime(runInWorld(given, server));
    return { ...report, failures: [...failures, ...stray] };
  } catch (error) {
    return { ...report, failures: [shown(error), ...stray] };
  } finally {
    process.off('unhandledRejection', onRejection);
    process.off('uncaughtException', onError);
  }
}

async function runInWorld(given: Case, server: CaseServer): Promise<readonly string[]> {
  const run = `${process.pid.toString(36)}${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;
  const own = withOwnUsers(given, run);
  const world = new World(own, server, run);
  try {
    await world.open();
    const baseline = await takeBaseline(world);
    const onTheWay = await takeSteps(world);
    const atTheEnd = await checkExpectations(own.expect, { world, baseline });
    const left = await world.close();
    await world.rest();
    return [...onTheWay, ...atTheEnd, ...world.publications.strange, ...left, ...server.takeProblems()];
  } finally {
    await world.drop();
  }
}

async function withinTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`did not end within ${String(longestCaseS)} seconds`)),
      longestCaseS * 1000,
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function shown(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message).split('\n').slice(0, 4).join(' ') : String(error);
}
