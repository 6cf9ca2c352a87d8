import type { Case, CaseReport } from '@afield/testing';
import type { FoundCases, Pending } from './find-cases.js';

/** How a run of many cases ended. */
export interface Summary {
  readonly passed: number;
  readonly pending: number;
  /** A line for each case that failed. */
  readonly failures: readonly string[];
}

/** How to run. */
export interface RunOptions {
  /** Runs one case. */
  readonly run: (one: Case) => Promise<CaseReport>;
  /** What the cases run against, for the last lines. */
  readonly software: string;
  /** Run the pending ones too: one that passes is said, one that fails is no failure. */
  readonly runPending: boolean;
  readonly print: (line: string) => void;
}

/** Runs cases one after another and prints a line for each. */
export async function runAll(cases: FoundCases, pending: Pending, options: RunOptions): Promise<Summary> {
  const failures: string[] = [];
  let passed = 0;
  let waiting = 0;
  for (const name of Object.keys(pending).filter((one) => !cases.allNames.has(one))) {
    const line = `${name} is listed as pending, but there is no such case`;
    options.print(cases.isOurs ? `FAILED   ${line}` : `note     ${line}`);
    // The list is about our own cases: in another folder they may be missing.
    if (cases.isOurs) failures.push(line);
  }
  for (const one of cases.chosen) {
    const reason = Object.hasOwn(pending, one.name) ? pending[one.name] : undefined;
    if (reason !== undefined) {
      waiting += 1;
      options.print(`pending  ${one.name}  ${one.title}: ${reason}${await tried(one, options)}`);
      continue;
    }
    const report = await options.run(one);
    const isPassed = report.failures.length === 0;
    options.print(`${isPassed ? 'passed ' : 'FAILED '}  ${one.name}  ${one.title}`);
    for (const line of report.failures) options.print(`           ${line}`);
    if (isPassed) passed += 1;
    else failures.push(`${one.name}: ${report.failures.join('; ')}`);
  }
  options.print(`cases of ${cases.folder} on ${options.software}, ${String(waiting)} pending`);
  options.print(`${String(passed)} passed, ${String(failures.length)} failed`);
  return { passed, pending: waiting, failures };
}

async function tried(one: Case, options: RunOptions): Promise<string> {
  if (!options.runPending) return '';
  const report = await options.run(one);
  if (report.failures.length === 0) return '\n           PASSES NOW: take it off the list';
  return ['', ...report.failures].join('\n           ');
}
