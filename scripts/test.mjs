#!/usr/bin/env node
/*
 * npm test: installs what is missing, then types, lint, format, unit tests, case files, end-to-end tests.
 * Goes on after a failure, so that one run shows all of them. The last line is "N passed, N failed".
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findBrowser } from './browser.mjs';
import { buildPage, checkTypes } from './build.mjs';
import { endWithNpm } from './parents.mjs';
import { installPackages, pnpm } from './install.mjs';
import { command, root, run, say } from './run.mjs';

endWithNpm();

await command(async () => {
  await installPackages();
  const executablePath = await findBrowser();
  const reports = mkdtempSync(join(tmpdir(), 'afield-test-'));
  try {
    const counts = await runAll(reports, executablePath);
    const sum = (name) => counts.reduce((total, count) => total + count[name], 0);
    for (const { title, passed, failed, isCheck } of counts) {
      say(isCheck ? `${title}: ${failed === 0 ? 'fine' : 'failed'}` : `${title}: ${passed} passed, ${failed} failed`);
    }
    process.stdout.write(`${sum('passed')} passed, ${sum('failed')} failed\n`);
    return sum('failed') === 0 ? 0 : 1;
  } finally {
    rmSync(reports, { recursive: true, force: true });
  }
});

async function runAll(reports, executablePath) {
  const counts = [];
  counts.push(await check('types', checkTypes));
  counts.push(await check('lint', () => run(tool('eslint', 'bin/eslint.js', '.', '--max-warnings', '0'))));
  counts.push(
    await check('format', () => run(tool('prettier', 'bin/prettier.cjs', '--check', '--log-level', 'warn', '.'))),
  );
  const unit = join(reports, 'unit.json');
  counts.push(
    await counted('unit tests', unit, countVitest, () =>
      run(tool('vitest', 'vitest.mjs', 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${unit}`)),
    ),
  );
  const cases = join(reports, 'cases.json');
  counts.push(
    await counted('case files', cases, countCases, () =>
      run([...pnpm(), '--silent', '--filter', '@afield/test', 'run', 'cases', '--json', cases]),
    ),
  );
  // Cases of our own, in the same format: kinds of faults that the handed-out ones do not have.
  const more = join(reports, 'more-cases.json');
  counts.push(
    await counted('case files of our own', more, countCases, () =>
      run([...pnpm(), '--silent', '--filter', '@afield/test', 'run', 'cases', '--json', more], {
        env: { AFIELD_CASES: 'test/more-cases' },
      }),
    ),
  );
  await buildPage();
  const e2e = join(reports, 'e2e.json');
  counts.push(
    await counted('end-to-end tests', e2e, countPlaywright, () =>
      run([process.execPath, playwrightCli(), 'test', '--reporter=list,json'], {
        cwd: join(root, 'e2e'),
        env: { PLAYWRIGHT_JSON_OUTPUT_NAME: e2e, AFIELD_CHROMIUM: executablePath },
      }),
    ),
  );
  return counts;
}

/** A check that is no test: counts only when it fails. */
async function check(title, doIt) {
  say(`Checking ${title} …`);
  return { title, isCheck: true, passed: 0, failed: (await doIt()) === 0 ? 0 : 1 };
}

/** Runs tests and believes their report; a runner that fails without a failed test counts as one failure. */
async function counted(title, report, count, doIt) {
  say(`Running ${title} …`);
  const code = await doIt();
  try {
    const { passed, failed } = count(JSON.parse(readFileSync(report, 'utf8')));
    return { title, passed, failed: code !== 0 && failed === 0 ? 1 : failed };
  } catch (error) {
    say(`The runner of the ${title} left no report: ${error.message}`);
    return { title, passed: 0, failed: 1 };
  }
}

function countVitest({ numPassedTests, numFailedTests, numFailedTestSuites, success }) {
  return { passed: numPassedTests, failed: numFailedTests || (success ? 0 : Math.max(1, numFailedTestSuites)) };
}

function countCases({ passed, failed }) {
  return { passed, failed };
}

function countPlaywright({ stats, errors }) {
  return { passed: stats.expected + stats.flaky, failed: stats.unexpected + errors.length };
}

function tool(name, file, ...args) {
  return [process.execPath, join(root, 'node_modules', name, file), ...args];
}

function playwrightCli() {
  const require = createRequire(join(root, 'e2e', 'package.json'));
  return join(require.resolve('@playwright/test/package.json'), '..', 'cli.js');
}
