import fc from 'fast-check';
import { holds } from './laws.js';
import { scripts, type Script } from './script.js';

export interface PropertyResult {
  readonly runs: number;
  /** What broke, with the shortest script that breaks it; undefined when all held. */
  readonly failure: { readonly message: string; readonly script: Script; readonly path: string } | undefined;
}

/** Runs so many scripts that come from a seed. The same seed and number give the same scripts. */
export async function checkProperty(seed: number, runs: number): Promise<PropertyResult> {
  const property = fc.asyncProperty(scripts, holds);
  const details = await fc.check(property, { seed, numRuns: runs });
  if (!details.failed) return { runs: details.numRuns, failure: undefined };
  const [script] = details.counterexample ?? [];
  const error = details.errorInstance;
  if (script === undefined) throw new Error('The property failed without a script.');
  const message = error instanceof Error ? error.message : String(error);
  return { runs: details.numRuns, failure: { message, script, path: details.counterexamplePath ?? '' } };
}

/** What a person needs to see it again. */
export function reportOf(seed: number, failure: NonNullable<PropertyResult['failure']>): string {
  return [
    failure.message,
    ...failure.script.steps.map((step) => `  ${JSON.stringify(step)}`),
    `  batch size ${String(failure.script.batchSize)}, jitter ${String(failure.script.jitter)}, seed of the script ${String(failure.script.seed)}`,
    `Run it again: AFIELD_SEED=${String(seed)} npm run test:property (AFIELD_TRACE=1 tells the whole story).`,
  ].join('\n');
}

/** The seed that `AFIELD_SEED` names, else a fresh one. */
export function chosenSeed(): number {
  const given = process.env['AFIELD_SEED'];
  return given === undefined || given === '' ? Math.floor(Math.random() * 0x7fffffff) : Number(given);
}

/** Scripts that come from one seed: so many in `npm test`, and in each part of a longer run. */
export const runsPerSeed = 150;
