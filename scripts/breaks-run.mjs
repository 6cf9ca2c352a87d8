/*
 * Runs tests of a copy of the sources, in a process of its own: `node breaks-run.mjs <folder> <report> <pattern> <files …>`.
 * Each test that ends is written to the report at once, one JSON a line, so that a run that hangs has said what it saw.
 */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { startVitest } from 'vitest/node';

const [folder, report, testNamePattern, ...files] = process.argv.slice(2);

const note = (entry) => appendFileSync(report, `${JSON.stringify(entry)}\n`);
const namesOf = (errors = []) => errors.map(({ name }) => name ?? 'Error');

const reporter = {
  onTestCaseResult(test) {
    const { state, errors } = test.result();
    if (state === 'skipped') return;
    note({ title: test.fullName.replaceAll(' > ', ' '), file: test.module.moduleId, state, errors: namesOf(errors) });
  },
  onTestModuleEnd(module) {
    // Errors outside of tests: the file did not load.
    if (module.errors().length > 0) note({ broken: module.moduleId, why: module.errors()[0].message.split('\n')[0] });
  },
};

/*
 * Packages of ours as they are in the copy, not as they were built: a break must reach the tests of other packages too.
 * The development server starts threads from its built files and stays as it is.
 */
const alias = [
  { find: /^@afield\/(client|contacts|testing)$/, replacement: join(folder, 'packages/$1/src/index.ts') },
  { find: /^@afield\/client\/(.+)$/, replacement: join(folder, 'packages/client/src/$1.ts') },
];

const vitest = await startVitest(
  'test',
  files,
  {
    root: folder,
    watch: false,
    // A thread that hangs ends with this process.
    pool: 'threads',
    bail: 1,
    testTimeout: 10_000,
    testNamePattern,
    reporters: [reporter],
  },
  { resolve: { alias }, cacheDir: join(folder, '.cache') },
);
await vitest.close();
