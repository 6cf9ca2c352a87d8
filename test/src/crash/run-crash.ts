import { parseArgs } from 'node:util';
import { breaks } from './breaks.js';
import { campaign } from './campaign.js';
import { lineOf, violationsOf } from './report.js';
import { scenarios } from './scenarios/all.js';

const usage = `npm run test:crash [-- OPTIONS]
  --scenario NAME   only this one (may be given again): ${scenarios.map(({ name }) => name).join(', ')}
  --target T        local or server; default: both
  --pairs [N]       also pairs of deaths: at most N per scenario and target, drawn by the seed
  --every N         only every so manieth point
  --break NAME      with a mistake, which must make it red: ${Object.keys(breaks).join(', ')}
  --seed N          for the pairs; default: fresh, and printed`;

/** Runs the chosen scenarios, and prints a line for each. Exit code 1 when anything was violated. */
async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: args.filter((argument) => argument !== '--'),
    options: {
      scenario: { type: 'string', multiple: true },
      target: { type: 'string' },
      pairs: { type: 'string' },
      every: { type: 'string', default: '1' },
      break: { type: 'string' },
      seed: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const chosen = scenarios.filter(({ name }) => values.scenario?.includes(name) ?? true);
  const unknown = values.scenario?.find((name) => !scenarios.some((one) => one.name === name));
  if (unknown !== undefined) throw new Error(`There is no scenario ${unknown}.\n${usage}`);
  const targets = (['local', 'server'] as const).filter((one) => values.target === undefined || values.target === one);
  const mistake = values.break === undefined ? undefined : breaks[values.break];
  if (values.break !== undefined && mistake === undefined)
    throw new Error(`There is no break ${values.break}.\n${usage}`);
  const seed = numberOf('seed', values.seed ?? String(Math.floor(Math.random() * 0x7fffffff)));
  const pairs = values.pairs === undefined ? 0 : numberOf('pairs', values.pairs);
  const every = numberOf('every', values.every);
  if (pairs > 0) console.log(`The seed of the pairs is ${String(seed)}.`);
  if (mistake !== undefined) console.log(`With a mistake: ${mistake.says}.`);
  let violated = 0;
  for (const scenario of chosen) {
    for (const target of targets.filter((one) => scenario.targets?.includes(one) ?? true)) {
      const breaking = mistake === undefined ? {} : { breaking: mistake.breaking };
      const report = await campaign(scenario, target, { every, pairs, seed, ...breaking });
      violated += report.violated.length;
      console.log(lineOf(report));
      for (const line of violationsOf(report).slice(0, 5)) console.log(`    ${line}`);
    }
  }
  console.log(violated === 0 ? '0 violations' : `${String(violated)} runs with violations`);
  return violated === 0 ? 0 : 1;
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
