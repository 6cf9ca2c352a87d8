#!/usr/bin/env node
/*
 * npm run test:breaks [-- R|R8 …]: proves that the tests can fail. For each line of the specification the sources are
 * broken on purpose, in a copy, one recorded mistake at a time (test/breaks/*.json), and a test that carries the line's
 * number must go red. Exit code 1 when a mistake is not noticed, cannot be made any more, or a line has none.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brokenText, recordedBreaks } from './breaks-recorded.mjs';
import { checkTypes } from './build.mjs';
import { copySources } from './breaks-copy.mjs';
import { installPackages } from './install.mjs';
import { atEnd, command, root, run, say, StepError } from './run.mjs';
import { carries, chosenLines } from './spec-lines.mjs';

/** One run of the tests of one line takes seconds; a break may make it hang. */
const mostMs = 90_000;
/** What a broken source throws that does not even make sense: no proof that its behaviour is tested. */
const nonsense = new Set(['ReferenceError', 'SyntaxError']);

let runs = 0;

await command(async () => {
  const recorded = recordedBreaks();
  const lines = chosenLines(process.argv.slice(2), [...new Set(recorded.map(({ line }) => line[0]))]);
  await installPackages();
  if ((await checkTypes()) !== 0) throw new StepError('The packages do not compile.');
  const copy = copySources();
  atEnd(copy.remove);
  try {
    const breaks = recorded.filter(({ line }) => lines.includes(line));
    const unbroken = await runUnbroken(copy.folder, breaks, lines);
    const lineWidth = Math.max(...lines.map(({ length }) => length)) + 2;
    const width = Math.max(0, ...breaks.map(({ why }) => why.length)) + 2;
    let noticed = 0;
    for (const line of lines) {
      const mistakes = breaks.filter((one) => one.line === line);
      let isNoticed = mistakes.length > 0;
      if (!isNoticed) process.stdout.write(`${line.padEnd(lineWidth)}NO BREAK RECORDED\n`);
      for (const mistake of mistakes) {
        const { red, reason } = await tried(copy.folder, mistake, unbroken);
        isNoticed &&= red !== undefined;
        const outcome = red === undefined ? `NOT NOTICED: ${reason}` : `red: ${red}`;
        process.stdout.write(`${line.padEnd(lineWidth)}${mistake.why.padEnd(width)}${outcome}\n`);
      }
      if (isNoticed) noticed++;
    }
    process.stdout.write(`${noticed} of ${lines.length} lines broken and noticed\n`);
    return noticed === lines.length ? 0 : 1;
  } finally {
    copy.remove();
  }
});

/** Without a break everything is green, or a red test would prove nothing. Answers with the tests that ran. */
async function runUnbroken(folder, breaks, lines) {
  if (breaks.length === 0) return [];
  const files = [...new Set(breaks.flatMap(({ tests }) => tests))];
  say(`Running the tests of ${lines.length} lines without a break …`);
  const { tests, broken } = await runTests(folder, lines, files, 5 * mostMs);
  if (broken.length > 0) throw new StepError(`Without a break ${broken[0].broken} does not load: ${broken[0].why}`);
  const red = tests.find(({ state }) => state !== 'passed');
  if (red !== undefined) throw new StepError(`Red without a break: ${red.title}`);
  return tests;
}

/** Makes one mistake, runs the tests of its line, and takes it back. */
async function tried(folder, mistake, unbroken) {
  const isThere = (file) =>
    unbroken.some((test) => test.file === join(folder, file) && carries(test.title, mistake.line));
  const without = mistake.tests.find((file) => !isThere(file));
  if (without !== undefined) return { reason: `${without} has no test of ${mistake.line}` };
  const path = join(folder, mistake.file);
  const source = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
  const { text, reason } = brokenText(source, mistake);
  if (text === undefined) return { reason };
  writeFileSync(path, text);
  try {
    const { tests, broken, code } = await runTests(folder, [mistake.line], mistake.tests, mostMs);
    if (broken.length > 0) return { reason: `a test file did not load: ${broken[0].why}` };
    const failed = tests.filter(({ title, state }) => state === 'failed' && carries(title, mistake.line));
    const red = failed.find(({ errors }) => !errors.some((name) => nonsense.has(name)));
    if (red !== undefined) return { red: red.title };
    if (failed.length > 0) return { reason: `the broken source makes no sense (${failed[0].errors.join(', ')})` };
    return { reason: code === 0 ? 'all tests of this line stay green' : 'no test went red before the run ended' };
  } finally {
    writeFileSync(path, source);
  }
}

async function runTests(folder, lines, files, timeoutMs) {
  const report = join(folder, `.report-${++runs}.jsonl`);
  const script = join(root, 'scripts', 'breaks-run.mjs');
  const pattern = `\\b(${lines.join('|')})\\b`;
  const options = process.env.AFIELD_DEBUG ? {} : { silent: true };
  const code = await run([process.execPath, script, folder, report, pattern, ...files], { timeoutMs, ...options });
  const entries = existsSync(report) ? readFileSync(report, 'utf8').trim().split('\n').filter(Boolean) : [];
  rmSync(report, { force: true });
  const all = entries.map((entry) => JSON.parse(entry));
  return { tests: all.filter(({ title }) => title), broken: all.filter(({ broken }) => broken), code };
}
