import { runOnce, type Run } from './harness.js';
import { invariants } from './invariants.js';
import type { Await, Breaking, Death } from './mortal-process.js';
import type { Scenario } from './scenario.js';
import type { Target } from './world.js';

export interface CampaignOptions {
  /** Only every so manieth death. Default: 1. */
  readonly every?: number;
  /** Only about so many deaths, spread over all of them. Default: all. */
  readonly about?: number;
  /** How many pairs of deaths at most; more are drawn by the seed. Default: 0. */
  readonly pairs?: number;
  readonly seed?: number;
  readonly breaking?: Breaking;
  /** Ends at the first run that violates something. */
  readonly untilViolated?: boolean;
}

export interface CampaignReport {
  readonly scenario: string;
  readonly target: Target;
  /** Awaits on stores, network, locks, channels and notes, when nobody dies. */
  readonly points: number;
  /** Runs with one death, the one without, and those with two. */
  readonly runs: number;
  /** Points that were not reached, tried four times: they count as no run. */
  readonly missed: number;
  /** Pairs of deaths that were run, of all that there are. */
  readonly pairs: { readonly run: number; readonly of: number };
  /** How often an invariant was asked. */
  readonly checks: number;
  readonly invariants: readonly string[];
  /** Runs that violated something. */
  readonly violated: readonly Run[];
}

/** Runs a scenario once for each point where its process may end, then with pairs of them. */
export async function campaign(
  scenario: Scenario,
  target: Target,
  { every = 1, about = Infinity, pairs = 0, seed = 1, breaking, untilViolated = false }: CampaignOptions = {},
): Promise<CampaignReport> {
  const violated: Run[] = [];
  let checks = 0;
  let runs = 0;
  let missed = 0;
  const run = async (...deaths: readonly Death[]): Promise<Run> => {
    let one = await runOnce(scenario, target, deaths, breaking);
    for (let again = 0; again < 3 && !one.isReached && one.violations.length === 0; again += 1) {
      one = await runOnce(scenario, target, deaths, breaking);
    }
    if (one.isReached) runs += 1;
    else missed += 1;
    checks += one.checks;
    if (one.violations.length > 0) violated.push(one);
    return one;
  };
  const isEnough = (): boolean => untilViolated && violated.length > 0;

  const unharmed = await run();
  const points = unharmed.awaits[0] ?? [];
  const all = deathsAt(points, scenario);
  // Odd, or only deaths before a call would be tried, none after it.
  const stride = Math.max(every, Math.floor(all.length / about / 2) * 2 + 1);
  const single = all.filter((_, place) => place % stride === 0);
  const chances: { first: Death; second: Death }[] = [];
  for (const first of single) {
    if (isEnough()) break;
    const { awaits } = await run(first);
    if (pairs > 0) for (const second of deathsAt(awaits[1] ?? [], scenario)) chances.push({ first, second });
  }
  const chosen = draw(chances, pairs, seed);
  for (const { first, second } of chosen) {
    if (isEnough()) break;
    await run(first, second);
  }
  const names = invariants.map(({ name }) => name);
  const counted = { run: chosen.length, of: chances.length };
  return {
    scenario: scenario.name,
    target,
    points: points.length,
    runs,
    missed,
    pairs: counted,
    checks,
    invariants: names,
    violated,
  };
}

function deathsAt(points: readonly Await[], { how = 'kill', mayEnd = () => true }: Scenario): Death[] {
  return points.flatMap((point, place) =>
    (['before', 'after'] as const).flatMap((when) => (mayEnd(point, when) ? [{ at: place + 1, when, how }] : [])),
  );
}

/** So many of them, the same for the same seed; all when there are no more. */
function draw<Value>(all: readonly Value[], most: number, seed: number): readonly Value[] {
  if (all.length <= most) return all;
  const left = [...all];
  let state = (seed % 2_147_483_646) + 1;
  return Array.from({ length: most }, () => {
    state = (state * 16_807) % 2_147_483_647;
    return left.splice(state % left.length, 1);
  }).flat();
}
