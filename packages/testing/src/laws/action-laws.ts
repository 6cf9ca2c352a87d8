import type { AnyAction } from '@afield/client';
import fc from 'fast-check';
import { BrokenLawError, laws as allLaws, type Law } from './broken-law-error.js';
import { checkSample } from './check-sample.js';
import { batchOf, type ActionSample, type BatchSample } from './sample.js';
import type { ActionWorld } from './trial.js';

export interface ActionLawsOptions {
  /** Only these laws. Default: all. */
  readonly laws?: readonly Law[];
  /** A new world for each device: for actions that call a server. Default: no network. */
  readonly world?: (sample: BatchSample) => ActionWorld | Promise<ActionWorld>;
  /** How many samples are taken of an arbitrary. Default: 50. */
  readonly runs?: number;
  /** Runs a generated sample again, as the error says. */
  readonly replay?: { readonly seed: number; readonly path?: string };
}

/** Samples after a broken law that look for a smaller one. */
const mostShrinks = 100;

/**
 * Checks that an action keeps the laws, by a real client on a fake device; for any test runner. `samples` are a list, or
 * a fast-check arbitrary of them; then the error names the smallest sample that was found.
 * @throws BrokenLawError at the first law that is broken
 * @throws InvalidSampleError when a sample is no batch; `InvalidRequestError` when its operations do not fit the schema
 */
export async function actionLaws(
  action: AnyAction,
  samples: readonly ActionSample[] | fc.Arbitrary<ActionSample>,
  options: ActionLawsOptions = {},
): Promise<void> {
  const laws = new Set(options.laws ?? allLaws);
  const world = options.world ?? (() => ({}));
  const check = (sample: ActionSample): Promise<void> => checkSample(action, batchOf(sample), world, laws);
  if (isArbitrary(samples)) return checkGenerated(samples, check, options);
  if (samples.length === 0) throw new RangeError('Without a sample nothing is checked.');
  for (const sample of samples) await check(sample);
}

async function checkGenerated(
  samples: fc.Arbitrary<ActionSample>,
  check: (sample: ActionSample) => Promise<void>,
  { runs = 50, replay }: ActionLawsOptions,
): Promise<void> {
  let afterFailure = 0;
  let isBroken = false;
  const property = fc.asyncProperty(samples, async (sample) => {
    if (isBroken && (afterFailure += 1) > mostShrinks) return;
    try {
      await check(sample);
    } catch (error) {
      isBroken = true;
      throw error;
    }
  });
  const {
    failed,
    errorInstance: error,
    seed,
    counterexamplePath,
  } = await fc.check(property, { numRuns: runs, ...replay });
  if (!failed) return;
  if (!(error instanceof BrokenLawError)) throw error;
  throw new BrokenLawError(error.action, error.law, error.what, error.sample, { seed, path: counterexamplePath ?? '' });
}

function isArbitrary<T>(samples: readonly T[] | fc.Arbitrary<T>): samples is fc.Arbitrary<T> {
  return !Array.isArray(samples);
}
