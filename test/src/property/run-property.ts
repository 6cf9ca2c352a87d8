import { checkProperty, chosenSeed, reportOf, runsPerSeed } from './property.js';

/**
 * `run-property [--runs N]`: runs N scripts (default 150), a seed for every 150; the first seed is AFIELD_SEED, or
 * fresh. Ends at the first script that breaks a law, and prints the shortest one that does.
 */
async function main(args: readonly string[]): Promise<number> {
  const at = args.indexOf('--runs');
  const wanted = at < 0 ? runsPerSeed : Number(args[at + 1]);
  if (!Number.isInteger(wanted) || wanted < 1) throw new Error('--runs needs a number');
  const first = chosenSeed();
  if (!Number.isInteger(first)) throw new Error('AFIELD_SEED must be a number');
  const begun = performance.now();
  const seconds = (): string => ((performance.now() - begun) / 1000).toFixed(1);
  for (let done = 0, seed = first; done < wanted; seed += 1) {
    const runs = Math.min(runsPerSeed, wanted - done);
    const result = await checkProperty(seed, runs);
    if (result.failure !== undefined) {
      console.log(`seed ${String(seed)}: broken after ${String(done + result.runs)} runs, ${seconds()} s`);
      console.log(reportOf(seed, result.failure));
      return 1;
    }
    done += runs;
    console.log(`seed ${String(seed)}: ${String(done)} of ${String(wanted)} held, ${seconds()} s`);
  }
  console.log(`All ${String(wanted)} held, ${seconds()} s. The first seed was ${String(first)}.`);
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
