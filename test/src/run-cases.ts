import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCase, startCaseServer } from '@afield/testing';
import { findCases, readPending } from './find-cases.js';
import { runAll, type Summary } from './run-all.js';

/**
 * `run-cases [--pending] [--json FILE] [NAME …]`: runs the case files, or those named (`C09`, `C09/edge-404`).
 * `--pending` runs the pending ones too and says which of them pass. The folder: AFIELD_CASES, else `../shared/cases`
 * beside the repository, else `test/cases`.
 */
async function main(args: readonly string[]): Promise<number> {
  const names = [...args];
  const runPending = take(names, '--pending');
  const json = takeValue(names, '--json');
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const cases = await findCases(root, process.env['AFIELD_CASES'], names);
  const pending = await readPending(root);
  const server = await startCaseServer();
  let summary: Summary;
  try {
    summary = await runAll(cases, pending, {
      run: (one) => runCase(one, server),
      software: server.software,
      runPending,
      print: (line) => console.log(line),
    });
  } finally {
    await server.close();
  }
  const { passed, failures } = summary;
  if (json !== undefined) {
    const file = resolve(process.env['INIT_CWD'] ?? '.', json);
    await writeFile(file, `${JSON.stringify({ passed, failed: failures.length, failures }, null, 2)}\n`);
  }
  return failures.length === 0 ? 0 : 1;
}

function take(args: string[], option: string): boolean {
  const at = args.indexOf(option);
  if (at >= 0) args.splice(at, 1);
  return at >= 0;
}

function takeValue(args: string[], option: string): string | undefined {
  const at = args.indexOf(option);
  if (at < 0) return undefined;
  const [, value] = args.splice(at, 2);
  if (value === undefined) throw new Error(`${option} needs a file name`);
  return value;
}

try {
  process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== '--'));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
