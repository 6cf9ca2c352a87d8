import type { AnyAction } from '@afield/client';
import fc from 'fast-check';
import { askedLaws, isObject, wrongOption } from './asked-laws.js';
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
 * @throws AfieldError `invalid_option`
 * @throws InvalidSampleError when a sample is no batch; `InvalidRequestError` when its operations do not fit the schema
 */
export async function actionLaws(
  action: AnyAction,
  samples: readonly ActionSample[] | fc.Arbitrary<ActionSample>,
  options: ActionLawsOptions = {},
): Promise<void> {
  const laws = new Set(askedLaws('actionLaws', options, known, allLaws));
  checkGiven(action, samples, options);
  const world = options.world ?? (() => ({}));
  const check = (sample: ActionSample): Promise<void> => checkSample(action, batchOf(sample), world, laws);
  if (isArbitrary(samples)) return checkGenerated(samples, check, options);
  if (samples.length === 0) throw new RangeError('Without a sample nothing is checked.');
  for (const sample of samples) await check(sample);
}

const known = ['laws', 'world', 'runs', 'replay'] satisfies (keyof ActionLawsOptions)[];

function checkGiven(action: unknown, samples: unknown, { world, runs, replay }: ActionLawsOptions): void {
  if (!isObject(action) || typeof (action as Partial<AnyAction>).name !== 'string') {
    throw wrongOption(
      'actionLaws',
      'the first argument must be an action: make it with defineDocumentAction or defineAction',
    );
  }
  if (typeof samples !== 'object' || samples === null || !(Array.isArray(samples) || 'generate' in samples)) {
    throw wrongOption('actionLaws', '`samples` must be a list, or an arbitrary of fast-check');
  }
  if (world !== undefined && typeof world !== 'function') throw wrongOption('actionLaws', '`world` must be a function');
  if (runs !== undefined && !(Number.isInteger(runs) && runs >= 1)) {
    throw wrongOption('actionLaws', '`runs` must be a whole number, 1 or more');
  }
  if (replay !== undefined && typeof (replay as { seed?: unknown } | null)?.seed !== 'number') {
    throw wrongOption('actionLaws', '`replay` must be an object { seed, path }, as the error says it');
  }
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
