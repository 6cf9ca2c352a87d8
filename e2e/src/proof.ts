import { parseArgs } from 'node:util';

/** What a proof is told. */
export type Asked<Numbers extends string, Mistake extends string> = Readonly<Record<Numbers, number>> & {
  readonly seed: number;
  /** A mistake that it must notice. */
  readonly mistake: Mistake | undefined;
  /** Prints a line, with the time. */
  readonly say: (line: string) => void;
};

/** What it found: what is wrong, and the lines to print at its end where nothing is. */
export interface Found {
  readonly wrong: readonly string[];
  /** Printed in any case. */
  readonly notes?: readonly string[];
  readonly good: string;
}

export interface ProofCommand<Numbers extends string, Mistake extends string> {
  /** How npm calls it: `test:move`. */
  readonly name: string;
  /** Its numbers, each with its default and what it says in the help. */
  readonly numbers: Readonly<Record<Numbers, { readonly default: number; readonly help: string }>>;
  /** Mistakes that can be made on purpose, with what each is. */
  readonly mistakes: Readonly<Record<Mistake, string>>;
  readonly prove: (asked: Asked<Numbers, Mistake>) => Promise<Found>;
}

/** A proof as a command: reads the options, prints what happens; the exit code is 1 when anything is wrong. */
export async function runProof<Numbers extends string, Mistake extends string>(
  command: ProofCommand<Numbers, Mistake>,
): Promise<void> {
  try {
    process.exitCode = await main(command);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}

async function main<Numbers extends string, Mistake extends string>({
  name,
  numbers,
  mistakes,
  prove,
}: ProofCommand<Numbers, Mistake>): Promise<number> {
  const names = Object.keys(numbers) as Numbers[];
  const usage = [
    `npm run ${name} [-- OPTIONS]`,
    ...names.map((one) => option(`${one} N`, `${numbers[one].help}; default: ${String(numbers[one].default)}`)),
    option('seed N', 'default: fresh, and printed'),
    option('break NAME', `with a mistake, which must make it red: ${Object.keys(mistakes).join(', ')}`),
  ].join('\n');
  const { values } = parseArgs({
    args: process.argv.slice(2).filter((argument) => argument !== '--'),
    options: {
      ...Object.fromEntries([...names, 'seed', 'break'].map((one) => [one, { type: 'string' as const }])),
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help === true) {
    console.log(usage);
    return 0;
  }
  const given = (one: string): string | undefined => {
    const value = (values as Record<string, unknown>)[one];
    return typeof value === 'string' ? value : undefined;
  };
  const numberOf = (one: string, fallback: number): number => {
    const value = Number(given(one) ?? fallback);
    if (Number.isInteger(value) && value > 0) return value;
    throw new Error(`--${one} needs a number, not ${String(given(one))}.\n${usage}`);
  };
  const mistake = given('break');
  const isMistake = (one: string): one is Mistake => Object.hasOwn(mistakes, one);
  if (mistake !== undefined && !isMistake(mistake)) throw new Error(`There is no break ${mistake}.\n${usage}`);
  const counts = Object.fromEntries(names.map((one) => [one, numberOf(one, numbers[one].default)])) as Record<
    Numbers,
    number
  >;
  const seed = numberOf('seed', 1 + Math.floor(Math.random() * 0x7ffffffe));
  console.log(`Seed ${String(seed)}: ${names.map((one) => `${String(counts[one])} ${one}`).join(', ')}`);
  if (mistake !== undefined) console.log(`With a mistake: ${mistakes[mistake]}.`);
  const began = performance.now();
  const say = (line: string): void => {
    console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);
  };
  const { wrong, notes = [], good } = await prove({ ...counts, seed, mistake, say });
  for (const line of notes) console.log(`          ${line}`);
  for (const line of wrong.slice(0, 20)) console.log(`WRONG: ${line}`);
  const again = `${String(wrong.length)} things are wrong. Run it again: npm run ${name} -- --seed ${String(seed)}`;
  console.log(wrong.length === 0 ? good : again);
  return wrong.length === 0 ? 0 : 1;
}

function option(name: string, help: string): string {
  return `  --${name.padEnd(14)} ${help}`;
}
