import { parseArgs } from 'node:util';
import { breaks } from './breaks.js';
import { runDevices } from './run.js';

const usage = `npm run test:devices [-- OPTIONS]
  --devices N       default: 3
  --operations N    of each device; default: 500
  --documents N     default: 200
  --seed N          default: fresh, and printed
  --runs N          so many runs, with the seeds that follow; default: 1
  --foreign         the apps also edit documents past the queue
  --quick           stores and server in memory: the same seed gives the same run
  --break NAME      with a mistake, which must make it red: ${Object.keys(breaks).join(', ')}
  --trace           prints what happened, too`;

const shownAtMost = 20;

/** Carries out runs, and prints a line for each. Exit code 1 when anything was not as it must be. */
async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: args.filter((argument) => argument !== '--'),
    options: {
      devices: { type: 'string', default: '3' },
      operations: { type: 'string', default: '500' },
      documents: { type: 'string', default: '200' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 0x7fffffff)) },
      runs: { type: 'string', default: '1' },
      foreign: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      break: { type: 'string' },
      trace: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const mistake = values.break === undefined ? undefined : breaks[values.break];
  if (mistake !== undefined) console.log(`With a mistake: ${mistake.says}.`);
  const first = numberOf('seed', values.seed);
  let broken = 0;
  for (let run = 0; run < numberOf('runs', values.runs); run += 1) {
    const seed = first + run;
    const begun = performance.now();
    const { violations, counts, trace } = await runDevices({
      plan: {
        seed,
        devices: numberOf('devices', values.devices),
        operations: numberOf('operations', values.operations),
        documents: numberOf('documents', values.documents),
        foreign: values.foreign,
      },
      quick: values.quick,
      break: values.break,
    });
    const said = Object.entries(counts).map(([name, count]) => `${name} ${String(count)}`);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(`seed ${String(seed)}: ${said.join(', ')}; ${String(violations.length)} violations, ${seconds} s`);
    if (values.trace) for (const line of trace) console.log(`  ${line}`);
    for (const line of violations.slice(0, shownAtMost)) console.log(`    ${line}`);
    if (violations.length > shownAtMost) console.log(`    … ${String(violations.length - shownAtMost)} more`);
    broken += Number(violations.length > 0);
  }
  return broken === 0 ? 0 : 1;
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`--${name} needs a number, not ${text}.`);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
