#!/usr/bin/env node
/*
 * npm run test:spec [-- R|R8 …]: runs the unit tests and prints, for each line of the specification, the tests whose
 * titles carry its number. Lines without a test are said so. Exit code 1 when a test of a chosen line failed.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installPackages } from './install.mjs';
import { checkTypes } from './build.mjs';
import { command, root, run, StepError } from './run.mjs';
import { carries, chosenLines } from './spec-lines.mjs';

/** Those that only a real CouchDB runs (docs/tests.md). */
const leftOut = new Set(['skipped', 'pending']);

await command(async () => {
  const lines = chosenLines(process.argv.slice(2));
  await installPackages();
  if ((await checkTypes()) !== 0) throw new StepError('The packages do not compile');
  const tests = await runTests();
  let failed = 0;
  for (const line of lines) {
    const found = tests.filter(({ title }) => carries(title, line));
    process.stdout.write(found.length === 0 ? `${line}: no test yet\n` : `${line}\n`);
    for (const { title, status } of found) {
      if (status !== 'passed' && !leftOut.has(status)) failed++;
      process.stdout.write(
        `  ${status === 'passed' ? 'green' : leftOut.has(status) ? 'left out' : 'RED  '} ${title}\n`,
      );
    }
  }
  return failed === 0 ? 0 : 1;
});

async function runTests() {
  const folder = mkdtempSync(join(tmpdir(), 'afield-spec-'));
  const report = join(folder, 'unit.json');
  try {
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    await run([process.execPath, vitest, 'run', '--reporter=json', `--outputFile.json=${report}`], { quiet: true });
    const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
    return testResults.flatMap(({ assertionResults }) =>
      assertionResults.map(({ fullName, status }) => ({ title: fullName.trim(), status })),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
